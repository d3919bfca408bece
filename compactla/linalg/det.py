"""det and slogdet: determinants."""

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


@repeats()
def det(a: Array, *, compute: str | None = None, threads: int | None = None) -> Array:
    """Compute determinants, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (...) ndarray, or a number for a single matrix
        Determinants, of the type that `numpy.linalg.det` returns; 0 for singular matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square.
    TypeError, ValueError
        If the type of the argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.det : The same, one matrix after the other.
    slogdet : For determinants that may be too large or too small.

    Notes
    -----
    Products of the pivots of LAPACK's ``?getrf``, whose exponents are added apart: no part of a product overflows or
    underflows.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.det(np.array([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]]))
    array([5., 0.])
    """
    if is_tiny(a, compute, threads):
        return _numpy.det(a)
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.det(a)
    (d,) = DET(given[0], (), "raise", compute, threads)
    return d[()]


@repeats()
def slogdet(a: Array, *, compute: str | None = None, threads: int | None = None) -> Array:
    """Compute signs of determinants, and logarithms of their absolute values, for stacks of matrices.

    Parameters
    ----------
    a, compute, threads
        See `det`.

    Returns
    -------
    sign : (...) ndarray, or a number for a single matrix
        1, -1, or 0 for singular matrices; complex numbers of modulus 1, or 0, for complex matrices.
    logabsdet : (...) ndarray, or a number for a single matrix
        Natural logarithms of absolute values; minus infinity for singular matrices.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        See `det`.

    See Also
    --------
    numpy.linalg.slogdet : The same, one matrix after the other.

    Notes
    -----
    As `det`. Both are the fields of a named tuple, that of `numpy.linalg.slogdet`.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.slogdet(np.array([[[1e-200, 0.0], [0.0, -1e-200]], [[1.0, 2.0], [2.0, 4.0]]]))
    SlogdetResult(sign=array([-1.,  0.]), logabsdet=array([-921.0340372,         -inf]))
    """
    if is_tiny(a, compute, threads):
        return _numpy.slogdet(a)
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.slogdet(a)
    sign, logabsdet = SLOGDET(given[0], (), "raise", compute, threads)
    return SlogdetResult(sign[()], logabsdet[()])


def work(n, **_):
    return n**3 / 3


def is_tiny(a, compute, threads):
    """Whether NumPy is done with an array before it is known how we would compute it."""
    return type(a) is np.ndarray and a.size < TINY and compute is None and threads is None


def fewest(n):
    """The least number of matrices that are no tiny stack, or of large ones."""
    return -(-TINY // n**2) if n <= 32 else 6 if n <= 64 else 12


TINY = 80  # numbers

SlogdetResult = type(_numpy.slogdet(np.eye(1)))
DET = Stacked(
    "det",
    inputs={"a": "nn"},
    outputs=(Result(""),),
    work=work,
    numpy=_numpy.det,
    limits=Limits(128, fewest),
    fails=False,
    paired=3,
)
SLOGDET = Stacked(
    "slogdet",
    inputs={"a": "nn"},
    outputs=(Result(""), Result("", "real")),
    work=work,
    numpy=_numpy.slogdet,
    limits=Limits(128, fewest),
    fails=False,
)
