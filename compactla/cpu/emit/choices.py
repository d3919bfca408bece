"""What is best on one processor and not on another.

They are what ``python -m compactla tune --device cpu`` has measured: the user's results, else those in `tuned/` for
processors of the family, which LLVM names. For all others they follow from caches, instructions and the family. How a
processor loads from several places always does.
"""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from compactla.cpu.emit.machine import last_cache, machine, target

SHIPPED = Path(__file__).parent / "tuned"
FORMAT = 1  # of the files
# Multiply-adds of registers that a CPU does in the time of a division, by LLVM's name and the bits of a number: Zen 4
# divides 8 numbers in 9 cycles, beside 9 of them, Zen 5 in 4, beside 8. What holds for others was measured on Xeons.
DIVISIONS = {"znver4": {64: 9, 32: 6}, "znver5": {64: 8, 32: 8}}
OTHERS = {64: 24, 32: 16}
NEWTON = 8  # of Newton's iteration in its place, with what surrounds it
# CPUs that compute with one half of a register after the other: two instructions on halves take as long as one.
HALVED = {"znver4"}
LARGEST = {"packs": 8, "double": 100, "single": 100}  # that numbers may be
LARGE = 2**40  # the others
EMITTED = "packs", "first", "double", "single", "halved"  # which kernels are made of


class Choices(NamedTuple):
    """The choices for a processor.

    Attributes
    ----------
    far : int
        Bytes of operands from which on packs are fetched ahead, and products written past the caches.
    past : int
        Bytes of a copy from which on it goes past the caches.
    grain : int
        Least work of a thread, in operations on vectors of a register or elements moved: 10 us or more. Three times as
        much is the least that others have to take off the calling thread, since it takes 30 us or more to wake them.
    packs : int
        Of how many of the next packs a part is asked for at a time, as long as they fit the second cache: each line is
        asked for so often.
    first : bool
        Whether they go into the first cache if there is room for them, instead of the second.
    double, single : int
        Multiply-adds of registers in the time of a division of a register of numbers.
    halved : bool
        Whether an instruction on half a register takes half the time.
    """

    far: int
    past: int
    grain: int
    packs: int
    first: bool
    double: int
    single: int
    halved: bool


def usual() -> Choices:
    """Choices for a processor of which no results are known.

    The last cache of most is twice as fast as memory and more. That of Intel's with AVX-512, which all cores of a
    socket share, is not: copies of 8 MB and more past it take a half to a quarter of the time.

    AMD's drop what they are asked for while too much is on its way. On a Zen 4, who asks once gets two thirds of what a
    copy moves, who asks for four packs at a time 0.9 and more, for six less; less comes where it has to go into the
    first cache. On a Xeon neither cache nor lead made a difference.
    """
    last, zen, wide = last_cache(), is_zen(), machine()[0] == 64
    past = 4 << 20 if wide and not zen else min(max(last, 4 << 20), 32 << 20)
    divisions, halved = DIVISIONS.get(target()[1], OTHERS), target()[1] in HALVED and wide
    return Choices(min(8_000_000, last), past, 32_768, 4 if zen else 1, not zen, divisions[64], divisions[32], halved)


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
    return type(x) is kind and (kind is bool or 1 <= x <= LARGEST.get(name, LARGE))


def write(file: Path, processor: str, found: dict[str, Any]) -> None:
    """Add results to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, "processor": processor, "choices": results(file) | found}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content, indent=1) + "\n")
    new.replace(file)


def emitted() -> tuple:
    """The choices that kernels are made of."""
    return tuple(getattr(choices(), name) for name in EMITTED)


def past_caches() -> int:
    return choices().past


def is_zen() -> bool:
    return target()[1].startswith("znver")


def is_halved() -> bool:
    """Whether an instruction on half a register takes half the time."""
    return choices().halved


def gathers() -> bool:
    """Whether the instruction that loads a vector from several places is faster than as many loads: AMD's is not."""
    return not is_zen()


def division(bits: int) -> int:
    """Multiply-adds of registers in the time of a division, of numbers of so many bits."""
    return choices().double if bits == 64 else choices().single


def divides(bits: int) -> bool:
    """Whether reciprocals are always best left to the divider."""
    return division(bits) <= NEWTON


def divided(count: int, work: float, bits: int, parts: int = 1, newton: int = NEWTON) -> set[int]:
    """Which of `count` reciprocals are left to the divider, which works beside Newton's iteration on the others.

    Beside them there are so many multiply-adds of real registers to do. A reciprocal of numbers of two parts is two.
    """

    def duration(some):
        return max(parts * some * division(bits), work + parts * (count - some) * newton)

    some = min(range(count, -1, -1), key=duration)
    return {q for q in range(count) if q * some % count < some}
