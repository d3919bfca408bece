"""eig and eigvals: eigenvalues and eigenvectors of general matrices."""

import numpy as np

from compactla.backends import backend, device_module
from compactla.checks import is_device_array, on_host
from compactla.foreign import accepts_foreign
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays
from compactla.linalg.stacks import Limits, Result, Stacked, named
from compactla.types import Array


@accepts_foreign
def eig(a: Array, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None) -> Array:
    """Eigenvalues and right eigenvectors of matrices, for stacks of them.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices for which the iteration does not converge, and of those with NaN or infinities: "raise"
        raises an error that names them, "nan" fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: double, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    eigenvalues : (..., n) ndarray
        In no order. Complex numbers; before NumPy 2.5 real ones if those of all matrices are real, as NumPy's.
    eigenvectors : (..., n, n) ndarray
        Columns of length 1, of the same type. The largest number of a column for a complex eigenvalue is real.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or the iteration does not converge for one, or one is not finite, which the message
        names.
    TypeError, ValueError
        If the type of an argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.eig : The same, one matrix after the other.
    compactla.linalg.schur : Triangular forms, of which this is made.

    Notes
    -----
    As LAPACK ``?geev``: matrices are permuted and scaled, then brought to Schur form, of which eigenvectors are found
    by substitution.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> w, v = linalg.eig(np.array([[[0.0, 1.0], [-4.0, 0.0]], [[3.0, 0.0], [0.0, 5.0]]]))
    >>> w.round(12)
    array([[0.+2.j, 0.-2.j],
           [3.+0.j, 5.+0.j]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.eig(a)
    arrays, wrap = given
    w, v = real_if_all(arrays[0], EIG(arrays, (), on_error, compute, threads))
    return EigResult(w, wrap(v) if wrap else v)


@accepts_foreign
def eigvals(a: Array, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None) -> Array:
    """Eigenvalues of matrices, for stacks of them.

    Parameters
    ----------
    a, on_error, compute, threads
        See `compactla.linalg.eig`.

    Returns
    -------
    (..., n) ndarray
        In no order. Complex numbers; before NumPy 2.5 real ones if those of all matrices are real, as NumPy's.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        See `compactla.linalg.eig`.

    See Also
    --------
    numpy.linalg.eigvals : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> np.sort(linalg.eigvals(np.array([[[1.0, 2.0], [2.0, 1.0]], [[3.0, 0.0], [0.0, 5.0]]])).real).round(12)
    array([[-1.,  3.],
           [ 3.,  5.]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.eigvals(a)
    arrays, _ = given
    (w,) = real_if_all(arrays[0], EIGVALS(arrays, (), on_error, compute, threads))
    return w


def real_if_all(a, results):
    """Results, of which the first are eigenvalues, as real numbers where NumPy returns such: if all these are real."""
    if ALWAYS_COMPLEX or a.dtype.kind == "c" or results[0].dtype.kind != "c" or np.any(on_host(results[0]).imag):
        return results
    return [real_part(x) for x in results]


def real_part(x):
    """The real part of an array, where it lives."""
    if not is_device_array(x):
        return np.ascontiguousarray(x.real)
    real = np.dtype(x.dtype.char.lower())
    if not x.size:
        return backend(x.queue).empty(x.shape, real, x.queue)
    return device_module("linalg.arrays").spread(x, x.shape, x.strides, real)  # conversions take it


def as_complex(function):
    """NumPy's results, of the complex type that belongs to that of the matrices."""

    def apply(a):
        found = function(a)
        results = list(found) if isinstance(found, tuple) else [found]
        results = [x.astype(np.result_type(x, np.complex64), copy=False) for x in results]
        return tuple(results) if isinstance(found, tuple) else results[0]

    return apply


EigResult = named(_numpy.eig(np.eye(1)))
ALWAYS_COMPLEX = _numpy.eigvals(np.eye(1)).dtype.kind == "c"  # from NumPy 2.5 on
FEWEST = Limits(32, lambda n: 1 if n <= 4 else 2 if n <= 8 else 3)
EIG = Stacked(
    "eig",
    inputs={"a": "nn"},
    outputs=(Result("n", "complex"), Result("nn", "complex")),
    work=lambda n, **_: 15 * n**3 + 150 * n * n,
    numpy=as_complex(_numpy.eig),
    paired=16,
    limits=FEWEST,
)
EIGVALS = Stacked(
    "eigvals",
    inputs={"a": "nn"},
    outputs=(Result("n", "complex"),),
    work=lambda n, **_: 7 * n**3 + 100 * n * n,
    numpy=as_complex(_numpy.eigvals),
    paired=16,
    limits=FEWEST,
)
