"""svd and svdvals: singular values and vectors."""

import functools

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.eigh import eigh, eigvalsh
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, named
from compactla.types import Array


@repeats()
def svd(
    a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False, *, on_error: str = "raise",
    compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Singular values and vectors of matrices, a = u diag(s) vh, for stacks of them.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices.
    full_matrices : bool, optional
        Whether `u` and `vh` are square, or have as many columns, and rows, as there are singular values.
    compute_uv : bool, optional
        Whether `u` and `vh` are returned.
    hermitian : bool, optional
        Whether matrices are symmetric or Hermitian, of which only the lower triangle is read then.
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
    U : (..., m, m) or (..., m, min(m, n)) ndarray
        Columns of length 1, orthogonal to each other. Their signs, and phases, are not those of NumPy.
    S : (..., min(m, n)) ndarray
        Real numbers in descending order.
    Vh : (..., n, n) or (..., min(m, n), n) ndarray
        Rows of length 1, orthogonal to each other.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge for a matrix, which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.svd : The same, one matrix after the other.
    compactla.gesvd : Nearly the same for packs.

    Notes
    -----
    Matrices become bidiagonal by reflections, as in LAPACK ``?gebrd``, and diagonal by the implicit QR algorithm, as in
    ``?bdsqr``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> u, s, vh = linalg.svd(np.array([[[0.0, 2.0], [3.0, 0.0]], [[4.0, 0.0], [4.0, 0.0]]]))
    >>> s.round(3)
    array([[3.   , 2.   ],
           [5.657, 0.   ]])
    """
    given = as_arrays(a, devices=() if hermitian else ("a",))
    if given is None:
        options = told(svd, full_matrices=full_matrices, compute_uv=compute_uv, hermitian=hermitian)
        return _dispatched.svd(a, **options)
    arrays, wrap = given
    rest = on_error, compute, threads
    if hermitian:
        parts = of_hermitian(arrays[0], compute_uv, *rest)
    else:
        function = (FULL if full_matrices else THIN) if compute_uv else VALUES
        parts = function(arrays, (wide(arrays[0]),), *rest)
    if not compute_uv:
        return parts[0]
    u, s, vh = parts
    return SVDResult(wrap(u), s, wrap(vh)) if wrap else SVDResult(u, s, vh)


@repeats()
def svdvals(x: Array, /, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None) -> Array:
    """Singular values of matrices, for stacks of them.

    Parameters
    ----------
    x : (..., m, n) array_like
        Matrices.
    on_error, compute, threads
        See `compactla.linalg.svd`.

    Returns
    -------
    (..., min(m, n)) ndarray
        Real numbers in descending order.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        See `compactla.linalg.svd`.

    See Also
    --------
    numpy.linalg.svdvals : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.svdvals(np.array([[[0.0, 2.0], [3.0, 0.0]], [[4.0, 0.0], [4.0, 0.0]]])).round(3)
    array([[3.   , 2.   ],
           [5.657, 0.   ]])
    """
    given = as_arrays(x, devices=("x",))
    if given is None:
        return _dispatched.svdvals(x)
    arrays, _ = given
    (s,) = VALUES(arrays, (wide(arrays[0]),), on_error, compute, threads)
    return s


def of_hermitian(a, compute_uv, *options):
    """Singular values, and vectors, from eigenvalues and eigenvectors."""
    settings = dict(zip(("on_error", "compute", "threads"), options, strict=True))
    if not compute_uv:
        return [np.sort(abs(eigvalsh(a, **settings)))[..., ::-1]]
    w, v = eigh(a, **settings)
    order = np.argsort(abs(w))[..., ::-1]
    w, v = np.take_along_axis(w, order, -1), np.take_along_axis(v, order[..., None, :], -1)
    return v, abs(w), np.conj((v * np.copysign(1, w)[..., None, :]).swapaxes(-1, -2))


def wide(a):
    """Whether matrices have more columns than rows."""
    return a.ndim > 1 and a.shape[-2] < a.shape[-1]


def where_it_ends(function, a):
    """NumPy's results for matrices, NaN for those with infinities: LAPACK's iteration has no end for some of them."""
    if a.ndim < 2 or a.dtype.kind not in "fc":
        return function(a)
    infinite = np.isinf(a).any((-2, -1)) & ~np.isnan(a).any((-2, -1))
    if not infinite.any():
        return function(a)
    found = function(np.where(infinite[..., None, None], a.dtype.type(0), a))
    for x in found if isinstance(found, tuple) else (found,):
        x[infinite] = np.nan
    return found


def stacked(name, outputs, columns="", **keywords):
    """A function of m x n matrices; `columns` says whether there are k or m of U, and k or n rows of Vh."""

    def numpy(a, wide):
        return where_it_ends(functools.partial(_numpy.svd, **keywords), a)

    implied = {"k": lambda m, n, **_: min(m, n)}
    if columns:
        implied |= {"p": lambda m, k, **_: {"m": m, "k": k}[columns[0]]}
        implied |= {"q": lambda n, k, **_: {"n": n, "k": k}[columns[1]]}
    return Stacked(
        name,
        inputs={"a": "mn"},
        outputs=outputs,
        work=lambda m, n, k, **_: (8 if columns else 2) * m * n * k + 200 * k * k,
        numpy=numpy,
        failure=Failure("SVD did not converge"),
        options=("wide",),
        implied=implied,
        paired=16,
        limits=Limits(64, lambda n: 1 if n <= 24 else 2 if n <= 32 else 6),
    )


SVDResult = named(_numpy.svd(np.eye(1)))
FACTORS = Result("mp"), Result("k", "real"), Result("qn")
FULL = stacked("svd", FACTORS, "mn")
THIN = stacked("svd", FACTORS, "kk", full_matrices=False)
VALUES = stacked("svdvals", (Result("k", "real"),), compute_uv=False)
