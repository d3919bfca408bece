"""qr: QR factorizations."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import check_tensor, like
from compactla.torch.matmul import products
from compactla.torch.operator import call, operator
from compactla.torch.solve_triangular import triangular

MODES = "reduced", "complete", "r"


@like(torch.linalg.qr)
def qr(A, mode="reduced", *, compute="same"):
    """QR factorizations A = Q R, for stacks of matrices.

    Parameters
    ----------
    A : (..., m, n) Tensor
        Matrices; k = min(m, n).
    mode : {"reduced", "complete", "r"}, optional
        "reduced": Q of k columns and R of k rows. "complete": Q of m columns and R of m rows. "r": R of k rows alone,
        and an empty Q.
    compute : str, optional
        As in the head of this package.

    Returns
    -------
    Q : (..., m, k), (..., m, m) or (0,) Tensor
        Orthonormal columns.
    R : (..., k, n) or (..., m, n) Tensor
        Upper triangular; its diagonal is real, of either sign.

    Raises
    ------
    RuntimeError
        If derivatives of complete factorizations are computed, of matrices with more rows than columns.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.qr : The same by LAPACK, or cuSOLVER.
    compactla.linalg.qr : The same for arrays.

    Notes
    -----
    Derivatives are finite if the first k columns are linearly independent.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import qr
    >>> Q, R = qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]], dtype=torch.float64))
    >>> R.round(decimals=2)
    tensor([[-5.0000, -2.2000],
            [ 0.0000,  0.4000]], dtype=torch.float64)
    """
    check_tensor(A, "A")
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, must be one of {', '.join(map(repr, MODES))}")
    if mode == "r":
        return torch.return_types.linalg_qr((A.new_empty(0), upper(A, compute)))
    return torch.return_types.linalg_qr(orthogonal(A, mode == "complete", compute))


def empty_qr(a, complete, compute):
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    k = m if complete else min(m, n)
    return a.new_empty((*lead, m, k)), a.new_empty((*lead, k, n))


def derive_tall(ctx, gQ, gR):
    """(gQ + Q Y) R^-H: Y is the Hermitian matrix whose upper triangle is that of gR R^H - Q^H gQ."""
    Q, R = square_parts(*ctx.saved_tensors)
    M = None if gR is None else products(gR, R.mT, False, True)
    if gQ is not None:
        turned = products(Q.mT, gQ, True, False)
        M = -turned if M is None else M - turned
    M = M.triu(1) + M.triu(1).mH + real_diagonal(M)
    inner = products(Q, M, False, False)
    inner = inner if gQ is None else inner + gQ
    return (divided(inner, R.mH, True, ctx.options[-1]),)


def follow_tall(ctx, da):
    """dR = X R, dQ = dA R^-1 - Q X: X is the upper triangle of S + S^H, S = Q^H dA R^-1, but for half the diagonal."""
    Q, R = square_parts(*ctx.saved_tensors)
    moved = divided(da, R, False, ctx.options[-1])
    S = products(Q.mT, moved, True, False)
    X = S.triu(1) + S.tril(-1).mH + real_diagonal(S)
    return moved - products(Q, X, False, False), products(X, R, False, False)


def square_parts(Q, R):
    """The factors, if R is square."""
    if R.shape[-2] != R.shape[-1]:
        message = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        raise RuntimeError(f"linalg_qr: {message}")
    return Q, R


def real_diagonal(a):
    diagonal = a.diagonal(dim1=-2, dim2=-1)
    return (diagonal.real if diagonal.is_complex() else diagonal).diag_embed()


def divided(a, R, lower, compute):
    """a R^-1, of a triangle R."""
    return triangular(R.mT, a.mT, not lower, False, compute).mT


def numbers(a: Tensor, complete: bool, compute: str) -> tuple[Tensor, Tensor]:
    return call(linalg.qr, a, mode="complete" if complete else "reduced", compute=compute)


@operator(empty_qr, saved=lambda inputs, found: found, backward=derive_tall, jvp=follow_tall)
def orthogonal_tall(a: Tensor, complete: bool, compute: str) -> tuple[Tensor, Tensor]:
    """Q and R of matrices that have no more columns than rows."""
    return numbers(a, complete, compute)


def orthogonal_derived(a, complete, compute):
    """Q and R; those of the first columns, and the other columns of R from Q, if there are more than rows."""
    m, n = a.shape[-2:]
    if m >= n:
        return orthogonal_tall(a, complete, compute)
    Q, R = orthogonal_tall(a[..., :m], complete, compute)
    return Q, torch.cat([R, products(Q.mT, a[..., m:], True, False)], -1)


@operator(empty_qr, chosen=orthogonal_derived)
def orthogonal(a: Tensor, complete: bool, compute: str) -> tuple[Tensor, Tensor]:
    """Q and R."""
    return numbers(a, complete, compute)


@operator(
    lambda a, compute: empty_qr(a, False, compute)[1], chosen=lambda *args: orthogonal(args[0], False, args[1])[1]
)
def upper(a: Tensor, compute: str) -> Tensor:
    """R alone."""
    return call(linalg.qr, a, mode="r", compute=compute)
