"""matmul and gemm: products."""

import math

import numpy as np
import torch
from torch import Tensor

from compactla.dense import gemm as routine
from compactla.torch.arguments import broadcast, check_like, check_tensor, like
from compactla.torch.operator import call, is_plain, operator


@like(torch.matmul)
def matmul(A, B):
    """Products A B, for stacks of matrices.

    Parameters
    ----------
    A, B : (k,) or (..., m, k), (k,) or (..., k, n) Tensor
        Factors: a vector, a row or a column, where there is one axis, else matrices. Stacks are broadcast against each
        other.

    Returns
    -------
    (..., m, n) Tensor
        Products, without the axis of a vector.

    Raises
    ------
    TypeError, ValueError
        If types, devices or shapes do not fit together.

    See Also
    --------
    torch.matmul : The same by BLAS, or cuBLAS, which is faster for single and for large matrices.
    compactla.gemm : The same for packs and arrays, in place.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import matmul
    >>> matmul(torch.tensor([[[0.0, 1.0]], [[2.0, 3.0]]]), torch.tensor([[1.0, 1.0], [0.0, 2.0]]))
    tensor([[[0., 2.]],
    <BLANKLINE>
            [[2., 8.]]])
    """
    check_tensor(A, "A", 1)
    check_like(B, "B", A)
    if A.ndim <= 2 >= B.ndim and A.is_cpu and A.shape[-1] == B.shape[0] and is_plain((A, B)):
        return torch.matmul(A, B)
    a = A.unsqueeze(0) if A.ndim == 1 else A
    b = B.unsqueeze(-1) if B.ndim == 1 else B
    C = product(a, b, False, False)
    C = C.squeeze(-1) if B.ndim == 1 else C
    return C.squeeze(-1 if B.ndim == 1 else -2) if A.ndim == 1 else C


def gemm(A, B, C=None, alpha=1, beta=0, transa="N", transb="N"):
    """Products alpha op(A) op(B) + beta C, for stacks of matrices.

    Parameters
    ----------
    A, B : Tensor
        Factors, of which op(A) is (..., m, k) and op(B) (..., k, n). Stacks are broadcast against each other.
    C : (..., m, n) Tensor, optional
        Summand, which is left as it is; needed unless beta is 0.
    alpha, beta : number or Tensor, optional
        Factors of all products, and of all summands.
    transa, transb : {"N", "T", "C"}, optional
        op: nothing, the transpose or the conjugate transpose.

    Returns
    -------
    (..., m, n) Tensor
        Products.

    Raises
    ------
    TypeError, ValueError
        If types, devices or shapes do not fit together, or an option is none of the above.

    See Also
    --------
    compactla.gemm : The same for packs and arrays, in place.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import gemm
    >>> A = torch.tensor([[1.0, 2.0]])
    >>> gemm(A, A, torch.eye(2), beta=10, transa="T")
    tensor([[11.,  2.],
            [ 2., 14.]])
    """
    check_tensor(A, "A", 2)
    check_like(B, "B", A, 2)
    for name, op in (("transa", transa), ("transb", transb)):
        if op not in ("N", "T", "C"):
            raise ValueError(f"{name} is {op!r}, must be 'N', 'T' or 'C'")
    a, b = (X if op == "N" else X.mT for X, op in ((A, transa), (B, transb)))
    result = product(a, b, transa == "C", transb == "C")
    result = result if isinstance(alpha, int) and alpha == 1 else alpha * result
    if isinstance(beta, int) and beta == 0:
        return result
    check_like(C, "C", A, 2)
    return result + beta * C


def product(a, b, conja, conjb):
    """Products of matrices, each conjugated or not."""
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"B: op(B) has shape {tuple(b.shape)}, must fit to op(A), which has shape {tuple(a.shape)}")
    return products(*broadcast(a, b), conja, conjb)


def chain(first, *others):
    """Products of several matrices, from the left."""
    for x in others:
        first = products(first, x, False, False)
    return first


def empty_products(a, b, *others):
    return a.new_empty((*a.shape[:-1], b.shape[-1]))


def derive_products(ctx, g):
    (a, b), (conja, conjb) = ctx.saved_tensors, ctx.options
    wanted = ctx.needs_input_grad[1:]
    ga = products(g, b.mT, conja, conja == conjb) if wanted[0] else None
    gb = products(a.mT, g, conja == conjb, conjb) if wanted[1] else None
    return ga, gb


def follow_products(ctx, da, db):
    (a, b), ops = ctx.saved_tensors, ctx.options
    parts = [products(x, y, *ops) for x, y in ((da, b), (a, db)) if x is not None and y is not None]
    return sum(parts[1:], parts[0])


@operator(empty_products, saved=lambda inputs, c: inputs[:2], backward=derive_products, jvp=follow_products)
def products(a: Tensor, b: Tensor, conja: bool, conjb: bool) -> Tensor:
    """Products of matrices, each conjugated or not."""
    if a.is_cpu:
        return call(multiplied, a, b, conja=conja, conjb=conjb)
    c = empty_products(a, b)
    if c.numel():
        A, B, C = (x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in (a, b, c))
        options = {"transa": "C" if conja else "N", "transb": "C" if conjb else "N"}
        call(routine.gemm, A.mT if conja else A, B.mT if conjb else B, C, **options)
    return c


def multiplied(a, b, conja, conjb, threads):
    """Products of arrays on the host."""
    c = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    if c.size:
        nm = math.prod(c.shape[:-2])
        A, B, C = [x if x.ndim == 3 else x.reshape(nm, *x.shape[-2:]) for x in (a, b, c)]
        ops = "NC"[conja], "NC"[conjb]
        A, B = A.swapaxes(1, 2) if conja else A, B.swapaxes(1, 2) if conjb else B
        routine.gemm(A, B, C, 1, 0, *ops, threads=threads)
    return c
