"""Linear systems of tridiagonal and block tridiagonal matrices."""

from functools import partial
from typing import Any

import jax

from compactla.jax import operators
from compactla.jax.arguments import check_axes, check_square, check_stacks, inexact


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
