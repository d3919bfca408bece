"""Lines through systems of a batch, along which they are solved exactly."""

from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.checks import check_size
from compactla.foreign import accepts_foreign
from compactla.krylov.preconditioners import Preconditioner, operator_of
from compactla.layout import Pack
from compactla.lines.extraction import check_cover, flatten
from compactla.sparse.csr import BatchCSR, Operator
from compactla.sparse.elimination import Tiles
from compactla.sparse.pattern import Pattern


class Lines(Preconditioner):
    """The solve with the blocks on the diagonal, and with those that couple neighbours on a line.

    It is made by elimination along the lines, without interchanges of rows. A pivot that is exactly zero counts as one.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square; entries outside of the pattern are zero.
    lines : sequence of sequences of int
        The block rows along each line, the same for all matrices. A block row is on one line at most; those on none
        are as of `BlockJacobi`.
    b : int
        Rows of a block; the last is smaller where b does not divide n.

    Attributes
    ----------
    info : (nm,) ndarray of int64
        0, or i + 1 where that of row i is the first pivot along the lines that is exactly zero.

    Raises
    ------
    TypeError, ValueError
        If `A` is of another kind, `b` is not positive, or `lines` hold a block row twice, or one that is none.

    See Also
    --------
    compactla.krylov.BlockJacobi, compactla.LinePreconditioner

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.tile(np.diag([4.0, 4, 4]) + np.diag([1.0, 1], 1), (2, 1, 1)))
    >>> M = cla.krylov.Lines(A, [[0, 1, 2]])
    >>> cla.krylov.gmres(A, np.ones((2, 3)), M=M)[1].iterations
    array([1, 1])
    """

    @accepts_foreign
    def __init__(self, A: BatchCSR | Pack, lines: Any, b: int = 1) -> None:
        super().__init__(A)
        if check_size(b, "b") < 1:
            raise ValueError(f"b is {b}, must be positive")
        rows, length = flatten(lines)
        blocks = -(-self.n // b)
        alone = np.setdiff1d(np.arange(blocks), rows)
        rows, length = np.append(rows, alone), np.append(length, np.ones_like(alone))
        line = np.repeat(np.arange(len(length)), length)
        check_cover(rows, line, blocks)
        taken, kept, order, filled = along(operator_of(A).pattern, rows, line, int(b))
        self._tiles = Tiles(kept, order, filled, backend(self.queue, "sparse").tile_of(self.dtype), taken)
        self._info = None

    @property
    def info(self) -> np.ndarray:
        """(nm,) integers: 0, or i + 1 where the first pivot that is exactly zero is that of row i."""
        with self._reading:
            self.operator()
            found = backend(self.queue).download(self._info)[: self.nm].astype(np.int64)
        return np.append(0, self._tiles.order + 1)[found]

    def _make(self, A, launch):
        values, tiles = A.values, self._tiles
        if self.queue is None:
            values = values.beside(len(tiles.taken), 1)
            np.take(A.values.data, tiles.taken, axis=1, out=values.data)
        factors = A.values.beside(tiles.count, 1) if self._made is None else self._made.values
        self._info = backend(self.queue, "sparse").lu_factor(values, tiles, factors, launch)
        return Operator("lu", factors, tiles, tiles.diagonal, tiles.size, tiles.order)


def along(pattern, blocks, line, b):
    """The part of a pattern along lines of b x b blocks, which are given one line after the other.

    Returns
    -------
    taken : ndarray of int64
        Which of the values are in it.
    kept : Pattern
        The pattern of these values.
    order : ndarray of int64
        The rows of the pattern along the lines.
    filled : Pattern
        The pattern in this order, with all of each block.
    """
    n, count = pattern.n, len(blocks)
    places, bound = np.empty_like(blocks), line[1:] == line[:-1]
    places[blocks] = np.arange(count)
    rows, columns = places[pattern.rows // b], places[pattern.indices // b]
    neighbours = (abs(rows - columns) == 1) & np.append(bound, False)[np.minimum(rows, columns)]
    taken = np.flatnonzero((rows == columns) | neighbours)
    kept = Pattern.of(pattern.rows[taken], pattern.indices[taken], n)
    whole = blocks[:, None] * b + np.arange(b)
    order, at = whole[whole < n], np.empty_like(whole)
    at[whole < n] = np.arange(n)
    here, before = np.arange(count), np.flatnonzero(bound)
    rows, columns = np.concatenate([here, before, before + 1]), np.concatenate([here, before + 1, before])
    inside = (whole[rows] < n)[:, :, None] & (whole[columns] < n)[:, None, :]
    rows, columns = np.broadcast_arrays(at[rows][:, :, None], at[columns][:, None, :])
    return taken, kept, order, Pattern.of(rows[inside], columns[inside], n)
