"""Factors of symmetric and Hermitian matrices that may be indefinite.

Bunch and Kaufman's pivoting: A = L D L^T, or L D L^H, where D has blocks of one and of two rows. Each lane chooses its
own, so some are in the second row of a block while others begin one. All go through the columns together: a column
that is the first of a block of two changes nothing but by its interchange, and the second subtracts both. There is one
algorithm, for a lower triangle: an upper one is that of the matrix with rows and columns in reverse.
"""

import math
from contextlib import nullcontext

from llvmlite import ir
from numba import types

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.matrices import Elements, itemsize
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.getrfnp import reciprocal
from compactla.cpu.kernels.laswp import integers, tree

ALPHA = (1 + math.sqrt(17)) / 8  # of Bunch and Kaufman: it bounds the growth in two steps by that of two rows at once
# Rows of matrices that are in registers, of which some may be spilled.
IN_REGISTERS, IN_REGISTERS_COMPLEX = 8, 6
PANEL = 4  # columns


class Factorization:
    """The lower triangle of A becomes L and D, as LAPACK's ?sytf2 and ?hetf2 leave them.

    Parameters
    ----------
    A : Elements
        n x n.
    ipiv : Elements
        n x 1, of integers.
    hermitian : bool
        Whether the matrix is Hermitian, if it is complex.
    upper : bool
        Whether it is the upper triangle that there is.
    """

    def __init__(self, code: Code, A: Elements, ipiv: Elements, info, hermitian: bool, upper: bool):
        A = A._replace(conj=False)  # conjugates have the factors' conjugates
        self.code, self.n, self.info, self.upper = code, A.n, info, upper
        self.hermitian = hermitian and A.vector.is_complex
        self.given = A.reversed if upper else A
        self.ipiv = ipiv.rows_reversed if upper else ipiv
        self.kind = integers(A.vector)
        self.A, self.known = self.given, False  # whether it is in registers, and indices are numbers
        # The pivot of a block of two that a lane is in the middle of, below 0, or 0.
        self.begun = code.registers(self.kind, 1)
        self.scale = code.registers(A.vector.reals, 1)  # one over the element beside the diagonal of such a block

    def run(self):
        code, n = self.code, self.n
        self.begun[0, 0] = code.zero(self.kind)
        for i in code.each(n if self.hermitian else 0):
            self.A[i, i] = self.A[i, i].real
        if not isinstance(n, int):
            for k in code.each(n):
                self.step(k)
            return
        # The last rows in registers, with the column before them, for blocks that begin there.
        most = IN_REGISTERS if len(self.given.vector.parts) == 1 else IN_REGISTERS_COMPLEX
        first = max(n - most, 0)
        for k in code.each(code.unknown(first)) if first else ():
            self.step(k)
        start = max(first - 1, 0)
        self.A, self.known = Corner(code.registers(self.given.vector, n - start, n - start), start), True
        for i in range(start, n):
            for j in range(start, i + 1):
                self.A[i, j] = self.given[i, j]
        for k in range(first, n):
            self.step(k)
        for i in range(start, n):
            for j in range(start, i + 1):
                self.given[i, j] = self.A[i, j]

    def step(self, k):
        """Column k of L, or the choice of a block that begins there."""
        code = self.code
        begun = self.begun[0, 0]
        second = begun < 0
        own = diagonal(self.A, k, self.hermitian).abs1()
        largest, place = self.search(k)
        zero = ((own != own) | ((own == 0) & (largest == 0))) & ~second
        wanted = ~(own >= largest * largest.constant(ALPHA)) & ~zero & ~second
        chosen = code.registers(self.kind, 1)
        chosen[0, 0] = code.broadcast(k, self.kind)
        if not (isinstance(k, int) and k == self.n - 1):
            with code.when(wanted.any()):
                chosen[0, 0] = self.interchange(k, place, own, largest, wanted)
        pivot = second.select(begun, chosen[0, 0])
        first = (pivot < 0) & ~second
        self.begun[0, 0] = first.select(pivot, code.zero(self.kind))
        self.ipiv[k, 0] = self.numbered(pivot).astype(self.ipiv.vector.dtype)
        report(code, [zero], self.info, self.n - k if self.upper else k + 1)
        ones = ~(first | zero | second)
        with code.either(ones.all()) as (usual, mixed):
            with usual:
                self.subtract(k, reciprocal(diagonal(self.A, k, self.hermitian))[1])
            with mixed:
                self.subtract_mixed(k, ~(first | zero), second)

    def search(self, k):
        """The largest |re| + |im| below the diagonal of column k, and the first row of the given matrix that has it."""
        code = self.code
        if self.known:
            zero, place = code.zero(self.given.vector.reals), code.broadcast(k, self.kind)
            sizes = [self.A[i, k].abs1() for i in range(k + 1, self.n)]
            sizes = [(size > 0).select(size, zero) for size in sizes]  # NaN is none
            largest = tree(larger_of, [zero, *sizes])
            rows = [*enumerate(sizes, k + 1)]
            for i, size in rows if self.upper else reversed(rows):
                place = (size == largest).select(code.broadcast(i, self.kind), place)
            return largest, place
        largest, place = code.registers(self.given.vector.reals, 1), code.registers(self.kind, 1)
        largest[0, 0], place[0, 0] = code.zero(self.given.vector.reals), code.broadcast(k, self.kind)
        for t in code.each(self.n - 1 - k):
            size, i = self.A[k + 1 + t, k].abs1(), k + 1 + t
            larger = size >= largest[0, 0] if self.upper else size > largest[0, 0]
            largest[0, 0] = larger.select(size, largest[0, 0])
            place[0, 0] = larger.select(code.broadcast(i, self.kind), place[0, 0])
        return largest[0, 0], place[0, 0]

    def numbered(self, pivot):
        """The pivot as rows of the matrix are counted that was given."""
        if not self.upper:
            return pivot
        last = self.code.broadcast(self.n - 1, self.kind)
        return (pivot < 0).select(-last - pivot.constant(2), last) - pivot

    def interchange(self, k, place, own, largest, wanted: Flags) -> Lanes:
        """Choose pivots in the lanes that want another, and swap rows and columns; returns the pivots.

        `place` is the row of the largest element in column k. The pivot is k or this row, or ~row where it becomes the
        second of a block of two.
        """
        code, kind = self.code, self.kind
        # That row, from column k on, as a column; its largest element beside the diagonal, and that on the diagonal.
        inverse = inverse_of_size(largest)
        self.scale[0, 0] = wanted.select(inverse, self.scale[0, 0])
        column, beside, there = self.row(k, place)
        alpha, diagonal = own.constant(ALPHA), there.real if self.hermitian else there
        stays = own * inverse * beside >= alpha * largest
        moves = wanted & ~stays
        two = moves & ~(diagonal.abs1() >= alpha * beside)
        # Swap it with row k, or k + 1 in a block of two.
        at = code.broadcast(k, kind)
        own_row = two.select(at + at.constant(1), at)
        swaps = moves & ~(place == own_row)
        with nullcontext() if self.known else code.when(swaps.any()):  # a branch takes as long as a small swap
            self.swap(k, place, two, swaps, column, there)
        return two.select(-place - place.constant(1), moves.select(place, at))

    def row(self, k, place: Lanes):
        """Row `place` from column k on, its largest |re| + |im| beside the diagonal, and the element on that."""
        code, kind, zero = self.code, self.kind, self.code.zero(self.given.vector)
        column = code.room(zero.vector, self.n, 1)
        beside, there = code.registers(zero.vector.reals, 1), code.registers(zero.vector, 1)
        beside[0, 0], there[0, 0] = zero.real, zero
        sizes = []
        for i in range(self.n - k) if self.known else code.each(self.n - k):
            t = k + i
            x = column[t, 0] = self.element(t, k, place)
            is_diagonal, size = place == code.broadcast(t, kind), x.abs1()
            there[0, 0] = is_diagonal.select(x, there[0, 0])
            if self.known:
                sizes.append(((size > 0) & ~is_diagonal).select(size, zero.real))
            else:
                beside[0, 0] = ((size > beside[0, 0]) & ~is_diagonal).select(size, beside[0, 0])
        return column, tree(larger_of, sizes) if sizes else beside[0, 0], there[0, 0]

    def element(self, t, k, place: Lanes) -> Lanes:
        """Element (t, place) of the whole matrix, where place is another in each lane, above k."""
        code, A, kind = self.code, self.A, self.kind
        if not self.known:
            above = code.broadcast(t, kind) < place
            x = A.gathered(0, 0, self.offsets(t, place, above))
            return above.select(self.mirrored(x), x)
        x = self.mirrored(A[k + 1, t]) if t == k else A[t, k + 1]
        for i in range(k + 2, self.n):
            y = A[t, i] if t >= i else self.mirrored(A[i, t])
            x = (place == code.broadcast(i, kind)).select(y, x)
        return x

    def offsets(self, t, place, above):
        """Bytes from element (0, 0) to element (t, place), or (place, t) where it is above the diagonal."""
        code, A, width = self.code, self.A, itemsize(self.A.element)
        place = place.astype(types.int64)
        down, across = (place * code.broadcast(step * width, place.vector) for step in (A.rs, A.cs))
        row, column = (code.broadcast(t * (step * width), place.vector) for step in (A.rs, A.cs))
        lanes = place._new(ir.Constant(place.vector.part, [width * lane for lane in range(A.vector.lanes)]))
        return above.select(down + column, row + across) + lanes

    def swap(self, k, place, two: Flags, swaps: Flags, column, there: Lanes):
        """Swap row and column `place` with k, or where a block of two begins with k + 1, in lanes that are flagged.

        `column` has that column, and `there` its element on the diagonal.
        """
        code, A, kind, n = self.code, self.A, self.kind, self.n
        below, single = k + 1, swaps & ~two
        double = swaps & two

        mine = two.select(A[below, below], A[k, k])
        corner = two.select(column[below, 0], column[k, 0])  # where both cross
        self.put(k, k, place, self.mirrored(A[below, k]), double)
        A[k, k] = single.select(there, A[k, k])
        A[below, k] = double.select(self.mirrored(column[k, 0]), A[below, k])
        for i in range(n - below) if self.known else code.each(n - below):
            t = below + i
            at = code.broadcast(t, kind)
            crossing = at == place
            old = two.select(A[t, below], A[t, k])
            own = two & (at == code.broadcast(below, kind))  # the diagonal
            new = own.select(there, crossing.select(corner, column[t, 0]))
            self.put(t, k, place, crossing.select(mine, old), swaps & ~own)
            A[t, k] = single.select(new, A[t, k])
            A[t, below] = double.select(new, A[t, below])

    def put(self, t, k, place, x, flags):
        """Element (t, place) of the whole matrix <- x, in lanes that are flagged."""
        code, A, kind = self.code, self.A, self.kind
        if not self.known:
            above = code.broadcast(t, kind) < place
            A.scatter(0, 0, self.offsets(t, place, above), above.select(self.mirrored(x), x), flags)
            return
        for i in range(k + 1, self.n):
            chosen = flags & (place == code.broadcast(i, kind))
            ij, y = ((t, i), x) if t >= i else ((i, t), self.mirrored(x))
            A[ij] = chosen.select(y, A[ij])

    def subtract(self, k, inverse):
        """Subtract x x^T / d from what is right of column k, x, and divide that by d, in all lanes."""
        A = self.A
        for columns, below, rows in self.panels(k):
            x = [A[j, k] for j in columns]
            scaled = [y * inverse for y in x]

            def less(row, t, z, scaled=scaled):
                return self.less(row[0], scaled[t], z)

            self.update((k,), columns, [(y,) for y in x], below, rows, less)
            for j, y in zip(columns, scaled, strict=True):
                A[j, k] = y

    def subtract_mixed(self, k, active, second):
        """The same in lanes that are active, with a block of D of rows k - 1 and k in lanes where it is the second."""
        code, A = self.code, self.A
        before = max(k - 1, 0) if isinstance(k, int) else code.max(k - 1, 0)  # which nothing is made of in row 0
        scale = self.scale[0, 0]
        a, b, c, determinant = block(A, before, k, self.hermitian, scale)
        inverse = reciprocal(second.select(determinant, diagonal(A, k, self.hermitian)))[1]  # a division is slow
        for columns, below, rows in self.panels(k):
            pairs = [(A[j, before], A[j, k]) for j in columns]
            scaled = [(x * scale, y * scale) for x, y in pairs]
            left = [(x * c - y * b) * inverse for x, y in scaled]
            others = [(y * a - x * self.mirrored(b)) * inverse for x, y in scaled]
            right = [second.select(other, y * inverse) for other, (_, y) in zip(others, pairs, strict=True)]

            def less(row, t, z, left=left, right=right):
                x, y = row
                one = self.less(y, right[t], z)
                return second.select(self.less(x, left[t], one), active.select(one, z))

            self.update((before, k), columns, pairs, below, rows, less)
            for t, j in enumerate(columns):
                A[j, before] = second.select(left[t], pairs[t][0])
                A[j, k] = active.select(right[t], pairs[t][1])

    def mirrored(self, x):
        """The element that is x in the other triangle."""
        return x.conjugate() if self.hermitian else x

    def less(self, x, y, z):
        """z - x y, or z - x conj(y)"""
        return (-x).fma(self.mirrored(y), z)

    def update(self, before, columns, given, below, rows, less):
        """Some columns become ``less(row, t, z)``, z element t of the row, which is there in the columns `before`."""
        A = self.A
        for s, i in enumerate(columns):
            for t, j in enumerate(columns[: s + 1]):
                z = less(given[s], t, A[i, j])
                A[i, j] = z.real if self.hermitian and s == t else z
        for i in rows():
            row = [A[below + i, k] for k in before]
            for t, j in enumerate(columns):
                A[below + i, j] = less(row, t, A[below + i, j])

    def panels(self, k):
        """What is right of column k: yields columns, where what is below begins, and a function to loop over that."""
        code, n, begin = self.code, self.n, k + 1
        if self.known:
            yield [*range(begin, n)], n, lambda: ()
            return
        for start, width in code.panels(n - begin, PANEL):
            below = begin + start + width
            yield [begin + start + t for t in range(width)], below, lambda below=below: code.each(n - below)


class Corner:
    """Registers for what is below and right of an element of a matrix, by the indices of that."""

    def __init__(self, registers, start: int):
        self.registers, self.start = registers, start

    def __getitem__(self, ij):
        return self.registers[tuple(i - self.start for i in ij)]

    def __setitem__(self, ij, x):
        self.registers[tuple(i - self.start for i in ij)] = x


def larger_of(x, y):
    return (x > y).select(x, y)


def inverse_of_size(x: Lanes) -> Lanes:
    """1 / x, or of subnormal numbers what is large and finite."""
    return x.maximum(x.constant(2.0 ** (-1000 if x.vector.real.bitwidth == 64 else -120))).reciprocal()


def block(A, before, k, hermitian, scale):
    """A block of D, [[a, b'], [b, c]], times `scale`, about 1 / |b|, and d: its inverse is [[c, -b'], [-b, a]] / d,
    that of D less by `scale`, which may overflow.
    """
    b = A[k, before] * scale
    a, c = (diagonal(A, q, hermitian) * scale for q in (before, k))
    square = (b * b.conjugate()).real if hermitian else b * b
    return a, b, c, a * c - square


def diagonal(A, k, hermitian):
    return A[k, k].real if hermitian else A[k, k]
