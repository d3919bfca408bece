"""Direct elimination from its pattern alone: the order of pivots, what fills in, and tiles of the factors."""

import functools
import heapq
from functools import cached_property
from itertools import pairwise

import numpy as np

from compactla.sparse.pattern import Pattern

PATTERNS = 16  # whose tiles are kept
# From how many times fewer multiply-adds on incomplete factors are made by the pattern, and not by tiles.
DENSE = 12
# Up to what part of a pattern is kept of what incomplete factors drop.
DROPPED = 1 / 2
# What a multiply-add costs in tiles of this size, and what a tile costs beside these.
COSTS = {1: (6.0, 30), 2: (2.8, 45), 4: (1.6, 130)}


def ordered(pattern):
    """An order of pivots that keeps fill small, and the pattern of the factors in this order.

    Rows and columns are interchanged alike. The next pivot is one of least (r - 1)(c - 1), where r and c entries are
    left of its row and column [1]_; among these the one that a pivot before has changed last, which puts rows of
    similar patterns together. What is not in the pattern of the diagonal waits for it to fill in.

    Parameters
    ----------
    pattern : Pattern
        The pattern of square matrices.

    Returns
    -------
    order : ndarray of int64
        The row and column of `pattern` of each pivot.
    filled : Pattern
        The pattern of L + U, with the whole diagonal.

    References
    ----------
    .. [1] Markowitz, The elimination form of the inverse and its application to linear programming, Management Science
       3 (1957).
    """
    # sets of entries are integers, with a bit for each row or column
    n = pattern.n
    rows = [as_set(n, pattern.indices[start:end]) for start, end in pairwise(pattern.indptr)]
    by_column = pattern.rows[np.argsort(pattern.indices, kind="stable")]
    ends = np.cumsum(np.bincount(pattern.indices, minlength=n))
    columns = [as_set(n, some) for some in np.split(by_column, ends)[:n]]
    changed, done, order, lower, upper = [0] * n, [False] * n, [], [], []

    def priority(i):
        products = (rows[i].bit_count() - 1) * (columns[i].bit_count() - 1)
        return not rows[i] >> i & 1, products, -changed[i], i

    priorities = [priority(i) for i in range(n)]
    queue = sorted(priorities)
    while queue:
        # the least entry that is up to date: others were replaced by newer ones
        first = heapq.heappop(queue)
        p = first[-1]
        if done[p] or first != priorities[p]:
            continue
        done[p], pivot = True, 1 << p
        # eliminate: rows below take the entries right of the pivot, columns those below it
        right, below = rows[p] & ~pivot, columns[p] & ~pivot
        lower.append(members(n, below))
        upper.append(members(n, right))
        order.append(p)
        for i in lower[-1]:
            rows[i] = (rows[i] | right) & ~pivot
        for j in upper[-1]:
            columns[j] = (columns[j] | below) & ~pivot
        for i in members(n, right | below):
            changed[i] = len(order)
            priorities[i] = priority(i)
            heapq.heappush(queue, priorities[i])
    return np.array(order, np.int64), in_order(order, lower, upper)


def as_set(n, indices):
    """A set of numbers below n: an integer with a bit for each."""
    there = np.zeros(n, bool)
    there[indices] = True
    return int.from_bytes(np.packbits(there, bitorder="little").tobytes(), "little")


