"""solve: linear systems."""

from dataclasses import replace

import numpy as np
from numpy.linalg import LinAlgError

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy, _scipy
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, choose
from compactla.types import Array


@repeats()
def solve(
    a: Array, b: Array, *, assume_a: str = "gen", lower: bool = False, on_error: str = "raise",
    compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Solve linear systems a x = b, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Coefficients.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.
    assume_a : str, optional
        What is known of `a`, in SciPy's words: "gen" (nothing), "sym" (symmetric), "her" (Hermitian) or "pos" (positive
        definite). Only one triangle is read of the last three. SciPy's other words, such as "banded", leave systems to
        `scipy.linalg.solve`, one after the other.
    lower : bool, optional
        Whether that is the lower triangle; default: the upper one.
    on_error : {"raise", "nan"}, optional
        Treatment of singular matrices, and for "pos" of those that are not positive definite: "raise" raises an error
        that names them, "nan" fills their solutions with NaN and leaves all others as they are.
    compute : {"double", "same", "mixed"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy. "mixed" is for double precision:
        factors in single, with which solutions are refined until residuals are those of a solve in double. Matrices for
        which that does not succeed are computed in double, and so are all if `assume_a` is not "gen".
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n) or (..., n, r) ndarray
        Solutions, of the type that `numpy.linalg.solve` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or one is singular, or not positive definite for "pos", which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, shapes do not fit together, or an option is none of the above.

    See Also
    --------
    numpy.linalg.solve, scipy.linalg.solve : The same, one matrix after the other.
    compactla.gesv, compactla.sysv, compactla.hesv, compactla.posv : The same for packs.

    Notes
    -----
    LU factorizations with partial pivoting, as LAPACK ``?gesv``; factors of Bunch and Kaufman, as ``?sysv`` and
    ``?hesv``, for "sym" and "her", and Cholesky factors for "pos". "mixed" is as ``dsgesv`` and ``zcgesv``: refinement
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
        return _dispatched.solve(a, b, **told(solve, assume_a=assume_a, lower=lower))
    (a, b), wrap = given
    column = b.ndim == 1
    if column and b.shape != a.shape[-1:]:
        return _numpy.solve(a, b)
    if compute is not None:
        choose("compute", compute, ("double", "same", "mixed"))
    function, compute = (SOLVE_MIXED, "double") if compute == "mixed" else (SOLVE, compute)
    options: tuple[object, ...] = ()
    if assume_a != "gen":
        word = WORDS.get(assume_a) if isinstance(assume_a, str) else None
        if word is None:
            function, options = SOLVE_ASSUMED, (assume_a, bool(lower))
        elif word != "gen":
            real = word == "her" and "c" not in (a.dtype.kind, b.dtype.kind)  # one kernel for both
            function, options = SOLVE_SYMMETRIC, ("sym" if real else word, "L" if lower else "U")
    (x,) = function((a, b[:, None] if column else b), options, on_error, compute, threads)
    x = x[..., 0] if column else x
    return wrap(x) if wrap else x


# SciPy's words, short and long; all others are its own.
WORDS = {"general": "gen", "symmetric": "sym", "hermitian": "her", "positive definite": "pos"}
WORDS |= {word: word for word in WORDS.values()}


def whole(a: np.ndarray, assume_a: str, uplo: str) -> np.ndarray:
    """The matrices of which one triangle is read."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"a has shape {a.shape}, must be (..., n, n)")
    half, strict = (np.tril(a), np.tril(a, -1)) if uplo == "L" else (np.triu(a), np.triu(a, 1))
    other = strict.swapaxes(-1, -2)
    if assume_a == "sym":
        return half + other
    diagonal = np.einsum("...ii->...i", half)
    diagonal[...] = diagonal.real
    return half + other.conj()


def with_numpy(a, b, assume_a, uplo):
    """The solutions by NumPy, of matrices that are positive definite if that is assumed."""
    a = whole(a, assume_a, uplo)
    if assume_a == "pos":
        _numpy.cholesky(a)
    return _numpy.solve(a, b)


def factored(a, assume_a, uplo):
    """Refuse a matrix that has no solutions."""
    a = whole(a, assume_a, uplo)
    return _numpy.cholesky(a) if assume_a == "pos" else _numpy.inv(a)


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
SOLVE_SYMMETRIC = Stacked(
    "solve_symmetric",
    inputs={"a": "nn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, r, **_: n**3 / 4 + n * n * r,
    numpy=with_numpy,
    failure=Failure("Singular matrix, or not positive definite", probe=factored),
    options=("assume_a", "uplo"),
    limits=Limits(64),
)
SOLVE_ASSUMED = Stacked(
    "solve_assumed",
    inputs={"a": "nn", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, r, **_: n**3 / 3 + n * n * r,
    numpy=_scipy.on_stacks(lambda a, b, assume_a, lower: _scipy.solve(a, b, lower=lower, assume_a=assume_a)),
    failure=Failure(
        "Singular matrix", probe=lambda a, assume_a, lower: _scipy.solve(a, a, lower=lower, assume_a=assume_a)
    ),
    options=("assume_a", "lower"),
    limits=Limits(0),
)
