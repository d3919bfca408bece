"""solve_discrete_lyapunov: a Schur form, and a triangular equation from the last column to the first."""

from compactla.cpu.fused.complex_schur import ComplexSchur
from compactla.cpu.fused.sylvester import Equation, stein
from compactla.cpu.linalg.stacks import UNSURE


def solve_discrete_lyapunov(code, vector, A, Q, X, status):
    """X <- what makes A X A^H - X + Q = 0; SciPy computes those with pivots that are too small"""
    form = ComplexSchur(code, A)
    equation = Equation(code, form, form, Q)
    status.enter(UNSURE, stein(code, form.T, equation.F))
    equation.write(X, status)
