"""matmul: products."""

from compactla.cpu.kernels.gemm import gemm


def matmul(code, vector, A, B, C, status):
    """C <- A B"""
    left, right, product = (code.room(vector, X.m, X.n) for X in (A, B, C))
    A.read(left)
    B.read(right)
    gemm.emit(code, left, right, product)
    C.write(product)
