"""solve_triangular: linear systems of triangular matrices."""

import torch
from torch import Tensor

from compactla.linalg.solve_triangular import SOLVE_TRIANGULAR
from compactla.torch.arguments import broadcast, check_like, check_rows, check_square, like
from compactla.torch.matmul import products
from compactla.torch.operator import like_second, operator, run


@like(torch.linalg.solve_triangular)
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, compute="same"):
    """Solve linear systems A X = B of triangular matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Matrices, of which one triangle is read.
    B : (..., n, r) Tensor
        Right-hand sides. Stacks of matrices are broadcast against each other.
    upper : bool
        Whether it is the upper triangle.
    left : bool, optional
        Whether A stands on the left; if not X A = B is solved.
    unitriangular : bool, optional
        Whether diagonals are taken to be ones, and not read.
    compute : str, optional
        As in the head of this package.

    Returns
    -------
    (..., n, r) Tensor
        Solutions, of the shape of B, broadcast. They are NaN where a diagonal has a zero.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.solve_triangular : The same by BLAS, or cuBLAS.
    compactla.linalg.solve_triangular : The same for arrays.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import solve_triangular
    >>> A = torch.tensor([[[2.0, 1.0], [0.0, 4.0]], [[1.0, 1.0], [0.0, 2.0]]])
    >>> solve_triangular(A, torch.tensor([[4.0], [8.0]]), upper=True)
    tensor([[[1.],
             [2.]],
    <BLANKLINE>
            [[0.],
             [4.]]])
    """
    check_square(A, "A")
    check_like(B, "B", A, 2)
    check_rows(B, A, left)
    if not left:
        A, B, upper = A.mT, B.mT, not upper
    X = triangular(*broadcast(A, B), not upper, bool(unitriangular), compute)
    return X if left else X.mT


def kept(a, lower, unit):
    """One triangle, without a diagonal that is not read."""
    return a.tril(-1 if unit else 0) if lower else a.triu(1 if unit else 0)


def derive_triangular(ctx, g):
    (a, x), (lower, unit, compute) = ctx.saved_tensors, ctx.options
    gb = triangular(a.mT, g.conj(), not lower, unit, compute).conj()
    return -kept(products(gb, x.mT, False, True), lower, unit) if ctx.needs_input_grad[1] else None, gb


def follow_triangular(ctx, da, db):
    (a, x), (lower, unit, compute) = ctx.saved_tensors, ctx.options
    if da is not None:
        moved = products(kept(da, lower, unit), x, False, False)
        db = -moved if db is None else db - moved
    return triangular(a, db, lower, unit, compute)


@operator(
    like_second,
    saved=lambda inputs, x: (inputs[0], x),
    backward=derive_triangular,
    jvp=follow_triangular,
)
def triangular(a: Tensor, b: Tensor, lower: bool, unit: bool, compute: str) -> Tensor:
    """Solutions x of a x = b, of one triangle of a."""
    options = "L" if lower else "U", "N", "U" if unit else "N", False
    return run(SOLVE_TRIANGULAR, a, b, options=options, on_error="nan", compute=compute)[0]
