"""The kernel that applies Kronecker products to items, V of which stand side by side, while it is emitted."""

import itertools
import math
from typing import NamedTuple

from compactla.cpu.emit.call import Arguments, emitted
from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.matrices import Elements, itemsize, shifted
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.vectors import FLOATS, Vector
from compactla.cpu.kernels import kron_apply as kernels
from compactla.cpu.kernels.gemm import rounds
from compactla.cpu.kron.items import Loose, Packed, band, made, panel
from compactla.cpu.memory.matrices import Ordinary

AHEAD = 4096  # bytes, at least, that items are fetched ahead


class KronCall(NamedTuple):
    """What a kernel for items side by side is compiled for; see `compactla.cpu.emit.call`.

    Attributes
    ----------
    name : {"kron", "sum", "solve"}
        What is computed.
    dtype : str
        Letter of the type.
    lanes : int
        V, items that are computed side by side.
    factors : int
        Number of factors.
    size : int or None
        Their order, if it is compiled in.
    kinds : tuple of str
        How operands lie: "shared" by all items, in a "pack", or as `compactla.cpu.memory.matrices.Ordinary` has it.
    x, y : str
        How X and Y lie: "pack whole", "pack", or as `compactla.cpu.kron.items.Loose` has it.
    adds : bool
        Whether there is a beta.
    """

    name: str
    dtype: str
    lanes: int
    factors: int
    size: int | None
    kinds: tuple
    x: str
    y: str
    adds: bool


def batch(text, V):
    """Make the kernel for packs lo to hi: address of `KronArguments`, scalars, and address of work space."""

    def kernel(lo, hi, words, alpha, beta, work):
        prepare(text, words, alpha, beta, work)
        for p in range(lo, hi):
            call(text, p * V, words, work)

    return kernel


def operands(name, d, e):
    """List sizes of the matrices that are multiplied with."""
    square = list(zip(e, d, strict=True))
    return square if name != "solve" else [*square, *square, *((m, 1) for m in d)]


def rooms(name, d, e, sizes, kind, known):
    """Yield rows and columns of what kernels work in, with operands of some sizes.

    Third is how far rows are apart, which is more than their length where they would collide in caches.
    """

    def large(m, n):
        """Add a number to rows that would collide."""
        return m, n, n + 1 if known and n % 8 == 0 else n

    # Scalars, operands, and reciprocals of sums of eigenvalues
    yield 2, 1, 1
    yield from ((m, n, n) for m, n in sizes)
    n = math.prod(d[1:])
    if name == "solve":
        yield 1, d[0] * n, d[0] * n

    # What is read, what is written, and what factors make
    alone = len(sizes) == len(operands(name, (1,), (1,)))  # one factor, for which items are read as a whole
    m, columns = (d[0], n) if name == "sum" or alone else panel(d, kind, known)
    yield m, columns, columns
    yield *band(e, known), e[-1]
    yield from itertools.starmap(large, made(d, e))
    if name == "solve":
        yield large(d[0], n)


class KronArguments:
    """Arguments of a kernel, in words at an address, for a number of axes and of operands.

    Attributes
    ----------
    nm, vlen : Index
        Number of items, and vector length of packs.
    d, e : tuple of Index
        Axes of items of X and of Y.
    factors : list
        Of each: address, strides from matrix to matrix and along its axes, and the sign of imaginary parts.
    X, Y : list
        Address, and strides from item to item and along the axes.
    """

    def __init__(self, code, words, axes, operands):
        arguments, axes = Arguments.at(code, words), max(axes, 2)
        self.nm, self.vlen = arguments.some(2)
        self.d, self.e = (tuple(arguments.some(axes)) for _ in "de")
        self.factors = [arguments.some(5) for _ in range(operands)]
        self.X, self.Y = (arguments.some(2 + axes) for _ in "XY")


class Known(KronArguments):
    """Facts that a kernel knows while code is emitted, from its description and its arguments."""

    def __init__(self, code, description, words, work):
        self.code = code
        self.name, char, self.V, self.n, size, self.kinds, self.x, self.y, self.adds = description
        super().__init__(code, words, self.n, len(self.kinds))
        self.vector, self.one = (Vector(KINDS[char], lanes) for lanes in (self.V, 1))
        self.parts, self.real = len(self.vector.parts), FLOATS[self.vector.real]
        self.item = itemsize(self.real)
        if size is not None:
            self.d = self.e = tuple([1] * (len(self.d) - self.n) + [size] * self.n)
        sizes = operands(self.name, self.d[-self.n :], self.e[-self.n :])
        known = size is not None
        scalars, *made = self._made(work, rooms(self.name, self.d, self.e, sizes, self.x, known))
        self.scalars, self.copies, self.work = self.same(scalars), made[: len(sizes)], made[len(sizes) :]

    def _made(self, work, sizes):
        """Yield rooms, one after the other."""
        code, step = self.code, self.V * self.parts
        base = code.builder.inttoptr(value_of(work), self.real.as_pointer())
        for m, n, apart in sizes:
            rs = apart * step
            yield Elements(code, self.vector, base, m, n, rs, step, self.V)
            base = shifted(code.builder, base, m * rs, self.real)

    def same(self, A):
        """View a room as one of numbers that are the same for all lanes."""
        return A._replace(rs=A.n * self.parts, cs=self.parts, im=1, common=True)

    def alone(self, A):
        """View such a room with vectors of one lane."""
        return self.same(A)._replace(vector=self.one, common=False)

    def takes_alpha(self, k):
        """Tell whether operand number k is multiplied by alpha."""
        return self.name == "sum" or (self.name == "kron" and k == 0)

    @property
    def inverted(self):
        """True if all values of a sum are shared, which are inverted once."""
        return self.name == "solve" and {*self.kinds[2 * self.n :]} == {"shared"}

    def rounds(self):
        """Count rounds of the innermost loops of `kernels.apply` for the V items, of known sizes."""
        d, e, n = self.d, self.e, self.n

        def of(m, n, depth):
            """Count those of a product."""
            return rounds(self.copies[0]._replace(m=m, n=n), depth)

        rows, total = e[0], 0
        if n > 1:
            columns = math.prod(d[1:])
            width = panel(d, self.x, True)[1]
            total = of(e[0], width, d[0]) * columns // width
        for k in range(1, n - 1):
            total += rows * of(e[k], math.prod(d[k + 1 :]), d[k])
            rows *= e[k]
        height = band(e, True)[0]
        total += rows * of(e[-1], height, d[-1]) // height
        return max(total, 1) * (2 if self.name == "solve" else 1)


