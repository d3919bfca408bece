"""solve_continuous_lyapunov: a Schur form, and a triangular equation from the last column to the first."""

from compactla.cpu.fused.complex_schur import ComplexSchur
from compactla.cpu.fused.sylvester import Equation, sylvester
from compactla.cpu.linalg.stacks import UNSURE


def solve_continuous_lyapunov(code, vector, A, Q, X, status):
    """X <- what makes A X + X A^H = Q; SciPy computes, and warns of, those with pivots that are too small"""
    form = ComplexSchur(code, A)
    equation = Equation(code, form, form, Q)
    backwards = equation.F.T.rows_reversed.T
    status.enter(UNSURE, sylvester(code, form.T, form.T.H.reversed, backwards))
    equation.write(X, status)
