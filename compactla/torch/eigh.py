"""eigh and eigvalsh: eigenvalues and eigenvectors of symmetric and Hermitian matrices."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import check_square, like
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_first, operator

PHASE = 1e-2  # largest derivative by the phase of a vector that is taken for none, as in PyTorch


@like(torch.linalg.eigh)
def eigh(A, UPLO="L", *, on_error="raise", compute="same"):
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Matrices, of which one triangle is read, and the real part of the diagonal.
    UPLO : {"L", "U"}, optional
        Which triangle: the lower or the upper one.
    on_error, compute : str, optional
        As in the head of this module.

    Returns
    -------
    eigenvalues : (..., n) Tensor
        Real numbers in ascending order.
    eigenvectors : (..., n, n) Tensor
        Columns of length 1, orthogonal to each other. Their signs, and phases, are not those of PyTorch.

    Raises
    ------
    torch.linalg.LinAlgError
        If the iteration does not converge for a matrix, as one with NaN, which the message names.
    RuntimeError
        If, where derivatives are computed, these depend on phases of eigenvectors, which are free.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.eigh : The same by LAPACK, or cuSOLVER.
    compactla.linalg.eigh : The same for arrays.

    Notes
    -----
    Derivatives by A are Hermitian matrices, as if all of A had been read. Those of eigenvectors are not finite where
    eigenvalues are equal.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import eigh
    >>> w, V = eigh(torch.tensor([[4.0, 0.0], [0.0, 3.0]]))
    >>> w
    tensor([3., 4.])
    """
    check_triangle(A, UPLO)
    return torch.return_types.linalg_eigh(eigen(A, UPLO.upper(), on_error, compute))


@like(torch.linalg.eigvalsh)
def eigvalsh(A, UPLO="L", *, on_error="raise", compute="same"):
    """Eigenvalues of symmetric or Hermitian matrices, for stacks of them.

    Parameters
    ----------
    A, UPLO, on_error, compute
        See `eigh`.

    Returns
    -------
    (..., n) Tensor
        Real numbers in ascending order.

    Raises
    ------
    torch.linalg.LinAlgError, TypeError, ValueError
        See `eigh`.

    See Also
    --------
    torch.linalg.eigvalsh : The same by LAPACK, or cuSOLVER.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import eigvalsh
    >>> eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    check_triangle(A, UPLO)
    return eigenvalues(A, UPLO.upper(), on_error, compute)


def check_triangle(A, UPLO):
    check_square(A, "A")
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"UPLO is {UPLO!r}, must be 'L' or 'U'")


def skew(a):
    """The skew-Hermitian part, with zeros on the diagonal."""
    lower = ((a - a.mH) / 2).tril(-1)
    return lower - lower.mH


@operator(
    like_first,
    saved=lambda inputs, turned: (),
    backward=lambda ctx, g: (skew(g), None),
    jvp=lambda ctx, da, dphases: skew(da),
)
def turn(a: Tensor, phases: Tensor) -> Tensor:
    """The skew-Hermitian part of V^H g, of vectors V and derivatives g; an error if those by phases are not zero."""
    if phases.is_complex() and (phases.imag.abs() > PHASE).any():
        raise RuntimeError("derivatives depend on the phases of vectors, which are free: they must not")
    return skew(a)


def values_and_vectors(a, *others):
    return a.new_empty(a.shape[:-1], dtype=a.dtype.to_real()), a.new_empty(a.shape)


def gaps(w):
    """Differences of eigenvalues, that of row i from that of column j; 1 on the diagonal."""
    return w.unsqueeze(-2) - w.unsqueeze(-1) + torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)


def derive_eigen(ctx, gw, gV):
    w, V = ctx.saved_tensors
    inner = 0 if gw is None else V * gw.unsqueeze(-2)
    if gV is not None:
        turned = products(V.mT, gV, True, False)
        turned = turn(turned, turned.diagonal(dim1=-2, dim2=-1)) / gaps(w)
        inner = inner + products(V, turned, False, False)
    return (products(inner, V.mT, False, True),)


def follow_eigen(ctx, da):
    w, V = ctx.saved_tensors
    moved = products(V.mT, products(da, V, False, False), True, False)
    diagonal = moved.diagonal(dim1=-2, dim2=-1)
    turned = (moved - diagonal.diag_embed()) / gaps(w)
    return diagonal.real if diagonal.is_complex() else diagonal.clone(), products(V, turned, False, False)


@operator(values_and_vectors, saved=lambda inputs, found: found, backward=derive_eigen, jvp=follow_eigen)
def eigen(a: Tensor, uplo: str, on_error: str, compute: str) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of matrices, of which one triangle is read."""
    return call(linalg.eigh, a, UPLO=uplo, on_error=on_error, compute=compute)


@operator(lambda *args: values_and_vectors(*args)[0], chosen=lambda *args: eigen(*args)[0])
def eigenvalues(a: Tensor, uplo: str, on_error: str, compute: str) -> Tensor:
    """Eigenvalues alone."""
    return call(linalg.eigvalsh, a, UPLO=uplo, on_error=on_error, compute=compute)
