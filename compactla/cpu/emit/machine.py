"""The CPU that Numba compiles for: its registers and caches."""

import functools
import math
from pathlib import Path

import llvmlite.binding as llvm
from numba.core.registry import cpu_target

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")  # of Linux
UNITS = {"K": 1 << 10, "M": 1 << 20}
# Where Linux says which quota of time a group has in a period, in both versions; a container sees its own there.
QUOTAS = [
    (Path("/sys/fs/cgroup"), ["cpu.max"]),
    (Path("/sys/fs/cgroup/cpu"), ["cpu.cfs_quota_us", "cpu.cfs_period_us"]),
]
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
    """Bytes of each data cache of the first core, and how many cores share it; those that the system tells."""
    found = {}
    for cache in sorted(CACHES.glob("index*")):
        try:
            level, kind, size, shared = (
                (cache / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
            )
            spans = [span.split("-") for span in shared.split(",")]
            cores = sum(int(span[-1]) - int(span[0]) + 1 for span in spans)
            nbytes = int(size[:-1]) * UNITS[size[-1]]
        except (OSError, ValueError, LookupError):  # of some systems files are missing, or empty
            continue
        if kind != "Instruction" and nbytes > 0:
            found[f"L{level}"] = nbytes, cores
    return found


def first_cache() -> int:
    """Bytes of the cache next to a core; 32 KB if they are not known."""
    return caches().get("L1", (32 << 10, 1))[0]


def second_cache() -> int:
    """Bytes of the second cache of a core; 256 KB if they are not known."""
    return caches().get("L2", (256 << 10, 1))[0]


def last_cache() -> int:
    """Bytes of the last cache of a core; 32 MB if none but the first is known."""
    return max((size for name, (size, _) in caches().items() if name != "L1"), default=32 << 20)


def share_of_processors() -> int | None:
    """How many processors' time the system lets this process and its group have, rounded up; None if all they want."""
    for path, times in QUOTAS:
        try:
            quota, period = [float(word) for name in times for word in (path / name).read_text().split()]
        except (OSError, ValueError):  # there is no such file, or no limit
            continue
        if quota > 0 and period > 0:
            return max(1, math.ceil(quota / period))
    return None
