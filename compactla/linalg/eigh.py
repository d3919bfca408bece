"""eigh and eigvalsh: eigenvalues and eigenvectors of symmetric and Hermitian matrices."""

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, named
from compactla.types import Array


@repeats()
def eigh(
    a: Array, UPLO: str = "L", *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices, of which one triangle is read, and the real part of the diagonal.
    UPLO : {"L", "U"}, optional
        Which triangle: the lower or the upper one.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices for which the iteration does not converge, as those with NaN: "raise" raises an error that
        names them, "nan" fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    eigenvalues : (..., n) ndarray
        Real numbers in ascending order.
    eigenvectors : (..., n, n) ndarray
        Columns of length 1, orthogonal to each other. Their signs, and phases, are not those of NumPy.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or the iteration does not converge for one, which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.eigh : The same, one matrix after the other.
    compactla.syev : The same for packs.

    Notes
    -----
    Matrices become tridiagonal by reflections, as in LAPACK ``?sytrd``, and diagonal by the implicit QR algorithm with
    Wilkinson's shift, as in ``?steqr``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> w, v = linalg.eigh(np.array([[[2.0, 0.0], [1.0, 2.0]], [[4.0, 0.0], [0.0, 3.0]]]))
    >>> w.round(12)
    array([[1., 3.],
           [3., 4.]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.eigh(a, **told(eigh, UPLO=UPLO))
    if UPLO not in ("L", "U", "l", "u"):
        return _numpy.eigh(a, **told(eigh, UPLO=UPLO))
    arrays, wrap = given
    w, v = EIGH(arrays, (UPLO.upper(),), on_error, compute, threads)
    return EighResult(w, wrap(v) if wrap else v)


@repeats()
def eigvalsh(
    a: Array, UPLO: str = "L", *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Eigenvalues of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    a, UPLO, on_error, compute, threads
        See `compactla.linalg.eigh`.

    Returns
    -------
    (..., n) ndarray
        Real numbers in ascending order.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        See `compactla.linalg.eigh`.

    See Also
    --------
    numpy.linalg.eigvalsh : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.eigvalsh(np.array([[[2.0, 0.0], [1.0, 2.0]], [[4.0, 0.0], [0.0, 3.0]]])).round(12)
    array([[1., 3.],
           [3., 4.]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.eigvalsh(a, **told(eigvalsh, UPLO=UPLO))
    if UPLO not in ("L", "U", "l", "u"):
        return _numpy.eigvalsh(a, **told(eigvalsh, UPLO=UPLO))
    arrays, _ = given
    (w,) = EIGVALSH(arrays, (UPLO.upper(),), on_error, compute, threads)
    return w


EighResult = named(_numpy.eigh(np.eye(1)))
EIGH = Stacked(
    "eigh",
    inputs={"a": "nn"},
    outputs=(Result("n", "real"), Result("nn")),
    work=lambda n, **_: 4 * n**3 + 100 * n * n,
    numpy=_numpy.eigh,
    failure=Failure("Eigenvalues did not converge"),
    options=("UPLO",),
    paired=16,
    limits=Limits(96, lambda n: 1 if n <= 24 else 2 if n <= 32 else 6),
)
EIGVALSH = Stacked(
    "eigvalsh",
    inputs={"a": "nn"},
    outputs=(Result("n", "real"),),
    work=lambda n, **_: n**3 + 100 * n * n,
    numpy=_numpy.eigvalsh,
    failure=Failure("Eigenvalues did not converge"),
    options=("UPLO",),
    paired=16,
    limits=Limits(96),
)
