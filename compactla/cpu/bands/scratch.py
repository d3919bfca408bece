"""Work space of systems with band matrices while code is emitted."""

from compactla.cpu.bands.chunks import Chunks
from compactla.cpu.bands.panels import PanelRows
from compactla.cpu.emit.index import value_of
from compactla.cpu.emit.machine import second_cache
from compactla.cpu.emit.matrices import Elements


class BandScratch:
    """Work space, of which parts are taken.

    Attributes
    ----------
    count : int
        Rows of a chunk that is read.
    panel : Panel or None
        Of which panel it has a pack.
    near : int
        Bytes of V systems in an array up to which those of the next V are fetched: they fit the second cache beside
        these and the work space.
    band : Elements or None
        Where a matrix was read to.
    """

    def __init__(self, code, vector, start, count, arrays, panel=None):
        self.code, self.vector, self.start, self.band = code, vector, code.index(start), None
        self.count, self.panel = count, panel
        self.near = second_cache() // (3 * arrays)

    def chunks(self, vectors, W):
        """Make what copies vectors to W, or W to them, while others are worked on."""
        return Chunks(vectors, W, self) if self.panel is None else PanelRows(vectors, W, self.panel)

    def take(self, m, n):
        """Take an m x n matrix, contiguous."""
        code, vector = self.code, self.vector
        step = vector.lanes * len(vector.parts)
        base = code.builder.inttoptr(value_of(self.start), vector.part.element.as_pointer())
        size = m * n * (step * vector.real.bitwidth // 8)
        self.start = self.start + size
        return Elements(code, vector, base, m, n, n * step, step, vector.lanes)
