"""Rows swapped in lanes, as pivots say that each lane has of its own.

At the register level a column is a list, and flags say which row a lane swaps with the first: `choose`, `exchange`. In
memory `swap` exchanges one row with others, and `laswp` all of them: by a column of integers. `swap_columns` is for two
columns.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.matrices import Elements, itemsize
from compactla.cpu.emit.vectors import Vector

SMALL = ir.IntType(32)
FEW = 2  # columns of which elements are swapped one by one
BLENDED = 12  # real vectors of a column, of which rows are exchanged in registers


def integers(vector: Vector) -> Vector:
    """The vector of integers that go with numbers."""
    return Vector(types.int64 if vector.real.bitwidth == 64 else types.int32, vector.lanes)


def choose(column):
    """Flags for the rows of a column but the first: the first that has the largest |re| + |im| of all, unless row 0."""
    sizes = [x.abs1() for x in column]
    top = tree(lambda x, y: (x > y).select(x, y), sizes)
    before, *equal = [size == top for size in sizes]
    flags = []
    for flag in equal:
        flags.append(flag & ~before)
        before = before | flag
    return flags


def tree(apply: Callable, values: list) -> Any:
    """A reduction by a function of two, in as few dependent steps as possible."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [apply(x, y) for x, y in pairs] + values[len(values) & ~1 :]
    return values[0]


def exchange(column, flags):
    """A column, with its first element exchanged with that of the flagged row."""
    first = top = column[0]
    rest = []
    for x, flag in zip(column[1:], flags, strict=True):
        top = flag.select(x, top)
        rest.append(flag.select(first, x))
    return [top, *rest]


def swap(code, B, q, place):
    """Swap row q of B with row `place` of each lane.

    Numbers are collected and put where they belong one by one: stores of vectors through masks take twice the time.
    """
    b = code.builder
    rows = [code.index(b.extract_element(place.parts[0], SMALL(lane))) for lane in range(B.vector.lanes)]
    above, *others = (B.block(row, 0, 1, B.n) for row in (q, *rows))
    with code.loop(B.n) as j:
        mine, tops = above[0, j], []
        for im, part in zip((0, B.im), mine.parts, strict=False):
            places = [other.pointer(0, j, im + lane) for lane, other in enumerate(others)]
            top = part
            for lane, there in enumerate(places):
                top = b.insert_element(top, b.load(there, typ=B.element), SMALL(lane))
            for lane, there in enumerate(places):
                b.store(b.extract_element(part, SMALL(lane)), there)
            tops.append(top)
        above[0, j] = mine._new(*tops)


def swap_columns(code, first, second, wanted):
    """Swap two columns in the lanes that are wanted."""
    with code.loop(first.m) as i:
        x, y = first[i, 0], second[i, 0]
        first[i, 0], second[i, 0] = wanted.select(y, x), wanted.select(x, y)


@routine
def laswp(code, B, S, backward=False):
    """Swap the rows of B: row q with row S[q], for each q; `backward`: from the last to the first."""
    moves, early = code.registers(S.vector, 1), code.registers(S.vector, 1)
    moves[0, 0] = early[0, 0] = code.zero(S.vector)
    for q in code.each(S.m):
        row, own = S[q, 0], code.broadcast(q, S.vector)
        moves[0, 0] = (row == own).select(moves[0, 0], own.constant(1))
        early[0, 0] = (row < own).select(own.constant(1), early[0, 0])
    with code.when((moves[0, 0] > 0).any()):
        if isinstance(B.m, int) and B.m * len(B.vector.parts) <= BLENDED:
            with code.either((early[0, 0] > 0).any(), likely=False) as (any_rows, later_rows):
                with any_rows:
                    move(code, B, S, backward)
                with later_rows:
                    blend(code, B, [S[q, 0] for q in range(B.m)], backward)
        else:
            move(code, B, S, backward)


def blend(code, B, places, backward=False):
    """Swap rows of a B that has few: row q with row places[q], which is no earlier one, for each q."""
    swaps = [(q, [row == code.broadcast(i, row.vector) for i in range(q + 1, B.m)]) for q, row in enumerate(places)]
    for j, n in code.panels(B.n, 2):
        columns = [[B[i, j + k] for i in range(B.m)] for k in range(n)]
        for q, flags in reversed(swaps) if backward else swaps:
            for column in columns:
                column[q:] = exchange(column[q:], flags)
        for k, column in enumerate(columns):
            for i, x in enumerate(column):
                B[i, j + k] = x


def move(code, B, S, backward):
    """`laswp` through memory."""
    if isinstance(B.n, int) and B.n <= FEW:
        swap_elements(code, B, S, backward)
    else:
        permute(code, B, S, backward)


def swap_elements(code, B, S, backward):
    """`laswp` lane by lane, one element after the other."""
    b, lanes = code.builder, range(B.vector.lanes)
    with code.loop(S.m) as t:
        q = S.m - 1 - t if backward else t
        for lane in lanes:
            row = code.index(b.load(S.pointer(q, 0, lane), typ=S.element))
            for j in range(B.n):
                for im in (0, B.im)[: len(B.vector.parts)]:
                    mine, other = (B.pointer(i, j, im + lane) for i in (q, row))
                    x, y = (b.load(place, typ=B.element) for place in (mine, other))
                    b.store(y, mine)
                    b.store(x, other)


def permute(code, B, S, backward):
    """`laswp` of a copy of some columns, from which the rows are gathered in their order."""
    columns = min(B.n, 4) if isinstance(B.n, int) else 4
    copy = code.room(B.vector, B.m, columns)
    order = order_of(code, S, copy, backward)
    for j, c in code.tiles(B.n, columns):
        with code.loop(B.m) as i:
            for k in range(c):
                copy[i, k] = B[i, j + k]
        with code.loop(B.m) as i:
            places = order[i, 0]
            for k in range(c):
                B[i, j + k] = copy.gathered(0, k, places)


def order_of(code: Code, S: Elements, B: Elements, backward: bool = False) -> Elements:
    """The row of B that `laswp` would put into each row, in each lane: the bytes from the first number to it."""
    order, width = code.room(Vector(types.int64, B.vector.lanes), B.m, 1), itemsize(B.element)
    lanes = ir.Constant(order.vector.part, [width * lane for lane in range(B.vector.lanes)])
    with code.loop(B.m) as i:
        start = code.broadcast(i * (B.rs * width), order.vector)
        order[i, 0] = start + start._new(lanes)
    swap_elements(code, order, S, backward)
    return order
