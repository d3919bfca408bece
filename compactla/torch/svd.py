"""svd and svdvals: singular values and vectors."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import check_tensor, like
from compactla.torch.eigh import turn
from compactla.torch.matmul import products
from compactla.torch.operator import call, operator

DRIVERS = None, "gesvd", "gesvdj", "gesvda"


@like(torch.linalg.svd)
def svd(A, full_matrices=True, *, driver=None, on_error="raise", compute="same"):
    """Singular values and vectors of matrices, A = U diag(S) Vh, for stacks of them.

    Parameters
    ----------
    A : (..., m, n) Tensor
        Matrices.
    full_matrices : bool, optional
        Whether U and Vh are square, or have as many columns, and rows, as there are singular values.
    driver : str, optional
        As of `torch.linalg.svd`, for tensors on a GPU; without effect.
    on_error, compute : str, optional
        As in the head of this package.

    Returns
    -------
    U : (..., m, m) or (..., m, min(m, n)) Tensor
        Columns of length 1, orthogonal to each other. Their signs, and phases, are not those of PyTorch.
    S : (..., min(m, n)) Tensor
        Real numbers in descending order.
    Vh : (..., n, n) or (..., min(m, n), n) Tensor
        Rows of length 1, orthogonal to each other.

    Raises
    ------
    torch.linalg.LinAlgError
        If the iteration does not converge for a matrix, as one with NaN, which the message names.
    RuntimeError
        If, where derivatives are computed, these depend on phases of singular vectors, which are free.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.svd : The same by LAPACK, or cuSOLVER.
    compactla.linalg.svd : The same for arrays.

    Notes
    -----
    Derivatives of vectors are not finite where singular values are equal, or zero if matrices are not square. Those by
    vectors that only ``full_matrices=True`` has are left out, as in PyTorch.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import svd
    >>> svd(torch.tensor([[0.0, 2.0], [3.0, 0.0]])).S
    tensor([3., 2.])
    """
    check(A, driver)
    return torch.return_types.linalg_svd(singular(A, bool(full_matrices), on_error, compute))


@like(torch.linalg.svdvals)
def svdvals(A, *, driver=None, on_error="raise", compute="same"):
    """Singular values of matrices, for stacks of them.

    Parameters
    ----------
    A, driver, on_error, compute
        See `svd`.

    Returns
    -------
    (..., min(m, n)) Tensor
        Real numbers in descending order.

    Raises
    ------
    torch.linalg.LinAlgError, TypeError, ValueError
        See `svd`.

    See Also
    --------
    torch.linalg.svdvals : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import svdvals
    >>> svdvals(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    check(A, driver)
    return singular_values(A, on_error, compute)


def check(A, driver):
    check_tensor(A, "A")
    if driver not in DRIVERS:
        raise ValueError(f"driver is {driver!r}, must be one of {', '.join(map(repr, DRIVERS))}")
    if driver is not None and not A.is_cuda:
        raise ValueError(f"driver is {driver!r}, must be None but for tensors on a GPU")


def empty_svd(a, full, *others):
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    k = min(m, n)
    s = a.new_empty((*lead, k), dtype=a.dtype.to_real())
    return a.new_empty((*lead, m, m if full else k)), s, a.new_empty((*lead, n if full else k, n))


def thin(U, S, Vh):
    """The singular vectors that belong to singular values."""
    k = S.shape[-1]
    return U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)


def gaps(S):
    """Differences of squares of singular values, that of row i from that of column j; 1 on the diagonal."""
    square = S * S
    return square.unsqueeze(-2) - square.unsqueeze(-1) + torch.eye(S.shape[-1], dtype=S.dtype, device=S.device)


def apart(x, Q):
    """The columns of x without what Q spans."""
    return x - products(Q, products(Q.mT, x, True, False), False, False)


