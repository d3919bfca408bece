"""Entering which pivot of a matrix is the first that failed."""

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.index import INDEX, IntOrIndex, value_of
from compactla.cpu.emit.vectors import Flags


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
