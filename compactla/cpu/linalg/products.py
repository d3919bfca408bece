"""How the CPU runs products of ordinary matrices: one kernel for each type, and for each order that is small."""

import functools
from typing import NamedTuple

import numpy as np

from compactla.calls.launch import NOW
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import MOVED, STATIC, parts
from compactla.cpu.emit.call import Arguments, emitted, text_of
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.matrices import Elements, itemsize, native_width
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.prefetch import nbytes, successive
from compactla.cpu.emit.vectors import Lanes, Vector
from compactla.cpu.memory.products import Product, Scattered, over
from compactla.cpu.run import FAR, SCALAR
from compactla.cpu.threads.sharing import share
from compactla.dtypes import REAL
from compactla.overlap import address
from compactla.strides import Place

# Where the matrices of an operand are: one step apart, or where an array of addresses says.
STACK, SEQUENCE = "stack", "sequence"
AHEAD = 4096  # bytes between what is worked on and what is fetched


class ProductCall(NamedTuple):
    """What a kernel for products is compiled for; see `compactla.cpu.emit.call`.

    Attributes
    ----------
    dtype : str
        Letter of the type.
    lanes : int
        Real numbers in a vector.
    sizes : tuple of (int or None)
        m, n and k, if they are compiled in.
    conj : tuple of bool
        Whether A and B are conjugated.
    source : str
        Where matrices of all operands are, `STACK` or `SEQUENCE`.
    operands : tuple of (str, bool, int or None, int or None)
        For A, B and C: how numbers lie, whether one matrix stands for all, as `layout` has both, and strides in real
        numbers, if they are compiled in.
    scale : str
        "scaled" by alpha and beta, or "plain", or "far" where matrices are also fetched ahead.
    """

    dtype: str
    lanes: int
    sizes: tuple
    conj: tuple
    source: str
    operands: tuple
    scale: str = "scaled"


class Products:
    """Products of matrices of some type, sizes and strides.

    Parameters
    ----------
    description : ProductCall
        What kernels are compiled for, but for `scale`.
    swapped : bool
        Whether kernels compute the transposed product: then they take B before A.
    cost : float
        Cost of one product, for `share`.
    words : sequence of int
        Arguments of kernels: m, n, k, and bytes from each matrix of A to the next, from row to row, and from column to
        column; the same of B and of C.
    moved : int
        Bytes of the matrices of a product.
    ahead : bool
        Whether sizes are compiled in, and all matrices follow each other, so that they can be fetched ahead.
    """

    def __init__(self, description, swapped, cost, words, moved, ahead):
        self.description, self.swapped, self.cost = description, swapped, cost
        self.moved, self.ahead = moved, ahead
        self.words, self.k = np.array(words, np.int64), words[2]
        self.place = address(self.words)
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
            number = SCALAR[np.dtype(self.description.dtype).kind]
            text = text_of(self.description._replace(scale=scale))
            kernel = self.kernels[scale] = compiled(batch, (number, number, *[INT] * 4), text)
        if self.swapped:
            a, b = b, a
        share(kernel, nm * self.cost, (0, nm, alpha, beta, self.place, a, b, c), launch)


