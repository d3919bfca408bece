"""tbsv at the pack level: solves with triangular band matrices."""

from compactla.checks import option
from compactla.cpu.emit.code import routine
from compactla.cpu.emit.index import Condition, value_of
from compactla.cpu.kernels.gbtrf import guarded


@routine
def tbsv(code, A, x, uplo="L", trans="N", diag="N", ahead=()):
    """x <- op(A)^-1 x for the V triangular band matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        (k + 1) x n, from `matrix`: element (i, j) is ``A[i - j, j]`` of lower triangles, ``A[k + i - j, j]`` of upper
        ones. What is outside of the matrices, in a corner, has no effect.
    x : matrix
        n x 1, from `matrix`.
    uplo, trans, diag : str
        Constants, as of BLAS: "L" or "U"; "N", "T" or "C"; "N" or "U" for a diagonal of ones, which is not read.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    uplo, trans, diag = option("uplo", uplo, "LU"), option("trans", trans, "NTC"), option("diag", diag, "NU")
    k, n, down = A.m - 1, A.n, (uplo == "L") == (trans == "N")
    window = code.registers(x.vector, max(k, 1))
    for t in range(k):
        window[t, 0] = code.zero(x.vector)
    with code.loop(n) as step:
        i = step if down else n - 1 - step
        y = x[i, 0]
        for t in reversed(range(1, k + 1)):
            other = i + (-t if down else t)
            there = code.builder.icmp_unsigned("<", value_of(other), value_of(n))  # not negative either
            last = Condition(code.builder, there).select(other, n)
            a = guarded(code, A, t if uplo == "L" else k - t, other if trans == "N" else i, last, False)
            y = (-(a.conjugate() if trans == "C" else a)).fma(window[t - 1, 0], y)
        if diag == "N":
            a = A[0 if uplo == "L" else k, i]
            y = y * (a.conjugate() if trans == "C" else a).reciprocal()
        x[i, 0] = y
        for t in reversed(range(1, k)):
            window[t, 0] = window[t - 1, 0]
        if k:
            window[0, 0] = y
