"""sqrtm: Schur forms, and square roots of triangular matrices by their recurrence."""

from compactla.cpu.fused.complex_schur import function_of
from compactla.cpu.fused.triangular_functions import clear, triangular_root


def sqrtm(code, vector, A, X, *others):
    """X <- the square root of A; SciPy computes those of singular matrices"""

    def emit(form, F):
        clear(code, F)
        triangular_root(code, form.T, F)
        return form.near_zero(2.0 ** (-48 if vector.real.bitwidth == 64 else -19), 0)

    function_of(code, A, X, others, emit)
