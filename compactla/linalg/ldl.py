"""ldl: factors of symmetric and Hermitian matrices that may be indefinite."""

import numpy as np

from compactla.calls.recording import repeats
from compactla.checks import is_device_array
from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


@repeats()
def ldl(
    A: Array, lower: bool = True, hermitian: bool = True, overwrite_a: bool = False, check_finite: bool = True, *,
    compute: str | None = None, threads: int | None = None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Factor matrices A = L D L^H, or U D U^H, with blocks of one and of two rows in D, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) array_like
        Symmetric or Hermitian matrices, of which one triangle is read.
    lower : bool, optional
        Whether the lower triangle is read, for L; otherwise the upper one, for U.
    hermitian : bool, optional
        Whether complex matrices are Hermitian; otherwise they are symmetric, and A = L D L^T.
    overwrite_a : bool, optional
        Without effect: `A` is left as it is.
    check_finite : bool, optional
        Whether infinities and NaN are refused.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    lu : (..., n, n) ndarray
        L or U, with rows interchanged: ``lu[perm]`` of each matrix is triangular, with ones on the diagonal.
    d : (..., n, n) ndarray
        Block diagonal matrices.
    perm : (..., n) ndarray of int64
        Orders of rows.

    Raises
    ------
    ValueError
        If an element is not finite, matrices are not square, or an option is none of the above.

    Warns
    -----
    numpy.exceptions.ComplexWarning
        If diagonals of Hermitian matrices have imaginary parts, which are ignored.

    See Also
    --------
    scipy.linalg.ldl : The same, one matrix after the other.
    compactla.sytrf, compactla.hetrf : The same for packs, with factors that solve systems.
    compactla.linalg.solve : Solutions of systems, with ``assume_a="sym"``.

    Notes
    -----
    Bunch and Kaufman's pivoting, as LAPACK ``?sytf2`` and ``?hetf2``. Singular matrices have zeros in D.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.array([[[4.0, 2.0], [2.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]]])
    >>> lu, d, perm = linalg.ldl(a)
    >>> lu
    array([[[1. , 0. ],
            [0.5, 1. ]],
    <BLANKLINE>
           [[1. , 0. ],
            [0. , 1. ]]])
    >>> d
    array([[[4., 0.],
            [0., 1.]],
    <BLANKLINE>
           [[0., 1.],
            [1., 0.]]])
    """
    given = as_arrays(A, devices=("A",))
    if given is None or given[0][0].ndim < 2:
        return _scipy.ldl(A, lower, hermitian, overwrite_a, check_finite)
    a = as_lapack(given[0][0])
    options = "L" if lower else "U", bool(hermitian and a.dtype.kind == "c")
    if options[1] and not is_device_array(a) and np.diagonal(a, axis1=-2, axis2=-1).imag.any():
        return LDL[bool(check_finite)].numpy(a, uplo=options[0], hermitian=True)  # which warns
    return tuple(LDL[bool(check_finite)]([a], options, "raise", compute, threads))


def with_scipy(check_finite):
    """The factors of SciPy."""

    def factors(a, uplo, hermitian):
        lu, d, perm = _scipy.ldl(a, uplo == "L", hermitian, check_finite=check_finite)
        return lu, d, perm.astype(np.int64)

    return _scipy.on_stacks(factors)


# Kernels leave matrices that are not finite to SciPy, which refuses them or does not.
LDL = {
    check_finite: Stacked(
        "ldl",
        inputs={"A": "nn"},
        outputs=(Result("nn"), Result("nn"), Result("n", np.dtype(np.intp).char)),
        work=lambda n, **_: n**3 / 3 + 4 * n * n,
        numpy=with_scipy(check_finite),
        options=("uplo", "hermitian"),
        limits=Limits(64),
        fails=False,
    )
    for check_finite in (False, True)
}
