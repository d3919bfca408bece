"""References for the layout and for lines, in plain NumPy; those for routines are in `compactla.oracle`."""

import numpy as np

from compactla.oracle import solve_ratio as solve_ratios
from compactla.oracle import widen


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


def block_tridiagonal(lower, diag, upper, ring=True):
    """The lines (nlines, K, b, b) as dense matrices (nlines, K b, K b).

    With K couplings, those of a `ring` close it; couplings of blocks that meet twice add up.
    """
    nlines, K, b, _ = diag.shape
    T = np.zeros((nlines, K, b, K, b), diag.dtype)
    T[:, np.arange(K), :, np.arange(K)] = diag.swapaxes(0, 1)
    for k in range(lower.shape[1]):
        some = np.broadcast_to(ring, nlines) if k == K - 1 else np.ones(nlines, bool)
        T[some, (k + 1) % K, :, k] += lower[some, k]
        T[some, k, :, (k + 1) % K] += upper[some, k]
    return T.reshape(nlines, K * b, K * b)


def watched_lu(T, b, pivots="report", pivoting=False, tiny=0):
    """The report of a factorization of one line, a dense matrix: info, smallest pivot, growth factor, pivots replaced.

    A threshold is sqrt(eps) times the largest entry of a diagonal block, before or after elimination. All pivots are
    moved away from zero by `tiny`.
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
        pivot += -tiny if pivot.real < 0 else tiny
        T[g, g] = pivot
        largest = max(largest, np.abs(T[g, g:]).max())
        if pivot == 0 and not info:
            info = g + 1
        T[g + 1 :, g] /= pivot or 1
        T[g + 1 :, g + 1 :] -= np.outer(T[g + 1 :, g], T[g, g + 1 :])
    return info, smallest, largest / original.max(), replaced


def solve_ratio(T, x, b):
    """The largest `oracle.solve_ratio` of a solution x of T x = b, where vectors have T's rows in any axes."""
    shape = len(T), T.shape[-1], b.size // max(len(T) * T.shape[-1], 1)
    return solve_ratios(*widen(T, x.reshape(shape), b.reshape(shape)), np.finfo(x.dtype).eps).max(initial=0)
