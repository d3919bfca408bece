"""What the work-items of a group do with sparse matrices of one pattern, round by round: lists for kernels.

Only the pattern matters, so that a list is made once. Flags are those of `opencl/rounds.h`.
"""

from typing import Any, NamedTuple

import numpy as np

TAKE, SUBTRACT, PIVOT, LEFT, ABOVE, GIVE, SYNC = (1 << bit for bit in range(7))
WORD = 16  # bits that a number in a list has


class Tasks(NamedTuple):
    """A table of what is done to numbers, or to tiles of numbers: arrays of the same length.

    Attributes
    ----------
    phase : ndarray of int64
        When. What happens in one phase is done at the same time, but for what happens to one number: its rows are next
        to each other.
    own : ndarray of int64
        Which number or tile is changed.
    left, above : ndarray of int64
        What it is changed by.
    what : ndarray of int64
        How: SUBTRACT, PIVOT, LEFT or ABOVE.
    """

    phase: np.ndarray
    own: np.ndarray
    left: np.ndarray
    above: np.ndarray
    what: np.ndarray


def table(parts: Any) -> Tasks:
    """Tasks from parts of a table that have one more column: the order of those of one number in one phase."""
    *columns, order = np.concatenate([np.stack(np.broadcast_arrays(*part)) for part in parts], axis=1)
    tasks = np.stack(columns)
    return Tasks(*tasks[:, np.lexsort((order, tasks[1], tasks[0]))])


def levels(indices: np.ndarray, starts: np.ndarray, ends: np.ndarray, rows: Any) -> np.ndarray:
    """Of each row how many others, one after the other, come before it.

    Row i needs the rows ``indices[starts[i]:ends[i]]``, which are before it in `rows`.
    """
    found = np.zeros(len(starts), np.int64)
    for i in rows:
        found[i] = found[indices[starts[i] : ends[i]]].max(initial=-1) + 1
    return found


def pivot_levels(tiles: Any) -> np.ndarray:
    """Of each pivot of a pattern of factors how many others, one after the other, come before it."""
    # it needs those in whose rows or columns its own has an entry
    first, second = np.minimum(tiles.rows, tiles.indices), np.maximum(tiles.rows, tiles.indices)
    off = np.flatnonzero(first != second)
    off = off[np.argsort(second[off], kind="stable")]
    pivots = np.arange(len(tiles.indptr) - 1)
    starts, ends = (np.searchsorted(second[off], pivots, side) for side in ("left", "right"))
    return levels(first[off], starts, ends, pivots)


def elimination(tiles: Any) -> Tasks:
    """The tasks of a factorization.

    Parameters
    ----------
    tiles : compactla.sparse.elimination.Tiles
        Tiles of the factors.

    Notes
    -----
    Pivots of level k are factored at the end of phase 2k, tiles beside them divided in phase 2k + 1, and products
    subtracted in phase 2k + 2.
    """
    rows, columns, m, level = tiles.rows, tiles.indices, tiles.m, pivot_levels(tiles)
    first = np.minimum(rows, columns)
    left, above = tiles.products[::2], tiles.products[1::2]
    own, done = np.repeat(np.arange(len(rows)), np.diff(tiles.starts)), level[columns[left]]
    diagonal = tiles.diagonal
    parts = [
        (2 * done + 2, own, left, above, SUBTRACT, done),
        (2 * level, diagonal, np.arange(m) * tiles.size, diagonal, PIVOT, m),
    ]
    for what, some in ((LEFT, rows > columns), (ABOVE, (rows < columns) & (tiles.size > 1))):
        mine = np.flatnonzero(some)
        pivot = diagonal[first[mine]]
        parts.append((2 * level[first[mine]] + 1, mine, pivot, pivot, what, 0))
    return table(parts)


def substitution(factors: Any, trans: bool) -> Tasks:
    """The tasks of a solution with factors of a pattern, or with their transposes.

    Row `own` loses its value `above` times row `left`; a pivot is one that it is multiplied by.
    """
    n, begin, parts = factors.n, 0, []
    indptr, indices, places = factors.indptr, factors.indices, np.arange(len(factors.indices))
    if trans:
        indptr, indices, places = factors.transposed
    rows = np.repeat(np.arange(n), np.diff(indptr))
    diagonal = np.flatnonzero(rows == indices)
    for upper in (False, True):
        order = range(n)[::-1] if upper else range(n)
        starts, ends = (diagonal + 1, indptr[1:]) if upper else (indptr[:-1], diagonal)
        level = levels(indices, starts, ends, order)
        some = np.flatnonzero(rows < indices if upper else rows > indices)
        own, left, done = rows[some], indices[some], level[indices[some]]
        parts.append((begin + done + 1, own, left, places[some], SUBTRACT, done))
        if upper != trans:
            parts.append((begin + level, np.arange(n), np.arange(n), places[diagonal], PIVOT, n))
        begin += level.max() + 1
    return table(parts)


def product(pattern: Any, trans: bool) -> Tasks:
    """The tasks of a product with matrices of a pattern, or with their transposes.

    Row `own` gets its value `above` times row `left`. Rows without values are there, too.
    """
    indptr, indices, places = pattern.indptr, pattern.indices, np.arange(len(pattern.indices))
    if trans:
        indptr, indices, places = pattern.transposed
    counts = np.diff(indptr)
    empty = np.flatnonzero(counts == 0)
    return table(
        [(0, np.repeat(np.arange(len(counts)), counts), indices, places, SUBTRACT, places), (0, empty, 0, 0, 0, 0)]
    )


class Schedule(NamedTuple):
    """What each member of a group does.

    Attributes
    ----------
    starts : ndarray of int32
        The rounds that phases begin with, and where the last one ends.
    words : ndarray of uint32
        (rounds, members, 2): `own` and `left`, and `above` and flags, 16 bits of each. Flags say also whether a number
        is taken first, given back, and whether all wait for each other then.
    """

    starts: np.ndarray
    words: np.ndarray


def schedule(tasks: Tasks, members: int) -> Schedule:
    """What so many members do to get tasks done.

    Tasks for one number in one phase are one member's, one a round. Members take these by the time that they take, some
    of about the same time side by side.
    """
    key = tasks.phase * (tasks.own.max() + 1) + tasks.own
    first = np.flatnonzero(np.diff(key, prepend=-1))
    counts = np.diff(np.append(first, len(key)))
    last = first + counts - 1
    what = tasks.what.copy()
    what[first] |= TAKE
    what[last] |= GIVE
    # in the order of phases; in each pivots first, which take long, then what has many tasks
    phase, own, kind = tasks.phase[first], tasks.own[first], tasks.what[last]
    order = np.lexsort((own, -counts, np.where(kind == PIVOT, -1, kind), phase))
    _, begin, each = np.unique(phase[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(begin, each)
    block = np.cumsum(rank % members == 0) - 1
    lengths = np.zeros(block[-1] + 1, np.int64)
    np.maximum.at(lengths, block, counts[order])
    ends = np.cumsum(lengths)
    starts = np.append((ends - lengths)[block[begin]], ends[-1])
    place = np.argsort(order)  # of what `first` has
    task = np.repeat(place, counts)
    rounds = (ends - lengths)[block[task]] + np.arange(len(key)) - np.repeat(first, counts)
    words = np.zeros((ends[-1], members, 2), np.uint32)
    words[rounds, rank[task] % members, 0] = tasks.own | tasks.left << WORD
    words[rounds, rank[task] % members, 1] = tasks.above | what << WORD
    words[starts[1:] - 1, :, 1] |= SYNC << WORD
    return Schedule(starts.astype(np.int32), words)
