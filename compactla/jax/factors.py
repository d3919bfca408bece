"""Factors, eigenvalues, singular values and determinants."""

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from compactla.jax import operators
from compactla.jax.arguments import check_axes, check_square, inexact


def named(function: Any) -> Any:
    """The type of the tuples that a function of JAX returns."""
    return type(jax.eval_shape(function, jax.ShapeDtypeStruct((1, 1), jnp.float32)))


EighResult, QRResult, SVDResult, SlogdetResult = map(
    named, (jnp.linalg.eigh, jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.slogdet)
)


@partial(jax.jit, static_argnames=("upper", "symmetrize_input"))
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> jax.Array:
    """Factor positive definite matrices a = L L^H, or a = U^H U, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Hermitian matrices.
    upper : bool, optional
        Whether the factor is U.
    symmetrize_input : bool, optional
        Whether (a + a^H) / 2 is factored; otherwise the lower triangle of a is read.

    Returns
    -------
    (..., n, n) Array
        Factors, zero in the other triangle; NaN where a pivot is not positive.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.cholesky : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import cholesky
    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float32)
    """
    (a,) = inexact(a=a)
    check_square(a, "a")
    L = operators.cholesky(a, bool(symmetrize_input))
    return L.mT.conj() if upper else L


@partial(jax.jit, static_argnames=("UPLO", "symmetrize_input"))
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    UPLO : {None, "L", "U"}, optional
        Which triangle is read, if one is: None and "L" are the lower one.
    symmetrize_input : bool, optional
        Whether (a + a^H) / 2 is taken for a; otherwise one triangle is read.

    Returns
    -------
    eigenvalues : (..., n) Array
        Real numbers in ascending order.
    eigenvectors : (..., n, n) Array
        Columns of length 1, orthogonal to each other. Their signs, and phases, are not those of JAX.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.eigh : The same by LAPACK, or cuSOLVER.

    Notes
    -----
    Derivatives of eigenvectors are not finite where eigenvalues are equal. Results of a matrix with NaN are NaN.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import eigh
    >>> w, v = eigh(jnp.array([[4.0, 0.0], [0.0, 3.0]]))
    >>> w
    Array([3., 4.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO is {UPLO!r}, must be None, 'L' or 'U'")
    (a,) = inexact(a=a)
    check_square(a, "a")
    return EighResult(*operators.eigh(a, UPLO != "U", bool(symmetrize_input)))


@partial(jax.jit, static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """Singular value decompositions a = U diag(s) Vh, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices.
    full_matrices : bool, optional
        Whether U and Vh are square; otherwise they have k = min(m, n) columns and rows.
    compute_uv : bool, optional
        Whether there are U and Vh; otherwise s alone is returned.
    hermitian, subset_by_index : optional
        As of `jax.numpy.linalg.svd`, which is called if they are given.

    Returns
    -------
    U : (..., m, m) or (..., m, k) Array
        Left singular vectors, in columns. Their signs, and phases, are not those of JAX.
    S : (..., k) Array
        Singular values in descending order.
    Vh : (..., n, n) or (..., k, n) Array
        Right singular vectors, in rows.

    Raises
    ------
    NotImplementedError
        For derivatives with full matrices that are not square, as in JAX.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.svd : The same by LAPACK, or cuSOLVER.

    Notes
    -----
    Derivatives of singular vectors are not finite where singular values are equal, or zero if a is not square; those of
    singular values alone are.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import svd
    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    if hermitian or subset_by_index is not None:
        return jnp.linalg.svd(a, full_matrices, compute_uv, hermitian, subset_by_index)
    (a,) = inexact(a=a)
    check_axes(a, "a", 2)
    return SVDResult(*operators.svd(a, bool(full_matrices))) if compute_uv else operators.svdvals(a)


def svdvals(x: Any, /) -> jax.Array:
    """Singular values, for stacks of matrices.

    Parameters
    ----------
    x : (..., m, n) array_like
        Matrices.

    Returns
    -------
    (..., min(m, n)) Array
        Singular values in descending order.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.svdvals : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import svdvals
    >>> svdvals(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)


@partial(jax.jit, static_argnames=("mode",))
def qr(a: Any, mode: str = "reduced") -> Any:
    """Factorizations a = Q R, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices.
    mode : {"reduced", "complete", "r", "raw"}, optional
        Whether Q has min(m, n) columns or m, or there is R alone; "raw" is computed by JAX.

    Returns
    -------
    Q : (..., m, min(m, n)) or (..., m, m) Array
        Orthonormal columns.
    R : (..., min(m, n), n) or (..., m, n) Array
        Upper triangular matrices.

    Raises
    ------
    NotImplementedError
        For derivatives of complete factors of matrices with more rows than columns, as in JAX.
    TypeError, ValueError
        See `solve`; also if `mode` is none of the above.

    See Also
    --------
    jax.numpy.linalg.qr : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import qr
    >>> abs(qr(jnp.array([[3.0], [4.0]])).R)
    Array([[5.]], dtype=float32)
    """
    if mode == "raw":
        return jnp.linalg.qr(a, mode)
    if mode not in ("reduced", "complete", "r", "full"):
        raise ValueError(f"mode is {mode!r}, must be 'reduced', 'complete', 'r' or 'raw'")
    (a,) = inexact(a=a)
    check_axes(a, "a", 2)
    found = operators.qr(a, "reduced" if mode == "full" else mode)  # which JAX's function takes as well
    return found if mode == "r" else QRResult(*found)


@jax.jit
def det(a: Any) -> jax.Array:
    """Compute determinants, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.

    Returns
    -------
    (...) Array
        Determinants.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    jax.numpy.linalg.det : The same by LAPACK, or cuSOLVER.

    Notes
    -----
    First derivatives are finite for singular matrices too, second ones are NaN there.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import det
    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    (a,) = inexact(a=a)
    check_square(a, "a")
    return operators.det(a)


@partial(jax.jit, static_argnames=("method",))
def slogdet(a: Any, *, method: str | None = None) -> tuple[jax.Array, jax.Array]:
    """Signs and logarithms of determinants, for stacks of matrices.

    Parameters
    ----------
    a : (..., n, n) array_like
        Matrices.
    method : {None, "lu", "qr"}, optional
        As of `jax.numpy.linalg.slogdet`, which is called for "qr".

    Returns
    -------
    sign : (...) Array
        Determinants divided by their moduli; 0 for singular matrices.
    logabsdet : (...) Array
        Logarithms of the moduli; -inf for singular matrices.

    Raises
    ------
    TypeError, ValueError
        See `solve`; also if `method` is none of the above.

    See Also
    --------
    jax.numpy.linalg.slogdet : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import slogdet
    >>> slogdet(-jnp.eye(3)).sign
    Array(-1., dtype=float32)
    """
    if method == "qr":
        return jnp.linalg.slogdet(a, method=method)
    if method not in (None, "lu"):
        raise ValueError(f"method is {method!r}, must be None, 'lu' or 'qr'")
    (a,) = inexact(a=a)
    check_square(a, "a")
    return SlogdetResult(*operators.slogdet(a))
