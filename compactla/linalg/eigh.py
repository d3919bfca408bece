"""eigh and eigvalsh: eigenvalues and eigenvectors of symmetric and Hermitian matrices."""

import numpy as np
from numpy.linalg import LinAlgError

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy, failures
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, named
from compactla.types import Array


@repeats()
def eigh(
    a: Array, UPLO: str = "L", b: Array | None = None, *, on_error: str = "raise", compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices, of which one triangle is read, and the real part of the diagonal.
    UPLO : {"L", "U"}, optional
        Which triangle: the lower or the upper one.
    b : (..., n, n) array_like, optional
        Positive definite matrices, of which the same triangle is read: eigenvalues are those of a v = w b v, as of
        `scipy.linalg.eigh`. Stacks are broadcast against each other. Default: identities.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices for which the iteration does not converge, as those with NaN, or whose `b` is not positive
        definite: "raise" raises an error that names them, "nan" fills their results with NaN and leaves all others as
        they are.
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
        Columns of length 1, orthogonal to each other. Their signs, and phases, are not those of NumPy. With `b` they
        are v with v^H b v = I.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or the iteration does not converge for one, or its `b` is not positive definite,
        which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.eigh, scipy.linalg.eigh : The same, one matrix after the other.
    compactla.syev, compactla.sygv : The same for packs.

    Notes
    -----
    Matrices become tridiagonal by reflections, as in LAPACK ``?sytrd``, and diagonal by the implicit QR algorithm, as
    in ``?steqr``. On CPUs shifts are Wilkinson's, or, for eigenvectors, a step of Newton's method nearer to
    eigenvalues. With `b` = L L^H it is L^-1 a L^-H that becomes diagonal, as in ``?sygv``: errors grow with the
    condition of `b`.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> w, v = linalg.eigh(np.array([[[2.0, 0.0], [1.0, 2.0]], [[4.0, 0.0], [0.0, 3.0]]]))
    >>> w.round(12)
    array([[1., 3.],
           [3., 4.]])
    """
    if b is not None:
        return EighResult(*of_pairs(EIGH_OF_PAIRS, a, b, UPLO, on_error, compute, threads))
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
    a: Array, UPLO: str = "L", b: Array | None = None, *, on_error: str = "raise", compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Eigenvalues of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    a, UPLO, b, on_error, compute, threads
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
    if b is not None:
        return of_pairs(EIGVALSH_OF_PAIRS, a, b, UPLO, on_error, compute, threads)[0]
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.eigvalsh(a, **told(eigvalsh, UPLO=UPLO))
    if UPLO not in ("L", "U", "l", "u"):
        return _numpy.eigvalsh(a, **told(eigvalsh, UPLO=UPLO))
    arrays, _ = given
    (w,) = EIGVALSH(arrays, (UPLO.upper(),), on_error, compute, threads)
    return w


def of_pairs(function, a, b, UPLO, on_error, compute, threads):
    """Results of pairs of matrices, as a list."""
    given = as_arrays(b, a, devices=("b", "a"))
    if given is None:
        kinds = [f"{type(x).__module__}.{type(x).__qualname__}" for x in (a, b)]
        raise TypeError(f"a and b are {' and '.join(kinds)}, must be arrays")
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError("UPLO argument must be 'L' or 'U'")  # in NumPy's words
    arrays, wrap = given
    for name, x in zip("ba", arrays, strict=True):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise LinAlgError(f"{name} has shape {x.shape}, must be (..., n, n)")
    found = function(arrays, (UPLO.upper(),), on_error, compute, threads)
    w = found[0]
    if on_error == "raise" and isinstance(w, np.ndarray) and np.isnan(w).any():
        failures.complain(LinAlgError, FAILED.message, np.isnan(w).any(-1))
    return [w, *(wrap(v) if wrap else v for v in found[1:])]


def reduced(b, a, UPLO):
    """The matrices whose eigenvalues are those of pairs, flags of those that are not finite, and inv(L^H)."""
    lower = np.tril if UPLO == "L" else np.triu
    b, a = (whole(lower(x), lower(x, -1 if UPLO == "L" else 1)) for x in (b, a))
    inverse = _numpy.inv(_numpy.cholesky(b))
    c = inverse @ a @ inverse.conj().swapaxes(-1, -2)
    unknown = ~(np.isfinite(c) & np.isfinite(b)).all((-1, -2))
    c = np.where(unknown[..., None, None], np.eye(c.shape[-1], dtype=c.dtype), c)
    return c, unknown, inverse.conj().swapaxes(-1, -2)


def whole(half, strict):
    """The Hermitian matrices of which these are a triangle, and the same without its diagonal."""
    diagonal = np.einsum("...ii->...i", half)
    diagonal[...] = diagonal.real
    return half + strict.conj().swapaxes(-1, -2)


def eigh_of_pairs(b, a, UPLO):
    """The results by NumPy, with NaN where a matrix is not finite."""
    c, unknown, back = reduced(b, a, UPLO)
    w, v = _numpy.eigh(c)
    w[unknown] = np.nan
    return w, back @ np.where(unknown[..., None, None], np.nan, v)


def eigvalsh_of_pairs(b, a, UPLO):
    """The eigenvalues by NumPy."""
    return eigh_of_pairs(b, a, UPLO)[0]


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
# b, whose factors tell which pairs have no result, comes first.
FAILED = Failure("b is not positive definite, or eigenvalues did not converge", probe=lambda b, **_: _numpy.cholesky(b))
EIGH_OF_PAIRS = Stacked(
    "eigh_of_pairs",
    inputs={"b": "nn", "a": "nn"},
    outputs=(Result("n", "real"), Result("nn")),
    work=lambda n, **_: 6 * n**3 + 100 * n * n,
    numpy=eigh_of_pairs,
    failure=FAILED,
    options=("UPLO",),
    paired=16,
    limits=Limits(96),
)
EIGVALSH_OF_PAIRS = Stacked(
    "eigvalsh_of_pairs",
    inputs={"b": "nn", "a": "nn"},
    outputs=(Result("n", "real"),),
    work=lambda n, **_: 2 * n**3 + 100 * n * n,
    numpy=eigvalsh_of_pairs,
    failure=FAILED,
    options=("UPLO",),
    paired=16,
    limits=Limits(96),
)
