"""Numbers rounded to a smaller type that they are stored as; see `compactla.lines.storage`."""

import functools

import numpy as np
from numba import types

from compactla.calls.launch import NOW, Launch
from compactla.cpu.compile import INT, INTS, compiled
from compactla.cpu.emit.code import routine
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.machine import has_half
from compactla.cpu.emit.numba_matrices import at, form, lanes_of
from compactla.cpu.threads.sharing import share
from compactla.overlap import address
from compactla.types import Array, Queue

TOGETHER = 8  # numbers that are rounded at a time


def round_batch(vector, stored, number, stored_number):
    """Kernel that rounds the vectors lo to hi of `count`, and the `rest` numbers after the last; all are forms."""
    lanes = lanes_of(vector)

    def kernel(lo, hi, count, rest, source, target, limit, overflow):
        A = at(source, lo * lanes, hi - lo, 1, lanes, lanes, lanes, vector)
        round_to(A, at(target, lo * lanes, hi - lo, 1, lanes, lanes, lanes, stored), limit, overflow)
        if hi == count:
            A = at(source, hi * lanes, rest, 1, 1, 1, 1, number)
            round_to(A, at(target, hi * lanes, rest, 1, 1, 1, 1, stored_number), limit, overflow)

    return kernel


@routine
def round_to(code, A, B, limit, overflow):
    """B <- A, columns; ``overflow[0]`` <- 1 if an element of A is larger than `limit`."""
    b, limit = code.builder, limit.lanes(code, A.vector.reals)
    for i in code.each(A.m):
        x = A[i, 0]
        B[i, 0] = x
        with code.when((abs(x) > limit).any(), likely=False):
            b.store(INDEX(1), overflow)


def check_storage(storage: str, queue: Queue) -> None:
    """Refuse what the processor cannot widen."""
    if storage == "float16" and not has_half():
        raise ValueError("storage is 'float16', must be another: the processor has no instructions for it")


def round_blocks(
    source: Array, target: Array, storage: str, limit: float, overflow: Array, launch: Launch = NOW
) -> None:
    """Round numbers to a smaller type; ``overflow[0]`` <- 1 if one is larger than `limit`."""
    vectors, rest = divmod(source.size, TOGETHER)
    args = 0, vectors, vectors, rest, address(source), address(target), limit, overflow
    share(round_kernel(source.dtype.char, storage), source.size, args, launch)


@functools.cache
def round_kernel(char, storage):
    forms = (form(np.dtype(char), lanes, stored=stored) for lanes in (TOGETHER, 1) for stored in ("", storage))
    return compiled(round_batch, (INT, INT, INT, INT, types.float64, INTS), *forms)
