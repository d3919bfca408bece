"""Mixed precision: numbers rounded to a smaller type that they are stored as, and residuals for refinement."""

import functools

import numpy as np
from numba import types

from compactla.cpu.choice import STATIC, known_form, operations
from compactla.cpu.emit import routine
from compactla.cpu.kernel import INT, INTS, compiled
from compactla.cpu.kernels.blocktridiag import residual_batch
from compactla.cpu.lanes import at, form, lanes_of
from compactla.cpu.lines import column_form
from compactla.cpu.parallel import share
from compactla.cpu.simd import INDEX, has_half
from compactla.overlap import address
from compactla.view import Layout

ROUNDED = 8  # numbers that are rounded at a time


def round_batch(wide, narrow, one_wide, one_narrow):
    """Kernel that rounds the vectors lo to hi of `count`, of the two forms, and the `rest` numbers after the last."""
    lanes = lanes_of(wide)

    def kernel(lo, hi, count, rest, source, target, limit, overflow):
        A = at(source, lo * lanes, hi - lo, 1, lanes, lanes, lanes, wide)
        round_to(A, at(target, lo * lanes, hi - lo, 1, lanes, lanes, lanes, narrow), limit, overflow)
        if hi == count:
            A = at(source, hi * lanes, rest, 1, 1, 1, 1, one_wide)
            round_to(A, at(target, hi * lanes, rest, 1, 1, 1, 1, one_narrow), limit, overflow)

    return kernel


@routine
def round_to(code, A, B, limit, overflow):
    """B <- A, columns; ``overflow[0]`` <- 1 if an element of A is larger than `limit`."""
    b, limit = code.builder, limit.lanes(code, A.vector.reals)
    for i in code.each(A.m):
        x = A[i, 0]
        B[i, 0] = x
        with b.if_then((abs(x) > limit).any(), likely=False):
            b.store(INDEX(1), overflow)


def check_storage(storage, queue):
    """Refuse what the processor cannot widen."""
    if storage == "float16" and not has_half():
        raise ValueError("storage is 'float16', must be another: the processor has no instructions for it")


def round_blocks(source, target, storage, limit, overflow, threads=None):
    """Round numbers to a smaller type; ``overflow[0]`` <- 1 if one is larger than `limit`."""
    vectors, rest = divmod(source.size, ROUNDED)
    args = 0, vectors, vectors, rest, address(source), address(target), limit, overflow
    share(round_kernel(source.dtype.char, storage), source.size, args, threads)


@functools.cache
def round_kernel(char, storage):
    forms = (form(np.dtype(char), lanes, stored=stored) for lanes in (ROUNDED, 1) for stored in ("", storage))
    return compiled(round_batch, (INT, INT, INT, INT, types.float64, INTS), *forms)


def copy(source, target, threads=None):
    """target <- source"""
    np.copyto(target, source)


def residual_lines(lines, blocks, rhs, x, r, work, threads=None):
    """r <- rhs - A x for the blocks of the lines before they were factored."""
    nrhs = rhs.shape[2]
    kernel, cost = residual_choice(lines.layout, nrhs)
    vectors = lines.offset, lines.rows, address(rhs), address(x), address(r)
    args = 0, lines.npack, *lines.sizes, nrhs, *map(address, blocks), *vectors
    share(kernel, lines.nslot * cost, args, threads, lines.offset, work.addresses)


@functools.cache
def residual_choice(A: Layout, nrhs):
    """The kernel, and what it costs for a slot."""
    arguments = (*[INT] * 9, INTS, INTS, INT, INT, INT, INT)
    kernel = compiled(residual_batch, arguments, known_form(A, A.m <= STATIC), column_form(A, nrhs))
    return kernel, operations(A, 3 * A.m**2 * nrhs)
