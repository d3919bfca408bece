"""The CPU that Numba compiles for: its registers, and what it does faster than others."""

import functools

from numba.core.registry import cpu_target

# CPUs, by LLVM's names, whose division is faster than Newton's iteration: Zen 5 divides 8 numbers in 4 cycles.
DIVIDERS = {"znver5"}


def target():
    """LLVM's triple and name of the CPU, and its features."""
    triple, name, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, name, {*features.split(",")}


@functools.cache
def machine():
    """Bytes of a vector register, and number of vector registers."""
    features = target()[2]
    if "+avx512f" in features:
        return 64, 32
    if "+avx" in features:
        return 32, 16
    return 16, 32 if "+neon" in features else 16


@functools.cache
def has_half():
    """Whether numbers of 16 bits are converted by instructions."""
    triple, _, features = target()
    return "+f16c" in features or triple.startswith("aarch64")


@functools.cache
def divides():
    """Whether reciprocals are best left to the divider."""
    return target()[1] in DIVIDERS


@functools.cache
def past_caches():
    """Bytes from which on what is written goes past the caches.

    The last cache of most CPUs is twice as fast as memory and more. That of Intel's with AVX-512, which all cores of a
    socket share, is not: copies of 8 MB and more past it take a half to a quarter of the time.
    """
    shared = machine()[0] == 64 and not target()[1].startswith("znver")
    return 4 << 20 if shared else 32 << 20
