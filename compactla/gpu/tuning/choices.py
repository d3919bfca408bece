"""Which kernel a device runs for known sizes, and with which tunables.

Choices come from results of ``python -m compactla tune``: the user's, else those in `tuned/` for this device or for
CPUs in general, else the first of the candidates. On CPUs, where work-items of a group run one after the other and pay
for every barrier, only sizes that were tuned have kernels of their own.
"""

import functools
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pyopencl as cl

from compactla import routine
from compactla.search import GROUP_SIZE, LOCAL_BYTES, Choice, Search

SHIPPED = Path(__file__).parent / "tuned"
OTHERS = "arrays", "kron_team", "tuning.lines"  # what has kernels for known sizes beside routines


@functools.cache
def searches() -> dict[str, Search]:
    """All that can be tuned, by the names that results are filed under."""
    found = {name: routine.named(name).search for name in routine.names()}
    for module in OTHERS:
        found |= importlib.import_module(f"compactla.gpu.{module}").SEARCHES
    return found


def key(routine: str, size: tuple[int, ...], dtype, variant: str = "") -> str:
    """The key of results in a file.

    The variant of a solve is the type that factors are stored in, if that is smaller, and that of a routine with a
    scalar beta "beta", if it adds to what is there.
    """
    return " ".join([routine, f"{dtype.name}:{variant}" if variant else dtype.name, *map(str, size)])


def file_name(device) -> str:
    return re.sub(r"[^a-z0-9]+", "-", device.name.strip().lower()).strip("-") + ".json"


def user_file(device) -> Path:
    """Where the results of `tune` for a device are kept."""
    return Path(platformdirs.user_cache_dir("compactla")) / "tuned" / file_name(device)


@functools.cache
def results(device) -> dict[str, Choice]:
    """Results for a device by key: the shipped ones, where the user has tuned the user's.

    CUDA's compiler gives some kernels other numbers of registers than OpenCL's, and has results of its own for them.
    """
    found: dict[str, Choice] = {}
    files = [SHIPPED / file_name(device), user_file(device)]
    if is_cpu(device):
        files.insert(0, SHIPPED / "cpu.json")
    elif not isinstance(device, cl.Device):
        files.append(SHIPPED / "cuda" / file_name(device))
    for file in files:
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
        what, _, *numbers = name.split()
        size = tuple(map(int, numbers))
    except ValueError:
        return False
    return what in searches() and searches()[what].knows(choice, size)


def is_cpu(device) -> bool:
    return bool(device.type & cl.device_type.CPU)


def choose(device, search: Search, size: tuple[int, ...], dtype, vlen: int, variant: str = "") -> Choice:
    """The choice for a device; never an error."""
    if not search.has(size):
        return {}
    for known in dict.fromkeys((variant, "")):
        tuned = results(device).get(key(search.name, size, dtype, known))
        if tuned is not None and fits(device, search, tuned, size, dtype, vlen):
            return tuned
    if is_cpu(device):
        return {}
    return next(candidates(device, search, size, dtype, vlen), {})


def fits(device, search, choice, size, dtype, vlen) -> bool:
    """Whether a choice can run for this vector length on this device."""
    return not choice or (
        vlen % choice.get("LANES", 1) == 0
        and search.group_size(choice, size) <= min(GROUP_SIZE, device.max_work_group_size)
        and search.local_bytes(choice, size, dtype) <= min(device.local_mem_size, LOCAL_BYTES)
    )


def candidates(device, search: Search, size: tuple[int, ...], dtype, vlen: int) -> Iterator[Choice]:
    """Choices worth a try, the most likely first."""
    for choice in search.candidates(size, dtype, lane_counts(vlen)):
        if fits(device, search, choice, size, dtype, vlen):
            yield choice


def lane_counts(vlen: int) -> list[int]:
    """Divisors of the vector length up to a warp's lanes, the largest first."""
    return [lanes for lanes in range(min(vlen, 64), 0, -1) if vlen % lanes == 0][:4]
