"""Linear systems, of all kinds of matrices, and products."""

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from compactla.jax import operators
from compactla.jax.arguments import check_axes, check_square, check_stacks, inexact


@jax.jit
def solve(a: Any, b: Any) -> jax.Array:
    """Solve linear systems a x = b, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Coefficients.
    b : (n,) or (..., n, r) array_like
        Right-hand sides: a vector if it has one axis, else matrices. Stacks are broadcast against each other.

    Returns
    -------
    (..., n) or (..., n, r) Array
        Solutions; NaN where a pivot is zero.

    Raises
    ------
    TypeError, ValueError
        If types or shapes do not fit together.

    See Also
    --------
    jax.numpy.linalg.solve : The same by LAPACK, or cuSOLVER.
    compactla.linalg.solve : The same for arrays of NumPy.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import solve
    >>> solve(jnp.array([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]]), jnp.array([9.0, 8.0]))
    Array([[ 2.,  3.],
           [nan, nan]], dtype=float32)
    """
    a, b = inexact(a=a, b=b)
    return solved(operators.solve, a, b)


def solved(function, a, b):
    """Solutions for vectors or matrices b."""
    check_square(a, "a")
    check_axes(b, "b", 1)
    B = b[:, None] if b.ndim == 1 else b
    if B.shape[-2] != a.shape[-1]:
        raise ValueError(f"b has shape {b.shape}, must fit to a, which has shape {a.shape}")
    check_stacks(a=a, b=B)
    X = function(a, B)
    return X[..., 0] if b.ndim == 1 else X


@partial(jax.jit, static_argnames=("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite"))
def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    debug: Any = None, check_finite: bool = True,
) -> jax.Array:  # fmt: skip
    """Solve linear systems of triangular matrices, for stacks of them.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices, of which one triangle is read.
    b : (n,) or (..., n, r) array_like
        Right-hand sides, as of `solve`.
    trans : {0, 1, 2, "N", "T", "C"}, optional
        Which system: a x = b, a^T x = b or a^H x = b.
    lower : bool, optional
        Which triangle is read.
    unit_diagonal : bool, optional
        Whether the diagonal is taken for ones, and not read.
    overwrite_b, debug, check_finite : optional
        Have no effect.

    Returns
    -------
    (..., n) or (..., n, r) Array
        Solutions; NaN where an element of the diagonal is zero.

    Raises
    ------
    TypeError, ValueError
        If types or shapes do not fit together, or `trans` is none of the above.

    See Also
    --------
    jax.scipy.linalg.solve_triangular : The same by BLAS, or cuBLAS.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import solve_triangular
    >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 9.0]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    letters = {0: "N", 1: "T", 2: "C"} | {letter: letter for letter in "NTC"}
    if trans not in letters:
        raise ValueError(f"trans is {trans!r}, must be 0, 1, 2, 'N', 'T' or 'C'")
    a, b = inexact(a=a, b=b)
    options: dict[str, Any] = {"lower": bool(lower), "trans": letters[trans], "unit": bool(unit_diagonal)}
    return solved(partial(operators.solve_triangular, **options), a, b)


@jax.jit
def inv(a: Any) -> jax.Array:
    """Compute inverses, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.

    Returns
    -------
    (..., n, n) Array
        Inverses; NaN where a pivot is zero.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.inv : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import inv
    >>> inv(jnp.array([[1.0, 2.0], [1.0, 3.0]]))
    Array([[ 3., -2.],
           [-1.,  1.]], dtype=float32)
    """
    (a,) = inexact(a=a)
    check_square(a, "a")
    return operators.inv(a)


@partial(jax.jit, static_argnames=("hermitian",))
def pinv(a: Any, rtol: Any = None, hermitian: bool = False) -> jax.Array:
    """Pseudo-inverses, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices.
    rtol : float or (...) array_like, optional
        Singular values up to so many times the largest count as zero; default: 10 max(m, n) roundings, as in JAX.
    hermitian : bool, optional
        As of `jax.numpy.linalg.pinv`, which is called for True.

    Returns
    -------
    (..., n, m) Array
        Pseudo-inverses.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.pinv : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import pinv
    >>> pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if hermitian:
        return jnp.linalg.pinv(a, rtol, hermitian=True)
    (a,) = inexact(a=a)
    check_axes(a, "a", 2)
    rtol = 10 * max(a.shape[-2:]) * jnp.finfo(a.dtype).eps if rtol is None else rtol
    return operators.pinv(a, numbers(rtol, a))


