"""solve: linear systems, and solutions with the factors of their matrices."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import are_vectors, broadcast, check_like, check_rows, check_square, like
from compactla.torch.factors import SOLVED, computed, empty_factors, is_ours, lu_factor, of_type, solved
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_second, operator


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
    if are_vectors(B, A):
        if not left:
            raise ValueError(f"B has shape {tuple(B.shape)}, must be of matrices if left is False")
        if B.shape[-1] != A.shape[-1]:
            raise ValueError(f"B has shape {tuple(B.shape)}, must fit to A, which has shape {tuple(A.shape)}")
        return solutions(A, B if B.ndim == A.ndim - 1 else B.expand(A.shape[:-1]), on_error, compute)
    check_rows(B, A, left)
    if left:
        return solutions(*broadcast(A, B), on_error, compute)
    return solutions(*broadcast(A.mT, B.mT), on_error, compute).mT


def columns(x, a):
    """Vectors, which have an axis less than matrices a, as matrices of one column."""
    return x if x.ndim == a.ndim else x.reshape(*x.shape, 1)


def as_right(x, b):
    """Solutions of columns in the shape of right-hand sides: no view, which forward mode takes for one of arguments."""
    return x if x.shape == b.shape else x.reshape(b.shape).detach()


def applied(a, x, adjoint):
    """Products of matrices, or of their adjoints, and what is like solutions."""
    return products(a.mT if adjoint else a, columns(x, a), adjoint, False).reshape(x.shape)


def outer(x, y, a):
    """Products x y^H of what is like solutions, as matrices like a."""
    return products(columns(x, a), columns(y, a).mT, False, True)


def solutions_with(a, lu, piv, b, adjoint):
    return b.new_empty(b.shape)


def derive_solve_with(ctx, g):
    (a, lu, piv, x), (adjoint,) = ctx.saved_tensors, ctx.options
    gb = solve_with(a, lu, piv, g, not adjoint)
    left, right = (x, gb) if adjoint else (gb, x)
    return -outer(left, right, a) if ctx.needs_input_grad[1] else None, None, None, gb


def follow_solve_with(ctx, da, dlu, dpiv, db):
    (a, lu, piv, x), (adjoint,) = ctx.saved_tensors, ctx.options
    if da is not None:
        moved = applied(da, x, adjoint)
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
    right = columns(of_type(b, lu), a)
    if not is_ours(a):
        x = torch.linalg.lu_solve(lu, piv + 1, right, adjoint=adjoint)
    else:
        x = solved(lu, piv, right, adjoint)
    return as_right(of_type(x, b).contiguous(), b)


def derive_solutions(ctx, g, *factors):
    a, lu, piv, x = ctx.saved_tensors
    gb = solve_with(a, lu, piv, g, True)
    return -outer(gb, x, a) if ctx.needs_input_grad[1] else None, gb


def follow_solutions(ctx, da, db):
    a, lu, piv, x = ctx.saved_tensors
    if da is not None:
        moved = applied(da, x, False)
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
        x, lu, piv = call(with_factors, computed(a, compute), computed(b, compute), on_error=on_error)
        return of_type(x, b), lu, piv
    lu, piv = lu_factor(a, on_error, compute)
    return solve_with(a, lu, piv, b, False), lu, piv


@operator(like_second, among=solutions_and_factors)
def solutions(a: Tensor, b: Tensor, on_error: str, compute: str) -> Tensor:
    """Solutions x of a x = b."""
    if a.is_cpu:
        return call(alone, a, b, on_error=on_error, compute=compute)
    return as_right(call(linalg.solve, a, columns(b, a), on_error=on_error, compute=compute), b)


def with_factors(a, b, on_error, threads):
    """Solutions and factors of arrays on the host."""
    x, *factors = SOLVED((a, columns(b, a)), (), on_error, "same", threads)
    return x.reshape(b.shape), *factors


def alone(a, b, **options):
    """Solutions of arrays on the host."""
    return linalg.solve(a, columns(b, a), **options).reshape(b.shape)
