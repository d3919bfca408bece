"""V ordinary matrices as one matrix of lanes: read and written by transposing them in registers.

Where numbers of a matrix follow each other in memory, V of them are read at once from each of the V matrices, and V x V
numbers are transposed. All others are gathered one by one.
"""

import functools
import operator
from dataclasses import dataclass, replace
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import INDEX, Condition, IntOrIndex, value_of
from compactla.cpu.emit.matrices import Elements, itemsize, registers_of
from compactla.cpu.emit.prefetch import BYTE, LINE, once, prefetch
from compactla.cpu.emit.vectors import Lanes, Vector
from compactla.cpu.memory.packing import Tile

# Vector registers that matrices fill up to which they are copied without loops.
UNROLLED = 128
ROWS, MOVED = 8, 8  # rows and columns whose numbers are moved one by one: places of columns are in registers
SMALL = ir.IntType(32)


def lie(m: int, n: int, step: int, rs: int, cs: int, item: int) -> str:
    """How the elements of matrices lie in memory: one of the kinds that `Ordinary` has."""
    for suffix in "", "T":
        if n == 1 or cs == item:
            if m == 1 or rs == n * item:
                return "whole" + suffix
            if step != item:
                return "rows" + suffix
        m, n, rs, cs = n, m, cs, rs
    return "lanes" if step == item else "apart"


