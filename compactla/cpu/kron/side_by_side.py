"""The kernel that applies Kronecker products to items, V of which stand side by side, while it is emitted."""

import itertools
import operator

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from compactla.cpu.cost import parts
from compactla.cpu.emit.code import Code, Number
from compactla.cpu.emit.matrices import INDEX, Elements, index, shifted
from compactla.cpu.emit.vectors import FLOATS, Vector
from compactla.cpu.kernels import kron_apply as kernels
from compactla.cpu.kernels.gemm import rounds
from compactla.cpu.kron.items import Loose, Packed, band, made, panel, product_of
from compactla.cpu.memory.matrices import Ordinary
from compactla.dtypes import REAL

AHEAD = 4096  # bytes, at least, that items are fetched ahead
WORD = 8


def batch(text, V):
    """Kernel for packs lo to hi: where the numbers are that it has to know, scalars, and where to work."""

    def kernel(lo, hi, told, alpha, beta, work):
        prepare(text, told, alpha, beta, work)
        for p in range(lo, hi):
            call(text, p * V, told, work)

    return kernel


def operands(name, d, e):
    """Sizes of the matrices that are multiplied with."""
    square = list(zip(e, d, strict=True))
    return square if name != "solve" else [*square, *square, *((m, 1) for m in d)]


def rooms(mul, name, d, e, given, kind, known):
    """Rows and columns of what kernels work in: scalars, operands, what is read and written, what factors make.

    Third is how far rows are apart, which is more than their length where they would collide in caches.
    """

    def large(m, n):
        return m, n, n + 1 if known and n % 8 == 0 else n

    yield 2, 1, 1
    yield from ((m, n, n) for m, n in given)
    n = product_of(mul, d[1:])
    if name == "solve":
        yield 1, mul(d[0], n), mul(d[0], n)
    alone = len(given) == len(operands(name, (1,), (1,)))  # one factor, for which items are read as a whole
    m, columns = (d[0], n) if name == "sum" or alone else panel(mul, d, kind, known)
    yield m, columns, columns
    yield *band(e, known), e[-1]
    yield from itertools.starmap(large, made(mul, d, e))
    if name == "solve":
        yield large(d[0], n)


class Told:
    """Arguments of a kernel: so many numbers of axes, and of operands.

    Attributes
    ----------
    nm, vlen : LLVM value
        Number of items, and vector length of packs.
    d, e : tuple of LLVM values
        Axes of items of X and of Y.
    factors : list
        Of each: address, strides from matrix to matrix and along its axes, and the sign of imaginary parts.
    X, Y : list
        Address, and strides from item to item and along the axes.
    """

    def __init__(self, code, told, axes, operands):
        b, words = code.builder, itertools.count()

        def load():
            return b.load(b.inttoptr(b.add(told, INDEX(WORD * next(words))), INDEX.as_pointer()), typ=INDEX)

        axes = max(axes, 2)
        self.nm, self.vlen = load(), load()
        self.d, self.e = (tuple(load() for _ in range(axes)) for _ in "de")
        self.factors = [[load() for _ in range(5)] for _ in range(operands)]
        self.X, self.Y = ([load() for _ in range(2 + axes)] for _ in "XY")


