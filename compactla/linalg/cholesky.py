"""cholesky: factors of positive definite matrices."""

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


@repeats()
def cholesky(
    a: Array, /, *, upper: bool = False, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Factor positive definite matrices a = L L^H, or a = U^H U, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Hermitian matrices, of which one triangle is read.
    upper : bool, optional
        Whether the factor is U, and the upper triangle is read; default: the lower one.
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
    (..., n, n) ndarray
        Factors, of the type that `numpy.linalg.cholesky` returns; zero in the other triangle.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or one is not positive definite, which the message names.
    TypeError, ValueError
        If the type of the argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.cholesky : The same, one matrix after the other.
    compactla.linalg.cho_factor : Factors for `compactla.linalg.cho_solve`.
    compactla.potrf : The same for packs.

    Notes
    -----
    As LAPACK ``?potrf``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.cholesky(np.array([[[4.0, 2.0], [2.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]]), on_error="nan")
    array([[[ 2.,  0.],
            [ 1.,  1.]],
    <BLANKLINE>
           [[nan, nan],
            [nan, nan]]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.cholesky(a, **told(cholesky, upper=upper))
    arrays, wrap = given
    (x,) = CHOLESKY(arrays, ("U" if upper else "L", "yes"), on_error, compute, threads)
    return wrap(x) if wrap else x


def with_numpy(a, uplo, clean):
    """The factor of numpy.linalg."""
    return _numpy.cholesky(a, upper=True) if uplo == "U" else _numpy.cholesky(a)


CHOLESKY = Stacked(
    "cholesky",
    inputs={"a": "nn"},
    outputs=(Result("nn"),),
    work=lambda n, **_: n**3 / 6 + n,
    numpy=with_numpy,
    failure=Failure("Matrix is not positive definite"),
    options=("uplo", "clean"),
    limits=Limits(128, lambda n: 1 if n <= 16 else 2 if n <= 32 else 6),
)
