"""nnls: least squares without negative numbers."""

import math

import numpy as np

from compactla.checks import check_size
from compactla.linalg.arguments import as_arrays, common_lead
from compactla.linalg.failures import Failure, which
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


def nnls(
    A: Array, b: Array, maxiter: int | None = None, *, on_error: str = "raise", compute: str | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Nonnegative least squares: x with the smallest norm of b - A x of all x >= 0, for stacks of matrices.

    Parameters
    ----------
    A : (..., m, n) array_like
        Coefficients, real.
    b : (..., m) array_like
        Right-hand sides, real: a vector for each matrix. Stacks are broadcast against each other.
    maxiter : int, optional
        A matrix fails for which as many least squares problems are solved; default: 3 n.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices that need more, or hold NaN or infinities: "raise" raises an error that names them, "nan"
        fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype, and that of results: double, or the same as that of single precision, which is faster. By
        default double, as in SciPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    x : (..., n) ndarray
        Solutions, without a number that is negative.
    rnorm : (...) ndarray
        Norms of b - A x.

    Raises
    ------
    RuntimeError
        If a matrix needs more than `maxiter`, which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, there are NaN or infinities, shapes do not fit together, or an
        option is none of the above.

    See Also
    --------
    scipy.optimize.nnls : The same, one matrix after the other.
    compactla.linalg.lstsq : Least squares with any numbers.

    Notes
    -----
    Lawson's and Hanson's active sets [1]_, one for each matrix, after a QR factorization of A: of m rows n are left.
    All columns are taken first, and those leave whose numbers are negative; if `maxiter` is less than 3 n, none is, so
    that the same matrices fail as in SciPy. Columns that are dependent on others up to rounding are not taken together
    with them.

    References
    ----------
    .. [1] Charles L. Lawson and Richard J. Hanson, "Solving Least Squares Problems", SIAM, 1995, chapter 23,
       https://doi.org/10.1137/1.9781611971217

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> A = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> x, rnorm = linalg.nnls(A, np.array([[2.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]))
    >>> x
    array([[1.5, 1. ],
           [0. , 0. ]])
    >>> rnorm.round(4)
    array([0.7071, 1.7321])
    """
    given = as_arrays(A, b)
    if given is None:
        raise TypeError(f"A and b are a {type(A).__name__} and a {type(b).__name__}, must be arrays")
    A, b = (number(name, a, compute) for name, a in zip(("A", "b"), given[0], strict=True))
    if A.ndim < 2:
        raise ValueError(f"A has shape {A.shape}, must have at least two axes")
    m, n = A.shape[-2:]
    if A.ndim == 2 and b.shape == (m, 1) and m > 1:  # which SciPy takes
        b = b[:, 0]
    if not b.ndim or b.shape[-1] != m:
        raise ValueError(f"b has shape {b.shape}, must have {m} numbers in each vector, as A has rows")
    limit = 3 * n if maxiter is None else check_size(maxiter, "maxiter") or 3 * n
    try:
        x, rnorm = NNLS((A, b[..., None], np.array([[float(limit)]])), (), on_error, compute, threads)
    except RuntimeError:
        for name, a, axes in ("A", A, (-2, -1)), ("b", b, (-1,)):
            bad = ~np.isfinite(a).all(axes)
            if bad.any():
                raise ValueError(f"{name} must not contain infs or NaNs{which(bad)}") from None
        raise
    return (x, rnorm) if rnorm.ndim else (x, rnorm[()])


def number(name, a, compute):
    """An array as real numbers of the type of the results."""
    if a.dtype.kind not in "biuf":
        raise TypeError(f"{name}: dtype is {a.dtype}, must be real")
    return a if a.dtype.char == "f" and compute == "same" else a.astype("d", copy=False)


def with_scipy(A, b, maxiter):
    """Results of scipy.optimize.nnls for each matrix; NaN where there are none."""
    import scipy.optimize  # half of what importing scipy takes

    lead = common_lead((A, b))
    n, dtype = A.shape[-1], np.result_type(A, b)
    if lead is None:
        raise ValueError(f"A and b are stacks of shapes {A.shape[:-2]} and {b.shape[:-2]}, must fit together")
    x, rnorm = np.full((*lead, n), np.nan, dtype), np.full(lead, np.nan, dtype)
    A, b = (np.broadcast_to(a, lead + a.shape[-2:]) for a in (A, b))
    for index in np.ndindex(lead):
        if not (np.isfinite(A[index]).all() and np.isfinite(b[index]).all()):
            continue
        if not A.shape[-2] * n:
            x[index], rnorm[index] = 0, math.sqrt((b[index] ** 2).sum())
            continue
        try:
            x[index], rnorm[index] = scipy.optimize.nnls(A[index], b[index][:, 0], maxiter=int(maxiter.item()))
        except RuntimeError:
            pass
    return x, rnorm


NNLS = Stacked(
    "nnls",
    inputs={"A": "mn", "b": "m1", "maxiter": "11"},
    outputs=(Result("n"), Result("")),
    work=lambda m, n, **_: m * n * n + n**4 / 2,
    numpy=with_scipy,
    failure=Failure("Maximum number of iterations reached", RuntimeError, seen=lambda x, rnorm: np.isnan(rnorm)),
    compiled="n",
    limits=Limits(64, extent=lambda m, n, **_: max(n, m * n // 192)),
)
