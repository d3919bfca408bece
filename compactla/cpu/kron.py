"""How the CPU applies Kronecker products: in one pass over items, V of which stand side by side in registers."""

import functools
import itertools
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from compactla.cpu import parallel
from compactla.cpu.ahead import LINE
from compactla.cpu.choice import MOVED, parts, width
from compactla.cpu.emit import Code, Number
from compactla.cpu.items import Loose, Packed, band, made, panel, product_of
from compactla.cpu.kernel import INT, compiled
from compactla.cpu.kernels import kron as kernels
from compactla.cpu.kernels.gemm import rounds
from compactla.cpu.ordinary import Ordinary, lie
from compactla.cpu.parallel import share
from compactla.cpu.run import SCALAR
from compactla.cpu.room import room
from compactla.cpu.simd import INDEX, Elements, index, native_width, shifted
from compactla.cpu.vectors import FLOATS, Vector
from compactla.overlap import address
from compactla.view import REAL

FEW = 200_000  # multiply-adds up to which no code is compiled for a size
KNOWN = 16  # Sizes for which code is compiled that knows the size; larger ones share code.
AHEAD = 4096  # bytes, at least, that items are fetched ahead
WORD = 8
shared = functools.cache(compiled)


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
    m, columns = (d[0], n) if name == "sum" else panel(mul, d, kind, known)
    yield m, columns, columns
    yield *band(e, known), e[-1]
    yield from itertools.starmap(large, made(mul, d, e))
    if name == "solve":
        yield large(d[0], n)


class Known:
    """What a kernel knows while code is emitted, by its text and by the numbers that it is told.

    The text has the name of what is computed, the type and V, number of factors and size, how operands, X and Y lie,
    and whether there is a beta.
    """

    def __init__(self, code, text, told, work):
        self.code, b, words = code, code.builder, itertools.count()
        self.name, char, sizes, kinds, self.x, self.y, self.adds = text.split("|")
        dtype, self.V = np.dtype(char[0]), int(char[1:])
        self.vector, self.one = (Vector(from_dtype(dtype), lanes) for lanes in (self.V, 1))
        self.parts, self.real, self.item = parts(dtype), FLOATS[self.vector.real], REAL[dtype.char].itemsize
        n, _, size = sizes.partition("x")
        self.n, self.kinds = int(n), kinds.split(",")

        def load():
            return b.load(b.inttoptr(b.add(told, INDEX(WORD * next(words))), INDEX.as_pointer()), typ=INDEX)

        axes = max(self.n, 2)
        self.nm, self.vlen = load(), load()
        self.d, self.e = (tuple(load() for _ in range(axes)) for _ in "de")
        if size != "?":
            self.d = self.e = tuple([1] * (axes - self.n) + [int(size)] * self.n)
        self.factors = [[load() for _ in range(5)] for _ in self.kinds]
        self.X, self.Y = ([load() for _ in range(2 + axes)] for _ in "XY")
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
        """Rounds of the innermost loops for the V items, of known sizes."""
        total, outer = 0, 1
        for k, (m, n) in enumerate(zip(self.e[-self.n :], self.d[-self.n :], strict=True)):
            behind = product_of(operator.mul, self.d[len(self.d) - self.n + k + 1 :])
            total += outer * rounds(self.given[k]._replace(m=m, n=behind), n)
            outer *= m
        return total * {"kron": 1, "sum": 1, "solve": 2}[self.name]


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
                copy(code, target._replace(base=base, rs=rs, cs=cs), target, sign, alpha if known.takes_alpha(k) else None)
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
            copy(self.code, room._replace(base=self.packed(start, step), rs=rs, cs=cs, im=known.vlen), room, sign, alpha)
            self.repeat_last(room)
            return room
        starts, adjacent = self.loose(start, step)
        Ordinary(self.code, known.vector, known.real, kind, room.m, room.n, starts, rs, cs, adjacent).read(room)
        if known.parts == 2 or alpha is not None:
            copy(self.code, room, room, sign, alpha)
        return room


@dataclass(frozen=True)
class Choice:
    """A kernel and what it is told.

    Attributes
    ----------
    code : function
        Compiled kernel.
    V : int
        Items that are computed side by side.
    cost : float
        Cost of V items, for `share`.
    room : int
        Real numbers that a thread needs to work in.
    head : tuple of int
        Numbers that the kernel is told first, after that of the items.
    places : list of (int, tuple of int)
        Strides, with the numbers of operands in the order in which the kernel takes them; X and Y are the last ones.
    """

    code: Any
    V: int
    cost: float
    room: int
    head: tuple
    places: list


