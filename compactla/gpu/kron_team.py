"""Kernels that apply Kronecker products and sums in one pass, and how they are chosen for a size."""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from compactla.dtypes import REAL
from compactla.gpu.launch import FILL, enqueue
from compactla.gpu.program import kernel
from compactla.gpu.tuning import choices
from compactla.gpu.tuning.choices import is_cpu
from compactla.search import GROUP, GROUP_SIZE, LOCAL_BYTES, REGISTERS, Choice, Kernel, Search

LARGEST = 64  # extent of an axis, which a work-item has in its registers
ITEMS = 128  # of a work-group, at most
SLOTS = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}  # which of the kernels' axes A, B and C there are


class Team(NamedTuple):
    """A kernel that was compiled for some sizes.

    Attributes
    ----------
    kernel : pyopencl.Kernel
    axes : tuple of int or None
        Which axes are A, B and C.
    operands : tuple of int
        Operands in the order of the kernel's arguments.
    choice : dict
    """

    kernel: Any
    axes: tuple
    operands: tuple
    choice: Choice

    def run(self, nm, scalars, x, y, operands, launch):
        """Enqueue it."""
        values = [nm, *(part for scalar in scalars for part in (float(scalar.real), float(scalar.imag)))]
        for place in (x, y):
            values += place.array.base_data, place.start, place.step
            values += (0 if k is None else place.strides[k] for k in self.axes)
        for k in self.operands:
            F = operands[k]
            values += F.array.base_data, F.start, F.step, *F.strides
        arrays = [place.array for place in (x, y, *operands)]
        queue, group, groups = x.array.queue, self.choice["GROUP"], -(-nm // self.choice["ITEMS"])
        groups = min(groups, max(-(-groups // self.choice["ROUNDS"]), FILL * queue.device.max_compute_units))
        enqueue(queue, launch, self.kernel, (groups * group, 1), (group, 1), arrays, values)


def team(name, operands, signs, x, y, d, e, adds, interleaved, dtype) -> Team | None:
    """The kernel for some items and operands, as of `compactla.gpu.kron.run`; None if they are not for local memory."""
    queue = x.array.queue
    case, axes, numbers = seen(name, operands, x, y, d, e, interleaved, dtype)
    found = case.choice(queue.device)
    if not found:
        return None
    macros = {"FACTORS": case.factors, "XV": x.V, "YV": y.V, "INTERLEAVED": int(interleaved), "BETA": int(adds)}
    macros["SUM"] = int(name == "sum")
    for items, place, size, sizes in (("X", x, "N", case.N), ("Y", y, "M", case.M)):
        macros |= known_strides(items, place, axes, sizes, dtype)
        macros |= {f"{size}{axis}": extent for axis, extent in zip("ABC", sizes, strict=True)}
    for letter, k, own in zip("ABCPQRKLM", numbers, case.own, strict=False):
        macros |= {f"{letter}V": operands[k].V, f"{letter}OWN": int(own), f"{letter}CONJ": int(signs[k] < 0)}
    types = [0, *[0.0] * 4, *[None, 0, 0, 0, 0, 0] * 2, *[None, 0, 0, 0, 0] * len(numbers)]
    tunables = {tunable: value for tunable, value in found.items() if tunable != "kernel"}
    try:
        which = str(found["kernel"])
        code = kernel(queue, f"{which}.cl", which, dtype, 1, types, **{which.upper(): 1}, **macros, **tunables)
    except RuntimeError:  # does not build here
        return None
    return Team(code, axes, numbers, found)


def seen(name, operands, x, y, d, e, interleaved, dtype):
    """The key of a kernel, which axes are A, B and C, and which operands are theirs, of up to three axes."""
    n = len(d)
    order = sorted(range(n), key=lambda k: -abs((x if d[k] > 1 else y).strides[k]))
    axes: list[int | None] = [None] * 3
    for slot, k in zip(SLOTS.get(n, ()), order, strict=False):
        axes[slot] = k
    N, M = (tuple(1 if k is None else sizes[k] for k in axes) for sizes in (d, e))
    numbers = tuple(base + (k or 0) for base in range(0, len(operands), n) for k in axes)
    own = tuple(bool(operands[k].step or operands[k].V > 1) for k in numbers)
    plain = name == "solve" or interleaved or dtype.kind == "c" or n not in SLOTS
    wide = 1 if plain else widest(x, y, axes, N, M, dtype)
    return KronCase(name, n, N, M, own, wide, interleaved, dtype), tuple(axes), numbers


def known_strides(letter, place, axes, sizes, dtype) -> dict:
    """Macros for the strides of items without gaps, of which there are few, so that they are compiled in."""
    apart = place.V * dtype.itemsize // REAL[dtype.char].itemsize
    strides = [math.prod(sizes[k + 1 :]) * apart for k in range(3)]
    if any(k is not None and place.strides[k] != strides[slot] for slot, k in enumerate(axes)):
        return {}
    return {f"{letter}{axis}": stride for axis, stride in zip("ABC", strides, strict=True)}


def widest(x, y, axes, N, M, dtype):
    """How many numbers along the last axis can be moved at once."""
    count = 16 // dtype.itemsize
    while count > 1:
        apart = [x.start, y.start, x.step, y.step, N[-1], M[-1]]
        apart += [place.strides[k] for place in (x, y) for k in axes[:-1] if k is not None]
        neighbours = x.strides[axes[-1]] == y.strides[axes[-1]] == 1
        if neighbours and not any(number % count for number in apart):
            return count
        count //= 2
    return 1


class KronCase(NamedTuple):
    """The key of a kernel.

    Attributes
    ----------
    name : {"kron", "sum", "solve"}
    factors : int
    N, M : tuple of int
        Sizes of X and Y along A, B and C.
    own : tuple of bool
        Which operands are of one item.
    wide : int
        Numbers along C that can be moved at once.
    interleaved : bool
        Whether neighbours in memory are items.
    dtype : dtype
    """

    name: str
    factors: int
    N: tuple[int, ...]
    M: tuple[int, ...]
    own: tuple[bool, ...]
    wide: int
    interleaved: bool
    dtype: Any

    def choice(self, device) -> Choice:
        """Kernel and tunables, none on CPUs, for more axes, and if an item does not fit into local memory."""
        limit, largest = min(device.local_mem_size, LOCAL_BYTES), max(*self.N, *self.M)
        if self.factors not in SLOTS or is_cpu(device) or largest > LARGEST:
            return {}
        sizes = {extents[slot] for extents in (self.N, self.M) for slot in SLOTS[self.factors]}
        if self.name == "kron" and self.factors > 1 and not self.interleaved and len(sizes) == 1:
            tuned = choices.choose(device, SEARCHES[f"kron{self.factors}"], (largest,), self.dtype, 1)
            if tuned and self.has(tuned) and self.local_bytes(tuned) <= limit:
                return tuned
        return next((found for found in self.usual() if self.local_bytes(found) <= limit), {})

    def has(self, choice) -> bool:
        """Whether what was tuned for contiguous items and common factors is for these."""
        return self.wide % choice["WIDE"] == 0 and not (choice["kernel"] == "kron_mma" and any(self.own))

    def usual(self) -> Iterator[Choice]:
        """Choices that are good for most, then with fewer items."""
        largest, item, columns = max(*self.N, *self.M), self.dtype.itemsize, self.N[-1]
        direct = self.factors == 2 and self.name == "kron" and columns > 4 and columns * item <= 64
        wide = self.wide if columns <= 4 else min(self.wide, 2)
        if item == 8 and (columns < 10 or direct or (self.factors == 3 and columns >= 16)):
            wide = 1
        most = max(self.M)
        rows = max(1 if most == 1 else 4 if 3 <= most <= 4 or (item == 4 and most >= 16) else 2, wide)
        group, pencils = 128 if 8 <= largest <= 12 else 64, {1: 4, 2: 2, 4: 1}[wide]
        while pencils > 1 and pencils * wide * (largest + rows) * item // 4 > REGISTERS - 20:
            pencils -= 1
        whole = self.factors == 3 and (self.name == "solve" or self.M[-1] * item % 32 > 0)
        count = self.power(max(1, round(group * pencils * wide / self.lines(direct))))
        while count:
            while group > 32 and count * self.lines(direct) <= group // 2:
                group //= 2
            yield self.made(group, count, pencils, rows, wide, direct, whole)
            count = count // 2 if self.interleaved else count - 1

    def power(self, count):
        """So many items at most, but a power of two if these are neighbours in memory."""
        return 1 << min(count.bit_length() - 1, 6) if self.interleaved else min(count, ITEMS)

    def lines(self, direct):
        """How many lines along an axis there are, at most."""
        (na, nb, nc), (ma, _, mc) = self.N, self.M
        if direct:
            return max(na * nb, nb * mc)
        return max([ma * nb, nb * nc, ma * mc][: self.factors])

    def made(self, group, count, pencils, rows, wide, direct, whole, rounds=1, ahead=0) -> Choice:
        which = "kron_solve" if self.name == "solve" else "kron_team"
        return {"kernel": which, "GROUP": group, "ITEMS": count, "PENCILS": pencils, "ROWS": rows, "WIDE": wide,
                "DIRECT": int(direct), "WHOLE": int(whole), "ROUNDS": rounds, "AHEAD": ahead}  # fmt: skip

    def is_ready(self, choice) -> bool:
        """Whether loads of the next items can be under way."""
        if choice["kernel"] == "kron_mma":
            return choice["ITEMS"] * self.slices <= choice["GROUP"] // 32 * choice["SLICES"]
        lines = choice["ITEMS"] * self.N[1] * self.N[2] // choice["WIDE"]
        return self.factors > 1 and not choice["DIRECT"] and lines <= choice["GROUP"] * choice["PENCILS"]

    def local_bytes(self, choice) -> int:
        """Local memory of a work-group."""
        return self.local(choice) * self.dtype.itemsize

    def local(self, choice) -> int:
        """Elements there."""
        count, wide = choice["ITEMS"], choice["WIDE"]
        if choice["kernel"] == "kron_mma":
            return count * self.slices * ((self.M[1] * self.M[2] + 1) // 4 * 4 + 2) + 8 if self.factors == 3 else 0
        rows = choice["ROWS"]
        extents = [max(sizes) for sizes in zip(self.N, self.M, strict=True)]
        extents[-1] = extents[-1] if self.interleaved else (extents[-1] // wide | 1) * wide
        tiles = (2 if self.name == "sum" else 1) * count * math.prod(extents)
        sizes = [n * -(-m // rows) * rows for n, m in zip(self.N, self.M, strict=True)]
        kept = zip(itertools.cycle(sizes), self.own[: 6 if self.name == "solve" else 3], strict=False)
        return tiles + sum((count if own else 1) * size for size, own in kept)

    @property
    def slices(self) -> int:
        """Slices of an item, which warps take into their registers."""
        return self.N[0] if self.factors == 3 else 1

    def units(self) -> Iterator[Choice]:
        """Choices for NVIDIA's matrix units."""
        m, wide = max(self.N), min(self.wide, 2)
        times = ((1, 0, 1), (1, 0, 2), (4, 0, 2), (4, 1, 1))  # rounds, ahead, and slices that a warp takes in turn
        for tall, slices in itertools.product((1, 0)[m <= 8 :], (2, 4) if m <= 16 else (1,)):
            for warps, (rounds, ahead, turns) in itertools.product((2, 4), times):
                if self.factors == 3:
                    warps = -(-self.slices // (slices * turns))
                count = 1 if self.factors == 3 else warps * slices
                found = {"kernel": "kron_mma", "GROUP": 32 * warps, "ITEMS": count, "SLICES": slices, "TALL": tall,
                         "WIDE": wide, "ROUNDS": rounds, "AHEAD": ahead}  # fmt: skip
                if 2 <= warps <= 16 and self.local_bytes(found) <= LOCAL_BYTES:
                    yield found

    def candidates(self) -> Iterator[Choice]:
        """Choices worth a try."""
        for choice in self.usual():
            for rounds, ahead in itertools.product((1, 4, 16), (0, 1)):
                found = choice | {"ROUNDS": rounds, "AHEAD": ahead}
                if not ahead or self.is_ready(found):
                    yield found
        m, item = max(*self.N, *self.M), self.dtype.itemsize
        wides = [wide for wide in (1, 2, 4) if self.wide % wide == 0]
        for group, wide, pencils, rows in itertools.product((64, 128, 256), wides, (1, 2, 3, 4), (1, 2, 4, 8)):
            if rows % wide or rows > m or pencils * wide * (m + rows) * item // 4 > REGISTERS - 20:
                continue
            for direct in (False, True) if self.factors == 2 and m * item <= 80 else (False,):
                wholes = (False, True) if self.factors == 3 else (False,)
                for whole, more, rounds, ahead in itertools.product(wholes, (1, 2), (1, 8), (0, 1)):
                    count = max(int(group * pencils * wide * more / self.lines(direct)), 1)
                    found = self.made(group, count, pencils, rows, wide, direct, whole, rounds, ahead)
                    fits = count <= ITEMS and self.local_bytes(found) <= LOCAL_BYTES
                    if fits and (not ahead or self.is_ready(found)):
                        yield found
        if self.dtype.kind == "f" and m >= 8 and not any(self.own):
            yield from self.units()


def square(factors, size, dtype) -> KronCase:
    """Contiguous items of one size along all axes, with common factors."""
    sizes = tuple(size[0] if slot in SLOTS[factors] else 1 for slot in range(3))
    real = dtype.kind == "f"
    wide = max(w for w in (1, 2, 4) if size[0] % w == 0 and w * dtype.itemsize <= 16) if real else 1
    return KronCase("kron", factors, sizes, sizes, (False,) * 3, wide, False, dtype)


def candidates(factors, size, dtype, lanes) -> Iterator[Choice]:
    """Choices for these items, each once."""
    seen = []
    for choice in square(factors, size, dtype).candidates():
        if choice not in seen:
            seen.append(choice)
            yield choice


def is_whole(factors, choice, size) -> bool:
    """Whether rows are moved as a whole."""
    return (
        choice["ROWS"] % choice["WIDE"] == size[0] % choice["WIDE"] == 0
        and (factors == 2 or not choice["DIRECT"])
        and (factors == 3 or not choice["WHOLE"])
        and (not choice["AHEAD"] or square(factors, size, np.dtype(np.float64)).is_ready(choice))
    )


def search(factors) -> Search:
    kernels = {
        "kron_team": Kernel(
            {"GROUP": GROUP, "ITEMS": range(1, ITEMS + 1), "PENCILS": range(1, 9), "ROWS": range(1, 9),
             "WIDE": range(1, 5), "DIRECT": range(2), "WHOLE": range(2), "ROUNDS": range(1, 65), "AHEAD": range(2)},
            local=lambda choice, size: square(factors, size, np.dtype(np.float64)).local(choice),
            whole=functools.partial(is_whole, factors),
        ),
        "kron_mma": Kernel(
            {"GROUP": range(32, GROUP_SIZE + 1, 32), "ITEMS": range(1, ITEMS + 1), "SLICES": range(1, 9),
             "TALL": range(2), "WIDE": range(1, 3), "ROUNDS": range(1, 65), "AHEAD": range(2)},
            local=lambda choice, size: square(factors, size, np.dtype(np.float64)).local(choice),
            whole=lambda choice, size: not choice["AHEAD"]
            or square(factors, size, np.dtype(np.float64)).is_ready(choice),
            file="kron_mma.cl",
        ),
    }  # fmt: skip
    sizes = tuple((m,) for m in (2, 4, 6, 8, 10, 12, 16, 24, 32)[: 7 if factors == 3 else None])
    return Search(f"kron{factors}", "kron_team.cl", kernels, functools.partial(candidates, factors), sizes, LARGEST)


SEARCHES = {f"kron{factors}": search(factors) for factors in (2, 3)}
