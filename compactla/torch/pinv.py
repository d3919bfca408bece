"""pinv: pseudo-inverses."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import check_tensor, like
from compactla.torch.eigh import eigen
from compactla.torch.matmul import chain, products
from compactla.torch.operator import call, operator
from compactla.torch.svd import singular


@like(torch.linalg.pinv)
def pinv(A, rcond=None, *, atol=None, rtol=None, hermitian=False, on_error="raise", compute="same"):
    """Pseudo-inverses of matrices, after Moore and Penrose, for stacks of them.

    Parameters
    ----------
    A : (..., m, n) Tensor
        Matrices.
    rcond : float or (...) Tensor, optional
        Another name of `rtol`.
    atol, rtol : float or (...) Tensor, optional
        Singular values up to ``max(atol, rtol * largest)`` count as zeros. Default of `rtol`: ``max(m, n)`` times the
        machine epsilon of the type of A, or 0 if `atol` is given.
    hermitian : bool, optional
        Whether matrices are symmetric or Hermitian, of which only the lower triangle is read then.
    on_error, compute : str, optional
        As in the head of this package.

    Returns
    -------
    (..., n, m) Tensor
        Pseudo-inverses.

    Raises
    ------
    torch.linalg.LinAlgError
        If the iteration does not converge for a matrix, as one with NaN, which the message names.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.pinv : The same by LAPACK, or cuSOLVER.
    compactla.linalg.pinv : The same for arrays.

    Notes
    -----
    Derivatives are those among matrices of the same rank.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import pinv
    >>> pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    check_tensor(A, "A")
    if rcond is not None and rtol is not None:
        raise ValueError("rcond and rtol are given, must be one of them")
    if hermitian and A.shape[-1] != A.shape[-2]:
        raise ValueError(f"A has shape {tuple(A.shape)}, must be of square matrices")
    return inverted(A, atol, rtol if rcond is None else rcond, bool(hermitian), on_error, compute)


def inverted(A, atol, rtol, hermitian, on_error, compute):
    """Pseudo-inverses, with tolerances that are numbers, tensors or None."""
    if rtol is None:
        rtol = max(A.shape[-2:]) * torch.finfo(A.dtype).eps if atol is None else 0.0
    if atol is None and isinstance(rtol, int | float) and not hermitian:
        return pseudoinverses(A, float(rtol), on_error, compute)
    cuts = [limit(x, name, A) for x, name in ((atol, "atol"), (rtol, "rtol"))]
    lead = torch.broadcast_shapes(A.shape[:-2], *(x.shape for x in cuts))
    A, cuts = A.expand(*lead, *A.shape[-2:]), [x.expand(lead) for x in cuts]
    return pseudoinverses_cut(A, *cuts, hermitian, on_error, compute)


def limit(tol, name, A):
    """A tolerance as a real tensor."""
    if isinstance(tol, Tensor) and tol.is_complex():
        raise TypeError(f"{name} is of {tol.dtype}, must be real")
    return torch.as_tensor(0.0 if tol is None else tol, dtype=A.real.dtype, device=A.device)


def empty_inverses(a, *others):
    return a.new_empty((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def derive_pseudoinverses(ctx, g):
    """The adjoint of `follow_pseudoinverses`."""
    a, P = ctx.saved_tensors
    gH = g.mH
    left, right = chain(P.mH, P, gH), chain(gH, P, P.mH)
    ga = left - chain(left, P, a) + right - chain(a, P, right) - chain(P.mH, g, P.mH)
    return (ga, *(None,) * (len(ctx.needs_input_grad) - 2 - len(ctx.options)))


def follow_pseudoinverses(ctx, da, *others):
    """(I - P a) da^H P^H P + P P^H da^H (I - a P) - P da P, after Golub and Pereyra."""
    a, P = ctx.saved_tensors
    left, right = chain(da.mH, P.mH, P), chain(P, P.mH, da.mH)
    return left - chain(P, a, left) + right - chain(right, a, P) - chain(P, da, P)


DERIVATIVES = {
    "saved": lambda inputs, P: (inputs[0], P),
    "backward": derive_pseudoinverses,
    "jvp": follow_pseudoinverses,
}


@operator(empty_inverses, **DERIVATIVES)
def pseudoinverses(a: Tensor, rtol: float, on_error: str, compute: str) -> Tensor:
    """Pseudo-inverses, with one tolerance."""
    return call(linalg.pinv, a, rcond=rtol, on_error=on_error, compute=compute)


@operator(empty_inverses, **DERIVATIVES)
def pseudoinverses_cut(a: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool, on_error: str, compute: str) -> Tensor:
    """Pseudo-inverses, with tolerances for each matrix, which may be Hermitian."""
    if hermitian:
        values, U = eigen(a, "L", on_error, compute)
        Vh = U.mH
    else:
        U, values, Vh = singular(a, False, on_error, compute)
    size = values.abs()
    if not size.numel():
        return empty_inverses(a).zero_()
    cut = torch.maximum(atol, rtol * size.amax(-1)).unsqueeze(-1)
    inverse = torch.where(size > cut, 1 / values, torch.where(size.isnan(), values, 0))
    return products(Vh.mT * inverse.unsqueeze(-2), U.mT, True, True)
