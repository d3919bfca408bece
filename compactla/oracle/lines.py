"""Block tridiagonal lines: how wrong a solution is."""

from collections.abc import Sequence

import numpy as np

from compactla.oracle import ratio, widen
from compactla.types import Array


def residual(before: Sequence[np.ndarray], x: Array, eps: float | None = None) -> float:
    """||b - T x|| / (K n eps ||T|| ||x||) in the 1-norm, the largest of all right-hand sides (LAPACK's xGET02).

    `before` is lower, diag, upper and b, of shapes (nlines, K - 1, n, n), (nlines, K, n, n), (nlines, K - 1, n, n) and
    (nlines, K, n, nrhs); `eps` is that of what the factors are stored in, if it is not that of x.
    """
    eps = eps or np.finfo(x.dtype).eps
    lower, diag, upper, b, x = widen(*before, x)
    K, n = diag.shape[1:3]
    r = b - diag @ x
    r[:, 1:] -= lower @ x[:, :-1]
    r[:, :-1] -= upper @ x[:, 1:]
    columns = abs(diag).sum(-2)
    columns[:, :-1] += abs(lower).sum(-2)
    columns[:, 1:] += abs(upper).sum(-2)
    norm = columns.max((1, 2))[:, None]
    return ratio(abs(r).sum((1, 2)), K * n * eps * norm * abs(x).sum((1, 2)))
