"""cholesky and cholesky_solve: factors of positive definite matrices, and solutions with them."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.linalg.cho_solve import CHO_SOLVE
from compactla.torch.arguments import broadcast, check_like, check_rows, check_square, like
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_first, operator, run
from compactla.torch.solve_triangular import triangular


@like(torch.linalg.cholesky)
def cholesky(A, *, upper=False, on_error="raise", compute="same"):
    """Factor positive definite matrices A = L L^H, or A = U^H U, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Hermitian matrices, of which one triangle is read.
    upper : bool, optional
        Whether the factor is U, and the upper triangle is read; default: the lower one.
    on_error, compute : str, optional
        As in the head of this module.

    Returns
    -------
    (..., n, n) Tensor
        Factors; zero in the other triangle.

    Raises
    ------
    torch.linalg.LinAlgError
        If a matrix is not positive definite, which the message names.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.cholesky : The same by LAPACK, or cuSOLVER.
    compactla.linalg.cholesky : The same for arrays.

    Notes
    -----
    Derivatives by A are Hermitian matrices, as if all of A had been read.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import cholesky
    >>> cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    check_square(A, "A")
    return factors(A.mT, on_error, compute).mT if upper else factors(A, on_error, compute)


@like(torch.cholesky_solve)
def cholesky_solve(B, L, upper=False, *, compute="same"):
    """Solve linear systems A X = B with the Cholesky factors of A, for stacks of matrices.

    Parameters
    ----------
    B : (..., n, r) Tensor
        Right-hand sides. Stacks of matrices are broadcast against each other.
    L : (..., n, n) Tensor
        Factors, from `cholesky`, of which one triangle is read.
    upper : bool, optional
        Whether the factor is the upper one, U.
    compute : str, optional
        As in the head of this package.

    Returns
    -------
    (..., n, r) Tensor
        Solutions. They are not finite where a factor is singular.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.cholesky_solve : The same by LAPACK, or cuSOLVER.
    compactla.linalg.cho_solve : The same for arrays.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import cholesky, cholesky_solve
    >>> L = cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]))
    >>> cholesky_solve(torch.tensor([[8.0], [6.0]]), L)
    tensor([[1.],
            [2.]])
    """
    check_square(L, "L")
    check_like(B, "B", L, 2)
    check_rows(B, L)
    return definite_solutions(*reversed(broadcast(L, B)), bool(upper), compute)


def derive_factors(ctx, g):
    """L^-H S L^-1, where S is the Hermitian matrix half of whose lower triangle L^H g has."""
    (L,), (_, compute) = ctx.saved_tensors, ctx.options
    half = products(L.mT, g, True, False).tril()
    half = half + half.tril(-1)
    S = (half + half.mH) / 4
    left = triangular(L.mT, S.mT, False, False, compute)  # the conjugate of L^-H S
    return (triangular(L.mT, left.mH, False, False, compute).mT,)


def follow_factors(ctx, da):
    """L S, where S is the lower triangle of L^-1 dA L^-H, and half of its diagonal."""
    (L,), (_, compute) = ctx.saved_tensors, ctx.options
    left = triangular(L, da, True, False, compute)
    S = triangular(L, left.mH, True, False, compute).mH
    return products(L, (S.tril() + S.tril(-1)) / 2, False, False)


@operator(like_first, saved=lambda inputs, L: (L,), backward=derive_factors, jvp=follow_factors)
def factors(a: Tensor, on_error: str, compute: str) -> Tensor:
    """Factors L of matrices L L^H, of which the lower triangle is read."""
    return call(linalg.cholesky, a, on_error=on_error, compute=compute)


def solve_derived(b, L, upper, compute):
    adjoint = L.mT.conj_physical()  # no view, which would not follow batched derivatives
    first, second = (adjoint, L) if upper else (L, adjoint)
    return triangular(second, triangular(first, b, True, False, compute), False, False, compute)


@operator(like_first, chosen=solve_derived)
def definite_solutions(b: Tensor, L: Tensor, upper: bool, compute: str) -> Tensor:
    """Solutions x of L L^H x = b, or of L^H L x = b with an upper triangle."""
    return run(CHO_SOLVE, L, b, options=("U" if upper else "L", False), compute=compute)[0]
