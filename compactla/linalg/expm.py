"""expm: matrix exponentials."""

from numpy import ndarray

from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays
from compactla.linalg.stacks import Limits, Result, Stacked, check_options
from compactla.types import Array


def expm(A: Array, *, compute: str | None = None, threads: int | None = None) -> Array:
    """The exponentials of matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) array_like
        Matrices.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, n) ndarray
        Exponentials, of the type that `scipy.linalg.expm` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square.
    TypeError, ValueError
        If the type of the argument is not supported, or an option is none of the above.

    See Also
    --------
    scipy.linalg.expm : The same, one matrix after the other.

    Notes
    -----
    Scaling and squaring with a Pade approximant of order 13 [1]_. Matrices of which no multiple is computed without
    infinities are left to SciPy; on devices they have no finite results. How often matrices were scaled is copied from
    devices, an integer for each.

    References
    ----------
    .. [1] Awad H. Al-Mohy and Nicholas J. Higham, "A New Scaling and Squaring Algorithm for the Matrix Exponential",
       SIAM J. Matrix Anal. Appl. 31(3):970-989, 2009, https://doi.org/10.1137/09074721X

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.expm(np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]]]))
    array([[[1., 1.],
            [0., 1.]],
    <BLANKLINE>
           [[1., 0.],
            [2., 1.]]])
    """
    given = as_arrays(A, devices=("A",))
    if given is None or (type(given[0][0]) is ndarray and (given[0][0].ndim < 2 or given[0][0].shape[-1] == 1)):
        check_options("raise", compute, threads)
        return _scipy.expm(A)
    (a,) = given[0]
    (x,) = EXPM([a.astype("f") if a.dtype.char == "e" else a], (), "raise", compute, threads)
    return x


EXPM = Stacked(
    "expm",
    inputs={"A": "nn"},
    outputs=(Result("nn"),),
    work=lambda n, **_: 10 * n**3,
    numpy=_scipy.expm,
    limits=Limits(fewest=lambda n: 1 if n <= 16 else 2),
)
