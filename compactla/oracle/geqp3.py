"""geqp3: A <- Q\\R with A P = Q R, and no column of what is left is longer than the next pivot."""

import numpy as np

from compactla.oracle import identities, norm1, ratio, unitary_ratio, widen
from compactla.oracle.geqrf import unitary


def operands(draw, m, n, **options):
    """Columns of very different lengths."""
    a = draw(m, n)
    return (a * (2.0 ** (5 * np.arange(n) % 13 - 6)).astype(a.real.dtype),)


def repeatable(a, **options):
    """Identities, which are their own factors."""
    return (identities(a),)


def residual(before, after):
    """The largest of ||A P - Q R|| / (max(m, n) eps ||A||) and ||I - Q^H Q|| / (m eps) in the 1-norm (LAPACK's xQPT01,
    xQRT11), and of how much longer other columns are, in units of max(m, n) eps."""
    (a,), (factors, tau), jpvt = widen(*before), widen(after[0], after[2]), after[1][:, :, 0]
    eps, (m, n) = np.finfo(after[0].dtype).eps, a.shape[1:]
    is_permutation = (np.sort(jpvt, axis=1) == np.arange(n)).all(axis=1)
    R = np.triu(factors)
    permuted = np.take_along_axis(a, np.where(is_permutation[:, None], jpvt, 0)[:, None], axis=2)
    Q = unitary(factors, tau)
    longest = np.zeros(len(a))
    for k in range(tau.shape[1]):
        lengths = np.sqrt((np.abs(R[:, k:, k:]) ** 2).sum(1))
        longest = np.maximum(longest, ratio(np.maximum(lengths - lengths[:, :1], 0), max(m, n) * eps * lengths[:, :1]))
    return np.where(
        is_permutation,
        np.maximum.reduce(
            [
                ratio(norm1(permuted - Q @ R), max(m, n) * eps * norm1(a)),
                unitary_ratio(Q, eps),
                longest,
            ]
        ),
        np.inf,
    )
