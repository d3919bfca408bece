"""inv: inverses."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.torch.arguments import check_square, like
from compactla.torch.matmul import products
from compactla.torch.operator import call, like_first, operator


@like(torch.linalg.inv)
def inv(A, *, on_error="raise", compute="same"):
    """Compute inverses, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Matrices.
    on_error, compute : str, optional
        As in the head of this module.

    Returns
    -------
    (..., n, n) Tensor
        Inverses.

    Raises
    ------
    torch.linalg.LinAlgError, TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.inv : The same by LAPACK, or cuSOLVER.
    compactla.linalg.inv : The same for arrays.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import inv
    >>> inv(torch.tensor([[1.0, 2.0], [1.0, 3.0]]))
    tensor([[ 3., -2.],
            [-1.,  1.]])
    """
    check_square(A, "A")
    return inverses(A, on_error, compute)


def derive_inverses(ctx, g):
    (x,) = ctx.saved_tensors
    return (-products(products(x.mT, g, True, False), x.mT, False, True),)


def follow_inverses(ctx, da):
    (x,) = ctx.saved_tensors
    return -products(products(x, da, False, False), x, False, False)


@operator(like_first, saved=lambda inputs, x: (x,), backward=derive_inverses, jvp=follow_inverses)
def inverses(a: Tensor, on_error: str, compute: str) -> Tensor:
    """Inverses."""
    return call(linalg.inv, a, on_error=on_error, compute=compute)