class Known:
    """Facts that a kernel knows while code is emitted, from its text and its arguments.

    The text has the name of what is computed, the type and V, number of factors and size, how operands, X and Y lie,
    and whether there is a beta.
    """

    def __init__(self, code, text, told, work):
        self.code = code
        self.name, char, sizes, kinds, self.x, self.y, self.adds = text.split("|")
        dtype, self.V = np.dtype(char[0]), int(char[1:])
        self.vector, self.one = (Vector(from_dtype(dtype), lanes) for lanes in (self.V, 1))
        self.parts, self.real, self.item = parts(dtype), FLOATS[self.vector.real], REAL[dtype.char].itemsize
        n, _, size = sizes.partition("x")
        self.n, self.kinds = int(n), kinds.split(",")

        told = Told(code, told, self.n, len(self.kinds))
        self.nm, self.vlen, self.d, self.e = told.nm, told.vlen, told.d, told.e
        self.factors, self.X, self.Y = told.factors, told.X, told.Y
        if size != "?":
            self.d = self.e = tuple([1] * (len(self.d) - self.n) + [int(size)] * self.n)
        given = operands(self.name, self.d[-self.n :], self.e[-self.n :])
        scalars, *made = self._made(work, rooms(code.mul, self.name, self.d, self.e, given, self.x, size != "?"))
        self.scalars, self.given, self.work = self.same(scalars), made[: len(given)], made[len(given) :]

    def _made(self, work, sizes):
        """Rooms, one after the other."""
        code, step = self.code, self.V * self.parts
        base = code.builder.inttoptr(work, self.real.as_pointer())
        for m, n, apart in sizes:
            rs = code.mul(apart, step)
            yield Elements(code, self.vector, base, m, n, rs, step, self.V)
            base = shifted(code.builder, base, index(code.mul(m, rs)), self.real)

    def same(self, A):
        """A room as one of numbers that are the same for all lanes."""
        return A._replace(rs=self.code.mul(A.n, self.parts), cs=self.parts, im=1, common=True)

    def alone(self, A):
        """The same, of vectors of one lane."""
        return self.same(A)._replace(vector=self.one, common=False)

    def takes_alpha(self, k):
        """Whether operand number k is multiplied by alpha."""
        return self.name == "sum" or (self.name == "kron" and k == 0)

    @property
    def inverted(self):
        """Whether all values of a sum are shared, which are inverted once."""
        return self.name == "solve" and {*self.kinds[2 * self.n :]} == {"shared"}

    def rounds(self):
        """Rounds of the innermost loops for the V items, of known sizes, as `kernels.apply` has them."""
        mul, d, e, n = operator.mul, self.d, self.e, self.n

        def of(m, n, depth):
            return rounds(self.given[0]._replace(m=m, n=n), depth)

        rows, total = e[0], 0
        if n > 1:
            columns = product_of(mul, d[1:])
            width = panel(mul, d, self.x, True)[1]
            total = of(e[0], width, d[0]) * columns // width
        for k in range(1, n - 1):
            total += rows * of(e[k], product_of(mul, d[k + 1 :]), d[k])
            rows *= e[k]
        height = band(e, True)[0]
        total += rows * of(e[-1], height, d[-1]) // height
        return max(total, 1) * (2 if self.name == "solve" else 1)


@intrinsic(prefer_literal=True)
def prepare(typing_context, text, told, alpha, beta, work):
    """Copy scalars, and operands that all items share, to where the kernel works."""

    def lower(context, builder, signature, values):
        code = Code(builder)
        known = Known(code, text.literal_value, values[1], values[4])
        for i, k in enumerate((2, 3)):
            number = Number(context, signature.args[k], values[k])
            known.alone(known.scalars)[i, 0] = code.broadcast(number, known.one)
        alpha = known.alone(known.scalars)[0, 0]
        for k, (kind, (start, _, rs, cs, sign)) in enumerate(zip(known.kinds, known.factors, strict=True)):
            if kind == "shared":
                target = known.alone(known.given[k])
                base = builder.inttoptr(start, known.real.as_pointer())
                source, factor = target._replace(base=base, rs=rs, cs=cs), alpha if known.takes_alpha(k) else None
                copy(code, source, target, sign, factor)
        if known.inverted:
            pairs = map(known.alone, known.given[2 * known.n :])
            kernels.invert(code, [*pairs], known.alone(known.work[0]), code.zero(known.one), alpha)
        return context.get_dummy_value()

    return types.void(text, told, alpha, beta, work), lower


def copy(code, A, B, sign, alpha):
    """B <- A, with imaginary parts times a sign, or alpha times that."""
    with code.loop(A.m) as i, code.loop(A.n) as j:
        x = A[i, j]
        if A.vector.is_complex:
            x = x._new(x.parts[0], (code.broadcast(sign, A.vector.reals) * x.imag).parts[0])
        B[i, j] = x if alpha is None else alpha * x


@intrinsic(prefer_literal=True)
def call(typing_context, text, first, told, work):
    """Compute items `first` and up; `choice` makes the text."""

    def lower(context, builder, signature, values):
        def body(code, first, told, work):
            known = Known(code, text.literal_value, told, work)
            lanes = Items(known, first)
            factors = [lanes.factor(k) for k in range(len(known.kinds))]
            X, Y = lanes.tensor(known.x, known.X, known.d), lanes.tensor(known.y, known.Y, known.e)
            if lanes.coming:
                code.fetch_ahead(lanes.coming, known.rounds())
            beta, work, n = known.scalars.block(1, 0, 1, 1) if known.adds else None, known.work, known.n
            if known.name != "solve":
                apply = {"kron": kernels.apply, "sum": kernels.apply_sum}[known.name]
                apply(code, factors, X, Y, work, beta)
                return
            D, *work = work
            if known.inverted:
                D = known.same(D)
            else:
                kernels.invert(code, factors[2 * n :], D, code.zero(known.vector), known.scalars[0, 0])
            kernels.solve_sum(code, factors[:n], factors[n : 2 * n], D, X, Y, work, beta)

        passed = values[1:]
        Code(builder).call(f"compactla.{text.literal_value}", [x.type for x in passed], body, *passed)
        return context.get_dummy_value()

    return types.void(text, first, told, work), lower