@dataclass(eq=False)
class Ordinary:
    """V matrices of m x n while code is emitted.

    Attributes
    ----------
    code : Code
        Where it is emitted to.
    vector : Vector
        Computation type.
    real : LLVM type
        Real numbers, or integers, in memory.
    kind : str
        "whole": the elements follow each other, "rows": those of rows do, "wholeT", "rowsT": of the transposed matrix,
        "lanes": the V numbers of an element do, "apart": none of it.
    m, n : int or Index
        Sizes.
    starts : list of Index
        Addresses of the V matrices.
    rs, cs : Index
        Bytes from row to row and column to column.
    adjacent : Condition
        Whether each element's V numbers really follow each other.
    """

    code: Code
    vector: Vector
    real: Any
    kind: str
    m: Any
    n: Any
    starts: list
    rs: Any
    cs: Any
    adjacent: Any

    def __post_init__(self):
        self.builder, V = self.code.builder, self.vector.lanes
        self.m, self.n, self.rs, self.cs, *self.starts = map(
            self.code.index, (self.m, self.n, self.rs, self.cs, *self.starts)
        )
        self.adjacent = Condition(self.builder, value_of(self.adjacent))
        self.parts = len(self.vector.parts)
        self.item = itemsize(self.real)
        self.tile_char = "d" if self.vector.real.bitwidth == 64 else "f"
        self.tile = Tile(self.code, self.tile_char, V, V)

    def read(self, W: Elements) -> None:
        """W <- the matrices"""
        self._copy("load", W)

    def read_lower(self, W: Elements) -> None:
        """W <- the lower triangles of square matrices; above them W holds anything."""
        several = self.vector.lanes // self.parts
        if not isinstance(self.n, int) or self.n < 2 * several or self.kind not in ("whole", "rows"):
            self.read(W)
            return
        step = self.n * (self.parts * self.item) if self.kind == "whole" else self.rs
        for first in range(0, self.n, several):
            last = min(first + several, self.n)
            with self.code.loop(last - first) as k:
                i = k + first
                self._row("load", last, lambda j, i=i: (i, j), W, i * step)

    def write(self, W: Elements) -> None:
        """The matrices <- W"""
        self._copy("store", W)

    def write_lower(self, W: Elements) -> None:
        """The square matrices <- the lower triangles of W, and zeros above them; there W holds anything afterwards.

        Where whole cache lines are zero, W has no zeros for them: they are stored as such.
        """
        code, zero = self.code, self.code.zero(W.vector)
        lines = self.kind == "whole" and self._in_lines
        several = self.vector.lanes // self.parts
        for i in code.each(self.n):
            above = self.n - i - 1
            for k in code.each(code.min(above, several - 1) if lines else above):
                W[i, i + 1 + k] = zero
        if not lines:
            self.write(W)
            return
        for i in code.each(max(self.n - several, 0)):  # a line may end in the next row
            for k in range(self.n - several + 1, self.n):
                W[i, k] = zero
        self._store_lines(W, lower=True)

    @property
    def takes_columns(self) -> bool:
        """Whether `write_columns` is for these: contiguous rows of a known size, of the computation type."""
        return self._known and self.kind in ("whole", "rows") and self.real == self.vector.part.element

    def write_columns(self, W: Elements, order: Elements) -> None:
        """The matrices <- W, of which column j is the one that is `order[j]` bytes behind the first, in each lane.

        Numbers are moved one by one, some rows at a time, which stay in the cache for all lanes.
        """
        b, code = self.builder, self.code
        word = ir.IntType(8 * self.item)  # what is only moved needs no vector registers
        size = self.parts * self.item
        step = self.n * size if self.kind == "whole" else self.rs
        for top, rows in code.spans(self.m, ROWS):
            for lane, start in enumerate(self.starts):
                for first, width in code.panels(self.n, MOVED):
                    columns = [code.index(b.load(order.pointer(first + k, 0, lane), typ=INDEX)) for k in range(width)]
                    places = [(column, part) for column in columns for part in range(self.parts)]
                    with code.loop(rows) as t:
                        row = W.block(top + t, 0, 1, 1)
                        there = start + (top + t) * step + first * size
                        for e, (column, part) in enumerate(places):
                            x = self._behind(b.bitcast(row._shifted(W.im * part), BYTE.as_pointer()), column)
                            x = b.load(b.bitcast(x, word.as_pointer()), typ=word)
                            b.store(x, b.inttoptr((there + e * self.item).value, word.as_pointer()), align=1)

    @property
    def following(self) -> tuple[Elements, ...]:
        """The next V matrices, to be fetched ahead, if they are of known size and in memory as they are here.

        Beside what reads and writes them, it takes longer to ask for their lines several times than that saves.
        """
        if not self._known or self.kind not in ("whole", "wholeT") or self.real != self.vector.part.element:
            return ()
        V, step = self.vector.lanes, self.vector.lanes * self.parts
        size = self.m * self.n * step
        base = self.builder.inttoptr(self.starts[0].value, self.real.as_pointer())
        A = Elements(self.code, self.vector, base, self.m, self.n, self.n * step, step, V)
        return (once(A._replace(base=A._shifted(size))),)

    def _copy(self, action, W):
        code = self.code
        if self.kind.endswith("T"):
            swapped = {"m": self.n, "n": self.m, "rs": self.cs, "cs": self.rs, "kind": self.kind[:-1]}
            replace(self, **swapped)._copy(action, W.T)
        elif self.kind == "lanes":
            with code.either(self.adjacent) as (together, alone):
                with together:
                    for i in code.each(self.m):
                        for j in code.each(self.n):
                            self.together(action, W, i, j)
                with alone:
                    self._each(action, W)
        elif self.kind == "apart":
            self._each(action, W)
        elif action == "store" and self.kind == "whole" and self._in_lines:
            self._store_lines(W)
        elif self.kind == "whole" and self._few:
            self._row(action, self.m * self.n, lambda e: divmod(e, self.n), W)
        elif self.kind == "whole" and not self._known:
            self._whole(action, W)
        else:
            step = self.n * (self.parts * self.item) if self.kind == "whole" else self.rs
            for i in code.each(self.m if self._few else code.unknown(self.m)):
                self._row(action, self.n, lambda j, i=i: (i, j), W, i * step)

    @property
    def _known(self):
        return isinstance(self.m, int) and isinstance(self.n, int)

    @property
    def _few(self):
        return self._known and self.m * self.n * registers_of(self.vector) <= UNROLLED

    @property
    def _in_lines(self):
        """Whether the numbers of a matrix are many cache lines, whose elements do not straddle them."""
        size = self.vector.lanes * self.item
        return self._known and size == LINE and self.m * self.n * self.parts * self.item >= 8 * LINE

    def _store_lines(self, W, lower=False):
        """Store cache line by cache line, where matrices begin at the same place in one: stores across them are slow.

        Some elements at either end may be stored twice. Of `lower` triangles lines that are all above are zero.
        """
        code, V, size = self.code, self.vector.lanes, self.parts * self.item
        count, several = self.m * self.n, V // self.parts
        first, *others = self.starts
        alike = functools.reduce(operator.and_, ((start - first) % LINE == 0 for start in others))
        skipped = (LINE - first % LINE) % LINE
        skipped = (alike & (skipped % size == 0)).select(skipped // size, 0)
        contiguous = (W.rs, W.cs) == (self.n * W.cs, W.cs)

        def place(e):
            return (0, e) if contiguous else (e // self.n, e % self.n)

        def store(e):
            self._piece("store", 0, 0, V, lambda k: place(e + k), W, e * size)

        lines = (count - skipped) // several
        with code.when(skipped + lines * several < count):
            store(code.unknown(count - several))
        with code.when(skipped > 0):
            store(code.unknown(0))
        with code.loop(lines) as t:
            e = skipped + t * several
            i = e // self.n
            j = e - i * self.n
            zero = (j > i) & (j + several <= self.n)
            if lower:
                with code.when(zero):
                    self._store_zeros(e * size)
                with code.when(~zero):
                    store(e)
            else:
                store(e)

    def _store_zeros(self, start):
        """Store V zeros from so many bytes behind the beginning of each matrix."""
        zeros = ir.Constant(ir.VectorType(self.real, self.vector.lanes), None)
        for pointer in self._pointers(start):
            self.builder.store(zeros, self.builder.bitcast(pointer, zeros.type.as_pointer()), 1)

    def _row(self, action, count, place, W, start=0):
        """Elements that follow each other; ``place(e)`` is where element e is in W."""
        V, size = self.vector.lanes, self.parts * self.item
        if isinstance(count, int):
            for first, new, end in pieces(count * self.parts, V):
                self._piece(action, first, new, end, place, W, start)
            return
        several = V // self.parts
        whole = count // several
        with self.code.loop(whole) as t:
            e = t * several
            there = start + e * size
            self._piece(action, 0, 0, V, lambda k: place(e + k), W, there)
        done = whole * several
        with self.code.loop(count - done) as t:
            e = done + t
            self._element(action, W, *place(e), start + e * size)

    def _whole(self, action, W):
        """All elements, V numbers after V numbers, whatever rows these are of; some of the last ones once more."""
        code, n, several = self.code, self.n, self.vector.lanes // self.parts
        size, count = self.vector.lanes * self.item, code.unknown(self.m * n)
        next_ones = self.starts[-1] + count * (self.parts * self.item) - self.starts[0]
        with code.either(count >= several) as (enough, few):
            with enough, code.loop((count + (several - 1)) // several) as t:
                e = code.min(t * several, count - several)
                i = e // n
                places = [(i, e - i * n)]
                for _ in range(several - 1):
                    i, j = places[-1]
                    ends = j + 1 == n
                    places.append((ends.select(i + 1, i), ends.select(0, j + 1)))
                start = e * (self.parts * self.item)
                for line in range(0, size, LINE) if action == "load" else ():
                    for pointer in self._pointers(start, next_ones + line):
                        prefetch(self.builder, pointer, first=False)
                self._piece(action, 0, 0, self.vector.lanes, places.__getitem__, W, start)
            with few, code.loop(count) as e:
                i = e // n
                self._element(action, W, i, e - i * n, e * (self.parts * self.item))

    def _piece(self, action, first, new, end, place, W, start):
        """Numbers `first` to `end` behind `start`, V or fewer; those before `new` were copied already."""
        V, parts, pointers = self.vector.lanes, self.parts, self._pointers(start, first * self.item)
        halved = end - first == V > 2 and self.real == self.vector.part.element
        if action == "load":
            rows = (
                self._halves(pointers)
                if halved
                else [self._converted(self._some(action, p, end - first), self.vector.part) for p in pointers]
            )
            lanes = self._exchanged(rows) if halved else self.tile.exchanged(rows)
            for e in range(new // parts, end // parts):
                W[place(e)] = Lanes(self.builder, self.vector, *lanes[e * parts - first :][:parts])
        else:
            values = [part for e in range(first // parts, end // parts) for part in W[place(e)].parts]
            if halved:
                self._store_halves(self._exchanged(values), pointers)
                return
            rows = self.tile.exchanged(values + values[:1] * (V - len(values)))
            for p, row in zip(pointers, rows, strict=True):
                self._some(action, p, end - first, self._converted(row, ir.VectorType(self.real, V)))

    def _halves(self, pointers):
        """Load rows of V numbers: in lists of halves, each next to that of the matrix V / 2 lanes on.

        That is what the first step of a transposition makes of whole rows, and loads do it on the way.
        """
        half = len(pointers) // 2
        kind = ir.VectorType(self.real, half)
        rows = []
        for part in range(2):
            for p, q in zip(pointers[:half], pointers[half:], strict=True):
                x, y = (self._load(self._behind(r, part * half * self.item), kind) for r in (p, q))
                rows.append(self.tile.shuffle(x, y, range(2 * half)))
        return rows

    def _store_halves(self, rows, pointers):
        """Store rows, which are in halves as `_halves` loads them.

        The halves of a cache line follow each other: the lines of all matrices may be of one set of the cache, which
        holds few, where they are a multiple of 4096 bytes apart.
        """
        half = len(pointers) // 2
        for side in range(2):
            for k in range(half):
                for part in range(2):
                    row = rows[part * half + k]
                    x = self.tile.shuffle(row, row, range(side * half, side * half + half))
                    pointer = self._behind(pointers[side * half + k], part * half * self.item)
                    self.builder.store(x, self.builder.bitcast(pointer, x.type.as_pointer()), 1)

    def _exchanged(self, rows):
        """The steps of a transposition that are within halves."""
        half = len(rows) // 2
        tile = Tile(self.code, self.tile_char, len(rows), half)
        return tile.exchanged(rows[:half]) + tile.exchanged(rows[half:])

    def _load(self, pointer, kind):
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=1, typ=kind)

    def _behind(self, pointer, offset):
        """The pointer that is so many bytes behind another."""
        return self.builder.gep(pointer, [value_of(offset)], source_etype=BYTE)

    def _pointers(self, *offsets):
        """Pointers that are so many bytes behind the beginning of each matrix."""
        b, pointers = self.builder, []
        for start in self.starts:
            pointer = b.inttoptr(start.value, BYTE.as_pointer())
            for offset in offsets:
                pointer = b.gep(pointer, [value_of(offset)], source_etype=BYTE)
            pointers.append(pointer)
        return pointers

    def _some(self, action, pointer, count, value=None):
        """Load V numbers, or store them; only the first `count` are touched in memory."""
        b, kind = self.builder, ir.VectorType(self.real, self.vector.lanes)
        load = action == "load"
        if count == 1:  # LLVM 22 stores too much through a mask of one, of integers cut before that
            pointer = b.bitcast(pointer, self.real.as_pointer())
            if load:
                return b.insert_element(ir.Constant(kind, None), b.load(pointer, align=1, typ=self.real), SMALL(0))
            return b.store(b.extract_element(value, SMALL(0)), pointer, 1)
        pointer = b.bitcast(pointer, kind.as_pointer())
        if count == kind.count:
            return b.load(pointer, align=1, typ=kind) if load else b.store(value, pointer, 1)
        flags = ir.Constant(ir.VectorType(ir.IntType(1), kind.count), [lane < count for lane in range(kind.count)])
        args = [pointer, SMALL(1), flags]
        args = [*args, ir.Constant(kind, None)] if load else [value, *args]
        function = ir.FunctionType(kind if load else ir.VoidType(), [x.type for x in args])
        letter = "i" if isinstance(self.real, ir.IntType) else "f"
        name = f"llvm.masked.{action}.v{kind.count}{letter}{8 * self.item}.p0"
        return b.call(cgutils.get_or_insert_function(b.module, function, name), args)

    def _converted(self, x, kind):
        b, wider = self.builder, itemsize(kind.element) > itemsize(x.type.element)
        if x.type == kind:
            return x
        if isinstance(kind.element, ir.IntType):
            return b.sext(x, kind) if wider else b.trunc(x, kind)
        return b.fpext(x, kind) if wider else b.fptrunc(x, kind)

    def _each(self, action, W):
        """Copy element by element."""
        code = self.code
        with code.loop(self.m) as i, code.loop(self.n) as j:
            self._element(action, W, i, j, i * self.rs + j * self.cs)

    def _element(self, action, W, i, j, offset):
        b, kind = self.builder, ir.VectorType(self.real, self.vector.lanes)
        found = []
        for part in range(self.parts):
            value = ir.Constant(kind, ir.Undefined)
            if action == "store":
                value = self._converted(W[i, j].parts[part], kind)
            for lane, pointer in enumerate(self._pointers(offset, part * self.item)):
                pointer = b.bitcast(pointer, self.real.as_pointer())
                if action == "store":
                    b.store(b.extract_element(value, SMALL(lane)), pointer, align=1)
                else:
                    number = b.load(pointer, align=1, typ=self.real)
                    value = b.insert_element(value, number, SMALL(lane))
            found.append(self._converted(value, self.vector.part))
        if action == "load":
            W[i, j] = Lanes(b, self.vector, *found)

    def together(self, action: str, W: Elements, i: IntOrIndex, j: IntOrIndex) -> None:
        """Load or store an element whose V numbers follow each other."""
        b, V = self.builder, self.vector.lanes
        pointer = self._pointers(i * self.rs + j * self.cs)[0]
        kind = ir.VectorType(self.real, V * self.parts)
        pointer = b.bitcast(pointer, kind.as_pointer())
        if action == "store":
            parts = [self._converted(part, ir.VectorType(self.real, V)) for part in W[i, j].parts]
            order = [part * V + lane for lane in range(V) for part in range(self.parts)]
            b.store(self.tile.shuffle(parts[0], parts[-1], order), pointer, align=1)
        else:
            x = b.load(pointer, align=1, typ=kind)
            parts = [self.tile.shuffle(x, x, range(part, V * self.parts, self.parts)) for part in range(self.parts)]
            W[i, j] = Lanes(b, self.vector, *(self._converted(part, self.vector.part) for part in parts))


def pieces(count, V):
    """(first, new, end) of pieces of V numbers, or fewer if there are not as many: the last may begin with numbers that
    are in the one before it, up to `new`."""
    for new in range(0, count, V):
        first = max(min(new, count - V), 0)
        yield first, new, min(first + V, count)
