"""cho_factor: factors of positive definite matrices, for `cho_solve`."""

from compactla.calls.recording import repeats
from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


@repeats()
def cho_factor(
    a: Array, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True, *, on_error: str = "raise",
    compute: str | None = None, threads: int | None = None,
) -> tuple[Array, bool]:  # fmt: skip
    """Factor positive definite matrices a = U^H U, or a = L L^H, for `cho_solve`, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Hermitian matrices, of which one triangle is read.
    lower : bool, optional
        Whether the factor is L, and the lower triangle is read; default: the upper one.
    overwrite_a : bool, optional
        Without effect: nothing is overwritten.
    check_finite : bool, optional
        Whether infinities and NaN, anywhere, are refused.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices that are not positive definite: "raise" raises an error that names them, "nan" fills their
        factors with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    c : (..., n, n) ndarray
        Factors in one triangle, of the type that `scipy.linalg.cho_factor` returns; the other triangle is that of `a`.
    lower : bool
        As given.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite, which the message names.
    TypeError, ValueError
        If matrices are not square, or not finite, their type is not supported, or an option is none of the above.

    See Also
    --------
    scipy.linalg.cho_factor : The same, one matrix after the other.
    compactla.linalg.cholesky : Factors with zeros in the other triangle.

    Notes
    -----
    As LAPACK ``?potrf``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.array([[[4.0, 2.0], [2.0, 2.0]], [[1.0, 0.0], [0.0, 9.0]]])
    >>> linalg.cho_solve(linalg.cho_factor(a), np.array([2.0, 3.0]))
    array([[-0.5       ,  2.        ],
           [ 2.        ,  0.33333333]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None or given[0][0].ndim < 2:
        return _scipy.cho_factor(a, lower, overwrite_a, check_finite)
    options = "L" if lower else "U", "no", bool(check_finite)
    (c,) = CHO_FACTOR([as_lapack(given[0][0])], options, on_error, compute, threads)
    return c, lower


@_scipy.on_stacks
def with_scipy(a, uplo, clean, check_finite):
    """The factor of scipy.linalg."""
    return _scipy.cho_factor(a, uplo == "L", check_finite=check_finite)[0]


CHO_FACTOR = Stacked(
    "cholesky",
    inputs={"a": "nn"},
    outputs=(Result("nn"),),
    work=lambda n, **_: n**3 / 6 + n,
    numpy=with_scipy,
    options=("uplo", "clean", "check_finite"),
    limits=Limits(128),
)
