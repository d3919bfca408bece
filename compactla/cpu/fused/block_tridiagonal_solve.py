"""block_tridiagonal_solve: block elimination down the lines, with or without row interchanges in diagonal blocks."""

from dataclasses import replace

from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.getrf import getrf
from compactla.cpu.kernels.getrfnp import getrfnp
from compactla.cpu.kernels.laswp import integers
from compactla.cpu.kernels.trsm import trsm


def block_tridiagonal_solve(code, vector, lower, diag, upper, B, X, status, block, columns, pivoting):
    """X <- inv(A) B, of lines of blocks that are below each other in `lower`, `diag` and `upper`.

    Blocks have `block` rows. There are so many `columns` of B if these are few, else 0.
    """
    b, r = block, columns or B.n
    K = code.unknown(diag.m) // b
    lower, diag, upper = (replace(x, n=b) for x in (lower, diag, upper))
    B, X = replace(B, n=r), replace(X, n=r)

    # [D | B | U] becomes [L\\U | z | Y]: the solution is z - Y times that of the next block
    W, C = code.room(vector, b, b + r + b), code.room(vector, b, b)
    D, Z, Y = W.block(0, 0, b, b), W.block(0, b, b, r), W.block(0, b + r, b, b)
    kept = code.room(vector, K * b, r + b)
    ipiv = code.room(integers(vector), b, 1)
    with code.loop(K) as k:
        before = k - 1
        rows(diag, k, b).read(D)
        rows(B, k, b).read(Z)
        with code.when(k > 0):
            rows(lower, before, b).read(C)
            last = kept.block(before * b, 0, b, r + b)
            gemm.emit(code, C, last.block(0, 0, b, r), Z, -1, 1)
            gemm.emit(code, C, last.block(0, r, b, b), D, -1, 1)
        with code.either(k + 1 < K) as (inner, end):
            with inner:
                rows(upper, k, b).read(Y)
            with end:
                for i in code.each(b):
                    for j in code.each(b):
                        Y[i, j] = code.zero(vector)
        if pivoting:
            getrf.emit(code, W, ipiv, status.info)
        else:
            getrfnp.emit(code, D, status.info)
            trsm.emit(code, D, W.block(0, b, b, r + b), uplo="L", diag="U")
        trsm.emit(code, D, W.block(0, b, b, r + b), uplo="U")
        place = kept.block(k * b, 0, b, r + b)
        for i in code.each(b):
            for j in code.each(r + b):
                place[i, j] = W[i, b + j]
    status.fail()
    with code.loop(K) as step:
        k = K - 1 - step
        place = kept.block(k * b, 0, b, r + b)
        z = place.block(0, 0, b, r)
        with code.when(step > 0):
            following = kept.block((k + 1) * b, 0, b, r)
            gemm.emit(code, place.block(0, r, b, b), following, z, -1, 1)
        rows(X, k, b).write(z)


def rows(x, k, b):
    """Block k of matrices in memory, which are contiguous."""
    offset = k * b * x.n * (x.parts * x.item)
    return replace(x, m=b, starts=[start + offset for start in x.starts])
