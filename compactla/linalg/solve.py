"""solve: linear systems."""

from dataclasses import replace

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


@repeats()
def solve(
    a: Array, b: Array, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Solve linear systems a x = b, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Coefficients.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    on_error : {"raise", "nan"}, optional
        Treatment of singular matrices: "raise" raises an error that names them, "nan" fills their solutions with NaN
        and leaves all others as they are.
    compute : {"double", "same", "mixed"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy. "mixed" is for double precision:
        factors in single, with which solutions are refined until residuals are those of a solve in double. Matrices for
        which that does not succeed are computed in double.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions, of the type that `numpy.linalg.solve` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or one is singular, which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, shapes do not fit together, or an option is none of the above.

    See Also
    --------
    numpy.linalg.solve : The same, one matrix after the other.
    compactla.gesv : The same for packs.

    Notes
    -----
    LU factorizations with partial pivoting, as LAPACK ``?gesv``, or ``dsgesv`` and ``zcgesv`` if "mixed": refinement
    ends where ||b - a x|| <= ||x|| ||a|| eps sqrt(n) for every column, in the largest norm.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.array([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
    >>> linalg.solve(a, np.array([9.0, 8.0]), on_error="nan")
    array([[ 2.,  3.],
           [nan, nan]])
    """
    given = as_arrays(a, b, devices=("a", "b"))
    if given is None:
        return _dispatched.solve(a, b)
    (a, b), wrap = given
    column = b.ndim == 1
    if column and b.shape != a.shape[-1:]:
        return _numpy.solve(a, b)
    function, compute = (SOLVE_MIXED, "double") if compute == "mixed" else (SOLVE, compute)
    (x,) = function((a, b[:, None] if column else b), (), on_error, compute, threads)
    x = x[..., 0] if column else x
    return wrap(x) if wrap else x


SOLVE = Stacked(
    "solve",
    inputs={"a": "nn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, r, **_: n**3 / 3 + n * n * r,
    numpy=_numpy.solve,
    failure=Failure("Singular matrix", probe=_numpy.inv),
    limits=Limits(128),
)


def in_double(a, b):
    """Solutions in double precision."""
    (x,) = SOLVE((a, b), (), "raise", "double")
    return x


SOLVE_MIXED = replace(SOLVE, name="solve_mixed", numpy=in_double, paired=SOLVE.limits.largest)
