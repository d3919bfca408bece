"""How the CPU runs products of ordinary matrices: one kernel for each type, and for each order that is small."""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from compactla.cpu.choice import MOVED, STATIC, parts
from compactla.cpu.emit import Code, Number
from compactla.cpu.kernel import INT, compiled
from compactla.cpu.kernels.rows import Product, Scattered, over
from compactla.cpu.lanes import KINDS
from compactla.cpu.parallel import share
from compactla.cpu.run import SCALAR
from compactla.cpu.simd import INDEX, Elements, native_width
from compactla.cpu.vectors import Lanes, Vector
from compactla.view import REAL

# What addresses and steps of matrices are, for a kernel: of a sequence, addresses in memory.
STACK, SEQUENCE = "stack", "sequence"


@dataclass(frozen=True)
class Place:
    """Where matrices are in memory: sizes, and bytes from each to the next, from row to row and column to column."""

    m: int
    n: int
    step: int
    rs: int
    cs: int

    @property
    def strides(self):
        return self.step, self.rs, self.cs

    @property
    def T(self):
        return Place(self.n, self.m, self.step, self.cs, self.rs)


@dataclass(frozen=True, eq=False)
class Products:
    """Products of matrices of some type, sizes and strides.

    Attributes
    ----------
    kernel : function
        Of whether alpha is 1 and beta 0: the compiled kernel.
    swapped : bool
        Whether it computes the transposed product: then it takes B before A.
    cost : float
        Cost of one product, for `share`.
    sizes, A, B, C : tuple of int
        What the kernel is told of them: m, n and k, and the strides.
    """

    kernel: Callable
    swapped: bool
    cost: float
    sizes: tuple[int, int, int]
    A: tuple[int, int, int]
    B: tuple[int, int, int]
    C: tuple[int, int, int]

    def run(self, nm, a, b, c, alpha, beta, threads=None):
        """Compute `nm` of them, which begin at these addresses."""
        if self.swapped:
            a, b = b, a
        args = 0, nm, alpha, beta, *self.sizes, a, *self.A, b, *self.B, c, *self.C
        share(self.kernel(alpha == 1 and beta == 0), nm * self.cost, args, threads)


