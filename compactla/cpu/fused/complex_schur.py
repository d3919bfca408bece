"""Complex Schur forms, of real matrices by way of their real ones, and functions of matrices by them."""

from collections.abc import Callable

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.gemm import gemm
from compactla.cpu.kernels.gesvd import copy
from compactla.cpu.kernels.schur import schur, unknown
from compactla.cpu.linalg.stacks import UNSURE


class ComplexSchur:
    """A = Z T Z^H of V ordinary matrices while code is emitted, with a complex T, which is upper triangular.

    `failed` are flags of lanes for which that is not found. Of real matrices `negative` has those with a negative
    eigenvalue, and `complex` those with pairs of complex ones.
    """

    def __init__(self, code: Code, A):
        self.code, self.n, self.is_real = code, A.n, not A.vector.is_complex
        W, V = (unknown(code.room(A.vector, A.n, A.n)) for _ in range(2))
        A.read(W)
        found = code.room(A.vector.reals, 3)
        self.T, self.Z = W, V
        if self.is_real:
            self.T, self.Z = (unknown(code.room(A.vector.twin, A.n, A.n)) for _ in range(2))
            code.shared(of_real, W, V, self.T, self.Z, found)
        else:
            code.shared(of_complex, W, V, found)
        self.failed, self.negative, self.complex = (found[k, 0] > 0 for k in range(3))

    def room(self) -> Elements:
        return unknown(self.code.room(self.T.vector, self.n, self.n))

    def near_zero(self, relative: float, absolute: float) -> Flags:
        """Flags of lanes that have an eigenvalue up to so many times the largest, or so large."""
        code, found = self.code, self.code.registers(self.T.vector.reals, 2)
        found[0, 0] = found[1, 0] = self.T[0, 0].abs1()
        with code.loop(self.T.n) as i:
            size = self.T[i, i].abs1()
            found[0, 0] = (size < found[0, 0]).select(size, found[0, 0])
            found[1, 0] = (size > found[1, 0]).select(size, found[1, 0])
        least, largest = found[0, 0], found[1, 0]
        return ~(least > largest * least.constant(relative)) | ~(least > absolute)

    def restored(self, F: Elements) -> Elements:
        """Z F Z^H, which is overwritten."""
        P = self.room()
        self.code.shared(product, P, F, self.Z.H)
        self.code.shared(product, F, self.Z, P)
        return F


def function_of(code: Code, A, X, others, emit: Callable, pairs: bool = False) -> None:
    """X <- a function of A, by ``emit(form, F)``, which makes that of a triangle and returns flags of its failures.

    `others` ends with the status. Before it there is, for real matrices, a flag of results that are complex: those of
    matrices with negative eigenvalues, and with `pairs` of complex ones.
    """
    *flag, status = others
    form = ComplexSchur(code, A)
    F = form.room()
    status.enter(UNSURE, emit(form, F) | form.failed)
    F = form.restored(F)
    if form.is_real:
        whole, number = form.negative | form.complex if pairs else form.negative, code.room(A.vector, 1)
        number[0, 0] = whole.select(code.zero(A.vector).constant(1), code.zero(A.vector))
        flag[0].write(number)
        copy(code, F, F, lambda x: whole.select(x, x.real))
    X.write(F)
    status.check(F)


def of_complex(code: Code, T: Elements, Z: Elements, found: Elements) -> None:
    """T <- the Schur form of T, and Z <- its vectors; `found` <- ones for lanes that fail, and zeros."""
    zero = code.zero(found.vector)
    found[0, 0] = schur(code, T, Z).select(zero.constant(1), zero)
    found[1, 0] = found[2, 0] = zero


def of_real(code: Code, W: Elements, V: Elements, T: Elements, Z: Elements, found: Elements) -> None:
    """T <- the complex Schur form of W, and Z <- its vectors, by way of the real one.

    `found` <- ones for lanes that fail, that have negative eigenvalues, and complex ones, else zeros.
    """
    zero = code.zero(found.vector)
    for k, flags in enumerate((schur(code, W, V), *kinds(code, W))):
        found[k, 0] = flags.select(zero.constant(1), zero)
    rsf2csf(code, W, V, T, Z)


def product(code: Code, C: Elements, A: Elements, B: Elements) -> None:
    """C <- A B"""
    gemm.emit(code, A, B, C)


def kinds(code: Code, T: Elements) -> tuple[Flags, Flags]:
    """Flags of the real Schur forms with negative eigenvalues, and of those with blocks."""
    zero, found = code.zero(T.vector), code.registers(T.vector, 3)
    for k in range(3):
        found[k, 0] = zero
    with code.loop(T.n) as i:
        below = code.registers(T.vector, 1)
        below[0, 0] = zero
        with code.when(i + 1 < T.n):
            below[0, 0] = abs(T[i + 1, i])
        alone = (below[0, 0] == 0) & (found[2, 0] == 0)
        found[0, 0] = (alone & (T[i, i] < 0)).select(zero.constant(1), found[0, 0])
        found[1, 0], found[2, 0] = found[1, 0] + below[0, 0], below[0, 0]
    return found[0, 0] > 0, found[1, 0] > 0


def rsf2csf(code: Code, T: Elements, Z: Elements, C: Elements, Q: Elements) -> None:
    """C <- an upper triangular matrix, and Q <- a unitary one with Q C Q^H = Z T Z^T.

    T is in LAPACK's standard form: a block [a, b; c, a] has a pair of complex eigenvalues, and b c < 0.
    """
    copy(code, T, C)
    copy(code, Z, Q)
    n = T.m
    with code.loop(n - 1) as k:
        m = n - 1 - k
        above, low, high = m - 1, T[m, m - 1], T[m - 1, m]
        block = low != 0
        with code.when(block.any()):
            # [c^H, s; -s, c] with c imaginary
            width = (abs(low).sqrt()) * (abs(high).sqrt())
            scale = abs(low).maximum(width)
            scale = block.select(scale, scale.constant(1)).reciprocal()
            x, y = width * scale, low * scale
            inverse = x.fma(x, y * y).sqrt().reciprocal()
            c, s = imaginary(C, x * inverse), y * inverse
            after = n - above
            with code.loop(after) as j:
                turn(C, (above, above + j), (m, above + j), c, s, block)
            with code.loop(m + 1) as i:
                turn(C, (i, above), (i, m), -c, s, block)
            with code.loop(n) as i:
                turn(Q, (i, above), (i, m), -c, s, block)
            C[m, above] = block.select(C[m, above].constant(0), C[m, above])


def imaginary(C: Elements, x: Lanes) -> Lanes:
    return C.code.zero(C.vector)._new(x.constant(0).parts[0], x.parts[0])


def turn(C: Elements, one, other, c: Lanes, s: Lanes, flags: Flags) -> None:
    """x, y <- c^H x + s y, c y - s x, of two elements by their places."""
    x, y = C[one], C[other]
    C[one] = flags.select(y.fma(s, c.conjugate() * x), x)
    C[other] = flags.select((-x).fma(s, c * y), y)
