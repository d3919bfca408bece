"""solveh_banded: linear systems with positive definite band matrices."""

import numpy as np

from compactla.linalg import _scipy
from compactla.linalg._band_stack import BandedStack
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Result
from compactla.types import Array


def solveh_banded(
    ab: Array, b: Array, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
    check_finite: bool = True, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Solve linear systems a x = b with Hermitian positive definite band matrices, for stacks of matrices.

    Parameters
    ----------
    ab : (..., u + 1, n) array_like
        Diagonals of a triangle: ``ab[..., u + i - j, j]`` is element (i, j) of the upper one, or ``ab[..., i - j, j]``
        of the lower one.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    overwrite_ab, overwrite_b : bool, optional
        Without effect: nothing is overwritten.
    lower : bool, optional
        Whether `ab` holds the lower triangle; default: the upper one.
    check_finite : bool, optional
        Whether infinities and NaN, anywhere, are refused.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices that are not positive definite: "raise" raises an error that names them, "nan" fills their
        solutions with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions, of the type that `scipy.linalg.solveh_banded` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, which the message names.
    TypeError, ValueError
        If something is not finite, the type of an argument is not supported, shapes do not fit together, or an option
        is none of the above.

    See Also
    --------
    scipy.linalg.solveh_banded : The same, one matrix after the other.
    compactla.linalg.solve_banded : The same for any band matrices.

    Notes
    -----
    Factors L D L^H, as LAPACK ``?ptsv`` of tridiagonal matrices; solutions are those of ``?pbsv`` but for rounding.
    Matrices that are too large for the cache next to the core, or have more than 9 diagonals, are left to SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> ab = np.array([[[2.0, 2, 2], [1, 1, 0]], [[4, 4, 4], [1, 1, 0]]])
    >>> linalg.solveh_banded(ab, np.array([3.0, 4, 3]), lower=True)
    array([[1.        , 1.        , 1.        ],
           [0.57142857, 0.71428571, 0.57142857]])
    """
    given = as_arrays(ab, b)
    if given is None or given[0][0].ndim < 2 or given[0][1].ndim < 1:
        return _scipy.solveh_banded(ab, b, lower=lower, check_finite=check_finite)
    ab, b = map(as_lapack, given[0])
    options = {"upper": ab.shape[-2] - 1, "lower": bool(lower), "check_finite": bool(check_finite)}
    return SOLVEH_BANDED(ab, b, ab.shape[-2], options, on_error, compute, threads)


def with_scipy(ab, b, upper, columns, lower, check_finite):
    """The solution of scipy.linalg."""
    return _scipy.solveh_banded(ab, b, lower=lower, check_finite=check_finite)


def attempted(ab, **options):
    """The solution for a single matrix."""
    return with_scipy(ab, np.zeros(ab.shape[-1]), **options)


def identity(m, n, lower, **_):
    """The diagonals of an identity."""
    ab = np.zeros((m, n))
    ab[0 if lower else -1] = 1
    return ab


SOLVEH_BANDED = BandedStack(
    "solveh_banded",
    inputs={"ab": "wn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda w, n, r, **_: n * w * (w / 2 + r),
    numpy=_scipy.on_stacks(with_scipy, identity),
    failure=Failure(probe=attempted, regular=identity),
    options=("upper", "columns", "lower", "check_finite"),
)
