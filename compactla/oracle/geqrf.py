"""geqrf: A <- Q\\R, and the scalars tau of Q's reflectors."""

import numpy as np

from compactla.oracle import norm1, op, ratio, unitary_ratio, widen


def operands(draw, m, n):
    return (draw(m, n),)


def repeatable(a):
    """Triangular matrices: they are their own R."""
    return (np.triu(a),)


def unitary(v, tau):
    """Q, of as many rows and columns as v has rows; tau is (nm, k, 1), and v has k columns or more."""
    m, k = v.shape[1], tau.shape[1]
    v = np.tril(v[:, :, :k], -1) + np.eye(m, k, dtype=v.dtype)
    Q = np.broadcast_to(np.eye(m, dtype=v.dtype), (len(v), m, m)).copy()
    for i in range(k):
        Q -= (Q @ v[:, :, [i]] * tau[:, [i]]) @ op(v[:, :, [i]], "C")
    return Q


def residual(before, after):
    """||A - Q R|| / (m eps ||A||), and ||I - Q^H Q|| / (m eps), in the 1-norm (LAPACK's xQRT01)."""
    (a,), (qr, tau), eps = widen(*before), widen(*after), np.finfo(after[0].dtype).eps
    m, n = a.shape[1:]
    Q = unitary(qr, tau)
    return np.maximum(
        ratio(norm1(a - Q @ np.triu(qr)), max(m, n) * eps * norm1(a)),
        unitary_ratio(Q, eps),
    )


def spoil(q, k, a):
    a[q, :, k] = np.nan
    return 0  # which there is none of