def numbers(x, a):
    """A number, or one for each matrix, as matrices of one element, of the real type of others."""
    return jnp.asarray(x, jnp.finfo(a.dtype).dtype)[..., None, None]


def lstsq(
    a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Least-squares solutions of a x = b, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Coefficients.
    b : (m,) or (..., m, r) array_like
        Right-hand sides. Stacks are broadcast against each other, which JAX does not take.
    rcond : float, optional
        Singular values up to so many times the largest count as zero; default: max(m, n) roundings. A negative one is
        one rounding.
    numpy_resid : bool, optional
        As of `jax.numpy.linalg.lstsq`, which is called for True, and can't be compiled then.

    Returns
    -------
    x : (..., n) or (..., n, r) Array
        The smallest of all x for which the norm of b - a x is smallest.
    residuals : (..., r) or (..., 1) Array
        Squares of that norm.
    rank : (...) Array of integers
        Ranks of a.
    s : (..., min(m, n)) Array
        Singular values of a.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.lstsq : The same by LAPACK, or cuSOLVER, for a single matrix.

    Notes
    -----
    Derivatives are those for matrices of the same rank. They are finite where singular values are equal, or zero.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import lstsq
    >>> x, residuals, rank, s = lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> x.round(5), residuals.round(5)
    (Array([2.], dtype=float32), Array([2.], dtype=float32))
    """
    if numpy_resid:
        return jnp.linalg.lstsq(a, b, rcond, numpy_resid=True)
    return smallest(a, b, rcond)


@jax.jit
def smallest(a, b, rcond):
    a, b = inexact(a=a, b=b)
    check_axes(a, "a", 2)
    check_axes(b, "b", 1)
    B = b[:, None] if b.ndim == 1 else b
    if B.shape[-2] != a.shape[-2]:
        raise ValueError(f"b has shape {b.shape}, must have {a.shape[-2]} rows as a")
    check_stacks(a=a, b=B)
    eps = jnp.finfo(a.dtype).eps
    limit = max(a.shape[-2:]) * eps if rcond is None else jnp.where(jnp.asarray(rcond) < 0, eps, rcond)
    X, _, rank, s = operators.lstsq(a, B, numbers(limit, a))
    rest = B - operators.product(a, X)
    return X[..., 0] if b.ndim == 1 else X, (rest * rest.conj()).real.sum(-2), rank.astype(int), s


@partial(jax.jit, static_argnames=("precision", "preferred_element_type"))
def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> jax.Array:
    """Products x1 x2, for stacks of matrices.

    Parameters
    ----------
    x1, x2 : (k,) or (..., m, k), (k,) or (..., k, n) array_like
        Factors: a vector, a row or a column, where there is one axis, else matrices. Stacks are broadcast against each
        other.
    precision, preferred_element_type : optional
        As of `jax.numpy.linalg.matmul`, which is called if they are given, for integers, and if x2 is one matrix.

    Returns
    -------
    (..., m, n) Array
        Products, without the axis of a vector.

    Raises
    ------
    TypeError, ValueError
        If types or shapes do not fit together.

    See Also
    --------
    jax.numpy.linalg.matmul : The same by XLA.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import matmul
    >>> matmul(jnp.array([[[0.0, 1.0]], [[2.0, 3.0]]]), jnp.array([[[1.0], [0.0]], [[1.0], [2.0]]]))
    Array([[[0.]],
    <BLANKLINE>
           [[8.]]], dtype=float32)
    """
    x1, x2 = jnp.asarray(x1), jnp.asarray(x2)
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    dtype = jnp.result_type(x1, x2)
    if any(x is not None for x in options.values()) or dtype.char not in "fdFD" or x2.ndim < 3 or not x1.ndim:
        return jnp.matmul(x1, x2, **options)
    a, b = (x1[None] if x1.ndim == 1 else x1).astype(dtype), x2.astype(dtype)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"x1 has shape {x1.shape}, must fit to x2, which has shape {x2.shape}")
    check_stacks(x1=a, x2=b)
    C = operators.product(a, b)
    return C[..., 0, :] if x1.ndim == 1 else C
