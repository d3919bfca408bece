"""The words that `compactla.krylov_methods` is written in, for V systems at a time, and what solves systems by them."""

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from compactla.cpu.emit.code import Code, name_of, operand
from compactla.cpu.emit.index import INDEX, Condition
from compactla.cpu.emit.numba_matrices import at, form, lanes_of, pack_at, parse_form, parts_of
from compactla.cpu.emit.numba_vectors import abs1, broadcast, conj, maximum, select, sqrt
from compactla.cpu.emit.vectors import Flags, Lanes, Mask, Vector
from compactla.cpu.kernels.csr import blockmv, csrilu, csrmm, csrsv, row_sum
from compactla.cpu.kernels.csrlu import csrlu, csrlusv, enter, largest_tile
from compactla.cpu.kernels.dot import total
from compactla.cpu.kernels.nrm2 import nrm2
from compactla.krylov_methods import METHODS

compiled = functools.partial(njit, error_model="numpy", inline="always")  # compiled once, with what calls it


def word(result=None):
    """Make ``emit(code, ...)``, of matrices, vectors, masks and numbers, callable from Numba functions.

    It returns what `result` makes of the types of its arguments, or nothing.
    """

    def make(emit):
        def define(typing_context, *kinds):
            def lower(context, builder, signature, args):
                made = cgutils.alloca_once(builder, context.get_value_type(signature.return_type))

                def body(code, made, *values):
                    values = (given(context, code, kind, x) for kind, x in zip(kinds, values, strict=True))
                    found = emit(code, *values)
                    if found is not None:
                        code.builder.store(found.wrap(), made)

                name = f"{name_of(emit)}({', '.join(map(str, kinds))})"
                values = made, *args
                Code(builder).call(name, [x.type for x in values], body, *values, attributes=("noinline",))
                return context.get_dummy_value() if result is None else builder.load(made)

            return (types.void if result is None else result(*kinds))(*kinds), lower

        define.__name__, define.__doc__ = emit.__name__, emit.__doc__
        context = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_ONLY)
        _, *others = inspect.signature(emit).parameters.values()
        define.__signature__ = inspect.Signature([context, *others])
        made = intrinsic(define)
        made.emit = emit  # for other words
        return made

    return make


def given(context, code, kind, value):
    """An argument while code is emitted."""
    if isinstance(kind, Vector):
        return Lanes.unwrap(code.builder, kind, value)
    return Flags(code.builder, value) if isinstance(kind, Mask) else operand(context, code, kind, iter([value]))


@word(lambda X, Y: X.vector)
def dot(code, X, Y):
    """The inner product of columns, of which X is conjugated."""
    X = X._replace(conj=not X.conj)
    return total(code, X.vector, X.m, lambda i, sums: X[i, 0].fma(Y[i, 0], sums))


@word(lambda X: X.vector.reals)
def norm(code, X):
    """The 2-norm of a column."""
    r = code.room(X.vector.reals, 1)
    nrm2.emit(code, X, r)
    return r[0, 0]


@word()
def add(code, mask, Y, a, X):
    """Y <- Y + a X in the lanes of a mask."""
    with code.loop(Y.m) as i:
        y = Y[i, 0]
        Y[i, 0] = mask.select(multiplied(a, X[i, 0], y), y)


@word()
def combine(code, P, a, R):
    """P <- R + a P"""
    with code.loop(P.m) as i:
        P[i, 0] = multiplied(a, P[i, 0], R[i, 0])


def multiplied(a, x, y):
    """a x + y, of which a may be real where the others are complex."""
    if a.vector.is_complex or not x.vector.is_complex:
        return a.fma(x, y)
    return y._new(*(a.fma(p, q).parts[0] for p, q in zip((x.real, x.imag), (y.real, y.imag), strict=True)))


@word()
def scale(code, X, a):
    """X <- a X"""
    with code.loop(X.m) as i:
        X[i, 0] = X[i, 0] * a


@word()
def copy(code, X, Y):
    """Y <- X"""
    for j in code.each(X.n):
        with code.loop(X.m) as i:
            Y[i, j] = X[i, j]


@word()
def clear(code, X):
    """X <- 0"""
    with code.loop(X.m) as i:
        X[i, 0] = code.zero(X.vector)


@word()
def keep(code, mask, X):
    """X <- 0 but in the lanes of a mask."""
    with code.loop(X.m) as i:
        X[i, 0] = mask.select(X[i, 0], code.zero(X.vector))


@word()
def subtract(code, B, a, R):
    """R <- a B - R"""
    with code.loop(B.m) as i:
        R[i, 0] = multiplied(a, B[i, 0], -R[i, 0])


