"""What is done with the factors of `compactla.cpu.kernels.indefinite`: solves, and the factors as matrices."""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags
from compactla.cpu.kernels.indefinite import IN_REGISTERS, PANEL, block, diagonal, inverse_of_size
from compactla.cpu.kernels.laswp import swap


class Blocks:
    """The blocks of D, and the interchanges, that pivots stand for; parameters are as of `Factorization`."""

    def __init__(self, code: Code, ipiv: Elements, upper: bool):
        """Find where blocks of two begin: at a pivot below 0, if there is a row for the end."""
        self.code, self.kind, self.n, self.upper = code, ipiv.vector, ipiv.m, upper
        self.ipiv = ipiv.rows_reversed if upper else ipiv
        self.known = isinstance(self.n, int) and self.n <= IN_REGISTERS
        self.sides = code.room(self.kind, self.n, 1)  # -1 where a block of two begins, 1 where it ends, else 0
        begun, zero = code.registers(self.kind, 1), code.zero(self.kind)
        begun[0, 0] = zero
        for k in code.each(self.n):
            second = begun[0, 0] < 0
            follows = code.broadcast(k, self.kind) < code.broadcast(self.n - 1, self.kind)
            begun[0, 0] = ((self.ipiv[k, 0] < 0) & ~second & follows).select(zero.constant(-1), zero)
            self.sides[k, 0] = second.select(zero.constant(1), begun[0, 0])

    def begins(self, k) -> Flags:
        return self.sides[k, 0] < 0

    def ends(self, k) -> Flags:
        return self.sides[k, 0] > 0

    def exchange(self, k, X, r):
        """Swap rows of X, of r columns: row k, or k + 1 where a block of two begins, with that of the pivot."""
        code, kind = self.code, self.kind
        place = self.ipiv[k, 0]
        place = (place < 0).select(-place - place.constant(1), place)
        if self.upper:
            place = code.broadcast(self.n - 1, kind) - place
        first, at = self.begins(k), code.broadcast(k, kind)
        own = first.select(at + at.constant(1), at)
        swaps = ~(place == own) & ~self.ends(k)
        with code.when(swaps.any()):
            if self.known:
                self.select(k, X, r, first, [swaps & (place == place.constant(i)) for i in range(k + 1, self.n)])
                return
            swap(code, X, k, (swaps & ~first).select(place, at))
            with code.when((first & swaps).any()):
                swap(code, X, k + 1, (first & swaps).select(place, at + at.constant(1)))

    def select(self, k, X, r, first, flags):
        """The same in registers, with the row of which there are flags."""
        for j in range(r):
            after = [X[k, j]] if k + 1 == self.n else [X[k, j], X[k + 1, j]]
            mine = other = first.select(after[-1], after[0])
            for i, flag in enumerate(flags, k + 1):
                other = flag.select(X[i, j], other)
                X[i, j] = flag.select(mine, X[i, j])
            X[k, j] = first.select(after[0], other)
            if k + 1 < self.n:
                X[k + 1, j] = first.select(other, X[k + 1, j])


