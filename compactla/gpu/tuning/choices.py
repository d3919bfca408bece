"""Which kernel a device runs for known sizes, and with which tunables.

Choices come from results of ``python -m compactla tune``: the user's, else those in `tuned/` for this device or for
CPUs in general, else the first of the candidates. On CPUs, where work-items of a group run one after the other and pay
for every barrier, only sizes that were tuned have kernels of their own.
"""

import functools
import importlib
import json
import operator
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pyopencl as cl

from compactla import routine
from compactla.digests import digest_of_code
from compactla.opencl_sources import SOURCES
from compactla.search import GROUP_SIZE, LOCAL_BYTES, Choice, Search

SHIPPED = Path(__file__).parent / "tuned"
FORMAT = 1  # of the files; those of the time before had none
OTHERS = "arrays", "kron_team", "tuning.lines"  # what has kernels for known sizes beside routines
overrides: dict[tuple, Choice] = {}  # by device and name, of `compactla.gpu.override`


@functools.cache
def searches() -> dict[str, Search]:
    """All that can be tuned, by the names that results are filed under."""
    found = {name: routine.named(name).search for name in routine.names()}
    return functools.reduce(operator.or_, others(), found)


def others() -> Iterator[dict[str, Search]]:
    """What can be tuned beside routines."""
    return (importlib.import_module(f"compactla.gpu.{module}").SEARCHES for module in OTHERS)


def search_of(name: str) -> Search | None:
    """What can be tuned by that name, if there is such: found without importing all other routines."""
    if name in routine.names():
        return routine.named(name).search
    return next((found[name] for found in others() if name in found), None)


def key(routine: str, size: tuple[int, ...], dtype: np.dtype, variant: str = "") -> str:
    """The key of results in a file.

    The variant of a solve is the type that factors are stored in, if that is smaller, and that of a routine with a
    scalar beta "beta", if it adds to what is there.
    """
    return " ".join([routine, f"{dtype.name}:{variant}" if variant else dtype.name, *map(str, size)])


def file_name(device) -> str:
    return re.sub(r"[^a-z0-9]+", "-", device.name.strip().lower()).strip("-") + ".json"


def user_file(device: Any) -> Path:
    """Where the results of `tune` for a device are kept."""
    return Path(platformdirs.user_cache_dir("compactla")) / "tuned" / file_name(device)


def files(device) -> list[Path]:
    """The files of results for a device, each of which counts more than those before it: the user's comes last.

    CUDA's compiler gives some kernels other numbers of registers than OpenCL's, and has results of its own for them.
    """
    found = [SHIPPED / file_name(device), user_file(device)]
    if is_cpu(device):
        found.insert(0, SHIPPED / "cpu.json")
    elif not isinstance(device, cl.Device):
        found.insert(1, SHIPPED / "cuda" / file_name(device))
    return found


class Results(dict[str, dict[str, Choice]]):
    """Results for a device, by the names of searches, and of each by key; they are looked up when they are needed.

    Those of the user count while the kernels are what they were measured with. Those that are shipped always do: a test
    holds their digests against the sources.

    Attributes
    ----------
    origins : dict
        The files of results, by key.
    """

    def __init__(self, device):
        super().__init__()
        self.users, self.contents = user_file(device), {file: read(file) for file in files(device)}
        self.origins: dict[str, Path] = {}
        self.is_told = False

    def __missing__(self, name: str) -> dict[str, Choice]:
        found = self[name] = {}
        for file, content in self.contents.items():
            results = {key: choice for key, choice in of_name(content, name).items() if is_choice(choice, key)}
            if results and file == self.users and not is_current(content, name):
                self.tell(name)
            else:
                found |= results
                self.origins |= dict.fromkeys(results, file)
        return found

    def tell(self, name) -> None:
        """Warn, once, that the user's results are old."""
        if not self.is_told:
            self.is_told = True
            what = f"results in {self.users} are of other versions of the kernels, such as those of {name}"
            warnings.warn(f"{what}: they are not used, see python -m compactla tune", RuntimeWarning, stacklevel=2)


results = functools.cache(Results)


