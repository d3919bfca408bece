"""lu_factor and lu_solve: linear systems, of matrices that are factored first."""

from typing import Any

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import SOLVED, Limits, Result, Stacked
from compactla.types import Array


@repeats()
def lu_factor(
    a: Array, overwrite_a: bool = False, check_finite: bool = True, *, compute: str | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Factor matrices a = P L U with partial pivoting, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices.
    overwrite_a : bool, optional
        Without effect: `a` is left as it is.
    check_finite : bool, optional
        Whether infinities and NaN are refused.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    lu : (..., m, n) ndarray
        U in the upper triangles, and below them L, of which the ones on the diagonal are not stored.
    piv : (..., min(m, n)) ndarray of int32
        Rows: row i was interchanged with row piv[i].

    Warns
    -----
    scipy.linalg.LinAlgWarning
        If a matrix is singular: an element on the diagonal of its U is exactly zero. The first such is named.

    Raises
    ------
    ValueError
        If an element is not finite, or an argument has a wrong shape or value.

    See Also
    --------
    scipy.linalg.lu_factor : The same, one matrix after the other.
    compactla.linalg.lu_solve : Solutions with these factors.
    compactla.getrf : The same for packs.

    Notes
    -----
    As LAPACK ``?getrf``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> lu, piv = linalg.lu_factor(np.array([[[1.0, 2.0], [2.0, 8.0]], [[4.0, 2.0], [2.0, 3.0]]]))
    >>> lu
    array([[[ 2. ,  8. ],
            [ 0.5, -2. ]],
    <BLANKLINE>
           [[ 4. ,  2. ],
            [ 0.5,  2. ]]])
    >>> piv
    array([[1, 1],
           [0, 1]], dtype=int32)
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _scipy.lu_factor(a, overwrite_a, check_finite)
    lu, piv = LU_FACTOR[bool(check_finite)]([as_lapack(given[0][0])], (), "raise", compute, threads)
    return lu, piv


@repeats()
def lu_solve(
    lu_and_piv: Any, b: Array, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True, *,
    compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Solve linear systems a x = b with the factors of a, for stacks of matrices.

    Parameters
    ----------
    lu_and_piv : tuple of (..., n, n) and (..., n) array_like
        Factors, from `lu_factor`.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    trans : {0, 1, 2}, optional
        System: 0 for a x = b, 1 for a^T x = b, 2 for a^H x = b.
    overwrite_b : bool, optional
        Without effect: `b` is left as it is.
    check_finite : bool, optional
        Whether infinities and NaN in `b` are refused.
    compute, threads
        See `lu_factor`.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions. They are not finite where a matrix is singular.

    Raises
    ------
    ValueError
        If an element of `b` is not finite, an element of `piv` is no row, or an argument has a wrong shape or value.

    See Also
    --------
    scipy.linalg.lu_solve : The same, one matrix after the other.
    compactla.getrs : The same for packs.

    Notes
    -----
    As LAPACK ``?getrs``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> factors = linalg.lu_factor(np.array([[[1.0, 2.0], [2.0, 8.0]], [[4.0, 2.0], [2.0, 3.0]]]))
    >>> linalg.lu_solve(factors, np.array([4.0, 2.0]))
    array([[ 7. , -1.5],
           [ 1. ,  0. ]])
    """
    lu, piv = lu_and_piv
    given = as_arrays(lu, piv, b, devices=("lu", "piv", "b"))
    lu, piv, b = given[0] if given else map(np.asarray, (lu, piv, b))
    lu, b = as_lapack(lu), as_lapack(b)
    if trans not in (0, 1, 2) or not piv.ndim or not b.ndim:
        return _scipy.lu_solve((lu, piv), b, trans, check_finite=check_finite)
    column = b.ndim == 1
    arrays = lu, piv.reshape((*piv.shape, 1)), b[:, None] if column else b
    (x,) = LU_SOLVE[bool(check_finite)](arrays, ("NTC"[trans],), "raise", compute, threads)
    return x[..., 0] if column else x


def with_lu_factor(check_finite):
    """The factors of SciPy, as a tuple."""
    return _scipy.on_stacks(lambda a: tuple(_scipy.lu_factor(a, check_finite=check_finite)), takes_stacks=True)


def with_lu_solve(check_finite):
    """The solutions of SciPy, with pivots in a column."""
    return _scipy.on_stacks(
        lambda lu, piv, b, trans: _scipy.lu_solve((lu, piv[..., 0]), b, "NTC".index(trans), check_finite=check_finite),
        takes_stacks=True,
    )


def name_pivot(lu, piv):
    """SciPy's message for a matrix that is singular."""
    return f"Diagonal number {1 + np.flatnonzero(np.diagonal(lu) == 0)[0]} is exactly zero. Singular matrix."


# Kernels leave matrices that are not finite to SciPy in any case, which refuses them or does not.
LU_FACTOR = {
    check_finite: Stacked(
        "lu_factor",
        inputs={"a": "mn"},
        outputs=(Result("mn"), Result("k", "i")),
        implied={"k": lambda m, n, **_: min(m, n)},
        work=lambda m, n, k, **_: k * m * n - k * k * (m + n) / 2 + k**3 / 3,
        numpy=with_lu_factor(check_finite),
        failure=Failure(name_pivot, _scipy.LinAlgWarning),
        limits=Limits(128),
    )
    for check_finite in (False, True)
}
LU_SOLVE = {
    check_finite: Stacked(
        "lu_solve",
        inputs={"lu": "nn", "piv": "n1i", "b": "nr"},
        outputs=(Result("nr"),),
        work=lambda n, r, **_: n * n * r,
        numpy=with_lu_solve(check_finite),
        failure=Failure("piv has elements that are no rows", ValueError),
        options=("trans",),
        limits=SOLVED,
    )
    for check_finite in (False, True)
}
