"""How the CPU multiplies with sparse batches, factors them, and solves systems with them: one kernel call for each."""

import functools
from typing import Any

import numpy as np
from numba import types

from compactla.buffers import scratch
from compactla.calls.launch import NOW, Launch
from compactla.cpu.compile import INT, INTS, compiled
from compactla.cpu.cost import operations, parts, width
from compactla.cpu.emit.numba_matrices import form
from compactla.cpu.kernels.csrlu import largest_tile, lu_batch, lusv_batch
from compactla.cpu.kernels.krylov import (
    KINDS,
    ilu_batch,
    precondition_batch,
    product_batch,
    solve_batch,
)
from compactla.cpu.threads import sharing
from compactla.cpu.threads.sharing import share
from compactla.dtypes import REAL
from compactla.krylov_methods import VECTORS
from compactla.layout import Pack
from compactla.overlap import address
from compactla.types import Array
from compactla.view import layout


def column_form(dtype, lanes, V):
    """Form of contiguous columns of packs of V."""
    return form(dtype, lanes, n=1, strides=(parts(dtype) * V,) * 2)


def cost(values, count):
    """The cost of so many multiply-adds with each system of a pack."""
    return operations(layout(values.dtype, values.vlen, 1, 1, None), count)


def tile_of(dtype: np.dtype) -> int:
    """Rows and columns of the largest tile of numbers of a type: it fits the registers."""
    return largest_tile(parts(dtype))


def multiply(
    values: Pack, pattern: Any, X: Pack, Y: Pack, trans: str = "N", scalars: Any = None, launch: Launch = NOW
) -> None:
    """Y <- op(A) X, or alpha op(A) X + beta Y with packs of both in `scalars`."""
    matrix = form(values.dtype, width(values.dtype, values.vlen))
    kernel = compiled(product_batch, (INT, INT, INTS, INTS, *[INT] * 7), matrix, trans, scalars is not None)
    places = (0 if scalars is None else address(scalars.data), *(address(P.data) for P in (values, X, Y)))
    args = 0, len(X.data), values.vlen, values.m, pattern.indptr, pattern.indices, X.m, Y.m, X.n, *places
    share(kernel, len(X.data) * cost(values, values.m * X.n), args, launch)


def precondition(M: Any, X: Pack, Y: Pack, launch: Launch = NOW) -> None:
    """Y <- M X"""
    values = M.values
    matrix = form(values.dtype, width(values.dtype, values.vlen))
    lanes = width(values.dtype, values.vlen)
    within = column_form(values.dtype, lanes, lanes)
    kernel = compiled(precondition_batch, (INT, *TOLD, *[INT] * 6), matrix, within)
    args = 0, len(X.data), values.vlen, *told(M), X.m, X.n, address(values.data), address(X.data), address(Y.data)
    work = places_of_rooms(values.dtype, extent(M) * parts(values.dtype) * lanes)
    share(kernel, len(X.data) * cost(values, values.m * X.n), args, launch, None, work)


def told(M):
    """Arguments of kernels for a preconditioner, beside its values."""
    pattern = M.pattern
    return M.values.m, pattern.indptr, pattern.indices, M.diagonal, M.order, KINDS[M.kind], M.size, extent(M)


def extent(M):
    """Rows of the column that a preconditioner needs to work in."""
    return M.pattern.m * M.size if KINDS[M.kind] == KINDS["lu"] else 0


def factor(values: Pack, pattern: Any, factors: Pack, launch: Launch = NOW) -> Array:
    """The incomplete factors of packs of values, and info of each lane."""
    dtype, V, npack = values.dtype, values.vlen, len(values.data)
    info = np.zeros(npack * V, np.int64)
    kernel = compiled(
        ilu_batch, (INT, INT, INTS, INTS, INTS, INT, INT, INT, INTS), column_form(dtype, width(dtype, V), V)
    )
    places = address(values.data), address(factors.data)
    args = 0, npack, V, values.m, pattern.indptr, pattern.indices, pattern.diagonal, pattern.n, *places, info
    share(kernel, npack * cost(values, pattern.work), args, launch)
    return info


def lu_factor(values: Pack, tiles: Any, factors: Pack, launch: Launch = NOW) -> Array:
    """The factors of packs of values, in tiles, and info of each lane."""
    dtype, V, npack = values.dtype, values.vlen, len(values.data)
    info = np.zeros(npack * V, np.int64)
    where = tiles.places, tiles.zeros, tiles.ones, tiles.rows, tiles.indices, tiles.diagonal
    lists = *where, tiles.starts, tiles.products, tiles.mask
    args = 0, npack, V, values.m, tiles.count, tiles.extra, *lists, address(values.data), address(factors.data), info
    kernel = lu_kernel(dtype, V, tiles.size, tiles.incomplete)
    share(kernel, npack * cost(values, tiles.work + tiles.count), args, launch)
    return info


