"""compactla.linalg for JAX: functions of stacks of small matrices for programs that are compiled and differentiated.

Functions are called as those of the same names in `jax.numpy.linalg`, `jax.scipy.linalg` and `jax.lax.linalg`, and have
their results and derivatives. They work inside of `jax.jit`, `grad`, `jvp`, `hessian`, `vmap`, `pmap` and `shard_map`.
XLA calls our kernels: on a CPU by compiled code that never takes Python's lock, on a GPU in its own stream. Nothing is
compiled when this is installed; a kernel is when a function is first traced for some size and type of matrices. Where
there is no kernel, as for large matrices, JAX's function is called.

As in JAX nothing raises an error for the numbers in a matrix: one that has no result, as one that is singular, has
results of NaN, and changes no other. Numbers are computed in their own type.
"""

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from compactla.jax import operators
from compactla.jax.arguments import check_axes, check_square, check_stacks, inexact

__all__ = [
    "block_tridiagonal_solve",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "lstsq",
    "matmul",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tridiagonal_solve",
]


def named(function: Any) -> Any:
    """The type of the tuples that a function of JAX returns."""
    return type(jax.eval_shape(function, jax.ShapeDtypeStruct((1, 1), jnp.float32)))


EighResult, QRResult, SVDResult, SlogdetResult = map(
    named, (jnp.linalg.eigh, jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.slogdet)
)


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
    options = {"lower": bool(lower), "trans": letters[trans], "unit": bool(unit_diagonal)}
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
    rank : (...) Array of int32
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
    return X[..., 0] if b.ndim == 1 else X, (rest * rest.conj()).real.sum(-2), rank, s


@partial(jax.jit, static_argnames=("precision", "preferred_element_type"))
def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> jax.Array:
    """Products x1 x2, for stacks of matrices.

    Parameters
    ----------
    x1, x2 : (k,) or (..., m, k), (k,) or (..., k, n) array_like
        Factors: a vector, a row or a column, where there is one axis, else matrices. Stacks are broadcast against each
        other.
    precision, preferred_element_type : optional
        As of `jax.numpy.linalg.matmul`, which is called if they are given, for integers, and if x2 has two axes or less.

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


@partial(jax.jit, static_argnames=("perturb_singular",))
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> jax.Array:
    """Solve tridiagonal systems, for stacks of them.

    Parameters
    ----------
    dl, d, du : (..., m) array_like
        The diagonal below the main one, that, and the one above: element i of each is in row i. ``dl[..., 0]`` and
        ``du[..., m - 1]`` are not read.
    b : (..., m, n) array_like
        Right-hand sides.
    perturb_singular : bool, optional
        As of `jax.lax.linalg.tridiagonal_solve`, which is called for True.

    Returns
    -------
    (..., m, n) Array
        Solutions; NaN where a pivot is zero.

    Raises
    ------
    TypeError, ValueError
        If types or shapes do not fit together.

    See Also
    --------
    jax.lax.linalg.tridiagonal_solve : The same by LAPACK, or cuSPARSE.
    compactla.Tridiag : The same for arrays, with factors that are kept.

    Notes
    -----
    Gaussian elimination with row interchanges, as LAPACK ``?gtsv``.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import tridiagonal_solve
    >>> one = jnp.ones(3)
    >>> tridiagonal_solve(one, 2 * one, one, jnp.array([[3.0], [4.0], [3.0]])).round(5)
    Array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    dl, d, du, b = inexact(dl=dl, d=d, du=du, b=b)
    check_axes(d, "d", 1)
    check_axes(b, "b", 2)
    for name, x in (("dl", dl), ("du", du)):
        if x.shape != d.shape:
            raise ValueError(f"{name} has shape {x.shape}, must have {d.shape} as d")
    if b.shape[-2] != d.shape[-1]:
        raise ValueError(f"b has shape {b.shape}, must have {d.shape[-1]} rows as d")
    check_stacks(d=d[..., None], b=b)
    if perturb_singular:
        return jax.lax.linalg.tridiagonal_solve(dl, d, du, b, perturb_singular=True)
    return operators.tridiagonal_solve(dl[..., None], d[..., None], du[..., None], b)


@partial(jax.jit, static_argnames=("pivoting",))
def block_tridiagonal_solve(lower: Any, diag: Any, upper: Any, rhs: Any, *, pivoting: bool = False) -> jax.Array:
    """Solve block tridiagonal systems, for stacks of them: K blocks of b x b each.

    Parameters
    ----------
    lower : (..., K - 1, b, b) array_like
        ``lower[..., k, :, :]`` couples row k + 1 to unknown k.
    diag : (..., K, b, b) array_like
        Diagonal blocks.
    upper : (..., K - 1, b, b) array_like
        ``upper[..., k, :, :]`` couples row k to unknown k + 1.
    rhs : (..., K, b) or (..., K, b, r) array_like
        Right-hand sides: vectors if there is one axis less than in `diag`.
    pivoting : bool, optional
        Swap rows within diagonal blocks. Needed where blocks are well conditioned but meet zero pivots.

    Returns
    -------
    (..., K, b) or (..., K, b, r) Array
        Solutions; NaN where a pivot is zero.

    Raises
    ------
    TypeError, ValueError
        If types or shapes do not fit together.

    See Also
    --------
    compactla.BlockTridiag : The same for arrays, with factors that are kept, and lines that are cut for GPUs.

    Notes
    -----
    A system is eliminated block by block, with LU of the diagonal blocks; rows are not swapped across blocks. Several
    systems are computed side by side: a single one leaves most of a register idle.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from compactla.jax import block_tridiagonal_solve
    >>> eye = jnp.broadcast_to(jnp.eye(2), (3, 2, 2))
    >>> block_tridiagonal_solve(eye[1:], 4 * eye, eye[1:], jnp.array([[5.0, 5.0], [6.0, 6.0], [5.0, 5.0]])).round(5)
    Array([[1., 1.],
           [1., 1.],
           [1., 1.]], dtype=float32)
    """
    lower, diag, upper, rhs = inexact(lower=lower, diag=diag, upper=upper, rhs=rhs)
    check_square(diag, "diag")
    check_axes(diag, "diag", 3)
    *lead, K, b, _ = diag.shape
    for name, x in (("lower", lower), ("upper", upper)):
        if x.shape != (*lead, K - 1, b, b):
            raise ValueError(f"{name} has shape {x.shape}, must have {(*lead, K - 1, b, b)} to fit diag")
    vector = rhs.ndim == diag.ndim - 1
    B = rhs[..., None] if vector else rhs
    if B.ndim != diag.ndim or B.shape[:-1] != diag.shape[:-1]:
        shape = f"{diag.shape[:-1]} or {(*diag.shape[:-1], 'r')}"
        raise ValueError(f"rhs has shape {rhs.shape}, must have {shape} to fit diag")
    if K == 1:
        X = operators.solve(diag, B)
    else:
        lower, diag, upper, below = map(operators.below, (lower, diag, upper, B))
        X = operators.block_tridiagonal_solve(lower, diag, upper, below, bool(pivoting)).reshape(B.shape)
    return X[..., 0] if vector else X