def members(n, numbers):
    """The numbers of a set, in ascending order."""
    bits = np.frombuffer(numbers.to_bytes(-(-n // 8), "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()


def in_order(order, lower, upper):
    """The pattern of L + U from the rows and columns that each pivot changes, in the order of pivots."""
    n, place = len(order), np.empty(len(order), np.int64)
    place[order] = np.arange(n)
    pivots = np.arange(n, dtype=np.int64)
    rows, columns = [pivots], [pivots]
    for mine, others, given in ((rows, columns, lower), (columns, rows, upper)):
        mine.append(place[np.fromiter((i for some in given for i in some), np.int64)])
        others.append(np.repeat(pivots, [len(some) for some in given]))
    return Pattern.of(np.concatenate(rows), np.concatenate(columns), n)


def tiled(filled: Pattern, size: int) -> Pattern:
    """The pattern of the tiles that have entries, or are on the diagonal."""
    m = -(-filled.n // size)
    rows, columns = (np.append(x // size, np.arange(m)) for x in (filled.rows, filled.indices))
    return Pattern.of(rows, columns, m)


def cost(tiles, size):
    """The cost of elimination with this pattern of tiles."""
    multiply_add, tile = COSTS[size]
    return multiply_add * size**3 * multiplications(tiles) + tile * len(tiles.indices)


def multiplications(tiles: Pattern) -> int:
    """Products of two tiles that elimination takes."""
    lower, upper = (np.bincount(x, minlength=tiles.n) - 1 for x in halves(tiles))
    return int(lower @ upper)


def halves(tiles):
    """The columns of entries of the lower triangle, and the rows of those of the upper one."""
    return tiles.indices[tiles.rows >= tiles.indices], tiles.rows[tiles.rows <= tiles.indices]


def in_tiles(pattern, order, filled, largest):
    """Tiles of the size that is expected to be fastest, up to the largest one."""
    size = min((size for size in COSTS if size <= largest), key=lambda size: cost(tiled(filled, size), size))
    return Tiles(pattern, order, filled, size)


def without_fill(pattern: Pattern, size: int) -> "Tiles | None":
    """Tiles of this size for incomplete factors, if the pattern is dense enough for these to be faster."""
    m = -(-pattern.n // size) * size
    return unfilled(pattern, size) if m**3 <= DENSE * pattern.work else None


@functools.lru_cache(PATTERNS)
def unfilled(pattern, size):
    """Tiles of factors without fill in the order of rows."""
    return Tiles(pattern, np.arange(pattern.n, dtype=np.int64), pattern, size, incomplete=True)


class Tiles:
    """The places of factors' numbers in tiles, row by row of tiles; tiles without entries are left out.

    Parameters
    ----------
    pattern : Pattern
        The pattern of square matrices, whose values are passed.
    order : ndarray of int64
        The row and column of `pattern` of each pivot.
    filled : Pattern
        Entries that tiles have to have, in the order of pivots.
    size : int
        Rows and columns of a tile.
    taken : ndarray of int64, optional
        Which of the values that `sources` is about are those of the pattern; default: all.
    incomplete : bool, optional
        Whether factors are zero, or not computed, where the pattern has no entries; see `without_fill`.

    Attributes
    ----------
    m : int
        How many tiles there are in a row, with those that are left out.
    count : int
        Numbers in all tiles; each tile has its rows one after the other.
    rows, indices, indptr, diagonal : ndarray of int64
        The pattern of tiles: of each its row and column, where rows begin, and where the diagonal is.
    pattern : Pattern
        That of tiles.
    transposed : tuple of ndarray
        See `Pattern`, for tiles.
    products, starts : ndarray of int64, when they are asked for
        Pairs of tiles whose products are subtracted, in the order of pivots; those of tile t are from ``starts[t]`` to
        ``starts[t + 1] - 1``.
    places : ndarray of int64
        Where in the tiles the values are.
    sources : ndarray of int64
        Which of the values each number in the tiles is, -1 where there is none.
    entries : ndarray of int64
        What each number in the tiles is before elimination: a value, by its number, or -1 for zero, or -2 for one,
        which is on the diagonal behind the last pivot.
    mask : ndarray of int64
        For each number in the tiles, -1 if a value is there, or a one; else the place behind the tiles for what
        incomplete factors drop there.
    dropped : Pattern or None
        Where all that incomplete factors drop is; None if it is not kept, as it is much.
    extra : int
        Numbers behind the tiles: of incomplete factors what they drop, and one more for what is not kept.
    """

    def __init__(
        self, pattern: Pattern, order: np.ndarray, filled: Pattern, size: int, taken: np.ndarray | None = None,
        incomplete: bool = False,
    ) -> None:  # fmt: skip
        self.size, self.n, self.order, self.incomplete = size, filled.n, order, incomplete
        self.pattern = tiles = tiled(filled, size)
        self.m = m = tiles.n
        self.rows, self.indices, self.indptr, self.diagonal = tiles.rows, tiles.indices, tiles.indptr, tiles.diagonal
        self.keys, self.count = self.rows * m + self.indices, len(tiles.indices) * size**2
        place = np.empty_like(order)
        place[order] = np.arange(self.n)
        self.places = self.at(place[pattern.rows], place[pattern.indices])
        behind = np.arange(self.n, m * size)
        self.entries = np.full(self.count, -1, np.int64)
        self.entries[self.places], self.entries[self.at(behind, behind)] = np.arange(len(self.places)), -2
        absent = self.entries == -1
        self.mask = np.where(absent, 0, -1).astype(np.int64)
        self.taken = taken
        self.dropped, self.extra = None, int(incomplete)
        if incomplete and len(tiles.indices) == m * m:
            number = np.arange(self.count)
            tile, place = np.divmod(number, size**2)
            i, j = self.rows[tile] * size + place // size, self.indices[tile] * size + place % size
            some = number[absent & (i < self.n) & (j < self.n)]
            if len(some) <= DROPPED * len(self.places):
                some = some[np.lexsort((j[some], i[some]))]
                self.mask[absent], self.mask[some] = len(some), np.arange(len(some))
                self.dropped = Pattern.of(i[some], j[some], self.n)
                self.extra += len(some)

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The places of entries, each of which is in some tile."""
        size = self.size
        tile = np.searchsorted(self.keys, rows // size * self.m + columns // size)
        return tile * size**2 + rows % size * size + columns % size

    @cached_property
    def sources(self) -> np.ndarray:
        sources = np.full(self.count, -1, np.int64)
        sources[self.places] = np.arange(len(self.places)) if self.taken is None else self.taken
        return sources

    @property
    def transposed(self) -> tuple[np.ndarray, ...]:
        return self.pattern.transposed

    @property
    def products(self) -> np.ndarray:
        return self._lists[0]

    @property
    def starts(self) -> np.ndarray:
        return self._lists[1]

    @property
    def work(self) -> int:
        """Multiply-adds of an elimination, but for those within tiles."""
        return len(self.products) // 2 * self.size**3

    @cached_property
    def _lists(self):
        """Pairs of tiles, one after the other, and where those of each tile begin."""
        m, found = self.m, []
        lower = np.flatnonzero(self.rows > self.indices)
        lower = lower[np.argsort(self.indices[lower], kind="stable")]
        ends = np.searchsorted(self.indices[lower], np.arange(m + 1))
        for k in range(m):
            left, above = lower[ends[k] : ends[k + 1]], np.arange(self.diagonal[k] + 1, self.indptr[k + 1])
            key = self.rows[left][:, None] * m + self.indices[above]
            target = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            pairs = target, *np.broadcast_arrays(left[:, None], above)
            there = self.keys[target] == key
            found.append(np.stack([x[there] for x in pairs]))
        target, *pairs = np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1)
        order = np.argsort(target, kind="stable")
        starts = np.searchsorted(target[order], np.arange(len(self.keys) + 1))
        return np.stack(pairs, axis=1)[order].reshape(-1), starts
