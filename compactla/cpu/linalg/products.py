"""How the CPU runs products of ordinary matrices: one kernel for each type, and for each order that is small."""

import functools

import numpy as np
from numba import types
from numba.extending import intrinsic

from compactla.calls.launch import NOW
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import MOVED, STATIC, parts
from compactla.cpu.emit.code import Code, Number
from compactla.cpu.emit.matrices import INDEX, Elements, itemsize, native_width
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.prefetch import nbytes
from compactla.cpu.emit.vectors import Lanes, Vector
from compactla.cpu.memory.products import Product, Scattered, over
from compactla.cpu.run import FAR, SCALAR
from compactla.cpu.threads.sharing import share
from compactla.dtypes import REAL
from compactla.overlap import address
from compactla.strides import Place

# What addresses and steps of matrices are, for a kernel: of a sequence, addresses in memory.
STACK, SEQUENCE = "stack", "sequence"
WORD = 8
AHEAD = 4096  # bytes between what is worked on and what is fetched
shared = functools.cache(compiled)


class Products:
    """Products of matrices of some type, sizes and strides.

    Parameters
    ----------
    text, kind : str
        What kernels are compiled for, and the kind of the type.
    swapped : bool
        Whether kernels compute the transposed product: then they take B before A.
    cost : float
        Cost of one product, for `share`.
    numbers : sequence of int
        What kernels are told: m, n, k, and bytes from each matrix of A to the next, from row to row, and from column to
        column; the same of B and of C.
    moved : int
        Bytes of the matrices of a product.
    ahead : bool
        Whether sizes are compiled in, and all matrices follow each other, so that they can be fetched ahead.
    """

    def __init__(self, text, kind, swapped, cost, numbers, moved, ahead):
        self.text, self.kind, self.swapped, self.cost = text, kind, swapped, cost
        self.moved, self.ahead = moved, ahead
        self.numbers, self.k = np.array(numbers, np.int64), numbers[2]
        self.told = address(self.numbers)
        self.kernels = {}

    def run(self, nm, a, b, c, alpha, beta, launch=NOW):
        """Compute `nm` of them, which begin at these addresses."""
        if not self.k:  # an empty sum is zero, whatever multiplies it
            alpha = type(alpha)(0)
        scale = "scaled"
        if alpha == 1 and beta == 0:
            scale = "far" if nm * self.moved > FAR and self.ahead else "plain"
        kernel = self.kernels.get(scale)
        if kernel is None:
            arguments = SCALAR[self.kind], SCALAR[self.kind], *[INT] * 4
            kernel = self.kernels[scale] = shared(batch, arguments, f"{self.text}|{scale}")
        if self.swapped:
            a, b = b, a
        share(kernel, nm * self.cost, (0, nm, alpha, beta, self.told, a, b, c), launch)


