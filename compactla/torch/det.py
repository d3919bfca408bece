"""det and slogdet: determinants."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import check_square, like
from compactla.torch.factors import DETERMINED, LOGARITHMS, computed, empty_factors, is_ours, lu_factor, of_type
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_first, operator, run
from compactla.torch.solve import solve_with


@like(torch.linalg.det)
def det(A, *, compute="same"):
    """Compute determinants, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Matrices.
    compute : str, optional
        As in the head of this package.

    Returns
    -------
    (...) Tensor
        Determinants; 0 for singular matrices.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.det : The same by LAPACK, or cuSOLVER.
    compactla.linalg.det : The same for arrays.
    slogdet : For determinants that may be too large or too small.

    Notes
    -----
    Derivatives of singular matrices are finite: the first ones are the cofactors.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import det
    >>> det(torch.tensor([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]]))
    tensor([5., 0.])
    """
    check_square(A, "A")
    return determinants(A, compute)


@like(torch.linalg.slogdet)
def slogdet(A, *, compute="same"):
    """Compute signs of determinants, and logarithms of their absolute values, for stacks of matrices.

    Parameters
    ----------
    A, compute
        See `det`.

    Returns
    -------
    sign : (...) Tensor
        1, -1, or 0 for singular matrices; complex numbers of modulus 1, or 0, for complex matrices.
    logabsdet : (...) Tensor
        Natural logarithms of absolute values; minus infinity for singular matrices.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.slogdet : The same by LAPACK, or cuSOLVER.
    compactla.linalg.slogdet : The same for arrays.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import slogdet
    >>> slogdet(torch.tensor([[1e-30, 0.0], [0.0, -1e-30]])).logabsdet
    tensor(-138.1551)
    """
    check_square(A, "A")
    return torch.return_types.linalg_slogdet(logarithms(A, compute))


def number_each(a, *others):
    return a.new_empty(a.shape[:-2])


def pair_each(a, *others):
    return a.new_empty(a.shape[:-2]), a.new_empty(a.shape[:-2], dtype=a.dtype.to_real())


def trace(a):
    return a.diagonal(dim1=-2, dim2=-1).sum(-1)


def spread(d, n):
    """Diagonal matrices of numbers."""
    return d.unsqueeze(-1).expand(*d.shape, n).diag_embed()


def pivots(lu, piv):
    """Pivots of factors, those of rows that were interchanged with the other sign."""
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    return torch.where(piv == torch.arange(piv.shape[-1], device=piv.device), diagonal, -diagonal)


def raised(lu, fraction):
    """Factors with pivots of at least a fraction of the largest one, where they are smaller, or zero."""
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    if not diagonal.shape[-1]:
        return lu
    size = diagonal.abs()
    largest = size.amax(-1, keepdim=True)
    limit = fraction * torch.where(largest == 0, 1, largest)
    unit = torch.where(size == 0, 1, diagonal / torch.where(size == 0, 1, size))
    return lu + (torch.where(size < limit, limit * unit, diagonal) - diagonal).diag_embed()


def follow_determinants(ctx, da, *others):
    a, lu, piv = ctx.saved_tensors
    return trace(products(cofactors(a, lu, piv).mT, da, True, False))


@operator(
    number_each,
    saved=lambda inputs, d: inputs,
    backward=lambda ctx, g: (g[..., None, None] * cofactors(*ctx.saved_tensors), None, None),
    jvp=follow_determinants,
)
def determinants_with(a: Tensor, lu: Tensor, piv: Tensor) -> Tensor:
    """Determinants of a, with its factors."""
    return pivots(lu, piv).prod(-1).to(a.dtype)


def adjoint_difference(ctx, x):
    """d (tr(x W) W - W x W)^H of determinants d, inverses W: the derivative of cofactors along x, and its adjoint."""
    a, lu, piv = ctx.saved_tensors
    n, eps = a.shape[-1], torch.finfo(a.dtype).eps
    lu = raised(lu, eps**0.5)  # of singular matrices next to these: errors are as large as those of rounding
    d = determinants_with(a, lu, piv)
    W = solve_with(a, lu, piv, spread(torch.ones_like(d), n), False)
    xW = products(x, W, False, False)
    found = trace(xW)[..., None, None] * W - products(W, xW, False, False)
    return (d[..., None, None] * found).mH


@operator(
    like_first,
    saved=lambda inputs, found: inputs,
    backward=lambda ctx, g: (adjoint_difference(ctx, g), None, None),
    jvp=lambda ctx, da, *others: adjoint_difference(ctx, da),
)
def cofactors(a: Tensor, lu: Tensor, piv: Tensor) -> Tensor:
    """Conjugate cofactors, conj(det a) a^-H, with the factors of a, which may be singular."""
    eps = torch.finfo(a.dtype).eps
    lu = torch.where(lu.diagonal(dim1=-2, dim2=-1).eq(0).any(-1)[..., None, None], raised(lu, eps), lu)
    d = determinants_with(a, lu, piv)
    return solve_with(a, lu, piv, spread(d.conj().resolve_conj(), a.shape[-1]), True)


@operator(
    lambda a, compute: (number_each(a), *empty_factors(a, "keep", compute)),
    saved=lambda inputs, found: (inputs[0], *found[1:]),
    backward=lambda ctx, g, *factors: (g[..., None, None] * cofactors(*ctx.saved_tensors),),
    jvp=lambda ctx, da: (follow_determinants(ctx, da), None, None),
    derived=1,
)
def determinants_and_factors(a: Tensor, compute: str) -> tuple[Tensor, Tensor, Tensor]:
    """Determinants and factors."""
    if a.is_cpu and is_ours(a):
        d, lu, piv = run(DETERMINED, computed(a, compute))
        return of_type(d, a), lu, piv
    lu, piv = lu_factor(a, "keep", compute)
    return determinants_with(a, lu, piv), lu, piv


@operator(number_each, among=determinants_and_factors)
def determinants(a: Tensor, compute: str) -> Tensor:
    """Determinants."""
    return call(linalg.det, a, compute=compute)


def derive_logarithms(ctx, gsign, glog, *factors):
    a, lu, piv, sign = ctx.saved_tensors
    g = torch.zeros_like(sign) if glog is None else glog.to(sign.dtype)
    if gsign is not None and sign.is_complex():
        g = g - (gsign.conj() * sign).imag * 1j
    return (solve_with(a, lu, piv, spread(g, a.shape[-1]), True),)


def follow_logarithms(ctx, da):
    a, lu, piv, sign = ctx.saved_tensors
    change = trace(solve_with(a, lu, piv, da, False))
    if not sign.is_complex():
        return torch.zeros_like(sign), change, None, None
    return change.imag * 1j * sign, change.real, None, None


@operator(
    lambda a, compute: (*pair_each(a), *empty_factors(a, "keep", compute)),
    saved=lambda inputs, found: (inputs[0], *found[2:], found[0]),
    backward=derive_logarithms,
    jvp=follow_logarithms,
    derived=2,
)
def logarithms_and_factors(a: Tensor, compute: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Signs of determinants, logarithms of their absolute values, and factors."""
    if a.is_cpu and is_ours(a):
        sign, log, lu, piv = run(LOGARITHMS, computed(a, compute))
    else:
        lu, piv = lu_factor(a, "keep", compute)
        factors = pivots(lu, piv)
        sign, log = factors.sgn().prod(-1), factors.abs().log().sum(-1)
    return sign.to(a.dtype), log.to(a.dtype.to_real()), lu, piv


@operator(pair_each, among=logarithms_and_factors)
def logarithms(a: Tensor, compute: str) -> tuple[Tensor, Tensor]:
    """Signs of determinants, and logarithms of their absolute values."""
    return call(linalg.slogdet, a, compute=compute)
