"""potrs at the pack level: both triangular solves with the factor that potrf makes."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from compactla.checks import option
from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.matrices import Elements, tile_size
from compactla.cpu.kernels.trsm import rounds, solve_rows
from compactla.view import lower_left


def reciprocals(code: Code, L: Elements):
    """The reciprocals of the diagonal, a column, and whether all of them are finite."""
    vector = L.vector.reals
    if isinstance(L.m, int):
        memory = cgutils.alloca_once(code.builder, ir.ArrayType(vector.part, L.m))
    else:
        memory = code.builder.alloca(vector.part, value_of(L.m))
    base = code.builder.bitcast(memory, vector.part.element.as_pointer())
    column = Elements(code, vector, base, L.m, 1, vector.lanes, vector.lanes, 0)
    zero, total = code.zero(vector), code.registers(vector, 1)
    total[0, 0] = zero
    for q in code.each(L.m):
        inverse = column[q, 0] = L[q, q].real.reciprocal(many=True)
        total[0, 0] = inverse.fma(zero, total[0, 0])
    return column, (total[0, 0] == 0).all()


def substitute(code, L, B, inverses):
    """B <- inv(L) B for a lower triangular L, with the reciprocals of its diagonal."""
    tallest, _ = tile_size(B.vector, B.m, B.n)
    for i, m in code.spans(B.m, tallest):
        rows = B.block(i, 0, m, B.n), L.block(i, i, m, m), L.block(i, 0, m, i), B.block(0, 0, i, B.n)
        code.shared(solve_rows, *rows, inverses.block(i, 0, m, 1))


def substitute_scaled(code, L, B):
    """B <- inv(L) B where reciprocals of the diagonal may overflow; to the bit as `substitute` where they do not.

    Subnormal ones are multiplied by a power of two, and so is what they divided then.
    """
    limits = np.finfo("f" if L.vector.real.bitwidth == 32 else "d")
    with code.loop(L.m) as i:
        diagonal = L[i, i].real
        scale = (abs(diagonal) < limits.tiny).select(diagonal.constant(1 / limits.eps), diagonal.constant(1))
        inverse = (diagonal * scale).reciprocal(many=True)
        with code.loop(B.n) as j:
            x = code.registers(B.vector, 1)
            x[0, 0] = B[i, j]
            with code.loop(i) as p:
                x[0, 0] = (-L[i, p]).fma(B[p, j], x[0, 0])
            B[i, j] = x[0, 0] * inverse * scale


@routine
def potrs(code: Code, A: Elements, B: Elements, uplo: str = "L", ahead: Any = ()) -> None:
    """B <- inv(A) B for the V matrices of a pack, with the factors of `potrf`, in a Numba function.

    Parameters
    ----------
    A, B : matrix
        L or U, and right-hand sides, from `matrix`.
    uplo : str
        Which triangle of A holds the factor: the constant "L" or "U".
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    L = A.H if option("uplo", uplo, "LU") == "U" else A
    check_fit("A", (L.m, L.n), (B.m, B.m))
    if ahead:
        code.fetch_ahead(ahead, 2 * rounds(B))
    U, Y = lower_left(L._replace(conj=not L.conj), B, "L", "L", "C")
    inverses, finite = reciprocals(code, L)
    with code.either(finite, likely=True) as (usual, rare):
        with usual:
            substitute(code, L, B, inverses)
            substitute(code, U, Y, inverses.rows_reversed)
        with rare:
            substitute_scaled(code, L, B)
            substitute_scaled(code, U, Y)