@word()
def record(code, history, count, size, mask):
    """Enter the sizes of the lanes of a mask in the rows of `history`, if it has any, that the lanes have come to."""
    b = code.builder
    with code.when(mask.any() & (history.m > 0), likely=False):
        for lane in range(count.vector.lanes):
            k = ir.IntType(32)(lane)
            with code.when(Condition(b, b.extract_element(mask.value, k))):
                row = code.index(b.fptosi(b.extract_element(count.parts[0], k), INDEX))
                b.store(b.extract_element(size.parts[0], k), history.pointer(row, 0, lane))


KINDS = {"none": 0, "ilu": 1, "block": 2, "csr": 3, "lu": 4, "fresh": 4}


@word()
def apply(code, A, X, Y):
    """Y <- A X, where A is (values, indptr, indices), of a sparse matrix."""
    csrmm.emit(code, *A, X, Y)


@word()
def precondition(code, M, X, Y):
    """Y <- M X, where M is (values, indptr, indices, diagonal, order, kind, size of blocks, column to work in, ...).

    The values are those of incomplete factors, of blocks on the diagonal, of M, or of factors in tiles.
    """
    values, indptr, indices, diagonal, order, kind, size, W, *_ = M

    def solve():
        with code.loop(W.m) as i:
            W[i, 0] = code.zero(W.vector)
        for j in code.each(X.n):
            with code.loop(X.m) as i:
                W[i, 0] = X[code.entry(order, i), j]
            csrlusv.emit(code, values, largest_tile(len(values.vector.parts)), indices, indptr, diagonal, W)
            with code.loop(X.m) as i:
                Y[code.entry(order, i), j] = W[i, 0]

    ways = {
        "none": lambda: copy.emit(code, X, Y),
        "ilu": lambda: csrsv.emit(code, values, indptr, indices, diagonal, X, Y),
        "block": lambda: blockmv.emit(code, values, size, X, Y),
        "csr": lambda: csrmm.emit(code, values, indptr, indices, X, Y),
        "lu": solve,
    }
    for name, emit in ways.items():
        with code.when(kind.index(code) == KINDS[name]):
            emit()


@word()
def follow(code, A, M, X, Z, Y):
    """Y <- A Z, where Z is M X, M has incomplete factors L U, and ends with the sparse matrix D = A - L U.

    It is X + D Z, but in lanes where a pivot was replaced, which M ends with too.
    """
    *_, values, indptr, indices, irregular = M
    whole = irregular[0, 0].real != 0
    with code.when(whole.any(), likely=False):
        csrmm.emit(code, *A, Z, Y)
    with code.loop(Y.m) as i:
        first, last = code.entry(indptr, i), code.entry(indptr, i + 1)
        Y[i, 0] = whole.select(Y[i, 0], X[i, 0] + row_sum(code, values, indices, first, last, Z))


WORDS = {
    **{"abs1": abs1, "add": add, "apply": apply, "clear": clear, "combine": combine, "conj": conj, "copy": copy},
    **{"dot": dot, "keep": keep, "maximum": maximum, "norm": norm, "number": broadcast, "precondition": precondition},
    **{"record": record, "scale": scale, "select": select, "sqrt": sqrt, "subtract": subtract},
}


def words(column, kept):
    """The words for vectors of a form, with factors for which is `kept` what they drop, or without."""
    lanes, step = lanes_of(column), parts_of(column) * lanes_of(column)

    def vector(W, k):
        return at(W[0], k * W[1] * step, W[1], 1, step, step, lanes, column)

    def apply_last(A, M, X, Z, Y):
        apply(A, Z, Y)

    following = follow if kept else compiled(apply_last)
    return SimpleNamespace(**WORDS, follow=following, vector=compiled(vector), compiled=compiled)