class Solution:
    """B <- inv(A) B with the factors of a `Factorization`; parameters are as of that."""

    def __init__(self, code: Code, A: Elements, ipiv: Elements, B: Elements, hermitian: bool, upper: bool):
        self.code, self.n = code, B.m
        self.A, self.B = (A.reversed, B.rows_reversed) if upper else (A, B)
        self.hermitian = hermitian and A.vector.is_complex
        self.blocks = Blocks(code, ipiv, upper)

    def run(self):
        code, n = self.code, self.n
        for j, r in code.tiles(self.B.n, PANEL):
            B = self.B.block(0, j, n, r)
            X = code.registers(B.vector, n, r) if self.blocks.known else B
            self.copy(B, X, r)
            for k in code.each(n):
                self.blocks.exchange(k, X, r)
                self.forward(k, X, r)
            for k in code.each(n):
                self.divide(k, X, r)
            for k in code.each(n):
                self.backward(n - 1 - k, X, r)
                self.blocks.exchange(n - 1 - k, X, r)
            self.copy(X, B, r)

    def copy(self, source, target, r):
        for i in range(self.n) if self.blocks.known else ():
            for j in range(r):
                target[i, j] = source[i, j]

    def forward(self, k, X, r):
        """Subtract column k of L times row k of X from the rows below."""
        code, A = self.code, self.A
        x, first = [X[k, j] for j in range(r)], self.blocks.begins(k)
        for t in code.each(code.min(self.n - 1 - k, 1)):
            self.subtract(-A[k + 1 + t, k], x, X, k + 1 + t, first)
        for t in code.each(self.n - 2 - k):
            self.subtract(-A[k + 2 + t, k], x, X, k + 2 + t)

    def subtract(self, a, x, X, i, unless=None):
        """Add a x to row i of X, but in lanes that are flagged."""
        for j, y in enumerate(x):
            z = a.fma(y, X[i, j])
            X[i, j] = z if unless is None else unless.select(X[i, j], z)

    def divide(self, k, X, r):
        """Multiply row k by the inverse of its block of D, or where a block of two ends both of its rows."""
        code, A = self.code, self.A
        ends, inverse = self.blocks.ends(k), diagonal(A, k, self.hermitian).reciprocal()
        two = self.blocks.begins(k) | ends
        for j in range(r):
            X[k, j] = two.select(X[k, j], X[k, j] * inverse)
        if isinstance(k, int) and k == 0:
            return
        with code.when(ends.any()):
            scale = inverse_of_size(A[k, k - 1].abs1())
            a, b, c, determinant = block(A, k - 1, k, self.hermitian, scale)
            factor = determinant.reciprocal()
            for j in range(r):
                x, y = X[k - 1, j], X[k, j]
                u, v = x * scale, y * scale
                X[k - 1, j] = ends.select((u * c - (b.conjugate() if self.hermitian else b) * v) * factor, x)
                X[k, j] = ends.select((v * a - b * u) * factor, y)

    def backward(self, k, X, r):
        """Subtract from row k what is below times column k of L, transposed."""
        code, A, first = self.code, self.A, self.blocks.begins(k)
        x = code.registers(self.B.vector, 1, r)
        for j in range(r):
            x[0, j] = X[k, j]
        column = A._replace(conj=not A.conj) if self.hermitian else A
        for t in code.each(code.min(self.n - 1 - k, 1)):
            self.subtract(-column[k + 1 + t, k], [X[k + 1 + t, j] for j in range(r)], x, 0, first)
        for t in code.each(self.n - 2 - k):
            self.subtract(-column[k + 2 + t, k], [X[k + 2 + t, j] for j in range(r)], x, 0)
        for j in range(r):
            X[k, j] = x[0, j]


def separate(
    code: Code, A: Elements, ipiv: Elements, D: Elements, perm: Elements, hermitian: bool, upper: bool
) -> None:
    """A <- L with all interchanges, or U, D <- D, from what a `Factorization` leaves; A[perm] would be triangular."""
    n, kind = A.m, perm.vector
    for i in code.each(n):
        perm[i, 0] = code.broadcast(i, kind)
        for j in code.each(n):
            D[i, j] = code.zero(D.vector)
    blocks = Blocks(code, ipiv, upper)
    if upper:
        A, D, perm = A.reversed, D.reversed, perm.rows_reversed
    hermitian, zero = hermitian and A.vector.is_complex, code.zero(A.vector)
    for i in code.each(n):
        D[i, i], A[i, i] = diagonal(A, i, hermitian), zero.constant(1)
        for t in code.each(code.min(n - 1 - i, 1)):
            x, first = A[i + 1 + t, i], blocks.begins(i)
            A[i + 1 + t, i], x = first.select(zero, x), first.select(x, zero)
            D[i + 1 + t, i], D[i, i + 1 + t] = x, x.conjugate() if hermitian else x
        for j in code.each(i):
            A[j, i] = zero
        blocks.exchange(i, perm, 1)
    for t in code.each(n):
        k = n - 1 - t
        blocks.exchange(k, A.block(0, k, n, n - k), n - k)
