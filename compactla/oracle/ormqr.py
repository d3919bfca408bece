"""ormqr: C <- op(Q) C, or C <- C op(Q), with the Q that geqrf leaves."""

import numpy as np

from compactla.oracle import norm1, op, ratio, widen
from compactla.oracle.geqrf import unitary


def reflectors(draw, m, k):
    """Vectors and scalars of k reflectors that are unitary: tau |v|^2 = 1 - exp(i t), or 2."""
    v = draw(m, k)
    phase = -1 if v.dtype.kind != "c" else -np.exp(1j * draw(k, 1).real)
    squares = 1 + (np.abs(np.tril(v, -1)) ** 2).sum(1)[:, :, None]
    return v, ((1 - phase) / squares).astype(v.dtype)


def operands(draw, m, n, k, side="L", **options):
    """Reflectors, tau and C: no more reflectors than Q has rows, so that A is never wide."""
    v, tau = reflectors(draw, m, k if k <= m else max(m - 1, 0))
    return v, tau, draw(m, n) if side.upper() == "L" else draw(n, m)


def repeatable(v, tau, c, **options):
    """Any operands, since Q is unitary."""
    return v, tau, c


def residual(before, after, side="L", trans="N"):
    """||C' - op(Q) C|| / (m eps ||C||) in the 1-norm (LAPACK's xQRT03)."""
    v, tau, c = widen(*before)
    (result,), eps = widen(after[2]), np.finfo(after[2].dtype).eps
    Q = op(unitary(v, tau), "C" if trans.upper() != "N" else "N")
    expected = Q @ c if side.upper() == "L" else c @ Q
    return ratio(norm1(result - expected), max(Q.shape[1], 1) * eps * norm1(c))


def spoil(q, k, v, tau, c, **options):
    tau[q, k] = np.nan
    return 0  # which there is none of
