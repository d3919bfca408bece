"""lstsq: least squares."""

from dataclasses import replace
from typing import Any

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, precision
from compactla.types import Array


@repeats()
def lstsq(
    a: Array, b: Array, rcond: Any = None, *, on_error: str = "raise", compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Least squares: x of the smallest norm of all with the smallest norm of b - a x, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Coefficients.
    b : (m,) or (..., m, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    rcond : float, optional
        Singular values up to `rcond` times the largest count as zeros; default: max(m, n) times the machine epsilon of
        the computation dtype. If it is not between 0 and 1, half of the epsilon is taken.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices whose singular values are not found, as where one holds NaN: "raise" raises an error that
        names them, "nan" fills their results with NaN, with 0 for the rank, and leaves all others as they are.
    compute, threads
        See `compactla.linalg.solve`.

    Returns
    -------
    x : (..., n) or (..., n, r) ndarray
        Solutions.
    residuals : (..., r) ndarray
        Squared norms of the columns of b - a x; NaN for a matrix of a rank below n. (..., 0) if m <= n.
    rank : (...) ndarray of int
        Ranks.
    s : (..., min(m, n)) ndarray
        Singular values, in descending order.

    Raises
    ------
    numpy.linalg.LinAlgError
        If singular values are not found, of matrices that the message names, or sizes do not fit together.
    TypeError, ValueError
        If the type of an argument is not supported, stacks do not fit together, or an option is none of the above.

    See Also
    --------
    numpy.linalg.lstsq : The same for one matrix, for which it is called.
    compactla.gelsy : The same for packs, by QR factorizations with column pivoting.

    Notes
    -----
    Singular value decompositions, as LAPACK ``?gelsd``: by one-sided Jacobi of R, see `compactla.gesvd`. On GPUs
    matrices become bidiagonal, by reflections in which right-hand sides take part, as they do in the rotations that
    separate few small singular values from the others. Singular vectors, as in `compactla.linalg.svd`, are for matrices
    where these are many, or that have less rows than columns. For a single matrix, `residuals` is empty where its rank
    is below n, as NumPy's is.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.array([[[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]])
    >>> x, residuals, rank, s = linalg.lstsq(a, np.array([1.0, 2.0, 3.0]))
    >>> x.round(2)
    array([[1., 1.],
           [1., 1.]])
    >>> rank
    array([2, 1], dtype=int32)
    """
    given = as_arrays(a, b, devices=("a", "b"))
    if given is None:
        return _dispatched.lstsq(a, b, **told(lstsq, rcond=rcond))
    original = a, b
    (a, b), wrap = given
    if a.ndim <= 2 and b.ndim <= 2 and type(a) is np.ndarray:
        try:
            return solved(*original, rcond)
        except _numpy.LinAlgError:
            if on_error != "nan":
                raise
    column = b.ndim == 1
    b = b[:, None] if column else b
    wide = a.ndim > 1 and a.shape[-2] < a.shape[-1]
    limit = np.array([[limit_of(a, b, rcond, compute)]])
    x, residuals, rank, s = (WIDE if wide else LSTSQ)((a, b, limit), (), on_error, compute, threads)
    x = x[..., 0] if column else x
    if a.shape[-2] <= a.shape[-1]:
        residuals = residuals[..., :0]
    return (wrap(x), wrap(residuals), rank, s) if wrap else (x, residuals, rank, s)


def limit_of(a: Any, b: Any, rcond: Any, compute: str | None) -> float:
    """Up to which fraction of the largest singular values count as zeros."""
    single = (compute or precision(a)) == "same" and a.dtype.char in "fF" and b.dtype.char in "fF"
    eps = float(np.finfo("f" if single else "d").eps)
    rcond = eps * max(a.shape[-2:], default=1) if rcond is None else float(rcond)
    return eps / 2 if rcond <= 0 or rcond >= 1 else rcond


def solved(a, b, rcond):
    """Result or error of numpy.linalg.lstsq, which does not end for some matrices with NaN or infinities."""
    matrix = np.asarray(a)
    if matrix.dtype.kind in "fc" and not np.isfinite(matrix).all():
        _numpy.lstsq(np.zeros_like(matrix), b, rcond)  # refuses what does not fit together
        raise _numpy.LinAlgError(MESSAGE)
    return _numpy.lstsq(a, b, rcond)


def one_by_one(a, b, rcond):
    """Results of numpy.linalg.lstsq for each matrix, with residuals for all."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], rcond.shape[:-2])
    trial = _numpy.lstsq(np.zeros(a.shape[-2:], a.dtype), np.zeros(b.shape[-2:], b.dtype), 0.5)
    shapes = trial[0].shape, b.shape[-1:], (), trial[3].shape
    results = [np.empty(lead + shape, x.dtype) for shape, x in zip(shapes, trial, strict=True)]
    a, b, rcond = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (a, b, rcond))
    for index in np.ndindex(lead):
        x, residuals, rank, s = solved(a[index], b[index], rcond[index].item())
        for result, found in zip(results, (x, residuals if residuals.size else np.nan, rank, s), strict=True):
            result[index] = found
    return tuple(results)


def madds(m, n, r, **_):
    """Multiply-adds, with five sweeps."""
    k, longest = min(m, n), max(m, n)
    return 2 * k * k * (longest - k / 3) + 10 * k * k * (k + r) + 2 * longest * k * r


MESSAGE = "SVD did not converge in Linear Least Squares"
LSTSQ = Stacked(
    "lstsq",
    inputs={"a": "mn", "b": "mr", "rcond": "11"},
    outputs=(Result("nr"), Result("r", "real"), Result("", "i"), Result("k", "real")),
    work=madds,
    numpy=one_by_one,
    failure=Failure(MESSAGE, probe=lambda a: solved(a, np.zeros((len(a), 1)), None)),
    implied={"k": lambda m, n, **_: min(m, n)},
    limits=Limits(
        largest=48,
        fewest=lambda n: 1 if n <= 8 else 2 if n <= 16 else 4,
        extent=lambda m, n, r, k, **_: max(k, r, (m * n + m * r + n * r) // 192),
    ),
)
WIDE = replace(LSTSQ, name="lstsq_wide")
