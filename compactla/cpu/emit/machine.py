"""The CPU that Numba compiles for: its registers, and what it does faster than others."""

import functools
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core.registry import cpu_target

# CPUs, by LLVM's names, whose division is faster than Newton's iteration: Zen 5 divides 8 numbers in 4 cycles.
DIVIDERS = {"znver5"}
ARM = "aarch64", "arm64"  # how triples begin: Apple's name is the second
# What LLVM compiles to see what a CPU has, and what its assembly has where that is there.
PROBE = """
define <8 x double> @add(<8 x double> %x) {
  %y = fadd <8 x double> %x, %x
  ret <8 x double> %y
}

define i64 @round(<4 x float> %x) {
  %y = fptrunc <4 x float> %x to <4 x half>
  %z = bitcast <4 x half> %y to i64
  ret i64 %z
}
"""
SEEN_BY = {"avx512f": "zmm", "avx": "ymm", "f16c": "vcvtps2ph"}


def target():
    """LLVM's triple and name of the CPU, and its features."""
    triple, name, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, name, {*features.split(",")}


def has(feature):
    """Whether the CPU has a feature of x86: what the list of its features does not say follows from its name."""
    features = target()[2]
    return f"+{feature}" in features or (f"-{feature}" not in features and SEEN_BY[feature] in assembly())


@functools.cache
def assembly():
    """What the CPU's name and features make of `PROBE`."""
    triple, name, features = target()
    compiler = llvm.Target.from_triple(triple).create_target_machine(cpu=name, features=",".join(features))
    return compiler.emit_assembly(llvm.parse_assembly(PROBE))


@functools.cache
def machine() -> tuple[int, int]:
    """Bytes of a vector register, and number of vector registers."""
    if target()[0].startswith(ARM):
        return 16, 32
    if has("avx512f"):
        return 64, 32
    return 32 if has("avx") else 16, 16


@functools.cache
def has_half() -> bool:
    """Whether numbers of 16 bits are converted by instructions."""
    return target()[0].startswith(ARM) or has("f16c")


@functools.cache
def divides():
    """Whether reciprocals are best left to the divider."""
    return target()[1] in DIVIDERS


@functools.cache
def caches() -> dict[str, tuple[int, int]]:
    """Bytes of each data cache of the first core, and how many cores share it; empty where only the system knows."""
    found = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size, shared = (
            (cache / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
        if kind != "Instruction" and size.endswith("K"):
            spans = [span.split("-") for span in shared.split(",")]
            found[f"L{level}"] = int(size[:-1]) * 1024, sum(int(span[-1]) - int(span[0]) + 1 for span in spans)
    return found


def first_cache() -> int:
    """Bytes of the cache next to a core; 32 KB if they are not known."""
    return caches().get("L1", (32 << 10, 1))[0]


def second_cache() -> int:
    """Bytes of the second cache of a core; 256 KB if they are not known."""
    return caches().get("L2", (256 << 10, 1))[0]


class Fetching(NamedTuple):
    """How what comes next is best fetched into the caches.

    Attributes
    ----------
    packs : int
        Of how many of the next packs a part is asked for at a time, as long as they fit the second cache: each line is
        asked for so often.
    first : bool
        Whether they go into the first cache if there is room for them, instead of the second.
    """

    packs: int
    first: bool


@functools.cache
def fetching() -> Fetching:
    """How this processor is asked for what comes next.

    AMD's drop what they are asked for while too much is on its way. On a Zen 4, who asks once gets two thirds of what a
    copy moves, who asks for four packs at a time 0.9 and more, for six less; less comes where it has to go into the
    first cache. On a Xeon neither cache nor lead made a difference.
    """
    if target()[1].startswith("znver"):
        return Fetching(packs=4, first=False)
    return Fetching(packs=1, first=True)


@functools.cache
def past_caches() -> int:
    """Bytes from which on what is written goes past the caches.

    The last cache of most CPUs is twice as fast as memory and more. That of Intel's with AVX-512, which all cores of a
    socket share, is not: copies of 8 MB and more past it take a half to a quarter of the time.
    """
    shared = machine()[0] == 64 and not target()[1].startswith("znver")
    return 4 << 20 if shared else 32 << 20