class Items:
    """V items while code is emitted: those from `first` on, and if there are fewer, the last one several times."""

    def __init__(self, known, first):
        self.known, self.first, self.coming = known, first, []
        self.code = code = known.code
        b, V = code.builder, known.V
        self.places = [code.min(b.add(first, INDEX(lane)), b.sub(known.nm, INDEX(1))) for lane in range(V)]
        self.full = b.icmp_signed("<=", b.add(first, INDEX(V)), known.nm)

    def packed(self, start, step):
        """Where their lanes of a pack begin."""
        known, b = self.known, self.code.builder
        offset = b.add(b.mul(b.sdiv(self.first, known.vlen), step), b.srem(self.first, known.vlen))
        return shifted(b, b.inttoptr(start, known.real.as_pointer()), offset, known.real)

    def loose(self, start, step):
        """Where each of them begins, and whether their numbers are side by side."""
        known, b = self.known, self.code.builder
        starts = [b.add(start, b.mul(place, step)) for place in self.places]
        return starts, b.and_(self.full, b.icmp_signed("==", step, INDEX(known.parts * known.item)))

    def tensor(self, kind, place, sizes):
        """X or Y."""
        known, code, b = self.known, self.code, self.code.builder
        start, step, *strides = place
        n = product_of(code.mul, sizes[1:])
        contiguous = code.mul(n, known.V * known.parts), known.V * known.parts
        fetched = isinstance(n, int) and kind in ("whole", "pack whole")
        if fetched:
            size = sizes[0] * n * known.V * known.parts * known.item
            ahead = b.add(self.first, INDEX(known.V * -(-AHEAD // size)))
            base = b.add(start, b.mul(ahead, INDEX(size // known.V)))
            base = b.inttoptr(base, known.real.as_pointer())
            self.coming.append(Elements(code, known.vector, base, sizes[0], n, *contiguous, known.V))
        if not kind.startswith("pack"):
            starts, adjacent = self.loose(start, step)
            return Loose(code, known.vector, known.real, kind, sizes, tuple(strides), starts, adjacent)
        rs, cs = contiguous if kind == "pack whole" else (strides[0], strides[-1])
        base = self.packed(start, step)
        im = known.V if kind == "pack whole" else known.vlen
        return Packed(Elements(code, known.vector, base, sizes[0], n, rs, cs, im), sizes[1:])

    def repeat_last(self, room):
        """Copy the lane of the last item to all lanes behind it, as items in ordinary memory are read."""
        known, code, b = self.known, self.code, self.code.builder
        last = b.sub(b.sub(known.nm, INDEX(1)), self.first)
        with b.if_then(b.not_(self.full), likely=False), code.loop(room.m) as i, code.loop(room.n) as j:
            for part in range(known.parts):
                for lane in range(known.V):
                    place = code.add(code.min(lane, last), part * known.V)
                    number = b.load(room.pointer(i, j, place), typ=known.real)
                    b.store(number, room.pointer(i, j, part * known.V + lane))

    def factor(self, k):
        """Operand number k, in its room."""
        known, kind, room = self.known, self.known.kinds[k], self.known.given[k]
        if kind == "shared":
            return known.same(room)
        alpha = known.scalars[0, 0] if known.takes_alpha(k) else None
        start, step, rs, cs, sign = known.factors[k]
        if kind == "pack":
            source = room._replace(base=self.packed(start, step), rs=rs, cs=cs, im=known.vlen)
            copy(self.code, source, room, sign, alpha)
            self.repeat_last(room)
            return room
        starts, adjacent = self.loose(start, step)
        Ordinary(self.code, known.vector, known.real, kind, room.m, room.n, starts, rs, cs, adjacent).read(room)
        if known.parts == 2 or alpha is not None:
            copy(self.code, room, room, sign, alpha)
        return room
