"""cho_solve: linear systems, with the factors of `cho_factor`."""

import functools
from typing import Any

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _scipy
from compactla.linalg.arguments import as_arrays, as_lapack
from compactla.linalg.stacks import SOLVED, Result, Stacked
from compactla.types import Array


@repeats()
def cho_solve(
    c_and_lower: Any, b: Array, overwrite_b: bool = False, check_finite: bool = True, *, compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Solve linear systems a x = b with the factors of positive definite matrices, for stacks of matrices.

    Parameters
    ----------
    c_and_lower : tuple
        Results of `cho_factor`: factors (..., n, n), and whether they are in lower triangles.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    overwrite_b : bool, optional
        Without effect: nothing is overwritten.
    check_finite : bool, optional
        Whether infinities and NaN, anywhere, are refused.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions, of the type that `scipy.linalg.cho_solve` returns.

    Raises
    ------
    TypeError, ValueError
        If factors are not square, something is not finite, the type of an argument is not supported, shapes do not fit
        together, or an option is none of the above.

    See Also
    --------
    scipy.linalg.cho_solve : The same, one matrix after the other.
    compactla.linalg.cho_factor : The factors.
    compactla.potrs : The same for packs.

    Notes
    -----
    As LAPACK ``?potrs``.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> factors = linalg.cho_factor(np.array([[[4.0, 2.0], [2.0, 2.0]], [[1.0, 0.0], [0.0, 9.0]]]))
    >>> linalg.cho_solve(factors, np.array([2.0, 3.0]))
    array([[-0.5       ,  2.        ],
           [ 2.        ,  0.33333333]])
    """
    c, lower = c_and_lower
    if np.ndim(lower):  # SciPy makes one for each matrix
        if np.unique(lower).size > 1:
            raise ValueError("lower has several values, must be the same for all matrices")
        lower = bool(np.any(lower))
    given = as_arrays(c, b, devices=("c", "b"))
    if given is None or given[0][1].ndim == 0:
        return _scipy.cho_solve((c, lower), b, overwrite_b, check_finite)
    c, b = map(as_lapack, given[0])
    column = b.ndim == 1
    options = "L" if lower else "U", bool(check_finite)
    (x,) = CHO_SOLVE((c, b[:, None] if column else b), options, "raise", compute, threads)
    return x[..., 0] if column else x


@functools.partial(_scipy.on_stacks, takes_stacks=True)
def with_scipy(c, b, uplo, check_finite):
    """The solution of scipy.linalg."""
    return _scipy.cho_solve((c, uplo == "L"), b, check_finite=check_finite)


CHO_SOLVE = Stacked(
    "cho_solve",
    inputs={"c": "nn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, r, **_: n * n * r,
    numpy=with_scipy,
    options=("uplo", "check_finite"),
    limits=SOLVED,
    fails=False,
)
