"""The CPU that Numba compiles for: its registers and caches."""

import functools
from pathlib import Path

import llvmlite.binding as llvm
from numba.core.registry import cpu_target

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


def last_cache() -> int:
    """Bytes of the last cache of a core; 32 MB if they are not known."""
    return max((size for size, _ in caches().values()), default=32 << 20)
