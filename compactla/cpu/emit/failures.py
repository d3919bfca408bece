"""Register tiles with pivots that may fail, and entering which pivot of a matrix is the first that did."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import INDEX, IntOrIndex, value_of
from compactla.cpu.emit.vectors import Flags


def factor(code: Code, eliminated: Callable, tiles: Sequence, info: Any, first: IntOrIndex, regular: bool) -> None:
    """Factor register tiles of several packs side by side, because each waits for its pivots.

    ``eliminated(code, tiles, regular)`` returns the factors of each, which have `store`, `failed`, flags of all pivots,
    and `spoiled`: flags that are set wherever a pivot was not `regular` though all were taken for that. These tiles are
    done again with care. A tile is some matrices, of which the last but one is what is factored, and the last holds
    reciprocals of pivots, which are set. Failed pivots are entered into `info`, counted from `first`. `eliminated` is
    one object for the same work.
    """
    factors = eliminated(code, tiles, regular)
    if not regular:
        for t, done in enumerate(factors):
            done.store()
            report(code, done.failed(), code.address(info, t * tiles[t][-2].vector.lanes), first + 1)
        return
    spoiled = functools.reduce(operator.or_, (done.spoiled() for done in factors))
    with code.either(spoiled.any(), likely=False) as (some, none):
        with some:
            rooms = [code.room(pivots.vector, A.m) for *_, A, pivots in tiles]
            parts = [X for (*matrices, _), room in zip(tiles, rooms, strict=True) for X in (*matrices, room)]
            code.apart(with_care(eliminated, len(tiles[0])), parts, info, first)
            for (*_, A, pivots), room in zip(tiles, rooms, strict=True):
                for q in range(A.m):
                    pivots[q, 0] = room[q, 0]
        with none:
            for done in factors:
                done.store()


@functools.cache
def with_care(eliminated, width):
    """What emits the same for tiles of so many matrices of which a pivot is not regular."""

    def emit(code, parts, info, first):
        tiles = [parts[t : t + width] for t in range(0, len(parts), width)]
        factor(code, eliminated, tiles, info, first, regular=False)

    return emit


def report(code: Code, zeros: Sequence[Flags], info: Any, pivot: IntOrIndex) -> None:
    """Enter pivots, counted from `pivot`, into `info` where their masks in `zeros` are set and nothing is entered."""
    b, masks = code.builder, [zero.bits for zero in zeros]
    lanes = masks[0].type

    def enter(code, mask, info, pivot):
        b = code.builder
        with code.loop(lanes.width) as lane:
            slot = b.gep(info, [lane.value], source_etype=INDEX)
            entered = b.load(slot, typ=INDEX)
            resize = b.trunc if lanes.width < 64 else b.zext
            shift = lane.value if lanes.width == 64 else resize(lane.value, lanes)
            bit = b.trunc(b.lshr(mask, shift), ir.IntType(1)) if lanes.width > 1 else mask
            enter = b.and_(bit, b.icmp_unsigned("==", entered, INDEX(0)))
            b.store(b.select(enter, pivot, entered), slot)

    with b.if_then(b.icmp_unsigned("!=", functools.reduce(b.or_, masks), lanes(0)), likely=False):
        kinds = [lanes, INDEX.as_pointer(), INDEX]
        for q, mask in enumerate(masks):
            call = f"compactla.report{lanes}", kinds, enter, mask, info, value_of(pivot + q)
            code.call(*call, attributes=("noinline", "cold"))