def solve_batch(
    method: str, options: Any, packed: str, column: str, table: str, real: str, tile: int, kept: bool
) -> Callable:
    """Kernel that solves the systems of packs lo to hi, as many lanes at a time as the form `column` of work has.

    Where `tile` is not zero, the incomplete factors of values of M are made in work, in tiles of this size. What they
    drop, `extra` numbers behind the `count` ones of tiles, is used if it is `kept`.

    `packed` is the form of columns of packs, `table` of numbers in work, `real` of norms in packs. M is as
    for `precondition`; `out` gets what methods put there.
    """
    iterate = compiled(METHODS[method](words(column, kept), *options))
    width, parts = lanes_of(column), parts_of(column)
    step, number = width * parts, form(np.dtype(parse_form(column).vector.real.name), 1)
    made = compiled(factored(tile))

    def kernel(
        lo, hi, V, n, nnz, indptr, indices, of_m, m_indptr, m_indices, diagonal, order, kind, size, extent, count,
        extra, places, zeros, ones, tile_rows, starts, products, mask, d_indptr, d_indices, info, vectors, rows,
        columns, restart, ortho, steps, start, maxiter, rtol, atol, data, m_data, b, x, out, history, work
    ):  # fmt: skip
        # Work space, for as many lanes as are solved at a time.
        W = work, n
        H = at(work, vectors * n * step, rows, columns, columns * step, step, width, table)
        Z = at(work, (vectors * n + rows * columns) * step, extent, 1, step, step, width, column)
        mark = (vectors * n + rows * columns + extent) * step
        irregular = at(work, mark, 1, 1, step, step, width, column)
        F = at(work, mark + step, count, 1, step, step, width, column)
        D = at(work, mark + (1 + count) * step, extra, 1, step, step, width, column)

        for p in range(lo, hi):
            for v in range(0, V, width):
                # The matrix and its preconditioner, then vectors and results.
                A = pack_at(data, p, v, V, nnz, 1, packed), indptr, indices
                lists = places, zeros, ones, tile_rows, m_indices, diagonal, starts, products, mask
                given = pack_at(m_data, p, v, V, of_m, 1, packed)
                behind = (p * of_m + count) * V * parts + v
                beside = at(m_data, behind, extra, 1, V * parts, V * parts, V, packed)
                found, rest = made(given, beside, F, D, lists, info[p * V + v :])
                dropped = rest, d_indptr, d_indices, irregular
                M = (found, m_indptr, m_indices, diagonal, order, kind, size, Z, *dropped)
                if kept:
                    for lane in range(width):
                        flag = at(work, mark + lane, 1, 1, 1, 1, 1, number)
                        flag[0, 0] = 1.0 if info[p * V + v + lane] else 0.0
                B, X = pack_at(b, p, v, V, n, 1, packed), pack_at(x, p, v, V, n, 1, packed)
                past = at(history, p * steps * V + v, steps, 1, V, V, V, real)
                result = at(out, 4 * p * V + v, 4, 1, V, V, V, real)
                iterate(A, M, B, X, W, H, past, result, start, maxiter, rtol, atol, restart, ortho)

    return kernel


def factored(size):
    """Function that makes incomplete factors F of values, in tiles of this size, and D, what they drop.

    Or it leaves the values as they are, and what is beside them, if the size is zero.
    """

    def given(values, beside, F, D, lists, info):
        return values, beside

    def made(values, beside, F, D, lists, info):
        places, zeros, ones, rows, indices, diagonal, starts, products, mask = lists
        enter(values, F, places, zeros, ones)
        csrlu(F, size, rows, indices, diagonal, starts, products, info, mask, D)
        return F, D

    return made if size else given


def product_batch(matrix: str, trans: str, scaled: bool) -> Callable:
    """Kernel that multiplies columns with sparse matrices, as many lanes at a time as the form has.

    ``Y <- alpha op(A) X + beta Y`` if it is `scaled`, where alpha and beta of each system are a pack of 2 x 1.
    """
    width = lanes_of(matrix)

    def kernel(lo, hi, V, nnz, indptr, indices, n, m, nrhs, scalars, values, x, y):

        for p in range(lo, hi):
            for v in range(0, V, width):
                A = pack_at(values, p, v, V, nnz, 1, matrix)
                X, Y = pack_at(x, p, v, V, n, nrhs, matrix), pack_at(y, p, v, V, m, nrhs, matrix)
                if scaled:
                    csrmm(A, indptr, indices, X, Y, trans, pack_at(scalars, p, v, V, 2, 1, matrix))
                else:
                    csrmm(A, indptr, indices, X, Y, trans)

    return kernel


def precondition_batch(matrix: str, column: str) -> Callable:
    """Kernel that applies preconditioners to columns, with work of the form `column`."""
    width, parts = lanes_of(matrix), parts_of(matrix)
    step = width * parts

    def kernel(lo, hi, V, of_m, indptr, indices, diagonal, order, kind, size, extent, n, nrhs, values, x, y, work):
        Z = at(work, 0, extent, 1, step, step, width, column)

        for p in range(lo, hi):
            for v in range(0, V, width):
                M = pack_at(values, p, v, V, of_m, 1, matrix), indptr, indices, diagonal, order, kind, size, Z
                precondition(M, pack_at(x, p, v, V, n, nrhs, matrix), pack_at(y, p, v, V, n, nrhs, matrix))

    return kernel


def ilu_batch(column: str) -> Callable:
    """Kernel for the incomplete factors of packs lo to hi."""
    width = lanes_of(column)

    def kernel(lo, hi, V, nnz, indptr, indices, diagonal, n, data, factors, info):

        for p in range(lo, hi):
            for v in range(0, V, width):
                A, F = pack_at(data, p, v, V, nnz, 1, column), pack_at(factors, p, v, V, nnz, 1, column)
                csrilu(A, indptr, indices, diagonal, n, F, info[p * V + v :])

    return kernel
