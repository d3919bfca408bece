"""What is best on one processor and not on another: sizes and costs from which on kernels or threads are others.

They are what ``python -m compactla tune --device cpu`` has measured: the user's results, else those in `tuned/` for
processors of the family, which LLVM names. For all others they follow from caches and instructions.
"""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from compactla.cpu.emit.machine import last_cache, machine, target

SHIPPED = Path(__file__).parent / "tuned"
FORMAT = 1  # of the files
# Processors whose division is faster than Newton's iteration: Zen 5 divides 8 numbers in 4 cycles.
DIVIDERS = {"znver5"}
SMALLEST, LARGEST = 1, 2**40  # that a number may be


class Choices(NamedTuple):
    """The choices for a processor.

    Attributes
    ----------
    far : int
        Bytes of operands from which on packs are fetched ahead, and products written past the caches.
    past : int
        Bytes of a copy from which on it goes past the caches.
    divides : bool
        Whether reciprocals are best left to the divider. Results depend on it, to a rounding.
    grain : int
        Least work of a thread, in operations on vectors of a register or elements moved: 10 us or more. Three times as
        much is the least that others have to take off the calling thread, since it takes 30 us or more to wake them.
    """

    far: int
    past: int
    divides: bool
    grain: int


def usual() -> Choices:
    """Choices for a processor of which no results are known.

    The last cache of most is twice as fast as memory and more. That of Intel's with AVX-512, which all cores of a
    socket share, is not: copies of 8 MB and more past it take a half to a quarter of the time.
    """
    last, name = last_cache(), target()[1]
    shared = machine()[0] == 64 and not name.startswith("znver")
    past = 4 << 20 if shared else min(max(last, 4 << 20), 32 << 20)
    return Choices(min(8_000_000, last), past, name in DIVIDERS, 32_768)


def user_file() -> Path:
    """Where results for this processor are kept."""
    return Path(platformdirs.user_cache_dir("compactla")) / "tuned" / file_name()


def file_name() -> str:
    return f"{target()[1]}.json"


@functools.cache
def choices() -> Choices:
    """The choices for this processor, and never an error."""
    return usual()._replace(**results(SHIPPED / file_name()) | results(user_file()))


def results(file: Path) -> dict[str, Any]:
    """The results in a file, whatever it is: those that may be choices."""
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return {}
    found = content.get("choices")
    return {name: x for name, x in found.items() if is_choice(name, x)} if isinstance(found, dict) else {}


def is_choice(name: str, x: Any) -> bool:
    """Whether a value may be that of a choice of this name."""
    kind = Choices.__annotations__.get(name)
    return type(x) is kind and (kind is bool or SMALLEST <= x <= LARGEST)


def write(file: Path, processor: str, found: dict[str, Any]) -> None:
    """Add results to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, "processor": processor, "choices": results(file) | found}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content, indent=1) + "\n")
    new.replace(file)


def past_caches() -> int:
    return choices().past


def divides() -> bool:
    return choices().divides
