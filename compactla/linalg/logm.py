"""logm: logarithms of matrices."""

from typing import Any

import numpy as np

from compactla.linalg import _scipy
from compactla.linalg._functions import DISP, by_scipy, finite, function_of, is_left, rows, scaled
from compactla.linalg.arguments import as_arrays
from compactla.linalg.stacks import check_options
from compactla.types import Array


def logm(
    A: Array, disp: Any = DISP, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """The principal logarithms of matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) array_like
        Matrices.
    disp : optional
        An argument of old versions of SciPy, which computes what is asked for with it.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices with infinities or NaN: "raise" raises an error that names them, "nan" fills their results
        with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Without effect: all is computed in double precision, which SciPy's results have.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, n) ndarray
        Logarithms, in double precision. They are complex if a matrix has a negative real eigenvalue.

    Raises
    ------
    TypeError, ValueError
        If matrices are not square, or not finite, the type of the argument is not supported, or an option is none of
        the above.

    See Also
    --------
    scipy.linalg.logm : The same, one matrix after the other.
    compactla.linalg.expm : The inverse.

    Notes
    -----
    Inverse scaling and squaring on complex Schur forms [1]_, with Pade's approximant of degree 7; each matrix has as
    many square roots as it needs. Logarithms of Hermitian positive definite matrices are those of their eigenvalues.
    Singular matrices are left to SciPy, which warns of them. Logarithms of matrices of single precision are complex, as
    SciPy's, also if they have pairs of complex eigenvalues.

    References
    ----------
    .. [1] Awad H. Al-Mohy and Nicholas J. Higham, "Improved Inverse Scaling and Squaring Algorithms for the Matrix
       Logarithm", SIAM J. Sci. Comput. 34(4):C152-C169, 2012, https://doi.org/10.1137/110852553

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.logm(np.array([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]]])).round(4) + 0
    array([[[ 0.    ,  1.    ],
            [ 0.    ,  0.    ]],
    <BLANKLINE>
           [[ 0.    ,  1.5708],
            [-1.5708,  0.    ]]])
    """
    given = as_arrays(A)
    if given is None or disp is not DISP:
        return _scipy.logm(A, **({} if disp is DISP else {"disp": disp}))
    check_options(on_error, compute, threads)
    if is_left(given[0][0]):
        return by_scipy(_scipy.logm, given[0][0], on_error)
    (a,), bad = finite({"A": given[0][0]}, on_error)
    a, single = a.astype(np.result_type(a, "d"), copy=False), a.dtype.char in "fF"
    a, exponent = scaled(a)
    x = function_of(LOGM, np.log, [a], (single,), on_error, None, threads)
    if exponent is not None:
        diagonal = np.einsum("...ii->...i", x)
        diagonal += exponent[..., None] * np.log(2)
    if bad is not None:
        x[bad] = np.nan
    return x


LOGM = rows("logm", _scipy.logm, lambda n, **_: 80 * n**3 + 200 * n * n, options=("pairs",))
