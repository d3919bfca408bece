"""Arguments: what they must be, and stacks that are broadcast."""

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def broadcast(a, b):
    """Stacks of matrices A and B in one shape."""
    own, other = a.shape[:-2], b.shape[:-2]
    if own == other:
        return a, b
    try:
        lead = torch.broadcast_shapes(own, other)
    except RuntimeError:
        raise ValueError(f"B has matrices in a stack of {tuple(other)}, must fit to that of A, {tuple(own)}") from None
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


def check_tensor(a, name, axes):
    if not isinstance(a, Tensor):
        raise TypeError(f"{name} is a {type(a).__name__}, must be a torch.Tensor")
    if a.dtype not in DTYPES:
        raise TypeError(f"{name}: dtype is {a.dtype}, must be float32, float64, complex64 or complex128")
    if a.ndim < axes:
        raise ValueError(f"{name} has shape {tuple(a.shape)}, must have {axes} axes or more")


def check_square(a, name):
    check_tensor(a, name, 2)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name} has shape {tuple(a.shape)}, must be of square matrices")


def check_like(b, name, a, axes=1):
    """Refuse what is no tensor as A."""
    check_tensor(b, name, axes)
    if b.dtype != a.dtype:
        raise TypeError(f"{name} is of {b.dtype}, must be of {a.dtype} as A")
    if b.device != a.device:
        raise ValueError(f"{name} is on {b.device}, must be on {a.device} as A")
