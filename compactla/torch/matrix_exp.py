"""matrix_exp: exponentials of matrices."""

import torch
from torch import Tensor

from compactla import linalg
from compactla.linalg.expm import EXPM
from compactla.torch.arguments import check_square, like
from compactla.torch.operator import call, like_first, operator

LARGEST = EXPM.limits.largest


@like(torch.linalg.matrix_exp)
def matrix_exp(A, *, compute="same"):
    """Exponentials of matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Matrices.
    compute : str, optional
        As in the head of this package.

    Returns
    -------
    (..., n, n) Tensor
        Exponentials.

    Raises
    ------
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.matrix_exp : The same by Taylor polynomials.
    compactla.linalg.expm : The same for arrays.

    Notes
    -----
    Matrices on a GPU, and those of more than 32 rows, are left to PyTorch. Derivatives are exponentials of matrices of
    twice the size.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import matrix_exp
    >>> matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    check_square(A, "A")
    return exponentials(A, compute)


def along(ctx, a, x):
    """The derivative along x: the upper right quarter of the exponential of [[a, x], [0, a]]."""
    n = a.shape[-1]
    upper, lower = torch.cat([a, x], -1), torch.cat([torch.zeros_like(a), a], -1)
    return exponentials(torch.cat([upper, lower], -2), *ctx.options)[..., :n, n:]


@operator(
    like_first,
    saved=lambda inputs, found: inputs[:1],
    backward=lambda ctx, g: (along(ctx, ctx.saved_tensors[0].mH, g),),
    jvp=lambda ctx, da: along(ctx, ctx.saved_tensors[0], da),
)
def exponentials(a: Tensor, compute: str) -> Tensor:
    """Exponentials."""
    if not a.is_cpu or a.shape[-1] > LARGEST or not a.numel():
        return torch.linalg.matrix_exp(a).contiguous()
    return call(linalg.expm, a, compute=compute)
