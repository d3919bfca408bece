"""slogdet_with_factors: signs and logarithms of determinants, and the factors of matrices."""

from compactla.cpu.fused.slogdet import slogdet


def slogdet_with_factors(code, vector, A, S, D, LU, P, status):
    """S, D <- sign(det(A)), log(|det(A)|); LU, P <- the factors of A, and which rows were interchanged"""
    slogdet(code, vector, A, S, D, status, (LU, P))
