"""sqrtm: square roots of matrices."""

from typing import Any

import numpy as np

from compactla.linalg import _scipy
from compactla.linalg._functions import BLOCKSIZE, DISP, function_of, is_left, rows
from compactla.linalg.arguments import as_arrays, common_type
from compactla.linalg.stacks import check_options
from compactla.types import Array


def sqrtm(
    A: Array, disp: Any = DISP, blocksize: Any = BLOCKSIZE, *, on_error: str = "raise", compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """The principal square roots of matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) array_like
        Matrices.
    disp, blocksize : optional
        Arguments of old versions of SciPy, which computes what is asked for with them.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices with infinities or NaN, which SciPy refuses: "raise" raises an error that names them,
        "nan" fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: double.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, n) ndarray
        Square roots, of the precision of `A`. They are complex if a matrix has a negative real eigenvalue.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or SciPy refuses one, which the message names.
    TypeError, ValueError
        If the type of the argument is not supported, or an option is none of the above.

    See Also
    --------
    scipy.linalg.sqrtm : The same, one matrix after the other.

    Notes
    -----
    Björck's and Hammarling's recurrence on complex Schur forms [1]_; roots of Hermitian positive definite matrices are
    those of their eigenvalues. Singular matrices, and those that are so up to
    rounding, are left to SciPy, which warns of them.

    References
    ----------
    .. [1] Åke Björck and Sven Hammarling, "A Schur Method for the Square Root of a Matrix", Linear Algebra Appl.
       52/53:127-140, 1983, https://doi.org/10.1016/0024-3795(83)80010-X

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.sqrtm(np.array([[[5.0, 4.0], [4.0, 5.0]], [[0.0, 8.0], [-8.0, 0.0]]])).round(12)
    array([[[ 2.,  1.],
            [ 1.,  2.]],
    <BLANKLINE>
           [[ 2.,  2.],
            [-2.,  2.]]])
    """
    given = as_arrays(A)
    options = {
        name: x for name, x, usual in (("disp", disp, DISP), ("blocksize", blocksize, BLOCKSIZE)) if x is not usual
    }
    if given is None or options:
        return _scipy.sqrtm(A, **options)
    check_options(on_error, compute, threads)
    if is_left(given[0][0]):
        return _scipy.sqrtm(A)
    return function_of(SQRTM, np.sqrt, [as_type(given[0][0])], (), on_error, compute, threads)


def as_type(a):
    """An array in the type in which SciPy computes, in the order of bytes that it takes: integers in double."""
    return a.astype(common_type(a.dtype), copy=False)


SQRTM = rows("sqrtm", _scipy.sqrtm, lambda n, **_: 40 * n**3 + 100 * n * n)
