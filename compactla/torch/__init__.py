"""compactla.linalg for PyTorch: operators on stacks of small matrices that have derivatives and can be compiled.

Functions are called as those of the same names in `torch.linalg`, take tensors on a CPU or a CUDA GPU, and return such.
Nothing is copied: on a CPU kernels work on the memory of tensors, in at most `torch.get_num_threads` threads, and on a
GPU in the current stream. They work under `torch.compile`, without a break of the graph, `torch.vmap` and `torch.func`,
and can be derived twice and more often; derivatives are computed by the same kernels. Forward mode is not supported.

Results and derivatives are those of `torch.linalg`. Two arguments are those of `compactla.linalg`:

on_error : {"raise", "nan"}
    Treatment of matrices that have no result: "raise" raises an error that names them, for which the host waits for a
    GPU, "nan" fills their results, and their derivatives, with NaN and leaves all others as they are.
compute : {"same", "double"}
    Computation dtype of single precision: the "same", as in PyTorch, or "double", as in NumPy, which is more accurate.
"""

from typing import NamedTuple

from torch import Tensor

from compactla.torch import operators
from compactla.torch.arguments import broadcast, check_like, check_square, check_tensor

__all__ = ["EighResult", "cholesky", "eigh", "gemm", "inv", "matmul", "solve"]


class EighResult(NamedTuple):
    """Results of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def solve(A, B, *, left=True, on_error="raise", compute="same"):
    """Solve linear systems A X = B, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Coefficients.
    B : (n,), (..., n) or (..., n, r) Tensor
        Right-hand sides: vectors if there is one axis, or the shape is that of A without its last axis; else matrices.
        Stacks of matrices are broadcast against each other.
    left : bool, optional
        Whether A stands on the left; if not X A = B is solved.
    on_error, compute : str, optional
        As in the head of this module.

    Returns
    -------
    Tensor
        Solutions, of the shape of B, broadcast.

    Raises
    ------
    torch.linalg.LinAlgError
        If a matrix is singular, which the message names.
    TypeError, ValueError
        If types, devices or shapes do not fit together, or an option is none of the above.

    See Also
    --------
    torch.linalg.solve : The same by LAPACK, or cuSOLVER.
    compactla.linalg.solve : The same for arrays.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import solve
    >>> A = torch.tensor([[[3.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]])
    >>> solve(A, torch.tensor([[9.0, 8.0], [4.0, 5.0]]))
    tensor([[2., 3.],
            [2., 1.]])
    """
    check_square(A, "A")
    check_like(B, "B", A)
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    right = B.unsqueeze(-1) if vector else B
    if vector and not left:
        raise ValueError(f"B has shape {tuple(B.shape)}, must be of matrices if left is False")
    if right.shape[-2 if left else -1] != A.shape[-1]:
        raise ValueError(f"B has shape {tuple(B.shape)}, must fit to A, which has shape {tuple(A.shape)}")
    if not left:
        A, right = A.mT, right.mT
    X = operators.solve(*broadcast(A, right), on_error, compute)
    return X.squeeze(-1) if vector else X if left else X.mT


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
    return operators.inv(A, on_error, compute)


def cholesky(A, *, upper=False, on_error="raise", compute="same"):
    """Factor positive definite matrices A = L L^H, or A = U^H U, for stacks of matrices.

    Parameters
    ----------
    A : (..., n, n) Tensor
        Hermitian matrices, of which one triangle is read.
    upper : bool, optional
        Whether the factor is U, and the upper triangle is read; default: the lower one.
    on_error, compute : str, optional
        As in the head of this module.

    Returns
    -------
    (..., n, n) Tensor
        Factors; zero in the other triangle.

    Raises
    ------
    torch.linalg.LinAlgError
        If a matrix is not positive definite, which the message names.
    TypeError, ValueError
        See `solve`.

    See Also
    --------
    torch.linalg.cholesky : The same by LAPACK, or cuSOLVER.
    compactla.linalg.cholesky : The same for arrays.

    Notes
    -----
    Derivatives by A are Hermitian matrices, as if all of A had been read.

    Examples
    --------
    >>> import torch
    >>> from compactla.torch import cholesky
    >>> cholesky(torch.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    check_square(A, "A")
    return operators.cholesky(A.mT, on_error, compute).mT if upper else operators.cholesky(A, on_error, compute)


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
    check_square(A, "A")
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"UPLO is {UPLO!r}, must be 'L' or 'U'")
    return EighResult(*operators.eigh(A, UPLO.upper(), on_error, compute))


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
    return operators.gemm(*broadcast(a, b), conja, conjb)
