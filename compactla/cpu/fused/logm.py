"""logm: Schur forms, and logarithms of triangular matrices by inverse scaling and squaring."""

from compactla.cpu.fused.complex_schur import function_of
from compactla.cpu.fused.triangular_functions import log

SMALL = 1e-20  # eigenvalues that SciPy warns of


def logm(code, vector, A, X, *others, pairs):
    """X <- the logarithm of A; SciPy computes those of matrices that are singular"""

    def emit(form, F):
        return form.near_zero(0, SMALL) | log(code, form.T, F)

    function_of(code, A, X, others, emit, pairs)
