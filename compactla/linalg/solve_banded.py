"""solve_banded: linear systems with band matrices."""

import numpy as np

from compactla.linalg import _scipy
from compactla.linalg._band_stack import BandedStack, is_index
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Result
from compactla.types import Array


def solve_banded(
    l_and_u: tuple[int, int], ab: Array, b: Array, overwrite_ab: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Solve linear systems a x = b with band matrices, for stacks of matrices.

    Parameters
    ----------
    l_and_u : tuple of int
        Numbers of diagonals below the main one, and above it.
    ab : (..., l + u + 1, n) array_like
        Diagonals: ``ab[..., u + i - j, j]`` is element (i, j).
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    overwrite_ab, overwrite_b : bool, optional
        Without effect: nothing is overwritten.
    check_finite : bool, optional
        Whether infinities and NaN, anywhere, are refused.
    on_error : {"raise", "nan"}, optional
        Treatment of singular matrices: "raise" raises an error that names them, "nan" fills their solutions with NaN
        and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions, of the type that `scipy.linalg.solve_banded` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular, which the message names.
    TypeError, ValueError
        If something is not finite, the type of an argument is not supported, shapes do not fit together, or an option
        is none of the above.

    See Also
    --------
    scipy.linalg.solve_banded : The same, one matrix after the other.
    compactla.linalg.solveh_banded : The same for positive definite matrices.

    Notes
    -----
    LU factorizations with partial pivoting, as LAPACK ``?gbsv``. Matrices that are too large for the cache next to the
    core, or have more than 9 diagonals, are left to SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> ab = np.array([[[0.0, 1, 1], [2, 2, 2], [1, 1, 0]], [[0, 1, 1], [4, 4, 4], [1, 1, 0]]])
    >>> linalg.solve_banded((1, 1), ab, np.array([3.0, 4, 3]))
    array([[1.        , 1.        , 1.        ],
           [0.57142857, 0.71428571, 0.57142857]])
    """
    lower, upper = l_and_u
    given = as_arrays(ab, b)
    if given is None or not (is_index(lower) and is_index(upper)):
        return _scipy.solve_banded(l_and_u, ab, b, check_finite=check_finite)
    ab, b = (a.astype(float) if a.dtype.kind in "biu" else as_lapack(a) for a in given[0])
    if min(ab.ndim - 1, b.ndim) < 1 or lower + upper + 1 != ab.shape[-2]:
        return _scipy.solve_banded(l_and_u, ab, b, check_finite=check_finite)
    options = {"lower": int(lower), "upper": int(upper), "check_finite": bool(check_finite)}
    return SOLVE_BANDED(ab, b, lower + upper + 1, options, on_error, compute, threads)


def with_scipy(ab, b, lower, upper, columns, check_finite):
    """The solution of scipy.linalg."""
    return _scipy.solve_banded((lower, upper), ab, b, check_finite=check_finite)


def attempted(ab, **options):
    """The solution for a single matrix."""
    return with_scipy(ab, np.zeros(ab.shape[-1]), **options)


def identity(m, n, upper, **_):
    """The diagonals of an identity."""
    ab = np.zeros((m, n))
    ab[upper] = 1
    return ab


SOLVE_BANDED = BandedStack(
    "solve_banded",
    inputs={"ab": "wn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda w, n, r, **_: n * w * (w + r),
    numpy=_scipy.on_stacks(with_scipy, identity),
    failure=Failure("singular matrix", probe=attempted, regular=identity),
    options=("lower", "upper", "columns", "check_finite"),
)
