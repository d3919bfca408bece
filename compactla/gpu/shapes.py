"""Which kernel a device runs for a routine and a size, and with which tunables.

A choice is a dict: "kernel" names a kernel of `opencl/`, the rest are its tunables, which are explained at the top of
the kernels' files; an empty dict stands for the kernel that takes any size. Choices come from results of
``python -m compactla tune``: the user's, else those in `tuned/` for this device or for CPUs in general, else the first
of `candidates`. On CPUs, where work-items of a group run one after the other and pay for every barrier, only sizes that
were tuned have kernels of their own.
"""

import functools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pyopencl as cl

# Sizes with kernels of their own; lines are tuned apart where there are few of them.
LARGEST = {"gemm": 32, "trsm": 32, "getrfnp": 32, "factor": 16, "factor_few": 16, "solve": 16, "solve_few": 16}
LARGEST |= {"pack": 2**62, "unpack": 2**62}
GROUP_SIZE = 1024  # no group has more work-items
LOCAL_BYTES = 48 * 1024  # of local memory that a group may use; some compilers take no more
PLACES = 65535  # work-groups along the elements of a matrix that every device takes
MOVED = 32  # elements that a work-item moves through local memory, at most
SECTOR = 32  # bytes that memory moves at once
REGISTERS = 240  # 4-byte registers of a work-item that a candidate may hold its matrices in
SHIPPED = Path(__file__).parent / "tuned"

Choice = dict[str, int | str]

# The kernels of each routine, their tunables, and what these may be.
_GROUP, _LANES, _TEAM = range(1, GROUP_SIZE + 1), range(1, 65), range(1, 33)
_TILED = {"LANES": _LANES, "ELEMENTS": range(1, LOCAL_BYTES), "GROUP": _GROUP}
KERNELS: dict[str, dict[str, dict[str, range]]] = {
    "gemm": {
        "gemm_item": {"GROUP": _GROUP},
        "gemm_team": {"LANES": _LANES, "TI": range(1, 17), "TJ": range(1, 9), "DEPTH": range(1, 17),
                      "AHEAD": range(3), "ROUNDS": range(1, 65)},
    },
    "trsm": {
        "trsm_item": {"GROUP": _GROUP},
        "trsm_team": {"LANES": _LANES, "COLUMNS": range(1, 5), "TEAM": _TEAM},
    },
    "getrfnp": {
        "getrfnp_item": {"GROUP": _GROUP},
        "getrfnp_team": {"LANES": _LANES, "COLUMNS": range(1, 5), "TEAM": _TEAM, "PANEL": range(2)},
    },
    "factor": {
        "factor_line": {"GROUP": _GROUP, "AHEAD": range(3)},
        "factor_team": {"LANES": _LANES, "COLUMNS": range(1, 6), "TEAM": _TEAM, "AHEAD": range(3)},
    },
    "solve": {"solve_team": {"LANES": _LANES, "RHS": range(1, 9), "AHEAD": range(1, 9), "AHEAD_UP": range(1, 9)}},
    "pack": {"pack_tiled": _TILED},
    "unpack": {"unpack_tiled": _TILED},
}  # fmt: skip
KERNELS |= {"factor_few": KERNELS["factor"], "solve_few": KERNELS["solve"]}


def key(routine: str, size: tuple[int, ...], dtype, storage: str = "") -> str:
    """What results are filed under; `storage` is the type that factors are stored in, if that is smaller."""
    return " ".join([routine, f"{dtype.name}:{storage}" if storage else dtype.name, *map(str, size)])


def file_name(device) -> str:
    return re.sub(r"[^a-z0-9]+", "-", device.name.strip().lower()).strip("-") + ".json"


def user_file(device) -> Path:
    """Where the results of `tune` for a device are kept."""
    return Path(platformdirs.user_cache_dir("compactla")) / "tuned" / file_name(device)


@functools.cache
def results(device) -> dict[str, Choice]:
    """Results for a device by key: the shipped ones, where the user has tuned the user's."""
    found: dict[str, Choice] = {}
    files = SHIPPED / file_name(device), user_file(device)
    for file in [SHIPPED / "cpu.json", *files] if is_cpu(device) else files:
        found |= {name: choice for name, choice in read(file).items() if is_choice(choice, name)}
    return found


