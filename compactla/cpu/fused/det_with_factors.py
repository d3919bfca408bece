"""det_with_factors: determinants, and the factors of matrices."""

from compactla.cpu.fused.det import det


def det_with_factors(code, vector, A, D, LU, P, status):
    """D <- det(A); LU, P <- the factors of A, and which rows were interchanged"""
    det(code, vector, A, D, status, (LU, P))