@functools.lru_cache(4096)
def products(dtype, A: Place, B: Place, C: Place, conj, source=STACK) -> Products:
    """Kernel of C <- alpha op(A) op(B) + beta C; op is in the places, and in whether A and B are conjugated."""
    size, real = dtype.itemsize, REAL[dtype.char].itemsize
    swapped = C.T.rank(size) > C.rank(size)
    if swapped:
        A, B, C, conj = B.T, A.T, C.T, conj[::-1]
    m, n, k = C.m, C.n, A.n
    known = len({m, n, k} - {1}) <= 1 and max(m, n, k) <= STATIC and k > 0
    lanes = native_width(dtype)
    if known:
        lanes = min(lanes, 1 << (n * parts(dtype) - 1).bit_length())
    kinds = "each", layout(B, size, source), layout(C, size, SEQUENCE)
    forms = [form(X, kind, size, real, known) for X, kind in zip((A, B, C), kinds, strict=True)]
    flags = "".join("*" if flag else "." for flag in conj)
    text = "|".join([dtype.char, str(lanes), f"{m},{n},{k}" if known else ",,", flags, source, *forms])
    moved = (m * k + k * n + m * n) * size
    cost = max(m * -(-n * parts(dtype) // lanes) * k * parts(dtype), moved / MOVED)
    numbers = [m, n, k, *A.strides, *B.strides, *C.strides]
    ahead = known and source == STACK and all(X.step == X.m * X.n * size for X in (A, B, C))
    return Products(text, dtype.kind, swapped, cost, numbers, moved, ahead)


def layout(X, size, source):
    """How numbers of a matrix lie; "common" where one that has to be copied stands for all."""
    if X.n == 1 or X.cs == size:
        return "rows"
    kind = "turned" if X.m == 1 or X.rs == size else "apart"
    return f"{kind} common" if source == STACK and X.step == 0 else kind


def form(X, kind, size, real, known):
    """Compiled-in properties of an operand: how it lies, and its strides if they are of contiguous matrices."""
    whole = (X.rs, X.cs) in ((X.n * size, size), (size, X.m * size))
    strides = f"{X.rs // real},{X.cs // real}" if known and whole else ","
    return f"{kind}:{strides}"


def batch(text):
    """Kernel for matrices lo to hi: scalars, where the numbers are that it is told, and addresses of A, B and C."""

    def kernel(lo, hi, alpha, beta, told, a, b, c):
        multiply(text, lo, hi, alpha, beta, told, a, b, c)

    return kernel


@intrinsic(prefer_literal=True)
def multiply(typing_context, text, lo, hi, alpha, beta, told, a, b, c):
    def lower(context, builder, signature, values):
        def body(code, lo, hi, alpha, beta, told, *addresses):
            b = code.builder
            words = (b.inttoptr(b.add(told, INDEX(WORD * i)), INDEX.as_pointer()) for i in range(12))
            given = [b.load(word, typ=INDEX) for word in words]
            scalars = [Number(context, kind, x) for kind, x in zip(signature.args[3:5], (alpha, beta), strict=True)]
            places = [(x, *given[i : i + 3]) for i, x in zip((3, 6, 9), addresses, strict=True)]
            loop(code, text.literal_value, lo, hi, scalars, given[:3], places)

        passed = values[1:]
        Code(builder).call(f"compactla.products|{text.literal_value}", [x.type for x in passed], body, *passed)
        return context.get_dummy_value()

    return types.void(text, lo, hi, alpha, beta, told, a, b, c), lower


def loop(code, text, lo, hi, scalars, given, places):
    """Emit the products lo to hi - 1."""
    b = code.builder
    char, lanes, sizes, conj, source, *forms, scale = text.split("|")
    count = 2 if char in "FD" else 1
    vector = Vector(KINDS[char.lower()], int(lanes))
    m, n, k = (int(known) if known else x for known, x in zip(sizes.split(","), given, strict=True))
    columns = over(code, code.mul(n, count), vector.lanes)
    alpha, beta = (broadcast(code, x, char, vector) for x in scalars) if scale == "scaled" else (None, None)
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
        product = Product(code, A, B, C, code.mul(n, count), count, tuple(x == "*" for x in conj), alpha, beta)
        if scale == "far":
            coming = [X.coming(q) for X in operands]
            most = max(map(nbytes, coming))
            code.fetch_ahead([X for X in coming if nbytes(X) == most], product.rounds)
        product.emit()
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
            int(known) if known else code.builder.sdiv(x, real)
            for known, x in zip(strides.split(","), given, strict=True)
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
            place = b.inttoptr(b.add(self.address, b.mul(q, INDEX(WORD))), INDEX.as_pointer())
            start = b.load(place, typ=INDEX)
        else:
            start = b.add(self.address, b.mul(q, self.step))
        return b.inttoptr(start, self.vector.part.element.as_pointer())

    def scattered(self, q):
        return Scattered(self.code, self.base(q), self.m, self.n, self.rs, self.cs, self.parts, self.kind == "turned")

    def matrix(self, q, columns):
        """The place of matrix q."""
        if self.room:
            return self.room._replace(m=self.m)
        if self.kind == "each":
            return Elements(self.code, self.vector, self.base(q), self.m, self.n, self.rs, self.cs, 0, common=True)
        return Elements(self.code, self.vector, self.base(q), self.m, columns, self.rs, self.vector.lanes, 0)

    def coming(self, q):
        """A matrix that comes soon behind matrix q, of which sizes are known, number by number."""
        width, one = self.n * self.parts, Vector(self.vector.dtype, 1)
        size = self.m * width * itemsize(one.part.element)
        X = Elements(self.code, one, self.base(q), self.m, width, width, 1, 1)
        return X._replace(base=X._shifted(INDEX(-(-AHEAD // size) * self.m * width)))

    def read(self, q):
        """Copy matrix q to the room for it, unless it is the same for all."""
        if not self.common:
            self.scattered(q).read(self.room)


def broadcast(code, number, char, vector):
    """The parts of a scalar, each in all lanes."""
    parts = number.lanes(code, Vector(KINDS[char], vector.lanes)).parts
    return tuple(Lanes(code.builder, vector, part) for part in parts)
