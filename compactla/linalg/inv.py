"""inv: inverses."""

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


@repeats()
def inv(a: Array, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None) -> Array:
    """Compute inverses, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    on_error : {"raise", "nan"}, optional
        Treatment of singular matrices: "raise" raises an error that names them, "nan" fills their inverses with NaN and
        leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, n) ndarray
        Inverses, of the type that `numpy.linalg.inv` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or one is singular, which the message names.
    TypeError, ValueError
        If the type of the argument is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.inv : The same, one matrix after the other.
    compactla.getri : The same for packs.

    Notes
    -----
    As LAPACK ``?getrf`` and ``?getri``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.inv(np.array([[[1.0, 2.0], [3.0, 7.0]], [[1.0, 2.0], [2.0, 4.0]]]), on_error="nan")
    array([[[ 7., -2.],
            [-3.,  1.]],
    <BLANKLINE>
           [[nan, nan],
            [nan, nan]]])
    """
    given = as_arrays(a, devices=("a",))
    if given is None:
        return _dispatched.inv(a)
    (a,), wrap = given
    (x,) = INV((a,), (), on_error, compute, threads)
    return wrap(x) if wrap else x


INV = Stacked(
    "inv",
    inputs={"a": "nn"},
    outputs=(Result("nn"),),
    work=lambda n, **_: n**3,
    numpy=_numpy.inv,
    failure=Failure("Singular matrix"),
    limits=Limits(128),
)
