"""References of the routines, for tests, benchmarks and the tuner alike: operands, and how wrong results are.

The module of a routine's name has these functions, where operands are arrays (nm, rows, columns) in the order of the
routine's row, as its public function takes them:

``operands(draw, sizes..., **options)``
    Operands that the routine has no trouble with; ``draw(m, n)`` makes random matrices m x n, with numbers in (-1, 1).
``repeatable(*operands, **options)``
    Operands that the routine maps to themselves, or back and forth: for calls that are timed.
``residual(before, after, **options)``
    Scaled residuals (nm,) in the sense of LAPACK's tests, of the operands before and after a call.
``spoil(q, k, *operands, **options)``
    For routines with pivots: makes that at index k of matrix q fail, and returns what info is then: k + 1, or 0 where
    the options let nothing fail.

``free(**options)``
    If there are some, the names of operands that are written and hold nothing of use after a call.

Operands that the public function makes and returns are not among those that it is given, but after a call they are, in
the order of the row, as arrays (nm, rows, columns); None where the options leave one out.

Options have the names of the public function's parameters. What is not read, such as the other triangle, may hold NaN:
`triangle` leaves it out. Results that are wrong, or right for other options, have large residuals. A residual is in
units of what rounding may cause; LAPACK's tests, and those of this package, accept less than `THRESHOLD`. All
arithmetic is in a wider precision than that of the results.
"""

import importlib
from typing import Any

import numpy as np

THRESHOLD = 30
WIDE = {"f": np.float64, "d": np.longdouble, "F": np.complex128, "D": np.clongdouble}


def named(name: str) -> Any:
    """The oracle of a routine."""
    return importlib.import_module(f"compactla.oracle.{name}")


def widen(*arrays):
    return [a.astype(WIDE.get(a.dtype.char, a.dtype)) for a in arrays]


def op(a, trans):
    """op(A) of BLAS."""
    return {"N": a, "T": a.swapaxes(-1, -2), "C": a.conj().swapaxes(-1, -2)}[trans.upper()]


def triangle(a, uplo, diag="N"):
    """The part of A that is read: one triangle, without the diagonal if that is taken to be ones."""
    strict, ones = (1, np.eye(a.shape[-1], dtype=a.dtype)) if diag.upper() == "U" else (0, 0)
    return (np.tril(a, -strict) if uplo.upper() == "L" else np.triu(a, strict)) + ones


def symmetric(a, uplo, trans="T"):
    """The symmetric matrix, or for "C" the Hermitian one, of which one triangle is read."""
    half = triangle(a, uplo)
    diagonal = np.einsum("qii->qi", half)
    whole = half + op(half, trans)
    np.einsum("qii->qi", whole)[...] = diagonal.real if trans == "C" else diagonal
    return whole


def dominant(a, weight=2):
    """`a` with large diagonals added in place, so that pivots stay away from zero."""
    k = min(a.shape[1:])
    a[:, range(k), range(k)] += weight * max(a.shape[1:], default=0)
    return a


def identities(a):
    """Identities: as many as these matrices, of the same size and type."""
    return np.broadcast_to(np.eye(*a.shape[1:], dtype=a.dtype), a.shape).copy()


def swapped(a, ipiv, back=False):
    """Matrices with row i swapped with row ipiv[i], for each i; or `back` again, from the last to the first."""
    a, each = a.copy(), np.arange(len(a))
    for i in range(ipiv.shape[1])[:: -1 if back else 1]:
        a[:, i], a[each, ipiv[:, i]] = a[each, ipiv[:, i]], a[:, i].copy()
    return a


def norm1(a):
    """Largest absolute column sum of every matrix."""
    return np.abs(a).sum(-2).max(-1, initial=0)


def ratio(error, bound):
    """Largest error / bound of every matrix; 0 / 0 is 0 and NaN is infinity."""
    with np.errstate(all="ignore"):
        quotient = np.where(error == 0, 0, error / bound)
    quotient = np.where(np.isnan(quotient), np.inf, quotient).astype(float)
    return quotient.max(tuple(range(1, quotient.ndim)), initial=0)


def solve_ratio(T, x, b, eps):
    """||b - T x|| / (n eps ||T|| ||x||) in the 1-norm, the largest of all columns (LAPACK's xGET02)."""
    bound = T.shape[-1] * eps * norm1(T)[:, None] * np.abs(x).sum(-2)
    return ratio(np.abs(b - T @ x).sum(-2), bound)


def unitary_ratio(Q, eps):
    """||I - Q^H Q|| / (m eps) in the 1-norm, for Q of m rows (LAPACK's xUNT01 and xQRT11)."""
    m, n = Q.shape[1:]
    return ratio(norm1(np.eye(n) - op(Q, "C") @ Q), max(m, 1) * eps)


def inverse_ratio(a, x, eps):
    """||I - A X|| / (n eps ||A|| ||X||) in the 1-norm (LAPACK's xGET03 and xTRT01)."""
    n = a.shape[-1]
    return ratio(norm1(np.eye(n) - a @ x), n * eps * norm1(a) * norm1(x))
