"""Panels of some packs whose systems are side by side in memory, read and written row by row.

V systems alone would touch a line of another page at each row, and all of these may be of one set of a cache. There are
two places for panels in work space: while the systems of one are worked on, rows of the next panel are read to the
other, where rows of the one before are written from.
"""

from dataclasses import replace

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import Condition, Index, value_of
from compactla.cpu.emit.machine import second_cache
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.prefetch import BYTES, LINE, prefetch
from compactla.cpu.memory.matrices import Ordinary

PACKS = 4  # of a panel
AHEAD = 2  # rows that a vector is asked for before it is read or written
TOGETHER = 2 << 10  # bytes of a row of an array, of several panels, that are fetched one after the other


def fetched_together(nbytes: int, row: int) -> int:
    """Count the panels whose rows are fetched together: a panel has `nbytes` in all arrays, and a `row` in each.

    Memory is slow where less than half of `TOGETHER` is read here and there. All of it should fit the second cache
    beside the work space.
    """
    most = TOGETHER // row
    return max(most if most * nbytes <= 5 * second_cache() // 8 else most // 2, 1)


class Panel:
    """Where a pack is in its panel, and where the panel is.

    Attributes
    ----------
    turn : Index
        The number of the pack in the panel.
    together : int
        How many panels are fetched together.
    inside : Index
        The number of the pack in these panels.
    slab : Index
        Bytes of the work space of a pack.
    away : Index
        Bytes from the work space of the pack to that of the first one of the other panel.
    before, after : Condition
        Whether there is a panel before this one, and after it.
    """

    def __init__(
        self, code: Code, together: int, number: Index, turn: Index, slab: Index, before: Condition,
        after: Condition,
    ):  # fmt: skip
        self.code, self.turn, self.slab, self.before, self.after = code, turn, slab, before, after
        self.together, self.inside = together, number % together * PACKS + turn
        self.away: Index

    def first(self) -> Condition:
        """Whether it is the first pack of all."""
        return ~self.before & (self.turn == 0)

    def last(self) -> Condition:
        """Whether it is the last pack of all."""
        return ~self.after & (self.turn == PACKS - 1)


class PanelRows:
    """Rows of an ordinary matrix with few columns, of a number that is known: as `Chunks`, for panels.

    A row of a panel is as many vectors as it has packs. Each step of each pack reads or writes one vector of the other
    panel, and fetches one of those after it.
    """

    def __init__(self, vectors: Ordinary, W: Elements, panel: Panel):
        self.code, self.vectors, self.W, self.panel = vectors.code, vectors, W, panel
        self.size = vectors.vector.lanes * vectors.parts * vectors.item

    def start(self):
        """Read the first panel."""
        with self.code.when(self.panel.first()):
            self._whole("load")

    def begin(self, k):
        """Read a vector of the next panel."""
        self._one("load", k, 1, self.panel.after)

    def prepare(self, k):
        """Write a vector of the panel before, which comes before its place is read to."""
        self._one("store", k, -1, self.panel.before)

    def end(self, k):
        """Leave rows where they are."""

    def finish(self):
        """Write the last panel."""
        with self.code.when(self.panel.last()):
            self._whole("store")

    def _whole(self, action):
        with self.code.loop(self.vectors.m) as row, self.code.loop(PACKS) as pack:
            self._copy(action, row, pack, 0)

    def _one(self, action, k, panels, there):
        """Copy the vector whose turn it is in step k, if there is that panel."""
        panel, m = self.panel, self.vectors.m
        k = self.code.unknown(k)
        with self.code.when(there & (k < m)):
            if panel.together > 1:
                self._fetch(action, panel.inside * m + k)
            turn = panel.turn * m + k
            row = turn // PACKS
            self._copy(action, row, turn - row * PACKS, panels)

    def _fetch(self, action, turn):
        """Fetch a vector of the next panels that are fetched together, row by row."""
        x, panel = self.vectors, self.panel
        count = panel.together * PACKS
        row = turn // count
        place = x.starts[0] + (turn - row * count + count - panel.inside) * self.size + row * x.rs
        self._ask(action, place)

    def _ask(self, action, place):
        """Fetch a vector in all columns, past the first cache."""
        b = self.code.builder
        for j in range(self.vectors.n):
            for line in range(0, self.size, LINE):
                there = place + j * self.vectors.cs + line
                prefetch(b, b.inttoptr(value_of(there), BYTES), action == "store", first=False)

    def _copy(self, action, row, pack, panels):
        """Copy a vector of a row, of a pack of the panel that is so many panels on."""
        x, W, panel, b = self.vectors, self.W, self.panel, self.code.builder
        place = x.starts[0] + (panels * PACKS - panel.turn + pack) * self.size + row * x.rs
        away = panel.away if panels else -panel.turn * panel.slab
        start = W.block(row, 0, 1, x.n).base
        address = Index(b, b.ptrtoint(start, value_of(row).type)) + away + pack * panel.slab
        some = replace(x, m=1, rs=0, starts=[place], adjacent=True)
        target = W._replace(base=b.inttoptr(value_of(address), W.base.type), m=1, n=x.n, rs=0)
        if panels:
            self._ask(action, place + x.rs * AHEAD)
        for j in range(x.n):
            some.together(action, target, 0, j)
