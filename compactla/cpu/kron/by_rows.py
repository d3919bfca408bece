"""The kernel that applies Kronecker products to items one after the other, by their rows, while it is emitted.

The last axis is contracted first, then the one before it, while what comes of that is in registers or in L1. What
comes of the parts of an item along its first axis is kept, row by row, until that axis is contracted.
"""

from numba import types
from numba.extending import intrinsic

from compactla.cpu.emit.code import Code, Number
from compactla.cpu.emit.matrices import INDEX, Elements, index, itemsize, shifted
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.prefetch import LINE
from compactla.cpu.emit.vectors import FLOATS, Lanes, Vector
from compactla.cpu.kron.side_by_side import AHEAD, Told, copy
from compactla.cpu.memory.products import Product, over


def batch(text):
    """Kernel for items lo to hi: where the numbers are that it has to know, scalars, and where to work."""

    def kernel(lo, hi, told, alpha, beta, work):
        apply(text, lo, hi, told, alpha, beta, work)

    return kernel


def rooms(n, m, parts, lanes):
    """Rows of what n factors of order m work in, and how many real numbers these are apart: first for the factors.

    The others are for what comes of all axes behind the first one, the second one, and so on, but for the last two.
    """
    for k in range(n):
        yield m, m * parts if k < n - 1 else padded(m * parts, lanes)
    for k in range(n - 1, 1, -1):
        width = padded(m**k * parts, lanes)
        yield m, width + (lanes if width // lanes % 8 == 0 else 0)  # else rows collide in caches


def padded(count, step):
    """The least multiple of a step that is not below a count."""
    return -(-count // step) * step


@intrinsic(prefer_literal=True)
def apply(typing_context, text, lo, hi, told, alpha, beta, work):
    """Compute items lo to hi - 1.

    The text has the type and lanes of vectors, number of factors and size, whether there is a beta, and whether the
    numbers of items of X and of Y follow each other.
    """

    def lower(context, builder, signature, values):
        def body(code, lo, hi, told, alpha, beta, work):
            scalars = [Number(context, kind, x) for kind, x in zip(signature.args[4:6], (alpha, beta), strict=True)]
            Items(code, text.literal_value, told, scalars, work).emit(lo, hi)

        passed = values[1:]
        Code(builder).call(f"compactla.kron|{text.literal_value}", [x.type for x in passed], body, *passed)
        return context.get_dummy_value()

    return types.void(text, lo, hi, told, alpha, beta, work), lower


class Items:
    """Items of one size while code is emitted."""

    def __init__(self, code, text, told, scalars, work):
        self.code, b = code, code.builder
        char, lanes, sizes, adds, x, y = text.split("|")
        self.n, self.m = map(int, sizes.split("x"))
        self.one, self.vector = Vector(KINDS[char], 1), Vector(KINDS[char.lower()], int(lanes))
        self.parts, self.real = len(self.one.parts), FLOATS[self.vector.real]
        self.told = Told(code, told, self.n, self.n)
        self.x, self.y = self._strides(x, self.told.X), self._strides(y, self.told.Y)
        self.whole = bool(x), bool(y)
        self.columns = over(code, self.m * self.parts, self.vector.lanes)
        self.starts, base = [], b.inttoptr(work, self.real.as_pointer())
        for m, apart in rooms(self.n, self.m, self.parts, self.vector.lanes):
            self.starts.append((base, apart))
            base = shifted(b, base, INDEX(padded(m * apart, LINE // 4)), self.real)
        alpha, beta = scalars
        beta = beta.lanes(code, Vector(KINDS[char], self.vector.lanes)).parts
        self.beta = tuple(Lanes(b, self.vector, part) for part in beta) if adds else None
        self.factors = [self._factor(k, alpha.lanes(code, self.one)) for k in range(self.n)]

    def _strides(self, whole, place):
        """Real numbers between those that follow each other along the axes."""
        if whole:
            return [self.m**k * self.parts for k in reversed(range(self.n))]
        real = INDEX(itemsize(self.real))
        return [self.code.builder.sdiv(stride, real) for stride in place[2:]]

    def _factor(self, k, alpha):
        """Factor number k, copied; the last one is transposed, in whole vectors."""
        code, b, m = self.code, self.code.builder, self.m
        start, _, rs, cs, sign = self.told.factors[k]
        base, apart = self.starts[k]
        target = Elements(code, self.one, base, m, m, apart, self.parts, 1)
        source = target._replace(base=b.inttoptr(start, self.real.as_pointer()), rs=rs, cs=cs)
        if k < self.n - 1:
            copy(code, source, target, sign, alpha if k == 0 else None)
            return target._replace(vector=self.vector, common=True)
        if apart > m * self.parts:
            with code.loop(m * apart) as p:
                b.store(self.real(0.0), shifted(b, base, p, self.real))
        copy(code, source.T, target, sign, None)
        return self._rows(base, m, self.columns, apart)

    def _rows(self, base, m, columns, apart):
        """m rows of vectors."""
        return Elements(self.code, self.vector, base, m, columns, apart, self.vector.lanes, 0)

    def emit(self, lo, hi):
        code, b, told = self.code, self.code.builder, self.told
        count = self.m**self.n * self.parts
        ahead, number = -(-AHEAD // (count * itemsize(self.real))) * count, Vector(self.vector.dtype, 1)
        with code.loop(b.sub(hi, lo)) as t:
            X, Y = (
                b.inttoptr(b.add(start, b.mul(b.add(lo, t), step)), self.real.as_pointer())
                for start, step, *_ in (told.X, told.Y)
            )
            coming = [
                Elements(code, number, shifted(b, place, INDEX(ahead), self.real), 1, count, count, 1, 1)
                for place, whole in zip((X, Y), self.whole, strict=True)
                if whole
            ]
            if coming:
                code.fetch_ahead(coming, self._rounds(self.n, X, Y))
            self._expand(self.n, X, Y, self.y[0], self.beta)

    def _rounds(self, n, X, Y):
        """Rounds of innermost loops for the last n axes."""
        if n == 2:
            return sum(product.rounds for product in self._pair(X, Y, 0, None))
        return self.m * self._rounds(n - 1, X, Y) + self._outer(n, Y, 0, None).rounds

    def _expand(self, n, X, Y, rs, beta):
        """Y <- X contracted along its n axes, which are the last n of items; rows of Y are so many numbers apart."""
        code, b = self.code, self.code.builder
        if n == 2:
            for product in self._pair(X, Y, rs, beta):
                product.emit()
            return
        (base, apart), step = self.starts[2 * self.n - n], self.m ** (n - 2) * self.parts
        with code.loop(self.m) as i:
            part = shifted(b, X, index(code.mul(i, self.x[-n])), self.real)
            self._expand(n - 1, part, shifted(b, base, code.mul(i, apart), self.real), step, None)
        self._outer(n, Y, rs, beta).emit()

    def _pair(self, X, Y, rs, beta):
        """Products that contract the last two axes."""
        code, m, parts, whole = self.code, self.m, self.parts, self.columns * self.vector.lanes
        X = Elements(code, self.vector, X, m, m, *self.x[-2:], 0, common=True)
        T = code.room(self.vector, m, self.columns)
        yield Product(code, X, self.factors[-1], T, whole, parts)
        yield Product(code, self.factors[-2], T, self._rows(Y, m, self.columns, rs), m * parts, parts, beta=beta)

    def _outer(self, n, Y, rs, beta):
        """The product that contracts the first of the last n axes."""
        m, width = self.m, self.m ** (n - 1) * self.parts
        base, apart = self.starts[2 * self.n - n]
        columns = over(self.code, width, self.vector.lanes)
        T, Y = self._rows(base, m, columns, apart), self._rows(Y, m, columns, rs)
        return Product(self.code, self.factors[-n], T, Y, width, self.parts, beta=beta)