@functools.cache
def lu_kernel(dtype, V, size, incomplete):
    column = column_form(dtype, width(dtype, V), V)
    return compiled(lu_batch, (*[INT] * 4, *[INTS] * 9, INT, INT, INTS), column, size, incomplete)


def lu_solve(factors: Pack, tiles: Any, X: Pack, Y: Pack, trans: str = "N", launch: Launch = NOW) -> None:
    """Y <- op(A)^-1 X with the factors of `lu_factor`."""
    dtype, V, npack = factors.dtype, factors.vlen, len(X.data)
    if not X.n:
        return
    columns = -(-X.n // -(-X.n // tile_of(dtype)))
    m = tiles.m * tiles.size
    work = places_of_rooms(dtype, m * columns * parts(dtype) * width(dtype, V))
    where = tiles.order, tiles.indices, tiles.indptr, tiles.diagonal
    args = 0, npack, V, X.m, X.n, m, tiles.count, *where, *(address(P.data) for P in (factors, X, Y))
    kernel = lusv_kernel(dtype, V, columns, tiles.size, trans)
    share(kernel, npack * cost(factors, tiles.count * X.n), args, launch, None, work)


@functools.cache
def lusv_kernel(dtype, V, columns, size, trans):
    lanes = width(dtype, V)
    step = parts(dtype) * lanes
    block = form(dtype, lanes, n=columns, strides=(columns * step, step))
    forms = form(dtype, lanes), column_form(dtype, lanes, V), block
    return compiled(lusv_batch, (*[INT] * 5, *[INTS] * 4, *[INT] * 4), *forms, size, trans)


def solve(
    method: str, options: Any, A: Any, M: Any, B: Pack, X: Pack, out: Array, history: Array, start: int, maxiter: int,
    rtol: float, atol: float, restart: int, ortho: int, launch: Launch = NOW,
) -> None:  # fmt: skip
    """Solve the systems of a batch; see `compactla.krylov_methods`."""
    values, dtype, V, n = A.values, A.values.dtype, A.values.vlen, B.m
    lanes = width(dtype, V)
    within, norms = column_form(dtype, lanes, lanes), column_form(REAL[dtype.char], lanes, V)
    forms = column_form(dtype, lanes, V), within, form(dtype, lanes), norms
    fresh, kept = M.kind == "fresh", M.kind in ("fresh", "lu") and M.pattern.dropped is not None
    kernel = compiled(solve_batch, SOLVE, method, options, *forms, M.size if fresh else 0, kept)
    if method == "gmres":
        vectors, rows, columns = restart + 2, restart + 4, restart + 1
    else:
        vectors, rows, columns = VECTORS[method], 0, 0
    lists: Any = [M.order] * 7
    if fresh:
        tiles = M.pattern
        lists = tiles.places, tiles.zeros, tiles.ones, tiles.rows, tiles.starts, tiles.products, tiles.mask
    dropped = M.pattern.dropped if kept else A.pattern
    rest = dropped.indptr, dropped.indices, M.info if fresh or kept else M.order
    count, extra = (M.pattern.count, M.pattern.extra) if fresh or kept else (0, 0)
    own = count + extra if fresh else 0
    size = (vectors * n + rows * columns + extent(M) + own + 1) * parts(dtype) * lanes
    work = places_of_rooms(dtype, -(-size // 16) * 16)
    numbers = vectors, rows, columns, restart, ortho, history.shape[1], start, maxiter, rtol, atol
    places = (address(a) for a in (values.data, M.values.data, B.data, X.data, out, history))
    pattern = A.pattern.indptr, A.pattern.indices
    args = 0, len(B.data), V, n, values.m, *pattern, *told(M), count, extra, *lists, *rest, *numbers, *places
    share(kernel, len(B.data) * cost(values, 20 * values.m), args, launch, None, work)


TOLD = INT, *[INTS] * 4, INT, INT, INT
SOLVE = INT, INT, INT, INTS, INTS, *TOLD, INT, INT, *[INTS] * 10, *[INT] * 8, *[types.float64] * 2, *[INT] * 7


def places_of_rooms(dtype, size):
    """Where each thread has room for so many real numbers to work in, which the calling thread keeps."""
    work = scratch(dtype, sharing.THREADS, size)
    return [address(work) + t * work.strides[0] for t in range(sharing.THREADS)]
