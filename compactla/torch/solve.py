"""solve: linear systems, and solutions with the factors of their matrices."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import as_matrices, broadcast, check_like, check_rows, check_square, like
from compactla.torch.factors import SOLVED, computed, empty_factors, is_ours, lu_factor, of_type, solved
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_second, operator, run


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
    right = of_type(b, lu)
    if not is_ours(a):
        x = torch.linalg.lu_solve(lu, piv + 1, right, adjoint=adjoint)
    else:
        x = solved(lu, piv, right, adjoint)
    return of_type(x, b).contiguous()


def derive_solutions(ctx, g, *factors):
    a, lu, piv, x = ctx.saved_tensors
    gb = solve_with(a, lu, piv, g, True)
    return -products(gb, x.mT, False, True) if ctx.needs_input_grad[1] else None, gb


def follow_solutions(ctx, da, db):
    a, lu, piv, x = ctx.saved_tensors
    if da is not None:
        moved = products(da, x, False, False)
        db = -moved if db is None else db - moved
    return solve_with(a, lu, piv, db, False), None, None


@operator(
    lambda a, b, *options: (like_second(a, b), *empty_factors(a, *options)),
    saved=lambda inputs, found: (inputs[0], *found[1:], found[0]),
    backward=derive_solutions,
    jvp=follow_solutions,
    derived=1,
)
def solutions_and_factors(a: Tensor, b: Tensor, on_error: str, compute: str) -> tuple[Tensor, Tensor, Tensor]:
    """Solutions x of a x = b, and the factors of a."""
    if a.is_cpu and is_ours(a):
        x, lu, piv = run(SOLVED, computed(a, compute), computed(b, compute), on_error=on_error)
        return of_type(x, b), lu, piv
    lu, piv = lu_factor(a, on_error, compute)
    return solve_with(a, lu, piv, b, False), lu, piv


@operator(like_second, among=solutions_and_factors)
def solutions(a: Tensor, b: Tensor, on_error: str, compute: str) -> Tensor:
    """Solutions x of a x = b."""
    return call(linalg.solve, a, b, on_error=on_error, compute=compute)
