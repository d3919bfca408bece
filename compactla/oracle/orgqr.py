"""orgqr: A <- the first columns of the Q that geqrf leaves."""

import numpy as np

from compactla.oracle import identities, norm1, ratio, widen
from compactla.oracle.geqrf import unitary
from compactla.oracle.ormqr import reflectors


def operands(draw, n, m):
    return reflectors(draw, max(m, n), n)


def repeatable(v, tau):
    """Identities, which are their own Q."""
    return identities(v), np.zeros_like(tau)


def residual(before, after):
    """||Q' - Q|| / (m eps) in the 1-norm."""
    v, tau = widen(*before)
    (result,), eps = widen(after[0]), np.finfo(after[0].dtype).eps
    m, n = v.shape[1:]
    return ratio(norm1(result - unitary(v, tau)[:, :, :n]), max(m, 1) * eps)


def spoil(q, k, v, tau):
    tau[q, k] = np.nan
    return 0  # which there is none of