def run(name, factors, signs, X, Y, d, e, scalars, work=None, threads=None):
    """Compute Y from X, both arrays (nm, ...) or packs, as `compactla.kron` checked them.

    Parameters
    ----------
    name : {"kron", "sum", "solve"}
        What is computed.
    factors : sequence of ndarray or Pack
        Operands, transposed if they have to be.
    signs : sequence of int
        -1 for operands that are to be conjugated, else 1.
    d, e : tuple of int
        Axes of X and Y.
    scalars : (number, number)
        alpha and beta.
    """
    nm, operands = (len(X) if isinstance(X, np.ndarray) else X.nm), (*factors, X, Y)
    madds = sum(math.prod(e[: k + 1]) * math.prod(d[k:]) for k in range(len(d)))
    found = choice(name, X.dtype, d, e, *map(placed, operands), adds=scalars[1] != 0, few=nm * madds < FEW)
    told = [nm, *found.head]
    for k, strides in found.places:
        told.append(start(operands[k]))
        told += strides
        if k < len(factors):
            told.append(signs[k])
    numbers, npack = np.array(told, np.int64), -(-nm // found.V)
    limit = min(parallel.THREADS, npack, parallel.THREADS if threads is None else threads)
    rows = workspace(work, X.dtype, found.room, limit)
    args = 0, npack, address(numbers), *scalars
    share(found.code, npack * found.cost, args, len(rows), None, rows)


def start(A):
    """Address of the first element."""
    return address(A) if isinstance(A, np.ndarray) else A.view.address


def placed(A):
    """Shape and strides: of an array in bytes, of a pack in real numbers, and its vector length."""
    if isinstance(A, np.ndarray):
        return A.shape, A.strides, 0
    view = A.view
    return (A.m, A.n), (view.ps, view.rs, view.cs), A.vlen


def workspace(work, dtype, size, threads):
    """Addresses of where each thread works, of so many real numbers: in an array that is given, or in our own."""
    if work is None:
        return [address(row) for row in room(dtype, threads, size)]
    nbytes = size * REAL[dtype.char].itemsize
    begin = -(-address(work) // LINE) * LINE
    count = (address(work) + work.nbytes - begin) // nbytes
    return [begin + k * nbytes for k in range(min(count, threads))]


def needed(name, factors, X, Y, d, e, threads=None):
    """Elements of a work array for so many threads, and for one."""
    operands = map(placed, (*factors, X, Y))
    size = choice(name, X.dtype, d, e, *operands, adds=False, few=False).room * REAL[X.dtype.char].itemsize
    threads = parallel.THREADS if threads is None else threads
    return [-(-(count * size + LINE) // X.dtype.itemsize) for count in (threads, 1)]


@functools.lru_cache(1024)
def choice(name, dtype, d, e, *layouts, adds, few):
    """How items are computed that lie in memory like that; `few`: with code that is compiled for all sizes."""
    *factors, x, y = layouts
    item, vlens = dtype.itemsize, {vlen for *_, vlen in layouts if vlen}
    V = width(dtype, vlens.pop()) if vlens else native_width(dtype)
    n = len(d)
    orders = [tuple(range(n))] if x[2] else orders_of(n)
    order = min(orders, key=lambda order: estimate(dtype, d, e, x, y, V, order))
    (kind_x, X), (kind_y, Y) = located(dtype, d, x, V, order, True), located(dtype, e, y, V, order, False)
    sources = [(g + k, *operand(dtype, factors[g + k], V)) for g in range(0, len(factors), n) for k in order]
    kinds = [kind for _, kind, _ in sources]
    d, e = ordered(d, order), ordered(e, order)
    given = operands(name, d[-n:], e[-n:])
    square = len({*d[-n:], *e[-n:]}) == 1 and d[-1] <= KNOWN
    simple = {kind_x, kind_y, *kinds} <= {"whole", "pack whole", "shared"}
    size = d[-1] if square and simple and not few else None
    text = [name, f"{dtype.char}{V}", f"{n}x{size or '?'}", ",".join(kinds), kind_x, kind_y, "beta" * adds]
    number = SCALAR[dtype.kind]
    code = shared(batch, (INT, number, number, INT), "|".join(text), V, source="compactla.cpu.kernels.kron")
    sizes = rooms(operator.mul, name, d, e, given, kind_x, size is not None)
    column = V * parts(dtype)
    madds = sum(math.prod(e[: k + 1]) * math.prod(d[k:]) for k in range(len(d))) * (2 if name == "solve" else 1)
    moved = (math.prod(d) + math.prod(e)) * V * item
    total = sum(m * apart for m, _, apart in sizes) * column
    places = [(k, strides) for k, _, strides in sources] + [(len(factors), X), (len(factors) + 1, Y)]
    vlen = next((vlen for *_, vlen in layouts if vlen), V)
    return Choice(code, V, max(parts(dtype) ** 2 * madds, moved / MOVED), total, (vlen, *d, *e), places)


def orders_of(n):
    """Orders of the axes that are tried."""
    axes = tuple(range(n))
    return [*itertools.permutations(axes)] if n <= 4 else [axes, axes[::-1]]


def ordered(sizes, order):
    """Axes in an order; there are two at least."""
    return (1,) * (len(order) == 1) + tuple(sizes[k] for k in order)


# Operations on vectors for a number that is copied, by how it lies.
COPY = {"whole": 5, "wholeT": 5, "rows": 7, "rowsT": 7, "lanes": 2, "apart": 25, "pack": 1, "pack whole": 1}


def estimate(dtype, d, e, x, y, V, order):
    """Vector operations for V items, if the axes are taken in an order."""
    (kind_x, _), (kind_y, _) = located(dtype, d, x, V, order, True), located(dtype, e, y, V, order, False)
    copies = math.prod(d) * COPY[kind_x.removeprefix("split ")] + math.prod(e) * COPY[kind_y]
    d, e = ordered(d, order), ordered(e, order)
    return copies + sum(math.prod(e[: k + 1]) * math.prod(d[k:]) for k in range(len(d)))


def located(dtype, sizes, layout, V, order, is_read):
    """How X or Y lies, and its strides, from item to item first, with the axes in an order."""
    _, (step, *strides), vlen = layout
    column = V * parts(dtype)
    n = len(order)
    if vlen:
        rs, cs = strides
        if n == 1:
            rs, cs = cs, rs
        whole = vlen == V and cs == column and (n == 1 or rs == math.prod(sizes[1:]) * column)
        return "pack whole" if whole else "pack", (step, rs, *[0] * (n - 2), cs)
    item = dtype.itemsize
    strides = [0] * (n == 1) + [strides[k] for k in order]
    sizes = ordered(sizes, order)
    strides = regular(sizes, strides, item)
    merged = all(strides[k] == sizes[k + 1] * strides[k + 1] for k in range(1, len(sizes) - 1))
    if not is_read:
        kind = lie(*sizes[-2:], step, *strides[-2:], item)
    else:
        kind = lie(sizes[0], math.prod(sizes[1:]) if merged else sizes[-1], step, strides[0], strides[-1], item)
    kind = transposable(kind, V)
    return kind if merged or not is_read else f"split {kind}", (step, *strides)


def regular(sizes, strides, item):
    """Strides of axes of one element set to what they are in contiguous arrays."""
    strides = list(strides)
    for k in reversed(range(len(sizes))):
        if sizes[k] == 1:
            inner = strides[k + 1] * sizes[k + 1] if k + 1 < len(sizes) else None
            outer = next((strides[j] for j in reversed(range(k)) if sizes[j] > 1), item)
            strides[k] = outer if inner is None else inner
    return strides


def transposable(kind, V):
    """How matrices lie, if V numbers of each can be transposed in registers: V has to be a power of two."""
    return kind if (V > 1 and V & (V - 1) == 0) or kind == "lanes" else "apart"


def operand(dtype, layout, V):
    """How an operand lies, and its strides, from matrix to matrix first."""
    shape, strides, vlen = layout
    if vlen:
        return "pack", strides
    if len(shape) == 2:
        real = REAL[dtype.char].itemsize
        return "shared", (0, *(stride // real for stride in strides))
    (_, m, n), (step, rs, cs) = shape, strides
    return transposable(lie(m, n, step, rs, cs, dtype.itemsize), V), strides