@emitted(KronCall)
def prepare(code, description, words, alpha, beta, work):
    """Copy scalars, and operands that all items share, to where the kernel works."""
    known = Known(code, description, words, work)
    scalars = known.alone(known.scalars)
    for i, number in enumerate((alpha, beta)):
        scalars[i, 0] = code.broadcast(number, known.one)
    alpha = scalars[0, 0]
    for k, (kind, (start, _, rs, cs, sign)) in enumerate(zip(known.kinds, known.factors, strict=True)):
        if kind == "shared":
            target = known.alone(known.copies[k])
            base = code.builder.inttoptr(start.value, known.real.as_pointer())
            source, factor = target._replace(base=base, rs=rs, cs=cs), alpha if known.takes_alpha(k) else None
            copy(code, source, target, sign, factor)
    if known.inverted:
        pairs = map(known.alone, known.copies[2 * known.n :])
        kernels.invert(code, [*pairs], known.alone(known.work[0]), code.zero(known.one), alpha)


def copy(code, A, B, sign, alpha):
    """Copy A to B, with imaginary parts times a sign, or alpha times that."""
    with code.loop(A.m) as i, code.loop(A.n) as j:
        x = A[i, j]
        if A.vector.is_complex:
            x = x._new(x.parts[0], (code.broadcast(sign, A.vector.reals) * x.imag).parts[0])
        B[i, j] = x if alpha is None else alpha * x


@emitted(KronCall)
def call(code, description, first, words, work):
    """Compute items `first` and up."""
    known = Known(code, description, words, work)
    lanes = ItemsSideBySide(known, first)
    factors = [lanes.factor(k) for k in range(len(known.kinds))]
    X, Y = lanes.tensor(known.x, known.X, known.d), lanes.tensor(known.y, known.Y, known.e)
    if lanes.following:
        code.fetch_ahead(lanes.following, known.rounds())
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


class ItemsSideBySide:
    """V items while code is emitted: those from `first` on, and if there are fewer, the last one several times."""

    def __init__(self, known, first):
        self.known, self.first, self.following = known, first, []
        self.code = code = known.code
        V = known.V
        self.numbers = [code.min(first + lane, known.nm - 1) for lane in range(V)]
        self.full = first + V <= known.nm

    def packed(self, start, step):
        """Find where their lanes of a pack begin."""
        known, b = self.known, self.code.builder
        offset = self.first // known.vlen * step + self.first % known.vlen
        return shifted(b, b.inttoptr(start.value, known.real.as_pointer()), offset, known.real)

    def loose(self, start, step):
        """Find where each of them begins, and whether their numbers are side by side."""
        known = self.known
        starts = [start + number * step for number in self.numbers]
        return starts, self.full & (step == known.parts * known.item)

    def tensor(self, kind, where, sizes):
        """View X or Y, where an address, the stride from item to item, and those along the axes say."""
        known, code, b = self.known, self.code, self.code.builder
        start, step, *strides = where
        n = math.prod(sizes[1:])
        contiguous = n * (known.V * known.parts), known.V * known.parts
        fetched = isinstance(n, int) and kind in ("whole", "pack whole")
        if fetched:
            size = sizes[0] * n * known.V * known.parts * known.item
            ahead = self.first + known.V * -(-AHEAD // size)
            base = b.inttoptr(value_of(start + ahead * (size // known.V)), known.real.as_pointer())
            self.following.append(Elements(code, known.vector, base, sizes[0], n, *contiguous, known.V))
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
        last = known.nm - 1 - self.first
        with code.when(~self.full, likely=False), code.loop(room.m) as i, code.loop(room.n) as j:
            for part in range(known.parts):
                for lane in range(known.V):
                    place = code.min(lane, last) + part * known.V
                    number = b.load(room.pointer(i, j, place), typ=known.real)
                    b.store(number, room.pointer(i, j, part * known.V + lane))

    def factor(self, k):
        """Copy operand number k to its room, and return that."""
        known, kind, room = self.known, self.known.kinds[k], self.known.copies[k]
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
