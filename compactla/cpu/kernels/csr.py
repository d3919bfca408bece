"""Sparse matrices of one pattern at the pack level: `csrmm` multiplies, `csrilu` factors, and `csrsv` solves.

Values are nnz x 1 matrices of vectors, in the order of `indices`, which is ascending in each row.
"""

from compactla.checks import option
from compactla.cpu.emit.code import routine
from compactla.cpu.emit.failures import report
from compactla.cpu.kernels.dot import total
from compactla.cpu.kernels.getrfnp import reciprocal

UNROLLED = 4  # multiply-adds of a round of the innermost loop


def row_sum(code, values, indices, first, last, x):
    """The sum of values times what they stand before in a column x, from place `first` to `last` - 1."""

    def add(i, sums):
        t = first + i
        return values[t, 0].fma(x[code.entry(indices, t), 0], sums)

    return total(code, x.vector, last - first, add)


def scatter(code, values, indices, first, last, factor, y):
    """y <- y + factor times the values from place `first` to `last` - 1, each where it stands."""

    def add(t):
        j = code.entry(indices, t)
        y[j, 0] = factor.fma(values[t, 0], y[j, 0])

    count = last - first
    rounds = count // UNROLLED
    with code.loop(rounds) as r:
        for k in range(UNROLLED):
            add(first + r * UNROLLED + k)
    done = rounds * UNROLLED
    with code.loop(count - done) as k:
        add(first + done + k)


@routine
def csrmm(code, values, indptr, indices, X, Y, trans="N", scalars=None):
    """Y <- alpha op(A) X + beta Y for V sparse matrices of one pattern, in a Numba function.

    Parameters
    ----------
    values : matrix
        nnz x 1, the values of A row by row.
    indptr, indices : array of int64
        Where in `values` rows begin, and the column of each.
    X, Y : matrix
        Columns that are multiplied, and the results.
    trans : str
        A constant as in BLAS: whether op(A) is A, its transpose or its conjugate transpose.
    scalars : matrix
        2 x 1: alpha and beta, by default 1 and 0. Y is not read where beta is zero, nor A and X where alpha is.
    """
    trans = option("trans", trans, "NTC")
    zero = code.zero(Y.vector)
    if scalars is not None:
        alpha, beta = scalars[0, 0], scalars[1, 0]
        nothing, fresh = alpha == 0, beta == 0
    if trans == "N":
        with code.loop(Y.m) as i:
            first, last = code.entry(indptr, i), code.entry(indptr, i + 1)
            for j in code.each(Y.n):
                x = X.block(0, j, X.m, 1)
                product = row_sum(code, values, indices, first, last, x)
                if scalars is not None:
                    product = nothing.select(zero, alpha * product) + fresh.select(zero, beta * Y[i, j])
                Y[i, j] = product
        return
    values = values._replace(conj=values.conj != (trans == "C"))
    for j in code.each(Y.n):
        with code.loop(Y.m) as i:
            Y[i, j] = zero if scalars is None else fresh.select(zero, beta * Y[i, j])
        y = Y.block(0, j, Y.m, 1)
        with code.loop(X.m) as i:
            x = X[i, j] if scalars is None else nothing.select(zero, alpha * X[i, j])
            scatter(code, values, indices, code.entry(indptr, i), code.entry(indptr, i + 1), x, y)


@routine
def csrilu(code, values, indptr, indices, diagonal, n, factors, info):
    """The incomplete LU factors without fill of V sparse matrices of one pattern, in a Numba function.

    Parameters
    ----------
    values, factors : matrix
        nnz x 1: the values of A, and what gets L and U in their places, with reciprocals of the pivots in place of
        these.
    indptr, indices, diagonal : array of int64
        The pattern, and where in `values` the diagonal is.
    n : int
        How many rows there are.
    info : array of V int64
        Set to ``i + 1`` for a matrix whose pivot i is the first that is exactly zero, and counts as one; otherwise
        left alone.
    """
    n, vector = n.index(code), values.vector
    row = code.room(vector, n)  # what is between its entries is computed too, and not read
    with code.loop(n) as i:
        row[i, 0] = code.zero(vector)
    with code.loop(n) as i:
        first, last = code.entry(indptr, i), code.entry(indptr, i + 1)
        middle = code.entry(diagonal, i)
        with code.loop(last - first) as s:
            t = first + s
            row[code.entry(indices, t), 0] = values[t, 0]
        with code.loop(middle - first) as s:
            t = first + s
            k = code.entry(indices, t)
            pivot = code.entry(diagonal, k)
            multiple = row[k, 0] * factors[pivot, 0]
            factors[t, 0] = multiple
            end = code.entry(indptr, k + 1)
            scatter(code, factors, indices, pivot + 1, end, -multiple, row)
        zero, inverse = reciprocal(row[i, 0])
        factors[middle, 0] = inverse
        report(code, [zero], info, i + 1)
        behind = middle + 1
        with code.loop(last - behind) as s:
            t = behind + s
            factors[t, 0] = row[code.entry(indices, t), 0]


@routine
def csrsv(code, factors, indptr, indices, diagonal, X, Y):
    """Y <- inv(L U) X with the factors of `csrilu`, in a Numba function; Y may be X."""
    for j in code.each(Y.n):
        y = Y.block(0, j, Y.m, 1)
        with code.loop(Y.m) as i:
            first, middle = code.entry(indptr, i), code.entry(diagonal, i)
            y[i, 0] = X[i, j] - row_sum(code, factors, indices, first, middle, y)
        with code.loop(Y.m) as step:
            i = Y.m - 1 - step
            middle, last = code.entry(diagonal, i), code.entry(indptr, i + 1)
            right = row_sum(code, factors, indices, middle + 1, last, y)
            y[i, 0] = (y[i, 0] - right) * factors[middle, 0]


@routine
def blockmv(code, blocks, b, X, Y):
    """Y <- D X for V block diagonal matrices: b x b blocks, row by row, of which the last may reach beyond Y.

    `X` is not `Y`. `b` is a number, or a constant.
    """
    b = b if isinstance(b, int) else b.index(code)
    for j in code.each(Y.n):
        with code.loop(Y.m) as i:
            start = i // b * b
            row, x = i * b, X.block(start, j, b, 1)
            count = code.min(b, Y.m - start)

            def add(k, sums, row=row, x=x):
                return blocks[row + k, 0].fma(x[k, 0], sums)

            Y[i, j] = total(code, Y.vector, count, add)
