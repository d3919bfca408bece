"""Integer arithmetic and loops of code that is being emitted, for indices known by then and for LLVM values alike."""

import functools
from contextlib import contextmanager

from llvmlite import ir

from compactla.cpu.emit.matrices import INDEX, index
from compactla.cpu.emit.prefetch import Ahead

UNROLLED = 8  # Loops of more rounds are loops in machine code too.


class Loops:
    """The part of `compactla.cpu.emit.Code` that knows nothing of matrices but what is fetched ahead."""

    def __init__(self, builder):
        self.builder = builder
        self.ahead = None

    def add(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int) and a == 0:
            return b
        if isinstance(b, int) and b == 0:
            return a
        return self.builder.add(index(a), index(b))

    def sub(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.builder.sub(index(a), index(b))

    def mul(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x in (0, 1):
                return y if x else 0
        return self.builder.mul(index(a), index(b))

    def widened(self, a):
        """An index, of an integer that may be of fewer bits."""
        return a if isinstance(a, int) or a.type == INDEX else self.builder.sext(a, INDEX)

    def min(self, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        a, b = index(a), index(b)
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    @contextmanager
    def loop(self, count):
        """Emit a loop whose index goes from 0 to count - 1."""
        b = self.builder
        entry, body, after = b.block, b.append_basic_block("body"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", INDEX(0), index(count)), body, after)
        b.position_at_end(body)
        i = b.phi(INDEX)
        i.add_incoming(INDEX(0), entry)
        yield i
        following = b.add(i, INDEX(1))
        i.add_incoming(following, b.block)
        again = b.cbranch(b.icmp_signed("<", following, index(count)), body, after)
        again.set_metadata("llvm.loop", never_unrolled(b.module))
        b.position_at_end(after)

    def each(self, count):
        """Yield 0 to count - 1: as Python integers if `count` is a small one, else as the index of a loop."""
        if isinstance(count, int) and count <= UNROLLED:
            yield from range(count)
        else:
            with self.loop(count) as i:
                yield i

    def rounds(self, count, pairs=False):
        """`each`, in an innermost loop: what is ahead is fetched there, bit by bit.

        A loop of a known even count has two rounds at a time where they are to be `pairs`.
        """
        start = self.ahead.advance(count) if self.ahead else None
        side = 2 if pairs and isinstance(count, int) and count > UNROLLED and count % 2 == 0 else 1
        for q in self.each(count if side == 1 else index(count // side)):
            for p in (self.add(self.mul(q, side), k) for k in range(side)):
                if start:
                    self.ahead.fetch(start, p)
                yield p

    def fetch_ahead(self, matrices, rounds):
        """Let the `rounds` rounds of innermost loops to come, if there are any, fetch matrices of known size."""
        if not all(isinstance(size, int) for A in matrices for size in (A.m, A.n)):
            raise ValueError("ahead is for matrices of known size, must be empty for others")
        if rounds:
            self.ahead = Ahead(self, matrices, rounds)

    def spans(self, size, largest):
        """Cut `size` into spans that differ by at most one: yields (start, extent).

        What the caller emits between two yields is a loop body. If `size` is a Python integer so are the extents.
        """
        if isinstance(size, int):
            for start, count, width in grid(size, largest):
                for t in self.each(1 if count == 1 else index(count)):
                    yield self.add(start, self.mul(t, width)), width
            return
        b = self.builder
        small = ir.IntType(32)
        size = b.trunc(size, small)
        count = b.udiv(b.add(size, small(largest - 1)), small(largest))
        count = b.select(b.icmp_unsigned("==", count, small(0)), small(1), count)
        extent = b.udiv(size, count)
        wider = b.zext(b.sub(size, b.mul(extent, count)), INDEX)
        count, extent = b.zext(count, INDEX), b.zext(extent, INDEX)
        with self.loop(count) as t:
            start = b.add(b.mul(t, extent), self.min(t, wider))
            yield start, b.add(extent, b.zext(b.icmp_signed("<", t, wider), INDEX))

    def blocks(self, size, largest):
        """Spans of `size` with what follows them: yields (start, extent, rest).

        ``rest(end)`` yields the spans from there to `end`, which is at least `size`.
        """
        if not isinstance(size, int):
            for start, extent in self.spans(size, largest):
                behind = self.add(start, extent)
                yield start, extent, functools.partial(self._whole, behind)
            return
        groups = grid(size, largest)
        if sum(count for _, count, _ in groups) <= 3:  # known starts make faster code
            groups = [(first + t * width, 1, width) for first, count, width in groups for t in range(count)]
        for g, (first, count, width) in enumerate(groups):
            for t in self.each(1 if count == 1 else index(count)):
                start = self.add(first, self.mul(t, width))
                left = self.sub(count - 1, t)
                yield start, width, functools.partial(self._rest, start, left, width, groups[g + 1 :], size, largest)

    def _whole(self, start, end):
        return [(start, self.sub(end, start))]

    def _rest(self, start, left, width, groups, size, largest, end):
        """`left` more spans of `width` behind the one at `start`, then those of `groups`, then those from `size`."""
        following = [(self.add(start, width), left, width)] if left != 0 else []
        beyond = [(size + first, count, width) for first, count, width in grid(end - size, largest)]
        yield from self._spans_of([*following, *groups, *beyond])

    def _spans_of(self, groups):
        """The spans of (start of the first, how many, extent) for each of the groups."""
        for first, count, width in groups:
            for t in self.each(1 if count == 1 else index(count)):
                yield self.add(first, self.mul(t, width)), width

    def rows_of_triangle(self, size, largest):
        """Spans of `size` with what precedes them: yields (start, extent, before).

        ``before()`` yields the spans up to the start.
        """
        if not isinstance(size, int):
            for start, extent in self.spans(size, largest):
                yield start, extent, functools.partial(self.spans, start, largest)
            return
        groups = grid(size, largest)
        if sum(count for _, count, _ in groups) <= 3:
            groups = [(first + t * width, 1, width) for first, count, width in groups for t in range(count)]
        for g, (first, count, width) in enumerate(groups):
            for t in self.each(1 if count == 1 else index(count)):
                done = [*groups[:g], *([] if count == 1 else [(first, t, width)])]
                yield self.add(first, self.mul(t, width)), width, functools.partial(self._spans_of, done)

    def cases(self, extent, largest):
        """Yield `extent` as a Python integer: what the caller emits is emitted for all up to `largest` if need be."""
        if isinstance(extent, int):
            yield extent
            return
        b = self.builder
        done = b.append_basic_block("done")
        switch = b.switch(extent, done)
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
        if isinstance(size, int):
            whole, left = divmod(size, width)
        else:
            whole, left = self.builder.udiv(size, INDEX(width)), self.builder.urem(size, INDEX(width))
        with self.loop(whole) as t:
            yield self.mul(t, width), width
        for known in self.cases(left, width - 1):
            if known:
                yield self.mul(whole, width), known


def never_unrolled(module):
    """Metadata of a loop that LLVM is not to unroll: it would spend most of the compile time there, for little."""
    hint = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    loop = ir.values.MDValue(module, [], name=str(len(module.metadata)))
    loop.operands = loop, hint  # LLVM wants a loop's metadata to begin with itself
    return loop


def grid(size, largest):
    """Cut a known size into as few spans of at most `largest` as do: [(start, count, extent)], with two extents."""
    if not isinstance(size, int):
        raise ValueError("ahead is for matrices of known size, must be empty for others")
    count = -(-size // largest)
    extent, wider = divmod(size, max(count, 1))
    groups = (0, wider, extent + 1), (wider * (extent + 1), count - wider, extent)
    return [group for group in groups if group[1]]


def starts(size, largest):
    """Where the spans of a known size start."""
    return [first + t * extent for first, count, extent in grid(size, largest) for t in range(count)]