def read(file: Path) -> dict:
    """The results in a file, whatever they are; none if there is no such file, or something else in it."""
    try:
        found = json.loads(file.read_text())["results"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_choice(choice, name: str) -> bool:
    """Whether the kernels know what is filed under this name: another version, or anybody, may have written it."""
    try:
        routine, _, *numbers = name.split()
        size = tuple(map(int, numbers))
    except ValueError:
        return False
    if not isinstance(choice, dict) or not choice:
        return choice == {}
    kernel, tunables = choice.get("kernel"), {name: choice[name] for name in choice if name != "kernel"}
    known = KERNELS.get(routine, {}).get(kernel) if isinstance(kernel, str) else None
    if known is None or tunables.keys() != known.keys():
        return False
    if not all(type(value) is int and value in known[tunable] for tunable, value in tunables.items()):
        return False
    return bool(size) and min(size) > 0 and does_all(choice, size)


def does_all(choice, size) -> bool:
    """Whether the work-items of a group, and the groups of a device, are as many as there is to do."""
    if "TEAM" in choice:
        whole = choice["kernel"] != "factor_team" or size[0] % choice["COLUMNS"] == 0
        return whole and choice["TEAM"] == -(-size[-1] // choice["COLUMNS"])
    if "ELEMENTS" in choice:
        moved = choice["LANES"] * choice["ELEMENTS"]
        return math.prod(size) <= PLACES * choice["ELEMENTS"] and moved <= MOVED * choice["GROUP"]
    return True


def is_cpu(device) -> bool:
    return bool(device.type & cl.device_type.CPU)


def choose(device, routine: str, size: tuple[int, ...], dtype, vlen: int, storage: str = "") -> Choice:
    """The choice for a device; never an error."""
    if not 0 < min(size) <= max(size[:1] if "solve" in routine else size) <= LARGEST[routine]:
        return {}
    for stored in dict.fromkeys((storage, "")):
        tuned = results(device).get(key(routine, size, dtype, stored))
        if tuned is not None and fits(device, routine, tuned, size, dtype, vlen):
            return tuned
    if is_cpu(device):
        return {}
    return next(candidates(device, routine, size, dtype, vlen), {})


def fits(device, routine, choice, size, dtype, vlen) -> bool:
    """Whether a choice can run for this vector length on this device."""
    return (
        not choice
        or (
            vlen % choice.get("LANES", 1) == 0
            and group_size(routine, choice, size) <= min(GROUP_SIZE, device.max_work_group_size)
            and local_bytes(routine, choice, size, dtype) <= min(device.local_mem_size, LOCAL_BYTES)
        )
    )


def candidates(device, routine: str, size: tuple[int, ...], dtype, vlen: int) -> Iterator[Choice]:
    """Choices worth a try, the most likely first."""
    for choice in CANDIDATES[routine](size, dtype, lane_counts(vlen)):
        if fits(device, routine, choice, size, dtype, vlen):
            yield choice


def lane_counts(vlen: int) -> list[int]:
    """Divisors of the vector length up to a warp's lanes, the largest first."""
    return [lanes for lanes in range(min(vlen, 64), 0, -1) if vlen % lanes == 0][:4]


def group_size(routine, choice, size) -> int:
    """Work-items of a work-group."""
    kernel = choice["kernel"]
    if "GROUP" in choice:
        return choice["GROUP"]
    if kernel == "gemm_team":
        return choice["LANES"] * -(-size[0] // choice["TI"]) * -(-size[1] // choice["TJ"])
    return choice["LANES"] * (size[0] if kernel == "solve_team" else choice["TEAM"])


def local_bytes(routine, choice, size, dtype) -> int:
    """Local memory of a work-group."""
    lanes = choice.get("LANES", 0)
    match choice["kernel"]:
        case "gemm_team":
            count = (size[0] + size[1]) * choice["DEPTH"] * lanes
        case "trsm_team":
            count = (size[0] * (size[0] + 1) // 2 + 1) * lanes
        case "getrfnp_team":
            count = (2 * (choice["COLUMNS"] if choice["PANEL"] else 1) * size[0] + choice["TEAM"]) * lanes
        case "factor_team":
            count = (2 * choice["COLUMNS"] * size[0] + size[0] ** 2 + choice["TEAM"]) * lanes
        case "solve_team":
            rows = 2 * max(choice["AHEAD"], choice["AHEAD_UP"]) + 1
            count = rows * size[0] * choice["RHS"] * (lanes + 1) + 24 * lanes // dtype.itemsize
        case "pack_tiled" | "unpack_tiled":
            count = choice["ELEMENTS"] * (lanes + 1)
        case _:
            count = 0
    return count * dtype.itemsize


def registers(count, dtype) -> int:
    """4-byte registers that so many lanes take."""
    return count * dtype.itemsize // 4


def gemm_candidates(size, dtype, lanes):
    m, n, k = size
    if registers(k * n + n + k, dtype) <= 100:
        yield from ({"kernel": "gemm_item", "GROUP": group} for group in (64, 16))
    for tile in tiles(m, n, dtype):
        team = -(-m // tile[0]) * -(-n // tile[1])
        for depth in depths(k):
            for some in sorted(lanes, key=lambda some: abs(math.log(some * team / 200))):
                for ahead, rounds in ((2, 1), (0, 1), (1, 8), (2, 8)):
                    if 64 <= some * team <= 512 or some == lanes[0]:
                        yield {"kernel": "gemm_team", "LANES": some, "TI": tile[0], "TJ": tile[1], "DEPTH": depth,
                               "AHEAD": ahead, "ROUNDS": rounds}  # fmt: skip


def tiles(m, n, dtype):
    """Rows and columns of tiles for an m x n matrix: those that fit without a rest and are of a good size first."""
    limit = 512 // dtype.itemsize  # lanes of a tile: half of the registers
    pairs = [(i, j) for i in range(1, min(m, 16) + 1) for j in range(1, min(n, 8) + 1) if i * j <= limit]
    rows, columns = (5, 4) if max(m, n) < 20 else (8, 4)

    def cost(tile):
        waste = -(-m // tile[0]) * tile[0] * -(-n // tile[1]) * tile[1] / (m * n)
        return waste**6 * (1 + abs(math.log(tile[0] / rows)) + abs(math.log(tile[1] / columns)))

    return sorted((pair for pair in pairs if pair[0] >= pair[1] or pair[0] == m), key=cost)[:5]


def depths(k):
    """Depths of the part of A in local memory, divisors of k near 8 first."""
    whole = [depth for depth in range(2, min(k, 16) + 1) if k % depth == 0] or [min(k, 8)]
    return sorted(whole, key=lambda depth: abs(depth - (4 if k > 20 else 7)))[:3]


def trsm_candidates(size, dtype, lanes):
    n, r = size
    if registers(n * (n + 1) // 2 + n, dtype) <= 160 and n * r <= 144:
        yield from ({"kernel": "trsm_item", "GROUP": group} for group in (64, 16))
    for columns in sorted({c for c in (2, 3, 4, 1) if c <= r}, key=lambda c: (-(-r // c) * c - r, abs(c - 2.6))):
        if registers(columns * n, dtype) <= REGISTERS + 20:
            for some in lanes:
                team = -(-r // columns)
                if 64 <= some * team <= 512 or (team == 1 and some >= 32):
                    yield {"kernel": "trsm_team", "LANES": some, "COLUMNS": columns, "TEAM": team}


def getrfnp_candidates(size, dtype, lanes):
    m, n = size
    if registers(m * n, dtype) <= 164:
        yield from ({"kernel": "getrfnp_item", "GROUP": group} for group in (64, 16))
    for columns in sorted({c for c in (2, 3, 4) if c <= n}, key=lambda c: -(-n // c) * c - n):
        if registers(columns * m, dtype) <= REGISTERS:
            for panel in (1, 0) if n > 24 else (0, 1):
                team = -(-n // columns)
                for some in sorted(lanes, key=lambda some: abs(math.log(some * team / 160))):
                    if 64 <= some * team <= 512:
                        yield {"kernel": "getrfnp_team", "LANES": some, "COLUMNS": columns, "TEAM": team,
                               "PANEL": panel}  # fmt: skip


def factor_candidates(size, dtype, lanes):
    return lines_candidates(size, dtype, sorted(lanes, key=lambda some: abs(some - 16.1)))


def lines_candidates(size, dtype, lanes):
    (b,) = size
    if registers(4 * b * b, dtype) <= REGISTERS:
        for ahead in (1, 0):
            if registers((4 + 3 * ahead) * b * b, dtype) <= REGISTERS + 20:
                yield {"kernel": "factor_line", "GROUP": 32, "AHEAD": ahead}
    whole = [c for c in range(1, min(b, 5) + 1) if b % c == 0]
    for columns in sorted(whole, key=lambda c: abs(c - (3 if b > 10 else 1))):
        for some in lanes:
            for ahead in (2, 1, 0) if columns == 1 else (1, 0):
                limit = REGISTERS + 40 * (ahead == 0)
                if registers((3 + ahead) * columns * b, dtype) <= limit and b * some // columns >= 16:
                    yield {"kernel": "factor_team", "LANES": some, "COLUMNS": columns, "TEAM": b // columns,
                           "AHEAD": ahead}  # fmt: skip


def factor_few_candidates(size, dtype, lanes):
    """Small work-groups, which reach more compute units."""
    found = list(lines_candidates(size, dtype, lanes[::-1]))
    return sorted(found, key=lambda choice: (choice["kernel"] == "factor_line") == (size[0] > 3))


def solve_few_candidates(size, dtype, lanes):
    return solve_candidates(size, dtype, sorted(lanes, key=lambda some: abs(some - 8.1)))


def solve_candidates(size, dtype, lanes):
    b, nrhs = size
    for some in lanes:
        for rhs in [nrhs] if nrhs <= 8 else [8, 4]:
            depths = ((4, 4), (4, 8), (8, 8), (2, 4), (1, 2)) if b < 6 else ((2, 4), (1, 2), (4, 4), (4, 8))
            for ahead, up in depths if b <= 10 else ((1, 2), (2, 4)):
                if registers(max((2 * b + rhs) * ahead, (b + rhs) * up) + 2 * rhs, dtype) <= REGISTERS - 100 * (b > 10):
                    yield {"kernel": "solve_team", "LANES": some, "RHS": rhs, "AHEAD": ahead, "AHEAD_UP": up}
    yield {"kernel": "solve_team", "LANES": lanes[-1], "RHS": 1, "AHEAD": 1, "AHEAD_UP": 1}


def pack_candidates(size, dtype, lanes, kernel="pack_tiled"):
    """Whole matrices, which are neighbours in an ordinary array, or runs of elements of all lanes.

    Runs that would begin in the middle of what memory moves at once come last.
    """
    count = size[0] * size[1]
    whole, runs = [(some, count) for some in lanes], [(lanes[0], run) for run in (64, 32, 128) if run < count]
    tiles = whole + runs if count * dtype.itemsize % SECTOR else whole[:1] + runs + whole[1:]
    for some, run in tiles:
        if -(-count // run) <= PLACES:
            usual = min(max(some * run // 128 * 32, 32), 256)
            for group in (usual, usual // 2, usual * 2):
                if 32 <= group <= 512 and some * run <= MOVED * group:
                    yield {"kernel": kernel, "LANES": some, "ELEMENTS": run, "GROUP": group}


def unpack_candidates(size, dtype, lanes):
    return pack_candidates(size, dtype, lanes, "unpack_tiled")


CANDIDATES = {
    "pack": pack_candidates,
    "unpack": unpack_candidates,
    "gemm": gemm_candidates,
    "trsm": trsm_candidates,
    "getrfnp": getrfnp_candidates,
    "factor": factor_candidates,
    "factor_few": factor_few_candidates,
    "solve": solve_candidates,
    "solve_few": solve_few_candidates,
}
