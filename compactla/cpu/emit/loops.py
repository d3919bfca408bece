"""Loops of code that is being emitted, over counts that are known by then and over others alike.

A size is cut into spans: 11 by 4 into (0, 4), (4, 4) and (8, 3), pairs of start and extent. With ``blocks(11, 4)`` the
caller sees what follows each, up to an `end`: ``rest(11)`` of the first yields (4, 4) and (8, 3), ``rest(11)`` of the
last nothing, and its ``rest(14)``, where there are columns behind the 11, (11, 3). With ``rows_of_triangle(11, 4)`` it
sees what precedes each: ``before()`` of the last yields (0, 4) and (4, 4). Spans of one extent are a group, as
``grid(11, 4)``, [(0, 2, 4), (8, 1, 3)], has them: start of the first, how many, extent. A group is one loop of machine
code, in which starts are `Index`es and extents still numbers.
"""

import functools
from contextlib import contextmanager

from llvmlite import ir

from compactla.cpu.emit.index import INDEX, Index, IntOrIndex, Variable, is_known, value_of
from compactla.cpu.emit.prefetch import Prefetch

UNROLLED = 8  # Loops of more rounds are loops in machine code too.
UNFETCHED = "ahead is for matrices of known size, must be empty for others"


class Loops:
    """The part of `compactla.cpu.emit.Code` that knows nothing of matrices but what is fetched ahead."""

    def __init__(self, builder):
        self.builder = builder
        self.ahead = None

    def index(self, x):
        """An index of an integer, or of an LLVM value of as many bits or fewer."""
        if isinstance(x, int | Index):
            return x
        return Index(self.builder, x if x.type == INDEX else self.builder.sext(x, INDEX))

    def unknown(self, x):
        """An index whose value is not known, even if it is: loops over it are loops of machine code."""
        return Index(self.builder, value_of(x))

    def variable(self, start=None):
        """An index on the stack, which code changes: it has `get` and `set`."""
        return Variable(self.builder, start)

    def entry(self, array, i, kind=INDEX):
        """Entry i of an array of integers, of 64 bits or of `kind`, as an index."""
        return self.index(self.builder.load(self.address(array, i, kind), typ=kind))

    def address(self, array, i, kind=INDEX):
        """The address of entry i of an array of `kind`."""
        return self.builder.gep(array, [value_of(i)], source_etype=kind)

    def min(self, a, b):
        """The smaller of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return (self.unknown(a) < b).select(a, b)

    def max(self, a, b):
        """The larger of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return (self.unknown(a) > b).select(a, b)

    def when(self, condition, likely=None):
        """A block whose code runs where a condition holds."""
        return self.builder.if_then(condition.value, likely=likely)

    def either(self, condition, likely=None):
        """Two blocks: one whose code runs where a condition holds, and one for where it does not."""
        return self.builder.if_else(condition.value, likely=likely)

    @contextmanager
    def loop(self, count):
        """Emit a loop whose index goes from 0 to count - 1."""
        b = self.builder
        entry, body, after = b.block, b.append_basic_block("body"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", INDEX(0), value_of(count)), body, after)
        b.position_at_end(body)
        i = b.phi(INDEX)
        i.add_incoming(INDEX(0), entry)
        yield Index(b, i)
        following = b.add(i, INDEX(1))
        i.add_incoming(following, b.block)
        again = b.cbranch(b.icmp_signed("<", following, value_of(count)), body, after)
        again.set_metadata("llvm.loop", never_unrolled(b.module))
        b.position_at_end(after)

    def each(self, count):
        """Yield 0 to count - 1: as Python integers if `count` is a small one, else as the `Index` of a loop."""
        if isinstance(count, int) and count <= UNROLLED:
            yield from range(count)
        else:
            with self.loop(count) as i:
                yield i

    def rounds(self, count, pairs=False):
        """`each`, in an innermost loop: what is ahead is fetched there, bit by bit.

        A loop of a known even count has two rounds at a time where they are to be `pairs`. Where it is known only later
        whether anything is to be fetched there are two loops.
        """
        side = 2 if pairs and isinstance(count, int) and count > UNROLLED and count % 2 == 0 else 1
        if self.ahead is None:
            yield from self._rounds(count, side)
            return
        start, wanted = self.ahead.advance(count), self.ahead.wanted
        if wanted is None:
            yield from self._fetching(start, self._rounds(count, side))
            return
        with self.either(wanted) as (yes, no):
            with yes:
                yield from self._fetching(start, self._rounds(self.unknown(count), side))
            with no:
                yield from self._rounds(self.unknown(count), side)

    def steps(self, count):
        """`rounds` that are emitted one by one, however many they are: their numbers are Python integers."""
        if self.ahead is None:
            yield from range(count)
            return
        start, wanted = self.ahead.advance(count), self.ahead.wanted
        if wanted is None:
            yield from self._fetching(start, range(count))
            return
        with self.either(wanted) as (yes, no):
            with yes:
                yield from self._fetching(start, range(count))
            with no:
                yield from range(count)

    def _rounds(self, count, side):
        """`each`, so many at a time."""
        for q in self.each(count if side == 1 else self.unknown(count // side)):
            yield from (q * side + k for k in range(side))

    def _fetching(self, start, rounds):
        """The same rounds, with what is ahead from the round `start` on."""
        for p in rounds:
            self.ahead.fetch(start, p)
            yield p

    def fetch_ahead(self, matrices, rounds):
        """Let the `rounds` rounds of innermost loops to come, if there are any, fetch matrices of known size."""
        if not all(isinstance(size, int) for A in matrices for size in (A.m, A.n)):
            raise ValueError(UNFETCHED)
        if rounds:
            self.ahead = Prefetch(self, matrices, rounds)

    def spans(self, size, largest):
        """Cut `size` into spans that differ by at most one: yields (start, extent).

        What the caller emits between two yields is a loop body. If `size` is a Python integer so are the extents.
        """
        if isinstance(size, int):
            yield from self._spans_of(grid(size, largest))
            return
        # How many spans there are, at least one; the first `wider` of them are longer by one than the others.
        b, small = self.builder, ir.IntType(32)
        size = b.trunc(size.value, small)
        count = b.udiv(b.add(size, small(largest - 1)), small(largest))
        count = b.select(b.icmp_unsigned("==", count, small(0)), small(1), count)
        extent = b.udiv(size, count)
        wider = Index(b, b.zext(b.sub(size, b.mul(extent, count)), INDEX))
        count, extent = (Index(b, b.zext(x, INDEX)) for x in (count, extent))
        with self.loop(count) as t:
            yield t * extent + self.min(t, wider), extent + Index(b, b.zext((t < wider).value, INDEX))

    def blocks(self, size, largest):
        """Spans of `size` with what follows them: yields (start, extent, rest).

        ``rest(end)`` yields the spans from there to `end`, which is at least `size`.
        """
        if not isinstance(size, int):
            for start, extent in self.spans(size, largest):
                yield start, extent, functools.partial(self._whole, start + extent)
            return
        groups = groups_of(size, largest)
        for g, t, start, width in self._members(groups):
            left = groups[g][1] - 1 - t
            yield start, width, functools.partial(self._rest, start, left, width, groups[g + 1 :], size, largest)

    def _whole(self, start, end):
        return [(start, end - start)]

    def _rest(self, start, left, width, groups, size, largest, end):
        """`left` more spans of `width` behind the one at `start`, then those of `groups`, then those from `size`."""
        following = [] if is_known(left, 0) else [(start + width, left, width)]
        beyond = [(size + first, count, width) for first, count, width in grid(end - size, largest)]
        yield from self._spans_of([*following, *groups, *beyond])

    def rows_of_triangle(self, size, largest):
        """Spans of `size` with what precedes them: yields (start, extent, before).

        ``before()`` yields the spans up to the start.
        """
        if not isinstance(size, int):
            for start, extent in self.spans(size, largest):
                yield start, extent, functools.partial(self.spans, start, largest)
            return
        groups = groups_of(size, largest)
        for g, t, start, width in self._members(groups):
            done = [] if groups[g][1] == 1 else [(groups[g][0], t, width)]
            yield start, width, functools.partial(self._spans_of, [*groups[:g], *done])

    def _spans_of(self, groups):
        """The spans of groups."""
        for _, _, start, width in self._members(groups):
            yield start, width

    def _members(self, groups):
        """Yield (g, t, start, extent) for each span: number t of group g."""
        for g, (first, count, width) in enumerate(groups):
            for t in self.each(1 if is_known(count, 1) else self.unknown(count)):
                yield g, t, first + t * width, width

    def cases(self, extent, largest):
        """Yield `extent` as a Python integer: what the caller emits is emitted for all up to `largest` if need be."""
        if isinstance(extent, int):
            yield extent
            return
        b = self.builder
        done = b.append_basic_block("done")
        switch = b.switch(extent.value, done)
        for known in range(1, largest + 1):
            block = b.append_basic_block(f"case{known}")
            switch.add_case(INDEX(known), block)
            b.position_at_end(block)
            yield known
            b.branch(done)
        b.position_at_end(done)

    def tiles(self, size, largest):
        """Spans of `size` whose extents are Python integers."""
        for start, extent in self.spans(size, largest):
            for known in self.cases(extent, largest):
                yield start, known

    def panels(self, size, width):
        """Spans of `size` of this width, in a loop, and what is left, whose extents are Python integers."""
        whole, left = size // width, size % width
        with self.loop(whole) as t:
            yield t * width, width
        for known in self.cases(left, width - 1):
            if known:
                yield whole * width, known


def never_unrolled(module):
    """Metadata of a loop that LLVM is not to unroll: it would spend most of the compile time there, for little."""
    hint = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    loop = ir.values.MDValue(module, [], name=str(len(module.metadata)))
    loop.operands = loop, hint  # LLVM wants a loop's metadata to begin with itself
    return loop


def grid(size, largest):
    """Cut a known size into as few spans of at most `largest` as do: [(start, count, extent)], with two extents."""
    count = -(-size // largest)
    extent, wider = divmod(size, max(count, 1))
    groups = (0, wider, extent + 1), (wider * (extent + 1), count - wider, extent)
    return [group for group in groups if group[1]]


def groups_of(size, largest):
    """The `grid` of a known size, where three spans or fewer are groups of their own: known starts make faster code."""
    groups = grid(size, largest)
    if sum(count for _, count, _ in groups) > 3:
        return groups
    return [(first + t * width, 1, width) for first, count, width in groups for t in range(count)]


def starts(size: IntOrIndex, largest: int) -> list[int]:
    """Where the spans of a known size start, for counts of rounds of `Loops.fetch_ahead`."""
    if not isinstance(size, int):
        raise ValueError(UNFETCHED)
    return [first + t * extent for first, count, extent in grid(size, largest) for t in range(count)]
