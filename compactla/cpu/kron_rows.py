"""The kernel that applies Kronecker products to items one after the other, by their rows, while it is emitted."""

import os
from numba import types
from numba.extending import intrinsic

from compactla.cpu.ahead import nbytes
from compactla.cpu.emit import Code, Number
from compactla.cpu.kernels.rows import Product, over
from compactla.cpu.lanes import KINDS
from compactla.cpu.simd import INDEX, Elements, index, itemsize, shifted
from compactla.cpu.vectors import Lanes, Vector

WORD = 8
AHEAD = int(os.environ.get("AHEAD", 4096))
FULL = int(os.environ.get("FULL", 0))


def batch(text):
    def kernel(lo, hi, told, alpha, beta, work):
        apply(text, lo, hi, told, alpha, beta, work)

    return kernel


@intrinsic(prefer_literal=True)
def apply(typing_context, text, lo, hi, told, alpha, beta, work):
    def lower(context, builder, signature, values):
        def body(code, lo, hi, told, alpha, beta, work):
            scalars = [Number(context, kind, x) for kind, x in zip(signature.args[4:6], (alpha, beta), strict=True)]
            Rows(code, text.literal_value, told, scalars, work).loop(lo, hi)

        passed = values[1:]
        Code(builder).call(f"compactla.{text.literal_value}", [x.type for x in passed], body, *passed)
        return context.get_dummy_value()

    return types.void(text, lo, hi, told, alpha, beta, work), lower


class Rows:
    def __init__(self, code, text, told, scalars, work):
        self.code, b = code, code.builder
        _, char, lanes, sizes, adds, far = text.split("|")
        self.far = bool(far)
        n, m = map(int, sizes.split("x"))
        self.n, self.m = n, m
        self.parts = 2 if char in "FD" else 1
        self.vector = Vector(KINDS[char.lower()], int(lanes))
        self.real = self.vector.part.element
        self.item = itemsize(self.real) * self.parts

        def load(i):
            return b.load(b.inttoptr(b.add(told, INDEX(WORD * i)), INDEX.as_pointer()), typ=INDEX)

        k = 2 + 2 * n
        factors = [[load(k + 5 * i + j) for j in range(5)] for i in range(n)]
        k += 5 * n
        self.X = load(k), load(k + 1)
        self.Y = load(k + 1 + n + 1), load(k + 2 + n + 1)
        base = b.inttoptr(work, self.real.as_pointer())
        one = Vector(KINDS[char], 1)
        alpha, beta = (x.lanes(code, Vector(KINDS[char], self.vector.lanes)).parts for x in scalars)
        self.beta = tuple(Lanes(b, self.vector, x) for x in beta) if adds else None
        self.given = []
        for i, (start, _, rs, cs, sign) in enumerate(factors):
            last = i == n - 1
            columns = over(code, m * self.parts, self.vector.lanes) * self.vector.lanes if last else m * self.parts
            target = Elements(code, one, base, m, m, columns, self.parts, 1)
            source = target._replace(base=b.inttoptr(start, self.real.as_pointer()), rs=rs, cs=cs)
            if last:
                source = source.T
                if columns > m * self.parts:
                    with code.loop(m * columns) as p:
                        b.store(self.real(0.0), shifted(b, base, p, self.real))
            with code.loop(m) as r, code.loop(m) as c:
                x = source[r, c]
                if self.parts == 2:
                    x = x._new(x.parts[0], (code.broadcast(sign, one.reals) * x.imag).parts[0])
                if i == 0:
                    x = scalars[0].lanes(code, one) * x
                target[r, c] = x
            if last:
                self.given.append(target._replace(vector=self.vector, cs=self.vector.lanes, n=columns // self.vector.lanes, im=0))
            else:
                self.given.append(target._replace(vector=self.vector, common=True, im=0))
            base = shifted(b, base, index(m * columns), self.real)
        self.columns = columns // self.vector.lanes
        self.base = base

    def matrix(self, base, m, n, rs, padded=False):
        """Rows"""
        v = self.vector
        return Elements(self.code, v, base, m, over(self.code, n, v.lanes), rs, v.lanes, 0)

    def loop(self, lo, hi):
        code, b, m, n = self.code, self.code.builder, self.m, self.n
        with code.loop(b.sub(hi, lo)) as t:
            q = b.add(lo, t)
            x, y = (b.inttoptr(b.add(start, b.mul(q, step)), self.real.as_pointer()) for start, step in (self.X, self.Y))
            if self.far:
                one = Vector(self.vector.dtype, 1)
                size = m**n * self.item
                numbers = m**n * self.parts
                ahead = INDEX(-(-AHEAD // size) * numbers)
                coming = [Elements(code, one, shifted(b, p, ahead, self.real), 1, numbers, numbers, 1, 1) for p in (x, y)]
                code.fetch_ahead(coming, self.rounds)
            self.expand(n, x, y, self.base, self.beta)

    @property
    def rounds(self):
        m, n = self.m, self.n
        z = self.real.as_pointer()(None)
        return self._count(n)

    def _count(self, n):
        m = self.m
        if n == 2:
            return sum(p.rounds for p in self.pair(None, None, None))
        inner = m ** (n - 1) * self.parts
        return m * self._count(n - 1) + self.outer(n, None, None, None).rounds

    def pair(self, x, y, beta):
        code, m, parts = self.code, self.m, self.parts
        X = Elements(code, self.vector, x, m, m, m * parts, parts, 0, common=True)
        T = code.room(self.vector, m, self.columns) if x is not None else self.matrix(None, m, self.columns * self.vector.lanes, 0)
        Y = self.matrix(y, m, m * parts, m * parts)
        yield Product(code, X, self.given[-1], T, self.columns * self.vector.lanes, parts)
        last = FULL and self.n > 2
        yield Product(code, self.given[-2], T, Y, self.columns * self.vector.lanes if last else m * parts, parts, beta=beta)

    def outer(self, n, u, y, beta):
        m, inner = self.m, self.m ** (n - 1) * self.parts
        U = self.matrix(u, m, inner, apart(inner, self.vector.lanes))
        Y = self.matrix(y, m, inner, inner)
        return Product(self.code, self.given[-n], U, Y, inner, self.parts, beta=beta)

    def expand(self, n, x, y, work, beta):
        code, b = self.code, self.code.builder
        if n == 2:
            for p in self.pair(x, y, beta):
                p.emit()
            return
        inner = self.m ** (n - 1) * self.parts
        rs = apart(inner, self.vector.lanes)
        with code.loop(self.m) as i:
            self.expand(
                n - 1,
                shifted(b, x, code.mul(i, inner), self.real),
                shifted(b, work, code.mul(i, rs), self.real),
                shifted(b, work, index(self.m * rs), self.real),
                None,
            )
        self.outer(n, work, y, beta).emit()


def apart(n, lanes):
    """Rows of n numbers."""
    n = -(-n // lanes) * lanes
    return n + lanes if n // lanes % 2 == 0 else n


def room(n, m, parts, lanes):
    size = 2 * n * m * -(-m * parts // lanes) * lanes
    for k in range(3, n + 1):
        size += m * apart(m ** (k - 1) * parts, lanes) + lanes
    return size
