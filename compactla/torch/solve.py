"""solve: linear systems, and solutions with the factors of their matrices."""

from dataclasses import replace

import torch
from torch import Tensor

from compactla import linalg
from compactla.linalg import lu
from compactla.linalg.arguments import as_arrays
from compactla.linalg.failures import Failure, complain
from compactla.linalg.solve import SOLVE
from compactla.torch.arguments import as_matrices, broadcast, check_like, check_rows, check_square, like
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_second, operator

LARGEST = lu.LU_FACTOR[False].limits.largest  # rows of the matrices that our kernels factor on a CPU
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


@like(torch.linalg.solve)
def solve(A, B, *, left=True, on_error="raise", compute="same"):
    """Solve linear systems A X = B, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Coefficients.
    B : (n,), (..., n) or (..., n, r) Tensor
        Right-hand sides: vectors if there is one axis, or the shape is that of A without its last axis; else matrices.
        Stacks of matrices are broadcast against each other.
    left : bool, optional
        Whether A stands on the left; if not X A = B is solved.
    on_error, compute : str, optional
        As in the head of this module.

    Returns
    -------
    Tensor
        Solutions, of the shape of B, broadcast.

    Raises
    ------
    torch.linalg.LinAlgError
        If a matrix is singular, which the message names.
    TypeError, ValueError
        If types, devices or shapes do not fit together, or an option is none of the above.

    See Also
    --------
    torch.linalg.solve : The same by LAPACK, or cuSOLVER.
    compactla.linalg.solve : The same for arrays.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import solve
    >>> A = torch.tensor([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]])
    >>> solve(A, torch.tensor([[9.0, 8.0], [4.0, 5.0]]))
    tensor([[2., 3.],
            [2., 1.]])
    """
    check_square(A, "A")
    check_like(B, "B", A)
    right, vector = as_matrices(B, A)
    if vector and not left:
        raise ValueError(f"B has shape {tuple(B.shape)}, must be of matrices if left is False")
    check_rows(right, A, left)
    if not left:
        A, right = A.mT, right.mT
    X = solutions(*broadcast(A, right), on_error, compute)
    return X.squeeze(-1) if vector else X if left else X.mT


def empty_factors(a, on_error, compute):
    dtype = WIDE.get(a.dtype, a.dtype) if compute == "double" else a.dtype
    return a.new_empty(a.shape, dtype=dtype), a.new_empty(a.shape[:-1], dtype=torch.int32)


@operator(empty_factors)
def lu_factor(a: Tensor, on_error: str, compute: str) -> tuple[Tensor, Tensor]:
    """Factors P L U of matrices, in the type that they are computed in: L and U in one, and pivots from 0.

    Where a matrix is singular, there is an error if `on_error` is "raise", NaN if it is "nan", its factors if "keep".
    """
    wide = a.to(WIDE.get(a.dtype, a.dtype)) if compute == "double" else a
    if a.is_cpu and a.shape[-1] > LARGEST:
        return with_lapack(wide, on_error)
    function = KEPT if on_error == "keep" else FACTORS

    def factor(x, threads=None):
        return function(as_arrays(x, devices=("A",))[0], (), "nan" if on_error == "nan" else "raise", "same", threads)

    return call(factor, wide)


def with_lapack(a, on_error):
    """Factors of PyTorch, of matrices that are too large for our kernels."""
    factors, pivots, info = torch.linalg.lu_factor_ex(a)
    if on_error != "keep" and info.any():
        if on_error == "raise":
            complain(torch.linalg.LinAlgError, SOLVE.failure.message, info.numpy() != 0)
        factors[info != 0] = torch.nan
    return factors.contiguous(), pivots - 1


def solutions_with(a, lu, piv, b, adjoint):
    return b.new_empty(b.shape)


def derive_solve_with(ctx, g):
    (a, lu, piv, x), (adjoint,) = ctx.saved_tensors, ctx.options
    gb = solve_with(a, lu, piv, g, not adjoint)
    left, right = (x, gb) if adjoint else (gb, x)
    return -products(left, right.mT, False, True) if ctx.needs_input_grad[1] else None, None, None, gb


def follow_solve_with(ctx, da, dlu, dpiv, db):
    (a, lu, piv, x), (adjoint,) = ctx.saved_tensors, ctx.options
    if da is not None:
        moved = products(da.mT if adjoint else da, x, adjoint, False)
        db = -moved if db is None else db - moved
    return solve_with(a, lu, piv, db, adjoint)


@operator(
    solutions_with,
    saved=lambda inputs, x: (*inputs[:3], x),
    backward=derive_solve_with,
    jvp=follow_solve_with,
)
def solve_with(a: Tensor, lu: Tensor, piv: Tensor, b: Tensor, adjoint: bool) -> Tensor:
    """Solutions x of a x = b, or a^H x = b, with the factors of a, of which they are no functions."""
    right = b.to(lu.dtype)
    if b.is_cpu and a.shape[-1] > LARGEST:
        x = torch.linalg.lu_solve(lu, piv + 1, right, adjoint=adjoint)
    else:
        x = call(solved, lu, piv, right, adjoint=adjoint)
    return x.to(b.dtype).contiguous()


def solved(lu, piv, b, adjoint, threads=None):
    return linalg.lu_solve((lu, piv), b, 2 if adjoint else 0, check_finite=False, compute="same", threads=threads)


def solve_derived(a, b, on_error, compute):
    return solve_with(a, *lu_factor(a, on_error, compute), b, False)


@operator(like_second, chosen=solve_derived)
def solutions(a: Tensor, b: Tensor, on_error: str, compute: str) -> Tensor:
    """Solutions x of a x = b."""
    return call(linalg.solve, a, b, on_error=on_error, compute=compute)


FACTORS = replace(lu.LU_FACTOR[False], failure=SOLVE.failure)
KEPT = replace(lu.LU_FACTOR[False], failure=Failure(error=None))
