"""Panels of some packs whose systems are side by side in memory, read and written row by row.

V systems alone would touch a line of another page at each row, and all of these may be of one set of a cache. There are
two places for panels in work space: while the systems of one are worked on, rows of the next panel are read to the
other, where rows of the one before are written from.
"""

from dataclasses import replace

from compactla.cpu.bands.chunks import First
from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import Condition, Index, value_of
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.prefetch import BYTES, LINE, prefetch
from compactla.cpu.memory.matrices import Ordinary

AHEAD = 1  # rows that are fetched before they are read


class Panel:
    """Where a pack is in its panel of `count` packs, and where the panel is.

    Attributes
    ----------
    turn : Index
        The number of the pack in the panel.
    slab : Index
        Bytes of the work space of a pack.
    away : Index
        Bytes from the work space of the pack to that of the first one of the other panel.
    before, after : Condition
        Whether there is a panel before this one, and after it.
    """

    def __init__(self, code: Code, count: int, turn: Index, slab: Index, before: Condition, after: Condition):
        self.code, self.count, self.turn, self.slab, self.before, self.after = code, count, turn, slab, before, after
        self.away: Index

    def first(self) -> Condition:
        """Whether it is the first pack of all."""
        return ~self.before & (self.turn == 0)

    def last(self) -> Condition:
        """Whether it is the last pack of all."""
        return ~self.after & (self.turn == self.count - 1)


class PanelRows:
    """Rows of an ordinary matrix with few columns, of a number that is known: as `Chunks`, for panels.

    Of the other panel a row is read or written where a pack begins with a chunk of as many rows as a panel has packs.
    """

    def __init__(self, vectors: Ordinary, W: Elements, panel: Panel):
        self.code, self.vectors, self.W, self.panel = vectors.code, vectors, W, panel
        self.size = vectors.vector.lanes * vectors.parts * vectors.item

    def start(self):
        """Read the first panel."""
        with self.code.when(self.panel.first()), self.code.loop(self.vectors.m) as row:
            self._copy("load", row, 0)

    def begin(self, k):
        """Read a row of the next panel."""
        with RowsTurn(self, k, self.panel.after) as row:
            self._copy("load", row, 1)

    def prepare(self, k):
        """Write a row of the panel before, which comes before its place is read to."""
        with RowsTurn(self, k, self.panel.before) as row:
            self._copy("store", row, -1)

    def end(self, k):
        """Leave rows where they are."""

    def finish(self):
        """Write the last panel."""
        with self.code.when(self.panel.last()), self.code.loop(self.vectors.m) as row:
            self._copy("store", row, 0)

    def _copy(self, action, row, panels):
        """Copy a row of the panel that is so many panels on."""
        x, W, panel = self.vectors, self.W, self.panel
        place = x.starts[0] + (panels * panel.count - panel.turn) * self.size + row * x.rs
        away = panel.away if panels else -panel.turn * panel.slab
        start = W.block(row, 0, 1, x.n).base
        address = Index(self.code.builder, self.code.builder.ptrtoint(start, value_of(row).type)) + away
        values = [*map(value_of, (place, x.rs, x.cs, address, panel.slab))]
        count, size, step = panel.count, self.size, W.cs

        def emit(code, place, rs, cs, address, slab):
            place, rs, address, slab = map(code.index, (place, rs, address, slab))
            if action == "load":
                for line in range(0, count * size, LINE):
                    ahead = place + rs * AHEAD + line
                    prefetch(code.builder, code.builder.inttoptr(value_of(ahead), BYTES))
            for g in range(count):
                some = replace(x, code=code, m=1, rs=0, cs=cs, starts=[place + g * size], adjacent=True)
                base = code.builder.inttoptr(value_of(address + g * slab), W.base.type)
                target = W._replace(code=code, base=base, m=1, n=x.n, rs=0, cs=step)
                for j in range(x.n):
                    some.together(action, target, 0, j)

        name = f"compactla.row {action} {x.vector} {x.real} {x.n} {count}"
        self.code.call(name, [value.type for value in values], emit, *values, attributes=("noinline",))


class RowsTurn:
    """A block that is left out unless a row of the other panel is to be copied before step k: it has its number."""

    def __init__(self, rows, k, there):
        self.rows, self.first = rows, First(rows.code, k, rows.panel.count)
        self.there = there

    def __enter__(self):
        code, panel, m = self.rows.code, self.rows.panel, self.rows.vectors.m
        chunk = self.first.__enter__()
        row = panel.turn * ((m + panel.count - 1) // panel.count) + chunk
        self.inner = code.when(self.there & (code.unknown(row) < m))
        self.inner.__enter__()
        return row

    def __exit__(self, *error):
        self.inner.__exit__(*error)
        return self.first.__exit__(*error)
