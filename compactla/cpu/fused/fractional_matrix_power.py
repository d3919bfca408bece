"""fractional_matrix_power: Schur forms, and powers of triangular matrices by inverse scaling and squaring."""

from compactla.cpu.fused.complex_schur import function_of
from compactla.cpu.fused.triangular_functions import fraction


def fractional_matrix_power(code, vector, A, t, X, *others):
    """X <- A^t for -1 < t < 1; SciPy computes those of matrices that are singular"""
    exponent = code.room(vector.reals, 1)
    t.read(exponent)
    function_of(
        code, A, X, others, lambda form, F: form.near_zero(0, 0) | fraction(code, form.T, exponent[0, 0], F), pairs=True
    )
