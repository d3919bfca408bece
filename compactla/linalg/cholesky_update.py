"""cholesky_update: factors of positive definite matrices to which vectors are added, or from which they are taken."""

import numpy as np

from compactla.linalg.arguments import as_arrays, common_type
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array


def cholesky_update(
    c: Array, x: Array, downdate: bool = False, lower: bool = True, *, on_error: str = "raise",
    compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Cholesky factors of c c^H + x x^H from c, or of c c^H - x x^H, for stacks of matrices.

    Parameters
    ----------
    c : (..., n, n) array_like
        Factors, as `compactla.linalg.cholesky` makes them: one triangle is read, and the real part of the diagonal.
    x : (..., n) or (..., n, k) array_like
        What is added: vectors if it has less axes than `c`, else matrices of k vectors. Stacks are broadcast against
        each other.
    downdate : bool, optional
        Whether x x^H is subtracted.
    lower : bool, optional
        Whether factors are lower triangular. The others are those of c^H c + x x^H.
    on_error : {"raise", "nan"}, optional
        Treatment of downdates that are not positive definite, and of matrices with NaN: "raise" raises an error that
        names them, "nan" fills their factors with NaN and leaves all others as they are.
    compute, threads
        See `compactla.linalg.solve`.

    Returns
    -------
    (..., n, n) ndarray
        Factors with zeros in the other triangle.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices of `c` are not square, or one has no factor, which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, shapes do not fit together, or an option is none of the above.

    See Also
    --------
    compactla.chud : The same for packs.
    compactla.linalg.cholesky : Factors from the matrices.

    Notes
    -----
    Givens rotations, and for downdates hyperbolic ones in mixed form, as of `compactla.chud`. A vector takes some 2 n^2
    multiply-adds, a new factor n^3 / 6 and the product, whose condition number is the square of the factor's.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> c = np.array([[[2.0, 0.0], [1.0, 1.0]], [[3.0, 0.0], [0.0, 2.0]]])
    >>> linalg.cholesky_update(c, np.array([0.0, 1.5]), downdate=True, on_error="nan")
    array([[[       nan,        nan],
            [       nan,        nan]],
    <BLANKLINE>
           [[3.        , 0.        ],
            [0.        , 1.32287566]]])
    """
    for name, flag in ("downdate", downdate), ("lower", lower):
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name} is {flag!r}, must be a bool")
    given = as_arrays(c, x, devices=("c", "x"))
    if given is None:
        raise TypeError(f"c and x are a {type(c).__name__} and a {type(x).__name__}, must be arrays")
    (c, x), _ = given
    for name, a in ("c", c), ("x", x):
        if common_type(a.dtype) is None:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be real or complex of single or double precision")
    if c.ndim < 2 or c.shape[-1] != c.shape[-2]:
        raise np.linalg.LinAlgError(f"c has shape {c.shape}, must have square matrices in the last two axes")
    if x.ndim < c.ndim:
        x = x.reshape((*x.shape, 1)) if x.ndim else x
    if x.ndim < 2 or x.shape[-2] != c.shape[-1]:
        raise ValueError(f"x has shape {x.shape}, must have {c.shape[-1]} numbers in each vector, as c has rows")
    (f,) = CHOLESKY_UPDATE((c, x), ("L" if lower else "U", bool(downdate)), on_error, compute, threads)
    return f


def with_numpy(c, x, uplo, downdate):
    """The factors, with NaN where there are none: rotations of all matrices of a stack at a time."""
    dtype = np.result_type(*(common_type(a.dtype) for a in (c, x)))
    lead = np.broadcast_shapes(c.shape[:-2], x.shape[:-2])
    L = np.tril(c) if uplo == "L" else np.triu(c).conj().swapaxes(-1, -2)
    L = np.array(np.broadcast_to(L, (*lead, *c.shape[-2:])), np.result_type(dtype, "d"))
    x = np.array(np.broadcast_to(x, (*lead, *x.shape[-2:])), L.dtype)
    failed = np.zeros(lead, bool)
    with np.errstate(all="ignore"):
        for j, p in np.ndindex(*x.shape[-2:]):
            old, y, column, vector = L[..., j, j].real.copy(), x[..., j, p], L[..., j:, j], x[..., j:, p]
            size = np.hypot(y.real, y.imag)
            pivot = np.sqrt(old - size) * np.sqrt(old + size) if downdate else np.hypot(old, size)
            failed |= ~np.isfinite(pivot) | (~(pivot > 0) if downdate else False)
            over = old if downdate else np.where(pivot == 0, 1, pivot)
            s, c = (y / over)[..., None], np.where(pivot == 0, 1, (pivot if downdate else old) / over)[..., None]
            if downdate:
                column[...] = (column - s.conj() * vector) / c
                vector[...] = c * vector - s * column
            else:
                column[...], vector[...] = c * column + s.conj() * vector, c * vector - s * column
            L[..., j, j] = pivot
    L[failed] = np.nan
    return (L if uplo == "L" else L.conj().swapaxes(-1, -2)).astype(dtype)


CHOLESKY_UPDATE = Stacked(
    "cholesky_update",
    inputs={"c": "nn", "x": "nk"},
    outputs=(Result("nn"),),
    work=lambda n, k, **_: 2 * n * n * k,
    numpy=with_numpy,
    failure=Failure("Matrix is not positive definite", seen=lambda f: np.isnan(f).any((-2, -1))),
    options=("uplo", "downdate"),
    limits=Limits(128, lambda n: 1 if n <= 32 else 4, extent=lambda n, k, **_: max(n, -(-n * k // 32))),
)
