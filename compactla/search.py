"""Which OpenCL kernels there are for known sizes, and what tuning tries of them: plain data, which needs no device.

A choice is a dict: "kernel" names a kernel of `opencl/`, the rest are its tunables, which are explained at the top of
the kernels' files; an empty dict stands for the kernel that takes any size.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

GROUP_SIZE = 1024  # no group has more work-items
LOCAL_BYTES = 48 * 1024  # of local memory that a group may use; some compilers take no more
WARP, SECTOR = 32, 32  # work-items that run together on NVIDIA's GPUs, and bytes that memory moves at once
REGISTERS = 240  # 4-byte registers of a work-item that a candidate may hold its matrices in
GROUP, LANES, TEAM = range(1, GROUP_SIZE + 1), range(1, 65), range(1, 33)  # what these tunables may be

Choice = dict[str, Any]  # numbers but for the kernel
Size = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel for known sizes.

    Attributes
    ----------
    tunables : dict
        What each of them may be.
    group : function
        Work-items of a work-group, of a choice and the sizes.
    local : function
        Elements in the local memory of a work-group, of a choice and the sizes.
    places : function
        Integers of 8 bytes there, of a choice.
    roomy : bool
        Whether local memory is one array of it, which may be larger where launches provide it: CLA_ROOM_OF.
    whole_packs : function
        Whether the LANES of a choice have to be all that there are in a pack, in multiples of four.
    whole : function
        Whether the work-items and groups of a choice are as many as there is to do for the sizes.
    file : str
        Its source, if it is not that of the search.
    warps : bool
        Whether it is told by CLA_WARP that a work-group is one of NVIDIA's warps, which needs no barriers.
    in_warps : bool
        Whether it is told so for the work-items of a matrix, which are neighbours.
    """

    tunables: dict[str, range]
    group: Callable[[Choice, Size], int] = lambda choice, size: choice["GROUP"]
    local: Callable[[Choice, Size], float] = lambda choice, size: 0
    places: Callable[[Choice], int] = lambda choice: 0
    roomy: bool = False
    whole_packs: Callable[[Choice], bool] = lambda choice: False
    whole: Callable[[Choice, Size], bool] = lambda choice, size: True
    file: str = ""
    warps: bool = False
    in_warps: bool = False


@dataclass(frozen=True, eq=False)
class Search:
    """The kernels of a routine for known sizes.

    Attributes
    ----------
    name : str
        What results of tuning are filed under.
    file : str
        The source of the kernels.
    kernels : dict of Kernel
        By name.
    candidates : function
        Choices worth a try, the most likely first: of the sizes, the dtype, and the numbers of lanes that divide the
        vector length.
    sizes : tuple
        What is tuned for.
    largest : int
        The largest size with kernels of its own.
    free : int
        How many sizes, the last ones, may be larger.
    """

    name: str
    file: str
    kernels: dict[str, Kernel]
    candidates: Callable[..., Iterator[Choice]]
    sizes: tuple[Size, ...]
    largest: int = 32
    free: int = 0

    def file_of(self, choice: Choice) -> str:
        """The source of the kernel of a choice."""
        return self.kernels[choice["kernel"]].file or self.file

    @property
    def files(self) -> list[str]:
        """The sources of all kernels."""
        return sorted({self.file, *(self.file_of({"kernel": kernel}) for kernel in self.kernels)})

    def has(self, size: Size) -> bool:
        """Whether there are kernels for known sizes like these."""
        return 0 < min(size) and max(size[: len(size) - self.free]) <= self.largest

    def has_kernel(self, choice: Any) -> bool:
        """Whether this is a choice for some sizes; it may be anything."""
        if not isinstance(choice, dict) or not choice:
            return choice == {}
        kernel, tunables = choice.get("kernel"), {name: choice[name] for name in choice if name != "kernel"}
        known = self.kernels.get(kernel) if isinstance(kernel, str) else None
        if known is None or tunables.keys() != known.tunables.keys():
            return False
        return all(type(value) is int and value in known.tunables[name] for name, value in tunables.items())

    def knows(self, choice: Any, size: Size) -> bool:
        """Whether this is a choice for these sizes; it may be anything."""
        if not self.has_kernel(choice):
            return False
        return not choice or (bool(size) and min(size) > 0 and self.kernels[choice["kernel"]].whole(choice, size))

    def divides(self, choice: Choice, vlen: int) -> bool:
        """Whether work-groups of a choice divide packs of a vector length evenly."""
        lanes = choice.get("LANES", 1)
        if self.kernels[choice["kernel"]].whole_packs(choice):
            return vlen == lanes and lanes % 4 == 0
        return vlen % lanes == 0

    def group_size(self, choice: Choice, size: Size) -> int:
        """Work-items of a work-group."""
        return self.kernels[choice["kernel"]].group(choice, size)

    def local_bytes(self, choice: Choice, size: Size, dtype: np.dtype) -> float:
        """Local memory of a work-group."""
        kernel = self.kernels[choice["kernel"]]
        return kernel.local(choice, size) * dtype.itemsize + 8 * kernel.places(choice)

    def room(self, choice: Choice, size: Size, dtype: np.dtype) -> dict[str, int]:
        """What tells a kernel that a launch provides its local memory, where a compiler takes no such array."""
        local = self.local_bytes(choice, size, dtype)
        return {"CLA_ROOM": int(local)} if local > LOCAL_BYTES else {}


