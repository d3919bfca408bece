"""The plain NumPy oracle that every backend is held against, and the scaled residuals of LAPACK's test suite.

A ratio is an error in units of what rounding may cause; LAPACK's tests, and these, accept ratios under 30.
All arithmetic here is in a wider precision than that of the results.
"""

import numpy as np

THRESHOLD = 30
WIDE = {"f": np.float64, "d": np.longdouble, "F": np.complex128, "D": np.clongdouble}


def widen(*arrays):
    return [a.astype(WIDE.get(a.dtype.char, a.dtype)) for a in arrays]


def pack(a, vlen, period=None, unit=1):
    """The compact layout, matrix by matrix; unused lanes hold `unit` where i % period == j."""
    nm, m, n = a.shape
    data = np.zeros((-(-nm // vlen), m, n, 2, vlen), a.real.dtype)
    unused = unit * (np.arange(m)[:, None] % (period or max(m, 1)) == np.arange(n))
    for q in range(len(data) * vlen):
        matrix = a[q] if q < nm else unused
        data[q // vlen, :, :, 0, q % vlen] = matrix.real
        data[q // vlen, :, :, 1, q % vlen] = matrix.imag
    return data if np.iscomplexobj(a) else data[:, :, :, 0, :]


def op(a, trans):
    return {"N": a, "T": a.swapaxes(-1, -2), "C": a.conj().swapaxes(-1, -2)}[trans.upper()]


def gemm(a, b, c, alpha=1, beta=0, transa="N", transb="N"):
    """alpha op(A) op(B) + beta C; as in BLAS, what a zero factor multiplies is not read."""
    a, b, c = widen(a, b, c)
    product = alpha * (op(a, transa) @ op(b, transb)) if alpha else 0
    return product + (beta * c if beta else np.zeros_like(c))


def triangle(a, uplo, diag):
    """What trsm reads of A: one triangle, without the diagonal if that is taken to be ones."""
    strict, ones = (1, np.eye(a.shape[-1], dtype=a.dtype)) if diag.upper() == "U" else (0, 0)
    return (np.tril(a, -strict) if uplo.upper() == "L" else np.triu(a, strict)) + ones


def getrfnp(a):
    """L\\U and info by LAPACK's getf2 without its row interchanges: a zero pivot leaves its column unscaled."""
    (lu,) = widen(a)
    info = np.zeros(len(lu), int)
    for k in range(min(lu.shape[1:])):
        pivot = lu[:, k, k]
        info[(info == 0) & (pivot == 0)] = k + 1
        lu[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)[:, None]
        lu[:, k + 1 :, k + 1 :] -= lu[:, k + 1 :, k, None] * lu[:, None, k, k + 1 :]
    return lu, info


def block_tridiagonal(lower, diag, upper):
    """The lines (nlines, K, b, b) as dense matrices (nlines, K b, K b)."""
    nlines, K, b, _ = diag.shape
    T = np.zeros((nlines, K, b, K, b), diag.dtype)
    for k in range(K):
        T[:, k, :, k, :] = diag[:, k]
    for k in range(K - 1):
        T[:, k + 1, :, k, :] = lower[:, k]
        T[:, k, :, k + 1, :] = upper[:, k]
    return T.reshape(nlines, K * b, K * b)


def watched_lu(T, b, pivots="report", pivoting=False):
    """What a factorization of one line, a dense matrix, meets: info, smallest pivot, growth factor, pivots replaced.

    A threshold is sqrt(eps) times the largest entry of a diagonal block, before or after elimination.
    """
    eps = np.finfo(T.dtype).eps
    (T,) = widen(T)
    original, n = np.abs(T), len(T)
    info, smallest, largest, replaced = 0, np.inf, 0, 0
    for g in range(n):
        end = g - g % b + b
        if g % b == 0:
            norm = max(original[g:end, g:end].max(), np.abs(T[g:end, g:end]).max())
            threshold = np.sqrt(eps) * (norm or 1)
        if pivoting:
            column = T[g:end, g]
            other = g + np.argmax(np.abs(column.real) + np.abs(column.imag))
            T[[g, other]] = T[[other, g]]
        pivot = T[g, g]
        away = np.copysign(threshold, pivot.real)
        smallest = min(smallest, np.abs(pivot))
        if pivots == "perturb" and np.abs(pivot) < threshold:
            pivot, replaced = away, replaced + 1
        if pivots == "shift":
            pivot += away
        T[g, g] = pivot
        largest = max(largest, np.abs(T[g, g:]).max())
        if pivot == 0 and not info:
            info = g + 1
        T[g + 1 :, g] /= pivot or 1
        T[g + 1 :, g + 1 :] -= np.outer(T[g + 1 :, g], T[g, g + 1 :])
    return info, smallest, largest / original.max(), replaced


def ratio(error, bound):
    """Largest error / bound; 0 / 0 is 0 and NaN is infinity."""
    with np.errstate(all="ignore"):
        quotient = np.where(error == 0, 0, error / bound)
    return float(np.max(np.where(np.isnan(quotient), np.inf, quotient), initial=0))


def norm1(a):
    """Largest absolute column sum of every matrix."""
    return np.abs(a).sum(-2).max(-1, initial=0)


def gemm_ratio(result, a, b, c, alpha=1, beta=0, transa="N", transb="N"):
    """max |C' - C| / (eps (k |alpha| |op(A)| |op(B)| + |beta| |C|)), element by element."""
    expected = gemm(a, b, c, alpha, beta, transa, transb)
    k = op(a, transa).shape[-1]
    bound = gemm(*map(np.abs, (a, b, c)), k * abs(alpha), abs(beta), transa, transb)
    return ratio(np.abs(widen(result)[0] - expected), np.finfo(result.dtype).eps * bound)


def solve_ratio(T, x, b):
    """max ||b - T x|| / (n eps ||T|| ||x||) in the 1-norm, over all matrices and columns (LAPACK's xGET02)."""
    eps, n = np.finfo(x.dtype).eps, T.shape[-1]
    T, x, b = widen(T, x, b)
    return ratio(np.abs(b - T @ x).sum(-2), n * eps * norm1(T)[:, None] * np.abs(x).sum(-2))


def trsm_ratio(x, a, b, side="L", uplo="L", trans="N", diag="N", alpha=1):
    """`solve_ratio` of op(A) X = alpha B, or of X op(A) = alpha B."""
    a, b = widen(a, b)
    T, right = op(triangle(a, uplo, diag), trans), alpha * b if alpha else np.zeros_like(b)
    if side.upper() == "R":
        T, x, right = (y.swapaxes(-1, -2) for y in (T, x, right))
    return solve_ratio(T, x, right)


def getrfnp_ratio(lu, a):
    """max ||A - L U|| / (n eps ||A||) in the 1-norm (LAPACK's xGET01); the column of a zero pivot is not scaled."""
    eps, (m, n) = np.finfo(lu.dtype).eps, lu.shape[1:]
    lu, a = widen(lu, a)
    k = min(m, n)
    L, U = np.tril(lu[:, :, :k], -1), np.triu(lu[:, :k, :])
    product = (L + np.eye(m, k, dtype=L.dtype)) @ U
    product[:, :, :k] += L * (np.diagonal(U, axis1=-2, axis2=-1) == 0)[:, None, :]
    return ratio(norm1(a - product), n * eps * norm1(a))
