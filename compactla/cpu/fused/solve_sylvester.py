"""solve_sylvester: Schur forms of both matrices, and a triangular equation column by column."""

from compactla.cpu.fused.complex_schur import ComplexSchur
from compactla.cpu.fused.sylvester import Equation, sylvester


def solve_sylvester(code, vector, A, B, Q, X, status):
    """X <- what makes A X + X B = Q; pivots that are too small are replaced, as in LAPACK's trsyl"""
    left, right = ComplexSchur(code, A), ComplexSchur(code, B)
    equation = Equation(code, left, right, Q)
    sylvester(code, left.T, right.T, equation.F)
    equation.write(X, status)