@functools.lru_cache(4096)
def products(dtype: np.dtype, A: Place, B: Place, C: Place, conj: tuple[bool, bool], source: str = STACK) -> Products:
    """Plan C <- alpha op(A) op(B) + beta C, where op is in the strides, and in whether A and B are conjugated."""
    size, real = dtype.itemsize, REAL[dtype.char].itemsize
    swapped = C.T.rank(size) > C.rank(size)
    if swapped:
        A, B, C, conj = B.T, A.T, C.T, conj[::-1]
    m, n, k = C.m, C.n, A.n
    known = 0 < k and max(m, n, k) <= STATIC and (source == STACK or len({m, n, k} - {1}) <= 1)
    lanes = native_width(dtype)
    if known:
        lanes = min(lanes, 1 << (n * parts(dtype) - 1).bit_length())
    kinds = ("each", False), layout(B, size, source), layout(C, size, SEQUENCE)
    strides = [known_strides(X, size, real) if known else (None, None) for X in (A, B, C)]
    operands = tuple((*kind, *steps) for kind, steps in zip(kinds, strides, strict=True))
    sizes = (m, n, k) if known else (None, None, None)
    description = ProductCall(dtype.char, lanes, sizes, tuple(conj), source, operands)
    moved = (m * k + k * n + m * n) * size
    cost = max(m * -(-n * parts(dtype) // lanes) * k * parts(dtype), moved / MOVED)
    words = [m, n, k, *A.strides, *B.strides, *C.strides]
    ahead = known and source == STACK and all(X.step == X.m * X.n * size for X in (A, B, C))
    return Products(description, swapped, cost, words, moved, ahead)


def layout(X, size, source):
    """Tell how numbers of a matrix lie, and whether one stands for all, which is copied.

    They lie in "rows" of contiguous numbers, "turned" in columns of such, or "apart"; of A, "each" is taken alone.
    """
    if X.n == 1 or X.cs == size:
        return "rows", False
    return "turned" if X.m == 1 or X.rs == size else "apart", source == STACK and X.step == 0


def known_strides(X, size, real):
    """Return the strides of a matrix in real numbers if it is contiguous, to be compiled in, else None twice."""
    whole = (X.rs, X.cs) in ((X.n * size, size), (size, X.m * size))
    return (X.rs // real, X.cs // real) if whole else (None, None)


def batch(text):
    """Make the kernel for products lo to hi: scalars, address of `Products.words`, and addresses of A, B and C."""

    def kernel(lo, hi, alpha, beta, words, a, b, c):
        multiply(text, lo, hi, alpha, beta, words, a, b, c)

    return kernel


@emitted(ProductCall)
def multiply(code, products, lo, hi, alpha, beta, words, a, b, c):
    """Compute the products lo to hi - 1."""
    char, lanes, scale = products.dtype, products.lanes, products.scale
    count = 2 if char in "FD" else 1
    vector = Vector(KINDS[char.lower()], lanes)

    # Sizes and scalars
    arguments = Arguments.at(code, words).some(12)
    m, n, k = (x if size is None else size for size, x in zip(products.sizes, arguments, strict=False))
    columns = over(n * count, lanes)
    alpha, beta = (broadcast(code, x, char, vector) for x in (alpha, beta)) if scale == "scaled" else (None, None)

    # Operands, of which those that all products share are copied
    operands = []
    for i, (sizes, lie, start) in enumerate(zip(((m, k), (k, n), (m, n)), products.operands, (a, b, c), strict=True)):
        place = start, *arguments[3 * i + 3 : 3 * i + 6]
        operands.append(Operand(code, vector, count, products.source, sizes, lie, place))
    for X in operands:
        X.prepare()

    with code.loop(hi - lo) as t:
        # Those that have to be copied
        q = lo + t
        A, B, C = (X.matrix(q, columns) for X in operands)
        read_c = beta is not None and operands[2].room
        if operands[1].room:
            operands[1].read(q)
        if read_c:
            zero = code.is_zero(abs(beta[0]) + abs(beta[-1]))
            with code.when(~zero):
                operands[2].read(q)

        # One product, while the matrices of another are fetched
        product = Product(code, A, B, C, n * count, count, products.conj, alpha, beta)
        if scale == "far":
            following = [successive(X.following(q)) for X in operands]
            most = max(map(nbytes, following))
            code.fetch_ahead([X for X in following if nbytes(X) == most], product.rounds)
        product.emit()
        if operands[2].room:
            operands[2].scattered(q).write(C)


class Operand:
    """An operand of all products while code is emitted.

    Its address, and bytes from matrix to matrix, from row to row, and from column to column are in `place`.
    """

    def __init__(self, code, vector, count, source, sizes, lie, place):
        self.code, self.vector, self.parts, self.source = code, vector, count, source
        self.kind, self.common, *known = lie
        self.m, self.n = sizes
        self.address, self.step, *strides = place
        real = vector.real.bitwidth // 8
        self.rs, self.cs = (x // real if number is None else number for number, x in zip(known, strides, strict=True))
        self.room = None

    def prepare(self):
        """Emit what comes before the loop."""
        if self.kind in ("each", "rows"):
            return
        self.room = self.scattered(0).room(self.vector)
        if self.common:
            self.scattered(0).read(self.room)

    def base(self, q):
        """Find where matrix q begins, as a pointer."""
        b = self.code.builder
        if self.source == SEQUENCE:
            start = self.code.entry(b.inttoptr(self.address.value, INDEX.as_pointer()), q)
        else:
            start = self.address + q * self.step
        return b.inttoptr(start.value, self.vector.part.element.as_pointer())

    def scattered(self, q):
        """View matrix q as numbers that are copied one by one, or row by row of the transposed matrix."""
        return Scattered(self.code, self.base(q), self.m, self.n, self.rs, self.cs, self.parts, self.kind == "turned")

    def matrix(self, q, columns):
        """View matrix q, or the room that it is copied to, as a matrix of vectors."""
        if self.room:
            return self.room._replace(m=self.m)
        if self.kind == "each":
            return Elements(self.code, self.vector, self.base(q), self.m, self.n, self.rs, self.cs, 0, common=True)
        return Elements(self.code, self.vector, self.base(q), self.m, columns, self.rs, self.vector.lanes, 0)

    def following(self, q):
        """View a matrix that comes soon behind matrix q, whose sizes are known, number by number."""
        width, one = self.n * self.parts, Vector(self.vector.dtype, 1)
        size = self.m * width * itemsize(one.part.element)
        X = Elements(self.code, one, self.base(q), self.m, width, width, 1, 1)
        return X._replace(base=X._shifted(-(-AHEAD // size) * self.m * width))

    def read(self, q):
        """Copy matrix q to the room for it, unless it is the same for all."""
        if not self.common:
            self.scattered(q).read(self.room)


def broadcast(code, number, char, vector):
    """Put each part of a scalar in all lanes."""
    parts = number.lanes(code, Vector(KINDS[char], vector.lanes)).parts
    return tuple(Lanes(code.builder, vector, part) for part in parts)