def derive_singular(ctx, gU, gS, gVh):
    """As PyTorch has them: https://j-towns.github.io/papers/svd-derivative.pdf, for complex matrices too."""
    U, S, Vh = ctx.saved_tensors
    if gU is not None or gVh is not None:
        gU, gVh = (None if x is None else part for x, part in zip((gU, gVh), cut(gU, gVh, S), strict=True))
    U, Vh = thin(U, S, Vh)
    V, (m, n) = Vh.mH, (U.shape[-2], Vh.shape[-1])
    inner = None if gS is None else gS.diag_embed().to(U.dtype)
    if gU is not None or gVh is not None:
        left = None if gU is None else products(U.mT, gU, True, False)
        right = None if gVh is None else products(Vh, gVh.mT, False, True)
        both = left if right is None else right if left is None else left + right
        phases, E = both.diagonal(dim1=-2, dim2=-1), gaps(S)
        parts = [inner] if inner is not None else []
        if left is not None:
            parts.append(2 * turn(left, phases) / E * S.unsqueeze(-2))
        if right is not None:
            parts.append(2 * S.unsqueeze(-1) * turn(right, phases) / E)
        if U.is_complex():
            moved = left if right is None else -right if left is None else left - right
            parts.append((1j * moved.diagonal(dim1=-2, dim2=-1).imag / (2 * S)).diag_embed())
        inner = sum(parts[1:], parts[0])
    ga = products(U, products(inner, V.mT, False, True), False, False)
    if gU is not None and m > n:
        ga = ga + products(apart(gU / S.unsqueeze(-2), U), V.mT, False, True)
    if gVh is not None and m < n:
        ga = ga + products(U, apart(gVh.mH / S.unsqueeze(-2), V).mH, False, False)
    return (ga,)


def cut(gU, gVh, S):
    k = S.shape[-1]
    return None if gU is None else gU.narrow(-1, 0, k), None if gVh is None else gVh.narrow(-2, 0, k)


def follow_singular(ctx, da):
    """As `derive_singular`; vectors that belong to no singular values stay."""
    full_U, S, full_Vh = ctx.saved_tensors
    U, Vh = thin(full_U, S, full_Vh)
    V, (m, n) = Vh.mH, (U.shape[-2], Vh.shape[-1])
    daV = products(da, V, False, False)
    P = products(U.mT, daV, True, False)
    diagonal = P.diagonal(dim1=-2, dim2=-1)
    dS = diagonal.real if diagonal.is_complex() else diagonal.clone()
    X, E, row, column = P - dS.diag_embed(), gaps(S), S.unsqueeze(-2), S.unsqueeze(-1)
    left, right = X * row, column * X
    turned, back = (left + left.mH) / E, (right + right.mH) / E
    if U.is_complex():
        phase = ((diagonal - dS) / (2 * S)).diag_embed()
        turned, back = turned + phase, back - phase
    dU, dV = products(U, turned, False, False), products(V, back, False, False)
    if m > n:
        dU = dU + apart(daV / row, U)
    if m < n:
        dV = dV + apart(products(da.mT, U, True, False) / row, V)
    return filled(dU, full_U), dS, filled(dV, full_Vh.mH).mH


def filled(x, like):
    """Columns, and zeros beside them."""
    missing = like.shape[-1] - x.shape[-1]
    return torch.cat([x, x.new_zeros((*x.shape[:-1], missing))], -1) if missing else x


@operator(empty_svd, saved=lambda inputs, found: found, backward=derive_singular, jvp=follow_singular)
def singular(a: Tensor, full: bool, on_error: str, compute: str) -> tuple[Tensor, Tensor, Tensor]:
    """Singular values and vectors."""
    return call(linalg.svd, a, full_matrices=full, on_error=on_error, compute=compute)


def empty_values(a, *others):
    return empty_svd(a, False)[1]


def values_derived(a, on_error, compute):
    return singular(a, False, on_error, compute)[1]


@operator(empty_values, chosen=values_derived)
def singular_values(a: Tensor, on_error: str, compute: str) -> Tensor:
    """Singular values alone."""
    return call(linalg.svdvals, a, on_error=on_error, compute=compute)