@functools.lru_cache(4096)
def products(dtype, A: Place, B: Place, C: Place, conj, source=STACK) -> Products:
    """What computes C <- alpha op(A) op(B) + beta C; op is in the places, and in whether A and B are conjugated."""
    size, real = dtype.itemsize, REAL[dtype.char].itemsize
    swapped = rank(C.T, size) > rank(C, size)
    if swapped:
        A, B, C, conj = B.T, A.T, C.T, conj[::-1]
    m, n, k = C.m, C.n, A.n
    known = len({m, n, k} - {1}) <= 1 and max(m, n, k) <= STATIC and k > 0
    lanes = native_width(dtype)
    if known:
        lanes = min(lanes, 1 << (n * parts(dtype) - 1).bit_length())
    forms = [form(X, size, real, known, X is A) for X in (A, B, C)]
    flags = "".join("*" if flag else "." for flag in conj)
    text = "|".join([dtype.char, str(lanes), f"{m},{n},{k}" if known else ",,", flags, source, *forms])
    moved = (m * k + k * n + m * n) * size
    cost = max(m * -(-n * parts(dtype) // lanes) * k * parts(dtype), moved / MOVED)
    strides = A.strides, B.strides, C.strides
    return Products(functools.partial(kernel, text, dtype.kind), swapped, cost, (m, n, k), *strides)


def rank(C, size):
    """How well the rows of C serve: contiguous ones, then long ones."""
    return (C.n == 1 or C.cs == size, C.n)


def form(X, size, real, known, broadcast):
    """What is compiled in of an operand: how it lies, and its strides if they are of contiguous matrices."""
    if broadcast:
        kind = "each"
    elif X.n == 1 or X.cs == size:
        kind = "rows"
    else:
        kind = "turned" if X.m == 1 or X.rs == size else "apart"
    if kind not in ("each", "rows") and X.step == 0:
        kind += " common"
    whole = (X.rs, X.cs) in ((X.n * size, size), (size, X.m * size))
    strides = f"{X.rs // real},{X.cs // real}" if known and whole else ","
    return f"{kind}:{strides}"


@functools.cache
def kernel(text, kind, plain):
    """The kernel that `products` makes the text for; a `plain` one is for alpha = 1 and beta = 0."""
    arguments = types.Tuple([SCALAR[kind]] * 2 + [INT] * 15)
    return compiled(batch, (arguments,), f"{text}|{'plain' if plain else 'scaled'}")


def batch(text):
    """Kernel for matrices lo to hi: scalars, sizes, and of each operand its address and strides."""

    def kernel(lo, hi, *args):
        multiply(text, lo, hi, args)

    return kernel


@intrinsic(prefer_literal=True)
def multiply(typing_context, text, lo, hi, args):
    def lower(context, builder, signature, values):
        given = cgutils.unpack_tuple(builder, values[3])
        passed = *values[1:3], *given

        def body(code, lo, hi, *given):
            scalars = [Number(context, kind, x) for kind, x in zip(signature.args[3], given[:2], strict=False)]
            loop(code, text.literal_value, lo, hi, scalars, given[2:5], [given[i : i + 4] for i in (5, 9, 13)])

        Code(builder).call(f"compactla.products|{text.literal_value}", [x.type for x in passed], body, *passed)
        return context.get_dummy_value()

    return types.void(text, lo, hi, args), lower


def loop(code, text, lo, hi, scalars, given, places):
    """Emit the products lo to hi - 1."""
    b = code.builder
    char, lanes, sizes, conj, source, *forms, scale = text.split("|")
    count = 2 if char in "FD" else 1
    vector = Vector(KINDS[char.lower()], int(lanes))
    m, n, k = (int(known) if known else x for known, x in zip(sizes.split(","), given, strict=True))
    columns = over(code, code.mul(n, count), vector.lanes)
    alpha, beta = (None, None) if scale == "plain" else (broadcast(code, x, char, vector) for x in scalars)
    shapes = (m, k), (k, n), (m, n)
    operands = [Operand(code, vector, count, source, *x) for x in zip(shapes, forms, places, strict=True)]
    for X in operands:
        X.prepare()
    with code.loop(b.sub(hi, lo)) as t:
        q = b.add(lo, t)
        A, B, C = (X.matrix(q, columns) for X in operands)
        read_c = beta is not None and operands[2].room
        if operands[1].room:
            operands[1].read(q)
        if read_c:
            zero = code.is_zero(abs(beta[0]) + abs(beta[-1]))
            with b.if_then(b.not_(zero)):
                operands[2].read(q)
        Product(code, A, B, C, code.mul(n, count), count, tuple(x == "*" for x in conj), alpha, beta).emit()
        if operands[2].room:
            operands[2].scattered(q).write(C)


class Operand:
    """An operand of all products while code is emitted."""

    def __init__(self, code, vector, count, source, shape, form, place):
        kind, strides = form.split(":")
        self.kind, *common = kind.split()
        self.common = bool(common)
        self.code, self.vector, self.parts, self.source = code, vector, count, source
        self.m, self.n = shape
        self.address, self.step, *given = place
        real = INDEX(vector.real.bitwidth // 8)
        self.rs, self.cs = (
            int(known) if known else code.builder.sdiv(x, real) for known, x in zip(strides.split(","), given, strict=True)
        )
        self.room = None

    def prepare(self):
        """Emit what comes before the loop."""
        if self.kind in ("each", "rows"):
            return
        self.room = self.scattered(INDEX(0)).room(self.vector)
        if self.common:
            self.scattered(INDEX(0)).read(self.room)

    def base(self, q):
        """Pointer to matrix q."""
        b = self.code.builder
        if self.source == SEQUENCE:
            place = b.inttoptr(b.add(self.address, b.mul(q, INDEX(8))), INDEX.as_pointer())
            start = b.load(place, typ=INDEX)
        else:
            start = b.add(self.address, b.mul(q, self.step))
        return b.inttoptr(start, self.vector.part.element.as_pointer())

    def scattered(self, q):
        return Scattered(
            self.code, self.base(q), self.m, self.n, self.rs, self.cs, self.parts, self.kind == "turned"
        )

    def matrix(self, q, columns):
        """What the product sees of matrix q."""
        if self.room:
            return self.room._replace(m=self.m)
        if self.kind == "each":
            return Elements(self.code, self.vector, self.base(q), self.m, self.n, self.rs, self.cs, 0, common=True)
        return Elements(self.code, self.vector, self.base(q), self.m, columns, self.rs, self.vector.lanes, 0)

    def read(self, q):
        """Copy matrix q to the room for it, unless it is the same for all."""
        if not self.common:
            self.scattered(q).read(self.room)


def broadcast(code, number, char, vector):
    """The parts of a scalar, each in all lanes."""
    parts = number.lanes(code, Vector(KINDS[char], vector.lanes)).parts
    return tuple(Lanes(code.builder, vector, part) for part in parts)
