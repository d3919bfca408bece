"""Steps of matrix exponentials of packs that are neither products nor solves: those of `expm.cl`."""

import math
from typing import Any

import numpy as np

from compactla.calls.launch import NOW
from compactla.dtypes import REAL
from compactla.gpu.arrays import empty, reused
from compactla.gpu.launch import launch_lanes
from compactla.layout import Pack
from compactla.types import Array

FILE = "expm.cl"
# log2 of the first term that Pade's approximant of degree 13 lacks, of the power 27, over the unit of rounding.
MISSING = math.ceil(math.log2(math.factorial(13) ** 2 / (math.factorial(26) * math.factorial(27)) * 2**53)) + 1


def run(name: str, A: Pack, *args: Any, **macros: Any) -> None:
    """Launch a kernel for matrices like A."""
    given = [x.view if isinstance(x, Pack) else x for x in args]
    launch_lanes(A.queue, NOW, FILE, name, A.dtype, A.vlen, (A.nm, 1), A.nm, *given, **{name.upper(): 1}, **macros)


def halved(A: Pack, A2: Pack, A4: Pack, A6: Pack) -> Array:
    """How often each matrix is halved, which is done with it and its powers."""
    s = empty((A.nm,), np.int32, A.queue, reused(A.view.buffer))
    limits = np.finfo(REAL[A.dtype.char])
    maximum = repr(float(limits.max)) + ("f" if limits.bits == 32 else "")
    run("halvings", A, A.n, A, A4, A6, A.beside(A.n, 2), s, MAXIMUM=maximum, MISSING=MISSING, MOST=limits.maxexp - 2)
    run("halved", A, A.n, s, A, A2, A4, A6)
    return s


def combined(P: Pack, factors: tuple[float, ...], matrices: tuple[Pack, ...], own: float = 0, one: float = 0) -> None:
    """P <- own P + the sum of matrices, three or less, times factors + one I"""
    number = REAL[P.dtype.char].type
    some = [*matrices, *[P] * (3 - len(matrices))]
    run("combined", P, P.n, *map(number, (own, *factors, *[0.0] * (3 - len(factors)), one)), *some, P)


def chosen(t: int, s: Array, S: Pack, P: Pack) -> None:
    """P <- S where s is above t"""
    run("chosen", P, P.m, P.n, t, s, S, P)
