"""lstsq: least squares."""

import numpy as np
import torch
from torch import Tensor

from compactla import linalg
from compactla.linalg.lstsq import LSTSQ, WIDE, limit_of
from compactla.torch.arguments import are_vectors, broadcast, check_like, check_tensor, like
from compactla.torch.matmul import products
from compactla.torch.operator import call, is_plain, operator
from compactla.torch.pinv import pseudoinverses

DRIVERS = "gels", "gelsy", "gelsd", "gelss"


@like(torch.linalg.lstsq)
def lstsq(A, B, rcond=None, *, driver=None, on_error="raise", compute="same"):
    """Least squares: X of the smallest norm of all with the smallest norm of B - A X, for stacks of matrices.

    Parameters
    ----------
    A : (..., m, n) Tensor
        Coefficients.
    B : (m,), (..., m) or (..., m, r) Tensor
        Right-hand sides: vectors if there is one axis, or the shape is that of A without its last axis; else matrices.
        Stacks of matrices are broadcast against each other.
    rcond : float, optional
        Singular values up to `rcond` times the largest count as zeros; default: max(m, n) times the machine epsilon.
    driver : {"gelsy", "gels", "gelsd", "gelss"}, optional
        Which results there are, as of `torch.linalg.lstsq`; the method is the same. Default: "gels" for tensors on a
        GPU, which take no other, and else "gelsy".
    on_error, compute : str, optional
        As in the head of this package.

    Returns
    -------
    solution : (..., n) or (..., n, r) Tensor
        Solutions.
    residuals : (..., r) Tensor
        Squared norms of the columns of B - A X; empty for the driver "gelsy", and unless m > n and all ranks are n.
    rank : (...) Tensor of int64
        Ranks; empty for the driver "gels".
    singular_values : (..., min(m, n)) Tensor
        Singular values, in descending order; empty for the drivers "gels" and "gelsy".

    Raises
    ------
    torch.linalg.LinAlgError
        If singular values are not found, as of a matrix with NaN, which the message names.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.lstsq : The same by LAPACK, or cuBLAS.
    compactla.linalg.lstsq : The same for arrays.

    Notes
    -----
    Derivatives are those among matrices of the same rank. Where a call is compiled or transformed, residuals are NaN
    instead of empty.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import lstsq
    >>> A = torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
    >>> lstsq(A, torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)).solution.round(decimals=3)
    tensor([1.5000, 0.8330], dtype=torch.float64)
    """
    check_tensor(A, "A")
    check_like(B, "B", A)
    vector = are_vectors(B, A)
    right = B.unsqueeze(-1) if vector else B
    if right.shape[-2] != A.shape[-2]:
        raise ValueError(f"B has shape {tuple(B.shape)}, must fit to A, which has shape {tuple(A.shape)}")
    allowed = DRIVERS[:1] if A.is_cuda else DRIVERS
    driver = (driver or allowed[-3 % len(allowed)]).lower()
    if driver not in allowed:
        raise ValueError(f"driver is {driver!r}, must be one of {', '.join(map(repr, allowed))}")
    (m, n), a_b = A.shape[-2:], broadcast(A, right)
    leads = a_b[0].shape[:-2], A.shape[:-2]
    rcond = max(m, n) * torch.finfo(A.dtype).eps if rcond is None else float(rcond)
    x, residuals, rank, s = least_squares(*a_b, rcond, on_error, compute)
    if m <= n or driver == "gelsy" or (driver != "gels" and is_plain((A, B)) and (rank < n).any()):
        residuals = residuals.new_empty(0)
    return torch.return_types.linalg_lstsq(
        (
            x.squeeze(-1) if vector else x,
            residuals,
            of_own(rank, *leads) if driver != "gels" else rank.new_empty(0),
            of_own(s, *leads) if driver in ("gelsd", "gelss") else s.new_empty(0),
        )
    )


def of_own(x, lead, own):
    """Results in a stack of shape `lead` that follow from a stack of shape `own` alone, which was broadcast to it."""
    return x if lead == own else x[(0,) * (len(lead) - len(own)) + tuple(map(slice, own))]


def empty_lstsq(a, b, *others):
    (m, n), lead, real = a.shape[-2:], a.shape[:-2], a.dtype.to_real()
    return (
        a.new_empty((*lead, n, b.shape[-1])),
        a.new_empty((*lead, b.shape[-1]), dtype=real),
        a.new_empty(lead, dtype=torch.int64),
        a.new_empty((*lead, min(m, n)), dtype=real),
    )


def lstsq_derived(a, b, rcond, on_error, compute):
    """Results whose derivatives are those of products with pseudo-inverses."""
    with torch.no_grad():
        x, residuals, rank, s = least_squares(a.detach(), b.detach(), rcond, on_error, compute)
    product = products(pseudoinverses(a, rcond, on_error, compute), b, False, False)
    x = x + (product - product.detach())
    r = b - products(a, x, False, False)
    square = (r.real * r.real + r.imag * r.imag if r.is_complex() else r * r).sum(-2)
    return x, residuals + (square - square.detach()), rank, s


@operator(empty_lstsq, chosen=lstsq_derived)
def least_squares(
    a: Tensor, b: Tensor, rcond: float, on_error: str, compute: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Solutions, squares of residuals, ranks and singular values."""
    options = {"rcond": rcond, "on_error": on_error, "compute": compute}
    if a.is_cpu:
        return call(on_host, a, b, **options)
    x, residuals, rank, s = call(linalg.lstsq, a, b, **options)
    if a.shape[-2] <= a.shape[-1]:
        residuals = s.new_zeros((*a.shape[:-2], b.shape[-1]))
    return x, residuals, rank.to(torch.int64), s


def on_host(a, b, rcond, on_error, compute, threads):
    """Results for arrays, also for single matrices, which `compactla.linalg` leaves to NumPy."""
    m, n = a.shape[-2:]
    limit = np.array([[limit_of(a, b, rcond, compute)]])
    x, residuals, rank, s = (WIDE if m < n else LSTSQ)((a, b, limit), (), on_error, compute, threads)
    if m <= n:
        residuals[...] = 0
    return x, residuals, rank.astype(np.int64), s
