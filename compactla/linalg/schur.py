"""schur and hessenberg: unitary similarity to triangular matrices, and to those that nearly are."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, check_options
from compactla.types import Array

FAILED = "Schur form not found. Possibly ill-conditioned."  # SciPy's message


def schur(
    a: Array, output: str = "real", lwork: int | None = None, overwrite_a: bool = False,
    sort: str | Callable | None = None, check_finite: bool = True, *, on_error: str = "raise",
    compute: str | None = None, threads: int | None = None,
) -> Any:  # fmt: skip
    """Schur decompositions a = z t z^H, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    output : {"real", "complex"}, optional
        Whether real matrices get real factors, or those of their complex twins.
    lwork, overwrite_a : optional
        Without effect: `a` is left as it is.
    sort : callable or {"lhp", "rhp", "iuc", "ouc"}, optional
        Which eigenvalues come first, as for SciPy, which computes these one after the other.
    check_finite : bool, optional
        Whether infinities and NaN are refused by a ValueError; else they are failures.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices for which the iteration does not converge: "raise" raises an error that names them, "nan"
        fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: double.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    T : (..., n, n) ndarray
        Upper triangular matrices. Real ones have blocks of two on the diagonal for pairs of complex eigenvalues: their
        diagonal elements are equal, and the others have unequal signs.
    Z : (..., n, n) ndarray
        Unitary matrices of Schur vectors.
    sdim : (...) ndarray of int
        How many eigenvalues `sort` selects, if it is given.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge for a matrix, which the message names.
    TypeError, ValueError
        If matrices are not square, or not finite, or an option is none of the above.

    See Also
    --------
    scipy.linalg.schur : The same, one matrix after the other.
    compactla.linalg.eig : Eigenvectors.

    Notes
    -----
    As LAPACK ``?gees``: Hessenberg form, and Francis' QR algorithm with two shifts at a time for real matrices, and
    with Wilkinson's shift for complex ones. Every matrix has its own shifts and deflations.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.array([[[2.0, 1.0], [1.0, 2.0]], [[0.0, 4.0], [-1.0, 0.0]]])
    >>> t, z = linalg.schur(a)
    >>> np.allclose(z @ t @ z.swapaxes(1, 2), a)
    True
    >>> t[1].round(12)
    array([[ 0.,  4.],
           [-1.,  0.]])
    """
    given = as_arrays(a)
    if given is None:
        return _scipy.schur(a, output, lwork, overwrite_a, sort, check_finite)
    (x,) = given[0]
    known = x.dtype.char in "fdFD" or x.dtype.kind in "iu"  # SciPy has types of its own for others
    if not known or sort is not None or output not in ("real", "complex", "r", "c"):
        check_options(on_error, compute, threads)
        return _scipy.on_stacks(_scipy.schur)(x, output=output, sort=sort, check_finite=check_finite)
    if x.dtype.kind in "iu":
        x = x.astype(np.float64)
    if output in ("complex", "c"):
        x = x.astype(np.result_type(x, np.complex64), copy=False)
    t, z = SCHUR[bool(check_finite)]([x], (), on_error, compute, threads)
    return t, z


def hessenberg(
    a: Array, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True, *,
    compute: str | None = None, threads: int | None = None,
) -> Any:  # fmt: skip
    """Hessenberg forms a = q h q^H, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    calc_q : bool, optional
        Whether `q` is returned.
    overwrite_a : bool, optional
        Without effect: `a` is left as it is.
    check_finite : bool, optional
        Whether infinities and NaN are refused.
    compute, threads
        See `compactla.linalg.schur`.

    Returns
    -------
    H : (..., n, n) ndarray
        Matrices with zeros below the first diagonal under the main one.
    Q : (..., n, n) ndarray
        Unitary matrices, if `calc_q` is set.

    Raises
    ------
    TypeError, ValueError
        If matrices are not square, or not finite, or an option is none of the above.

    See Also
    --------
    scipy.linalg.hessenberg : The same, one matrix after the other.

    Notes
    -----
    By Householder's reflections, as LAPACK ``?gehrd`` and ``?orghr``. Matrices of order two or less are returned as
    they are, as in SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.arange(1.0, 17.0).reshape(1, 4, 4)
    >>> h, q = linalg.hessenberg(a, calc_q=True)
    >>> np.allclose(q @ h @ q.swapaxes(1, 2), a), bool(np.tril(h, -2).any())
    (True, False)
    """
    given = as_arrays(a)
    if given is None:
        return _scipy.hessenberg(a, calc_q, overwrite_a, check_finite)
    (x,) = given[0]
    if x.ndim < 2 or x.shape[-1] < 3:
        check_options("raise", compute, threads)
        return _scipy.on_stacks(_scipy.hessenberg)(x, calc_q=calc_q, check_finite=check_finite)
    found = HESSENBERG[bool(calc_q), bool(check_finite)]([as_lapack(x)], (), "raise", compute, threads)
    return tuple(found) if calc_q else found[0]


def schur_function(check_finite):
    """The function on stacks, which refuses infinities and NaN, or takes them for failures."""

    def with_scipy(a):
        if not check_finite and not np.isfinite(a).all():  # LAPACK's iteration might not end
            raise LinAlgError(FAILED)
        return _scipy.schur(a, check_finite=check_finite)

    return Stacked(
        "schur",
        inputs={"a": "nn"},
        outputs=(Result("nn"), Result("nn")),
        work=lambda n, **_: 15 * n**3 + 100 * n * n,
        numpy=_scipy.on_stacks(with_scipy),
        failure=Failure(FAILED.removesuffix(".")),
        limits=Limits(32, lambda n: 1 if n <= 4 else 2),
    )


def hessenberg_function(calc_q, check_finite):
    def with_scipy(a):
        return _scipy.hessenberg(a, calc_q, check_finite=check_finite)

    return Stacked(
        "hessenberg",
        inputs={"a": "nn"},
        outputs=(Result("nn"),) * (1 + calc_q),
        work=lambda n, **_: (5 if calc_q else 3) * n**3,
        numpy=_scipy.on_stacks(with_scipy),
        limits=Limits(32, lambda n: 1 if n <= 8 else 2),
    )


SCHUR = {check: schur_function(check) for check in (True, False)}
HESSENBERG = {(q, check): hessenberg_function(q, check) for q in (True, False) for check in (True, False)}