def read(file: Path) -> dict:
    """The content of a file of results, whatever it is; nothing if there is no such file, or no object in it."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(file: Path, about: dict, results: dict[str, Choice]) -> None:
    """Write a file of results of the kernels as they are now; `about` says more, of the device."""
    digests = {name: sources(name) for name in sorted({key.split()[0] for key in results})}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in ({"format": FORMAT} | about).items()]
    for title, pairs in (("sources", digests), ("results", results)):
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in pairs.items())
        lines.append(f' "{title}": {{\n{rows}\n }}')
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    new.replace(file)


def of_name(content: dict, name: str) -> dict:
    """The results that are filed under a name."""
    found = content.get("results")
    return {key: found[key] for key in found if key.split(" ")[0] == name} if isinstance(found, dict) else {}


def is_current(content: dict, name: str) -> bool:
    """Whether results that are filed under a name are of the kernels as they are now."""
    digests = content.get("sources")
    return content.get("format") == FORMAT and isinstance(digests, dict) and digests.get(name) == sources(name)


@functools.cache
def sources(name: str) -> str:
    """The digest of the kernels that results for a name are of; comments and white space do not count."""
    return digest_of_code("".join(f'#include "{file}"\n' for file in searches()[name].files), SOURCES)


def is_choice(choice, name: str) -> bool:
    """Whether the kernels know what is filed under this name: another version, or anybody, may have written it."""
    try:
        what, _, *numbers = name.split()
        size = tuple(map(int, numbers))
    except ValueError:
        return False
    search = search_of(what)
    return search is not None and search.knows(choice, size)


def is_cpu(device: Any) -> bool:
    return bool(device.type & cl.device_type.CPU)


def choose(device: Any, search: Search, size: tuple[int, ...], dtype: np.dtype, vlen: int, variant: str = "") -> Choice:
    """The choice for a device; never an error."""
    return reasoned(device, search, size, dtype, vlen, variant)[0]


def reasoned(
    device: Any, search: Search, size: tuple[int, ...], dtype: np.dtype, vlen: int, variant: str = ""
) -> tuple[Choice, str]:
    """The choice for a device, and the reason for it in words."""
    if not search.has(size):
        return {}, f"kernels for known sizes are for 1 to {search.largest}"
    forced = overrides.get((device, search.name))
    if forced is not None and search.knows(forced, size) and fits(device, search, forced, size, dtype, vlen):
        return forced, "an override"
    found = results(device)
    for known in dict.fromkeys((variant, "")):
        name = key(search.name, size, dtype, known)
        tuned = found[search.name].get(name)
        if tuned is not None and fits(device, search, tuned, size, dtype, vlen):
            return tuned, f"{name!r} in {found.origins.get(name, 'the results of this process')}"
    if is_cpu(device):
        return {}, "on CPUs only sizes that were tuned have kernels of their own"
    return next(candidates(device, search, size, dtype, vlen), {}), "the first of the candidates: nothing was tuned"


def fits(device, search, choice, size, dtype, vlen) -> bool:
    """Whether a choice can run for this vector length on this device."""
    return not choice or (
        search.divides(choice, vlen)
        and search.group_size(choice, size) <= min(GROUP_SIZE, device.max_work_group_size)
        and search.local_bytes(choice, size, dtype) <= local_room(device, search.kernels[choice["kernel"]].roomy)
    )


def local_room(device: Any, roomy: bool) -> int:
    """Bytes of local memory that a work-group may have, of a kernel that takes what a launch provides, or another."""
    usual = min(device.local_mem_size, LOCAL_BYTES)
    return max(usual, getattr(device, "room", 0)) if roomy else usual


def candidates(device: Any, search: Search, size: tuple[int, ...], dtype: np.dtype, vlen: int) -> Iterator[Choice]:
    """Choices worth a try, the most likely first."""
    for choice in search.candidates(size, dtype, lane_counts(vlen)):
        if fits(device, search, choice, size, dtype, vlen):
            yield choice


def lane_counts(vlen: int) -> list[int]:
    """Divisors of the vector length up to a warp's lanes, the largest first."""
    return [lanes for lanes in range(min(vlen, 64), 0, -1) if vlen % lanes == 0][:4]
