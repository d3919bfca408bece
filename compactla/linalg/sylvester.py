"""solve_sylvester, solve_continuous_lyapunov and solve_discrete_lyapunov."""

from typing import Any

import numpy as np

from compactla.linalg import _scipy
from compactla.linalg._functions import finite
from compactla.linalg.arguments import as_arrays, common_lead, common_type
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, check_options
from compactla.types import Array


def solve_sylvester(
    a: Array, b: Array, q: Array, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Solutions x of Sylvester's equations a x + x b = q, for stacks of matrices.

    Parameters
    ----------
    a, b, q : (..., m, m), (..., n, n) and (..., m, n) array_like
        Matrices. Stacks are broadcast against each other.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices with infinities or NaN: "raise" raises an error that names them, "nan" fills their results
        with NaN and leaves all others as they are. Those in the `q` of `solve_sylvester` make solutions NaN either way,
        as in SciPy.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: double.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., m, n) ndarray
        Solutions. Where an eigenvalue of `a` is that of `-b` up to rounding, matrices are changed as little, as in
        LAPACK ``?trsyl``.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit together, `a` or `b` is not finite, the type of an argument is not supported, or an option
        is none of the above.

    See Also
    --------
    scipy.linalg.solve_sylvester : The same, one after the other.

    Notes
    -----
    Bartels' and Stewart's method [1]_ on complex Schur forms.

    References
    ----------
    .. [1] R. H. Bartels and G. W. Stewart, "Algorithm 432: Solution of the Matrix Equation AX + XB = C", Comm. ACM
       15(9):820-826, 1972, https://doi.org/10.1145/361573.361582

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a, b = np.array([[[1.0, 2.0], [0.0, 3.0]]]), np.array([[[1.0]]])
    >>> linalg.solve_sylvester(a, b, np.array([[[6.0], [4.0]]]))
    array([[[2.],
            [1.]]])
    """
    return solved(SYLVESTER, _scipy.solve_sylvester, {"a": a, "b": b, "q": q}, on_error, compute, threads)


def solve_continuous_lyapunov(
    a: Array, q: Array, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Solutions x of continuous Lyapunov equations a x + x a^H = q, for stacks of matrices.

    Parameters
    ----------
    a, q : (..., n, n) array_like
        Matrices. Stacks are broadcast against each other.
    on_error, compute, threads
        See `compactla.linalg.solve_sylvester`.

    Returns
    -------
    (..., n, n) ndarray
        Solutions.

    Raises
    ------
    TypeError, ValueError
        See `compactla.linalg.solve_sylvester`.

    See Also
    --------
    scipy.linalg.solve_continuous_lyapunov : The same, one after the other.

    Notes
    -----
    As `compactla.linalg.solve_sylvester`, with one Schur form. Matrices of which two eigenvalues have a sum that is
    zero up to rounding are left to SciPy, which warns of them.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.solve_continuous_lyapunov(np.array([[[-1.0, 0.0], [0.0, -2.0]]]), -np.eye(2))
    array([[[0.5 , 0.  ],
            [0.  , 0.25]]])
    """
    return solved(CONTINUOUS, _scipy.solve_continuous_lyapunov, {"a": a, "q": q}, on_error, compute, threads)


