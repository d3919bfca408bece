"""cho_solve: linear systems, with the factors of `cho_factor`."""

from compactla.cpu.kernels.potrs import potrs


def cho_solve(code, vector, C, B, X, status, uplo, check_finite):
    """X <- inv(A) B, where C holds the factor of A in a triangle."""
    factor, right = code.room(vector, C.m, C.n), code.room(vector, B.m, B.n)
    C.read(factor)
    B.read(right)
    if check_finite:
        status.check(factor)
    potrs.emit(code, factor, right, uplo=uplo)
    X.write(right)
    status.check(right)
