"""Products and sums of vectors that are rows of one array, several rows at a time, for one large system.

Rows are contiguous, begin at multiples of a cache line and end with zeros up to the next one. To ask for the next ones
while some are worked on makes it slower, be they in the second cache or in the third.
"""

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.machine import machine
from compactla.cpu.emit.matrices import Elements, splat
from compactla.cpu.kernels.krylov import word

AT_ONCE = 8 if machine()[1] >= 32 else 4  # rows at most
SUMS = 24 if machine()[1] >= 32 else 8  # registers for sums, or for factors


def at_once(others):
    """How many rows are read at a time beside so many others."""
    return min(AT_ONCE, SUMS // others)


def total(code, x):
    """The sum of the lanes of a vector, in any order."""
    b, part = code.builder, x.vector.part
    name = f"llvm.vector.reduce.fadd.v{part.count}f{x.vector.real.bitwidth}"
    function = cgutils.get_or_insert_function(b.module, ir.FunctionType(part.element, [part.element, part]), name)
    return b.call(function, [part.element(-0.0), x.parts[0]], fastmath=("reassoc",))


@word()
def products(code: Code, V: Elements, X: Elements, S: Elements) -> None:
    """S[t, k] <- the product of row t of X and row k of V, of which X has few and as many as is known."""
    b = code.builder
    for first, extent in code.panels(V.m, at_once(X.m)):
        rows = V.block(first, 0, extent, V.n)
        sums = code.registers(V.vector, rows.m, X.m)
        for k in range(rows.m):
            for t in range(X.m):
                sums[k, t] = code.zero(V.vector)
        with code.loop(V.n) as i:
            x = [X[t, i] for t in range(X.m)]
            for k in range(rows.m):
                v = rows[k, i]
                for t in range(X.m):
                    sums[k, t] = v.fma(x[t], sums[k, t])
        for k in range(rows.m):
            for t in range(X.m):
                found = total(code, sums[k, t])
                b.store(b.fpext(found, S.element) if found.type != S.element else found, S.pointer(t, first + k, 0))


@word()
def add_rows(code: Code, V: Elements, H: Elements, Y: Elements) -> None:
    """Row t of Y <- itself plus the sum of H[k, t] times row k of V; Y has as many rows as is known."""
    b, vector = code.builder, V.vector
    for first, extent in code.panels(V.m, at_once(Y.m)):
        rows = V.block(first, 0, extent, V.n)
        factors = code.registers(vector, rows.m, Y.m)
        for k in range(rows.m):
            for t in range(Y.m):
                h = b.load(H.pointer(first + k, t, 0), typ=H.element)
                h = b.fptrunc(h, vector.part.element) if h.type != vector.part.element else h
                factors[k, t] = code.zero(vector)._new(splat(b, vector, h))
        with code.loop(V.n) as i:
            sums = [Y[t, i] for t in range(Y.m)]
            for k in range(rows.m):
                v = rows[k, i]
                sums = [v.fma(factors[k, t], sums[t]) for t in range(Y.m)]
            for t in range(Y.m):
                Y[t, i] = sums[t]