SQUARES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 24, 32)


def squares(count: int) -> tuple[Size, ...]:
    """Sizes that routines with so many letters are tuned for."""
    return tuple((n,) * count for n in SQUARES)


def registers(count: int, dtype: np.dtype) -> int:
    """4-byte registers that so many lanes take."""
    return count * dtype.itemsize // 4


# Most routines have two kernels: one work-item a matrix, which holds it in registers, or a team of them.

ITEM = Kernel({"GROUP": GROUP})


def items(kernel: str) -> Iterator[Choice]:
    """Choices of a kernel with one work-item a matrix."""
    yield from ({"kernel": kernel, "GROUP": group} for group in (64, 16))


def team(tunables: dict[str, range], local: Callable[[Choice, Size], float], columns: int = -1) -> Kernel:
    """A kernel of which a work-item does COLUMNS columns of a matrix, and a work-group LANES matrices.

    `columns` says which of the sizes is their number.
    """
    return Kernel(
        {"LANES": LANES, "COLUMNS": range(1, 5), "TEAM": TEAM, **tunables},
        group=lambda choice, size: choice["LANES"] * choice["TEAM"],
        local=local,
        whole=lambda choice, size: choice["TEAM"] == -(-size[columns] // choice["COLUMNS"]),
    )


def teams(kernel: str, rows: int, columns: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of a kernel with such teams, each work-item with all rows of its columns in registers."""
    widths = {width for width in (2, 3, 4, 1) if width <= columns}
    for width in sorted(widths, key=lambda width: (-(-columns // width) * width - columns, abs(width - 2.6))):
        if registers(width * rows, dtype) <= REGISTERS + 20:
            for some in lanes:
                count = -(-columns // width)
                if 64 <= some * count <= 512 or (count == 1 and some >= 32):
                    yield {"kernel": kernel, "LANES": some, "COLUMNS": width, "TEAM": count}


def columns(file: str, width: Callable[..., int], local: Callable[[Size], float], tiled: bool = False) -> Kernel:
    """A kernel in a file of which a work-item has one of the columns, so many of the sizes, of LANES matrices.

    `local` says how many elements of each matrix are in local memory; `tiled`, whether there is a tile for columns on
    their way out.
    """
    return Kernel(
        {"LANES": LANES},
        group=lambda choice, size: choice["LANES"] * width(*size),
        local=lambda choice, size: choice["LANES"] * local(size),
        places=lambda choice: TILE_BYTES // 8 * tiled,
        file=file,
    )


def each_column(kernel: str, rows: int, width: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of a kernel with a work-item for each of so many columns, of rows that it has in registers."""
    if rows <= 32 and registers(rows, dtype) <= OF_A_MEMBER:
        for some in sorted(lanes, key=lambda some: abs(math.log(some * width / 200))):
            if 32 <= some * width <= 768 and some * (dtype.itemsize // (1 + (dtype.kind == "c"))) >= SECTOR:
                yield {"kernel": kernel, "LANES": some}


# From some size on, a matrix is in the registers of a team that is a grid of P x Q work-items: see `opencl/grid.h`.

TILE_BYTES = 16384  # of local memory for columns on their way out
LARGEST_GRID = 128  # rows and columns of what a team holds
GRID = range(1, 129)
OF_A_MEMBER = 144  # registers of a work-item for its part of a matrix, at most
OF_COLUMNS = 192  # registers of a work-item for its columns in QR factorizations, at most
OF_TALL = 36  # elements that each member has of tall grids, at most, if these may have more members
MOST = 512  # work-items of a team
TALL = {1: 16, 2: 32, 4: 128, 8: MOST}  # rows of grids, and the most members for so many
FOR_ALL_ELSE, OF_A_GROUP = 64, 65536  # registers that it needs beside these, and those that work-groups have


def grid(
    file: str,
    rows: Callable[..., int],
    columns: Callable[..., int],
    room: Callable[[int, int, Choice], int] = lambda m, n, choice: 0,
    **tunables: range,
) -> Kernel:
    """A kernel in a file of teams that hold LANES matrices, of the sizes of which so many rows and columns.

    A matrix has two lines in local memory, and `room` for more elements, of those and the choice.
    """

    def local(choice, size):
        m, n = rows(*size), columns(*size)
        longest = max(m + 2 * choice["P"], n + choice["Q"]) + WARP
        return choice["LANES"] * (2 * longest + room(m, n, choice))

    return Kernel(
        {"LANES": LANES, "P": GRID, "Q": GRID, **tunables},
        group=lambda choice, size: choice["LANES"] * choice["P"] * choice["Q"],
        local=local,
        whole=lambda choice, size: all(choice[name].bit_count() == 1 for name in "PQ"),
        file=file,
        warps=True,
    )


def grids(
    kernel: str, rows: int, columns: int, dtype: np.dtype, lanes: Sequence[int], most: int = OF_A_MEMBER
) -> Iterator[Choice]:
    """Choices of a kernel whose teams hold matrices of so many rows and columns, a member `most` elements."""
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    for some in sorted(some for some in lanes if some * real >= SECTOR or lanes[0] == 1):
        for members in (2**k for k in range(2, 10)):
            P = 2 ** (members.bit_length() // 2)
            Q = members // P
            elements, group = -(-rows // P) * -(-columns // Q), some * members
            held = registers(elements, dtype)
            if (
                group >= WARP
                and elements <= most
                and held <= OF_A_MEMBER
                and (held + FOR_ALL_ELSE) * group <= OF_A_GROUP
            ):
                yield {"kernel": kernel, "LANES": some, "P": P, "Q": Q}


TURNS = 4  # steps that take place in few columns, of kernels whose members have whole rows
GROUPS = 3  # of a compute unit, where columns of right-hand sides would take the registers of more


def rows(file: str, width: Callable[..., int], **tunables: range) -> Kernel:
    """A kernel in a file of which P neighbours have the rows of a matrix of LANES: see `opencl/rows.h`.

    The first size is the height of a matrix, `width` its other one.
    """

    def local(choice, size):
        m, n = size[0], width(*size)
        return choice["LANES"] * ((m + TURNS) * (n + TURNS) + WARP // 2 + 3 * m + 2 * choice["P"])

    return Kernel(
        {"LANES": LANES, "P": range(1, WARP + 1), **tunables},
        group=lambda choice, size: choice["LANES"] * choice["P"],
        local=local,
        whole=lambda choice, size: choice["P"].bit_count() == 1,
        file=file,
        in_warps=True,
    )


AND_COLUMNS = {"COLUMNS": range(1, 4), "CLA_GROUPS": range(9)}  # tunables of those that solve then


def on_rows(kernel: str, m: int, n: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of a kernel on packs whose teams have whole rows of m x n matrices."""
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    for P in (2**k for k in range(5, 1, -1) if max(m, n) <= WARP and lanes[0] > 1):
        held = registers(-(-m // P) * n, dtype)
        for some in sorted(some for some in lanes if some * real >= SECTOR):
            if P < 2 * m and held <= OF_A_MEMBER and WARP <= some * P <= 8 * WARP:
                yield {"kernel": kernel, "LANES": some, "P": P}


def on_rows_and_columns(kernel: str, n: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of a kernel like that of `on_rows`, on n x n matrices, which then solves."""
    for choice in on_rows(kernel, n, n, dtype, lanes):
        for each in (1, 2):
            yield choice | {"COLUMNS": each, "CLA_GROUPS": GROUPS * (registers(each * n, dtype) > REGISTERS // 2)}


def solvers(name: str, n: int, r: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of the kernels of a solve with teams: with few right-hand sides, grids share out the work better."""
    on_grids = grids(f"{name}_grid", n + r, n, dtype, lanes)
    if 4 * r <= n:
        yield from on_grids
    if n <= 32:
        yield from teams(f"{name}_team", n, r, dtype, lanes)
    yield from on_grids


def tall(m: int, n: int, computed: np.dtype) -> tuple[int, int]:
    """Rows and columns of a grid of which few members have a part of a column, as few as have registers for theirs."""
    members = 4
    while True:
        P = min(p for p, largest in TALL.items() if members <= largest)
        if members == WARP and max(m, n) > WARP:
            P = 4
        Q = min(members // P, 1 << (n - 1).bit_length())
        P = members // Q
        elements = math.ceil(m / P) * math.ceil(n / Q)
        whole = P == 1 and members >= 8 and m <= WARP
        most = 2 * OF_TALL if whole or (members == WARP and P == 4) else OF_TALL
        enough = max(elements, registers(elements, computed) / 2) <= most
        if enough or members >= MOST or (members >= MOST // 2 and registers(elements, computed) <= OF_A_MEMBER):
            return P, Q
        members *= 2


def columns_on_grids(kernel: str, m: int, n: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of a kernel for QR factorizations: on packs with whole columns for each member, else on tall grids."""
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    P, Q = tall(m, n, dtype)
    while P * Q < WARP:
        P *= 2
    shapes = [(P, Q)] if lanes[0] == 1 else [(1, Q) for Q in (4, 8, 16, 32) if m <= 32 and Q < 2 * n]
    for P, Q in shapes:
        held = registers(-(-m // P) * -(-n // Q), dtype)
        for some in sorted(some for some in lanes if lanes[0] == 1 or some * real >= SECTOR):
            group = some * P * Q
            if WARP <= group and held <= OF_COLUMNS and (held + FOR_ALL_ELSE) * group <= OF_A_GROUP:
                yield {"kernel": kernel, "LANES": some, "P": P, "Q": Q}


def strips(kernel: str, m: int, n: int, dtype: np.dtype, lanes: Sequence[int]) -> Iterator[Choice]:
    """Choices of a kernel on packs whose work-items have some of the columns, whole ones, and one that passes by."""
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    found = []
    for some in sorted(some for some in lanes if some * real >= SECTOR):
        for Q in (2, 4, 8, 16, 32):
            each, group = -(-n // Q), some * Q
            held = registers(m * (each + 1), dtype)
            if WARP <= group and Q < 2 * n and held <= OF_COLUMNS and (held + FOR_ALL_ELSE) * group <= OF_A_GROUP:
                found.append((max(group, 2 * WARP), abs(each - 2), some, Q))
    yield from ({"kernel": kernel, "LANES": some, "P": 1, "Q": Q} for _, _, some, Q in sorted(found))


def room_for_reflectors(m: int, n: int, choice: Choice) -> int:
    """Elements of local memory of such a kernel, beside two lines: two more, four numbers of each column, and sums."""
    P, Q = choice["P"], choice["Q"]
    return 2 * max(m + P, n + Q) + 4 * n + (P > 1) * P * (n + 2 * Q)