def solve_discrete_lyapunov(
    a: Array, q: Array, method: str | None = None, *, on_error: str = "raise", compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Solutions x of discrete Lyapunov equations a x a^H - x + q = 0, for stacks of matrices.

    Parameters
    ----------
    a, q : (..., n, n) array_like
        Matrices. Stacks are broadcast against each other.
    method : {"direct", "bilinear"}, optional
        A method of SciPy, which computes what is asked for with it.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices with infinities or NaN, and of equations that SciPy does not solve: "raise" raises an
        error that names them, "nan" fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Without effect: all is computed in double precision, which SciPy's results have.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, n) ndarray
        Solutions, in double precision.

    Raises
    ------
    numpy.linalg.LinAlgError
        If SciPy finds an equation singular, or numbers overflow, which the message names.
    TypeError, ValueError
        See `compactla.linalg.solve_sylvester`.

    See Also
    --------
    scipy.linalg.solve_discrete_lyapunov : The same, one after the other.

    Notes
    -----
    On a complex Schur form, column by column as Bartels and Stewart [1]_: SciPy solves n^2 equations. Matrices of which
    two eigenvalues have a product that is one up to rounding are left to SciPy.

    References
    ----------
    .. [1] Genshiro Kitagawa, "An Algorithm for Solving the Matrix Equation X = FXF^T + S", Int. J. Control
       25(5):745-753, 1977, https://doi.org/10.1080/00207177708922266

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.solve_discrete_lyapunov(np.array([[[0.5, 0.0], [0.0, 0.0]]]), np.eye(2)).round(4)
    array([[[1.3333, 0.    ],
            [0.    , 1.    ]]])
    """
    if method is not None:
        return _scipy.solve_discrete_lyapunov(a, q, method)
    return solved(DISCRETE, _scipy.solve_discrete_lyapunov, {"a": a, "q": q}, on_error, compute, threads, double=True)


def solved(
    function: Stacked, scipy: Any, named: dict[str, Any], on_error: str, compute: str | None, threads: int | None,
    double: bool = False,
) -> np.ndarray:  # fmt: skip
    """Solutions by a function, or by SciPy, which refuses what does not fit; in double, if that is asked."""
    given = as_arrays(*named.values())
    check_options(on_error, compute, threads)
    if given is None or any(a.ndim < 2 or common_type(a.dtype) is None for a in given[0]):
        return scipy(*named.values())
    arrays, lead = list(given[0]), common_lead(given[0])
    number = None if lead is None else function.sizes(arrays)
    if number is None:
        return scipy(*arrays)
    if not all(a.size for a in arrays):
        return function.numpy(*arrays)
    arrays = [a if a.dtype.char in "fdFD" and not double else a.astype(np.result_type(a, "d")) for a in arrays]
    known = "nan" if function is SYLVESTER else on_error  # of which SciPy does not look at q
    arrays[:-1], bad = finite(dict(zip([*named][:-1], arrays[:-1], strict=True)), on_error)
    arrays[-1:], others = finite({"q": arrays[-1]}, known)
    bad = others if bad is None else bad if others is None else np.broadcast_to(bad, lead) | others
    (x,) = function(arrays, (), on_error, compute, threads)
    if bad is not None:
        x[np.broadcast_to(bad, lead)] = np.nan
    return x


def discrete_with_scipy(a, q):
    """SciPy's solution of one equation; NaN if it is singular, or has numbers that overflow."""
    try:
        return _scipy.solve_discrete_lyapunov(a, q)
    except ValueError:  # of which LinAlgError is one
        return np.full(a.shape, np.nan, np.result_type(a, q, "d"))


SYLVESTER = Stacked(
    "solve_sylvester",
    inputs={"a": "mm", "b": "nn", "q": "mn"},
    outputs=(Result("mn"),),
    work=lambda m, n, **_: 40 * (m**3 + n**3) + 10 * m * n * (m + n),
    numpy=_scipy.on_stacks(_scipy.solve_sylvester),
    limits=Limits(32, lambda n: 1 if n <= 4 else 2),
)
CONTINUOUS = Stacked(
    "solve_continuous_lyapunov",
    inputs={"a": "nn", "q": "nn"},
    outputs=(Result("nn"),),
    work=lambda n, **_: 50 * n**3,
    numpy=_scipy.on_stacks(_scipy.solve_continuous_lyapunov),
    limits=Limits(32, lambda n: 1 if n <= 4 else 2),
)
DISCRETE = Stacked(
    "solve_discrete_lyapunov",
    inputs={"a": "nn", "q": "nn"},
    outputs=(Result("nn"),),
    work=lambda n, **_: 50 * n**3,
    numpy=_scipy.on_stacks(discrete_with_scipy, lambda m, n, **_: np.zeros((m, n))),
    failure=Failure("Equation is singular, or has no finite solution", seen=lambda x: np.isnan(x).all((-2, -1))),
    limits=Limits(32, lambda n: 1 if n <= 4 else 2),
)
