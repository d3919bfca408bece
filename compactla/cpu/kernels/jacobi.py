"""Jacobi's method for eigenvalues of Hermitian matrices; its sweeps serve singular values too.

A rotation makes two columns p and q of a matrix orthogonal, or the element (p, q) of a Hermitian one zero. It is made
of three numbers either way: the two of the diagonal, of A or of G^H G, and the one between them. Every lane has its
own; those in which the one between is zero to rounding are not turned: their columns stay as they are, but for the sign
of zeros. So a matrix that is done does not change, however many sweeps others of its pack take.
"""

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes, Vector
from compactla.cpu.kernels.norms import squared

SHORT = 8  # numbers that are sorted without a loop
SWEEPS = 40  # more than any matrix needs: 5 to 12 are usual


def pairs(code: Code, n):
    """Yield all pairs (p, q) of 0 to n - 1 one by one, in loops: both of them `Index`es.

    They come in rounds of pairs that share nothing, as in a tournament.
    """
    n = code.unknown(n)
    first = n % 2  # a round of an odd number leaves one out
    odd = (first != 0).select(n, n - 1)
    with code.loop(odd) as r, code.loop((n + 1) // 2 - first) as i:
        k = i + first
        p, q = r + k, r - k
        p = (p < odd).select(p, p - odd)
        q = (q < 0).select(q + odd, q)
        yield p, (k == 0).select(odd, q)


def matters(p: Lanes, q: Lanes, between: Lanes, tolerance: Lanes) -> Flags:
    """Flags of lanes where |between| > tolerance sqrt(|p q|), for small elements as for large ones: digits are kept.

    Those whose square has lost digits of its own do not matter.
    """
    least = p.constant(2.0 ** (-1000 if p.vector.real.bitwidth == 64 else -110))
    return (squared(between) > abs(p * q) * (tolerance * tolerance)) & (squared(between) > least)


class Shears:
    """A rotation as shears of two columns: x - conj(h) y, then y + s x, then the first again.

    The error of each is relative to the angle, and cos^2 + sin^2 = 1 is a matter of course.
    """

    def __init__(self, sine: Lanes, shear: Lanes):
        self.sine, self.shear = sine, shear

    def turned(self, x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
        """Elements of columns p and q."""
        back = -self.shear.conjugate()
        x = back.fma(y, x)
        y = self.sine.fma(x, y)
        return back.fma(y, x), y


class Rotation(Shears):
    """The rotation for two real numbers of the diagonal and the one between them, in lanes where it `turns`."""

    def __init__(self, p: Lanes, q: Lanes, between: Lanes, turns: Flags):
        one, two, zero = p.constant(1), p.constant(2), between.constant(0)
        difference, twice = q - p, between + between
        inverse = difference.fma(difference, squared(twice)).rsqrt()
        double = abs(difference).fma(inverse + inverse, two)  # 2 + 2 cos of the double angle, or (2 cos)^2
        root = double.rsqrt()  # 1 / (2 cos)
        sine = twice * inverse.copysign(difference) * root
        shear = sine * (double * p.constant(0.5)).fma(root, one).reciprocal(many=True)
        super().__init__(turns.select(sine, zero), turns.select(shear, zero))
        self.tangent = turns.select(sine * (root + root), zero)

    def diagonal(self, p: Lanes, q: Lanes, between: Lanes) -> tuple[Lanes, Lanes]:
        """The two numbers of the diagonal when the one between them has become zero."""
        for t, x in zip(self.tangent.parts, between.parts, strict=True):
            t, x = (Lanes(p.builder, p.vector, part) for part in (t, x))
            p, q = (-t).fma(x, p), t.fma(x, q)
        return p, q


class Noted:
    """Flags of lanes, which are set one after the other."""

    def __init__(self, code: Code, lanes):
        self.builder, self.kind = code.builder, ir.IntType(lanes)
        self.memory = cgutils.alloca_once(code.builder, self.kind)

    def clear(self):
        self.builder.store(self.kind(0), self.memory)

    def __call__(self, flags: Flags):
        """Set these too."""
        self.builder.store(self.builder.or_(self.bits, flags.bits), self.memory)

    @property
    def bits(self):
        return self.builder.load(self.memory, typ=self.kind)

    @property
    def flags(self) -> Flags:
        return Flags(self.builder, self.builder.bitcast(self.bits, ir.VectorType(ir.IntType(1), self.kind.width)))


def sweep(code: Code, vector: Vector, once: Callable, most: int | None = None) -> Flags:
    """Sweep until no lane has turned in one; returns flags of lanes that had in the last, of `most` or `SWEEPS`.

    ``once(turned)`` emits a sweep, which calls ``turned(flags)`` for lanes that turn.
    """
    b, turned = code.builder, Noted(code, vector.lanes)
    count = code.variable(0)
    body, after = b.append_basic_block("sweep"), b.append_basic_block("swept")
    b.branch(body)
    b.position_at_end(body)
    turned.clear()
    once(turned)
    sweeps = count.get() + 1
    count.set(sweeps)
    again = turned.flags.any() & (sweeps < (SWEEPS if most is None else most))
    b.cbranch(again.value, body, after)
    b.position_at_end(after)
    return turned.flags


def exchanged(swap: Flags, x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """x and y, in lanes of `swap` the other way round."""
    return swap.select(y, x), swap.select(x, y)


def angle(code: Code, G: Elements, p, q) -> tuple[Lanes, Lanes, Lanes]:
    """|g_p|^2, |g_q|^2 and g_p^H g_q, of two columns."""
    reals = G.vector.reals
    squares, between = code.registers(reals, 2, 2), code.registers(G.vector, 2)  # two sums each wait less
    for half in range(2):
        squares[half, 0] = squares[half, 1] = code.zero(reals)
        between[half, 0] = code.zero(G.vector)
    for i, m in code.tiles(G.m, chunk(G)):
        for r in range(m):
            x, y = (G[i + r, k] for k in (p, q))
            for k, z in enumerate((x, y)):
                for part in (z.real, z.imag) if z.vector.is_complex else (z,):
                    squares[r % 2, k] = part.fma(part, squares[r % 2, k])
            between[r % 2, 0] = x.conjugate().fma(y, between[r % 2, 0])
    return *(squares[0, k] + squares[1, k] for k in range(2)), between[0, 0] + between[1, 0]


def turn(code: Code, rotation: Rotation, G: Elements, p, q):
    """Turn columns p and q."""
    for i, m in code.tiles(G.m, chunk(G)):
        for r in range(m):
            row = i + r
            G[row, p], G[row, q] = rotation.turned(G[row, p], G[row, q])


def chunk(G):
    """Rows of a column that are written out at a time."""
    return 8 if isinstance(G.m, int) else 4


def orthogonalize(code: Code, G: Elements) -> Flags:
    """Turn the columns of G until they are orthogonal; returns lanes in which they are not.

    This is one-sided Jacobi: elements of G are so scaled that the squares of squares do not overflow.
    """
    reals = G.vector.reals
    rows = code.zero(reals).constant(G.m) if isinstance(G.m, int) else code.broadcast(G.m, reals)
    tolerance = rows.sqrt() * rows.constant(2 * rounding(G.vector))

    def once(turned):
        for p, q in pairs(code, G.n):
            x, y, between = angle(code, G, p, q)
            turns = matters(x, y, between, tolerance)
            turned(turns)
            with code.when(turns.any()):
                turn(code, Rotation(x, y, between, turns), G, p, q)

    return sweep(code, G.vector, once)


def rounding(vector):
    """The largest relative error of a rounded number."""
    return 2.0 ** -(53 if vector.real.bitwidth == 64 else 24)


class Order:
    """The ascending order of real numbers, one below the other, in every lane: sorts them, then columns likewise."""

    def __init__(self, code: Code, keys: Elements):
        self.code, indices = code, Vector(types.int64, keys.vector.lanes)
        self.places = code.room(indices, keys.m)
        with code.loop(keys.m) as i:
            self.places[i, 0] = code.broadcast(i, indices)
        with code.loop(keys.m) as done, code.loop(keys.m - 1 - done) as i:
            following = i + 1
            x, y = keys[i, 0], keys[following, 0]
            swap = x > y
            with code.when(swap.any()):
                for A in (keys, self.places):
                    A[i, 0], A[following, 0] = exchanged(swap, A[i, 0], A[following, 0])

    def arrange(self, G: Elements):
        """Bring the columns of G into the order; zeros become positive, whatever rotations made of them."""
        code, places, zero = self.code, self.places, self.code.zero(G.vector)
        row = code.room(G.vector, 1, G.n)
        item = G.vector.real.bitwidth // 8
        own = places[0, 0]._new(ir.Constant(places.vector.part, [item * lane for lane in range(places.vector.lanes)]))
        offsets, step = code.room(places.vector, G.n), code.broadcast(row.cs * item, places.vector)
        with code.loop(G.n) as j:
            offsets[j, 0] = places[j, 0] * step + own
        with code.loop(G.m) as i:
            with code.loop(G.n) as j:
                row[0, j] = G[i, j]
            with code.loop(G.n) as j:
                G[i, j] = row.gathered(0, 0, offsets[j, 0]) + zero


def sort(values: list[Lanes]):
    """Sort numbers in every lane; returns the exchanges of neighbours that did so: places of the first, and flags."""
    exchanges = []
    for i in (i for end in range(len(values) - 1, 0, -1) for i in range(end)):
        exchanges.append((i, values[i] > values[i + 1]))
        values[i], values[i + 1] = exchanged(exchanges[-1][1], values[i], values[i + 1])
    return exchanges


def arrange(code: Code, keys: Elements, *matrices: Elements) -> None:
    """Sort real numbers, one below the other, in every lane, and columns of matrices; zeros become positive."""
    zero = code.zero(keys.vector)
    with code.loop(keys.m) as i:
        keys[i, 0] = keys[i, 0] + zero
    if not isinstance(keys.m, int) or keys.m > SHORT:
        order = Order(code, keys)
        for G in matrices:
            order.arrange(G)
        return
    values = [keys[i, 0] for i in range(keys.m)]
    swaps = sort(values)
    for i, x in enumerate(values):
        keys[i, 0] = x
    for G in matrices:
        with code.loop(G.m) as i:
            row = [G[i, j] for j in range(G.n)]
            for j, swap in swaps:
                row[j], row[j + 1] = exchanged(swap, row[j], row[j + 1])
            for j, x in enumerate(row):
                G[i, j] = x + zero
