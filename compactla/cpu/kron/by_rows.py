"""The kernel that applies Kronecker products to items one after the other, by their rows, while it is emitted.

The last axis is contracted first, then the one before it, while what comes of that is in registers or in L1. What
comes of the parts of an item along its first axis is kept, row by row, until that axis is contracted.
"""

from typing import NamedTuple

from compactla.cpu.emit.call import emitted
from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.matrices import Elements, itemsize, shifted
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.prefetch import LINE
from compactla.cpu.emit.vectors import FLOATS, Lanes, Vector
from compactla.cpu.kron.side_by_side import AHEAD, KronArguments, copy
from compactla.cpu.memory.products import Product, over


class RowsCall(NamedTuple):
    """What a kernel for items one after the other is compiled for; see `compactla.cpu.emit.call`.

    Attributes
    ----------
    dtype : str
        Letter of the type.
    lanes : int
        Real numbers in a vector.
    factors, size : int
        Number of factors, and their order.
    adds : bool
        Whether there is a beta.
    whole : tuple of bool
        Whether the numbers of items of X follow each other, and of Y.
    """

    dtype: str
    lanes: int
    factors: int
    size: int
    adds: bool
    whole: tuple


def batch(text):
    """Make the kernel for items lo to hi: address of `KronArguments`, scalars, and address of work space."""

    def kernel(lo, hi, words, alpha, beta, work):
        apply(text, lo, hi, words, alpha, beta, work)

    return kernel


def rooms(n, m, parts, lanes):
    """Yield rows of what n factors of order m work in, and how many real numbers they are apart; factors are first.

    The others are for what comes of all axes behind the first one, the second one, and so on, but for the last two.
    """
    for k in range(n):
        yield m, m * parts if k < n - 1 else padded(m * parts, lanes)
    for k in range(n - 1, 1, -1):
        width = padded(m**k * parts, lanes)
        yield m, width + (lanes if width // lanes % 8 == 0 else 0)  # else rows collide in caches


def padded(count, step):
    """Round a count up to a multiple of a step."""
    return -(-count // step) * step


@emitted(RowsCall)
def apply(code, description, lo, hi, words, alpha, beta, work):
    """Compute items lo to hi - 1."""
    ItemsByRows(code, description, words, alpha, beta, work).emit(lo, hi)


class ItemsByRows:
    """Items of one size while code is emitted."""

    def __init__(self, code, description, words, alpha, beta, work):
        self.code, b = code, code.builder
        char, V, self.n, self.m, adds, self.whole = description
        self.one, self.vector = Vector(KINDS[char], 1), Vector(KINDS[char.lower()], V)
        self.parts, self.real = len(self.one.parts), FLOATS[self.vector.real]
        self.arguments = KronArguments(code, words, self.n, self.n)
        self.x, self.y = map(self._strides, self.whole, (self.arguments.X, self.arguments.Y))
        self.columns = over(self.m * self.parts, V)

        # Where to work: addresses in `work`, and real numbers between rows
        self.starts, base = [], b.inttoptr(value_of(work), self.real.as_pointer())
        for m, apart in rooms(self.n, self.m, self.parts, V):
            self.starts.append((base, apart))
            base = shifted(b, base, padded(m * apart, LINE // 4), self.real)

        # Scalars and factors
        beta = beta.lanes(code, Vector(KINDS[char], V)).parts
        self.beta = tuple(Lanes(b, self.vector, part) for part in beta) if adds else None
        self.factors = [self._factor(k, alpha.lanes(code, self.one)) for k in range(self.n)]

    def _strides(self, whole, where):
        """List real numbers between those that follow each other along the axes."""
        if whole:
            return [self.m**k * self.parts for k in reversed(range(self.n))]
        real = itemsize(self.real)
        return [stride // real for stride in where[2:]]

    def _factor(self, k, alpha):
        """Copy factor number k; the last one is transposed, in whole vectors."""
        code, b, m = self.code, self.code.builder, self.m
        start, _, rs, cs, sign = self.arguments.factors[k]
        base, apart = self.starts[k]
        target = Elements(code, self.one, base, m, m, apart, self.parts, 1)
        source = target._replace(base=b.inttoptr(start.value, self.real.as_pointer()), rs=rs, cs=cs)
        if k < self.n - 1:
            copy(code, source, target, sign, alpha if k == 0 else None)
            return target._replace(vector=self.vector, common=True)
        if apart > m * self.parts:
            with code.loop(m * apart) as p:
                b.store(self.real(0.0), shifted(b, base, p, self.real))
        copy(code, source.T, target, sign, None)
        return self._rows(base, m, self.columns, apart)

    def _rows(self, base, m, columns, apart):
        """View m rows of vectors, which begin at a pointer."""
        return Elements(self.code, self.vector, base, m, columns, apart, self.vector.lanes, 0)

    def emit(self, lo, hi):
        """Emit the loop over items lo to hi - 1."""
        code, b, arguments = self.code, self.code.builder, self.arguments
        count = self.m**self.n * self.parts
        ahead, number = -(-AHEAD // (count * itemsize(self.real))) * count, Vector(self.vector.dtype, 1)
        with code.loop(hi - lo) as t:
            X, Y = (
                b.inttoptr(value_of(start + (lo + t) * step), self.real.as_pointer())
                for start, step, *_ in (arguments.X, arguments.Y)
            )
            following = [
                Elements(code, number, shifted(b, start, ahead, self.real), 1, count, count, 1, 1)
                for start, whole in zip((X, Y), self.whole, strict=True)
                if whole
            ]
            if following:
                code.fetch_ahead(following, self._rounds(self.n, X, Y))
            self._expand(self.n, X, Y, self.y[0], self.beta)

    def _rounds(self, n, X, Y):
        """Count rounds of innermost loops for the last n axes."""
        if n == 2:
            return sum(product.rounds for product in self._pair(X, Y, 0, None))
        return self.m * self._rounds(n - 1, X, Y) + self._outer(n, Y, 0, None).rounds

    def _expand(self, n, X, Y, rs, beta):
        """Contract X along its n axes, the last n of items, to Y, whose rows are `rs` real numbers apart."""
        code, b = self.code, self.code.builder
        if n == 2:
            for product in self._pair(X, Y, rs, beta):
                product.emit()
            return
        (base, apart), step = self.starts[2 * self.n - n], self.m ** (n - 2) * self.parts
        with code.loop(self.m) as i:
            part = shifted(b, X, i * self.x[-n], self.real)
            self._expand(n - 1, part, shifted(b, base, i * apart, self.real), step, None)
        self._outer(n, Y, rs, beta).emit()

    def _pair(self, X, Y, rs, beta):
        """Yield products that contract the last two axes."""
        code, m, parts, whole = self.code, self.m, self.parts, self.columns * self.vector.lanes
        X = Elements(code, self.vector, X, m, m, *self.x[-2:], 0, common=True)
        T = code.room(self.vector, m, self.columns)
        yield Product(code, X, self.factors[-1], T, whole, parts)
        yield Product(code, self.factors[-2], T, self._rows(Y, m, self.columns, rs), m * parts, parts, beta=beta)

    def _outer(self, n, Y, rs, beta):
        """Make the product that contracts the first of the last n axes."""
        m, width = self.m, self.m ** (n - 1) * self.parts
        base, apart = self.starts[2 * self.n - n]
        columns = over(width, self.vector.lanes)
        T, Y = self._rows(base, m, columns, apart), self._rows(Y, m, columns, rs)
        return Product(self.code, self.factors[-n], T, Y, width, self.parts, beta=beta)
