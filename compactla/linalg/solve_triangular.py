"""solve_triangular: linear systems of triangular matrices."""

import functools
from typing import Any

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import SOLVED, Result, Stacked
from compactla.types import Array


@repeats()
def solve_triangular(
    a: Array, b: Array, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Solve linear systems a x = b of triangular matrices, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Coefficients, of which one triangle is used.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    trans : {0, 1, 2, "N", "T", "C"}, optional
        System: a x = b for 0 or "N", a^T x = b for 1 or "T", a^H x = b for 2 or "C".
    lower : bool, optional
        Whether the lower triangle is used; default: the upper one.
    unit_diagonal : bool, optional
        Whether the diagonal is taken as ones.
    overwrite_b : bool, optional
        Without effect: `b` is left as it is.
    check_finite : bool, optional
        Whether infinities and NaN are refused, in both triangles and in `b`.
    on_error : {"raise", "nan"}, optional
        Treatment of singular matrices: "raise" raises an error that names them, "nan" fills their solutions with NaN
        and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix has an exact zero on its diagonal; the message names it.
    ValueError
        If an element is not finite, or an argument has a wrong shape or value.

    See Also
    --------
    scipy.linalg.solve_triangular : The same, one matrix after the other.
    compactla.trsm : The same for packs.

    Notes
    -----
    As LAPACK ``?trtrs``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> a = np.array([[[2.0, 1.0], [0.0, 4.0]], [[1.0, 1.0], [0.0, 0.0]]])
    >>> linalg.solve_triangular(a, np.array([4.0, 8.0]), on_error="nan")
    array([[ 1.,  2.],
           [nan, nan]])
    """
    given = as_arrays(a, b, devices=("a", "b"))
    if given is None or trans not in TRANS or given[0][1].ndim == 0:
        return _scipy.solve_triangular(a, b, trans, lower, unit_diagonal, overwrite_b, check_finite)
    a, b = map(as_lapack, given[0])
    column = b.ndim == 1
    options = "L" if lower else "U", TRANS[trans], "U" if unit_diagonal else "N", bool(check_finite)
    (x,) = SOLVE_TRIANGULAR((a, b[:, None] if column else b), options, on_error, compute, threads)
    return x[..., 0] if column else x


@functools.partial(_scipy.on_stacks, takes_stacks=True)
def with_scipy(a, b, uplo, trans, diag, check_finite):
    """The solutions of SciPy."""
    options = {"lower": uplo == "L", "unit_diagonal": diag == "U", "check_finite": check_finite}
    return _scipy.solve_triangular(a, b, trans, **options)


TRANS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
SOLVE_TRIANGULAR = Stacked(
    "solve_triangular",
    inputs={"a": "nn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, r, **_: n * n * r / 2,
    numpy=with_scipy,
    failure=Failure(probe=lambda a, **options: with_scipy(a, np.zeros(a.shape[-1:])[:, None], **options)),
    options=("uplo", "trans", "diag", "check_finite"),
    limits=SOLVED,
)
