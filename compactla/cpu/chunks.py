"""Vectors of V systems, read and written in chunks while others are worked on: memory and arithmetic wait together."""

from dataclasses import replace

from compactla.cpu.ahead import BYTES, LINE, prefetch
from compactla.cpu.ordinary import Ordinary
from compactla.cpu.simd import INDEX, Elements, index

NEAR = 1 << 19  # bytes of V systems up to which those of the next V are fetched ahead
ON = 512  # bytes that are fetched ahead in larger ones


class Chunks:
    """An ordinary m x n matrix with few columns, of a number that is known, and what it is copied to or from.

    A chunk has `count` rows. While one is worked on the next is read.
    """

    def __init__(self, vectors: Ordinary, W: Elements, count):
        self.code, self.vectors, self.W, self.count = vectors.code, vectors, W, count
        b, V = self.code.builder, vectors.vector.lanes
        self.whole = b.sdiv(index(vectors.m), INDEX(count))
        step = b.sub(vectors.starts[-1], vectors.starts[0])
        near = b.icmp_signed("<", b.mul(step, INDEX(V)), INDEX(NEAR * (V - 1)))
        following = b.add(step, b.sdiv(step, INDEX(max(V - 1, 1))))
        self.distance = b.select(near, following, INDEX(ON))

    def start(self):
        """Read the first chunk, and what there is behind the last whole one."""
        self._last("read")
        with self._there(0):
            self._some("read", 0)

    def begin(self, k):
        """Read the chunk behind row k, if that is the first of one."""
        b = self.code.builder
        with self._if_first(k) as chunk:
            following = b.add(chunk, INDEX(1))
            with self._there(following):
                self._some("read", b.mul(following, INDEX(self.count)))

    def end(self, k):
        """Write the chunk that begins with row k, if one does."""
        with self._if_first(k) as chunk, self._there(chunk):
            self._some("write", k)

    def finish(self):
        """Write what there is behind the last whole chunk."""
        self._last("write")

    def _if_first(self, k):
        return First(self.code, k, self.count)

    def _there(self, chunk):
        b = self.code.builder
        return b.if_then(b.icmp_signed("<", index(chunk), self.whole))

    def _last(self, action):
        """What there is behind the last whole chunk: along with rows before it, if there are as many as in a chunk."""
        b, m = self.code.builder, index(self.vectors.m)
        done = b.mul(self.whole, INDEX(self.count))
        with b.if_then(b.icmp_signed("<", done, m)):
            with b.if_else(b.icmp_signed(">", self.whole, INDEX(0))) as (many, few):
                with many:
                    self._some(action, b.sub(m, INDEX(self.count)))
                with few, self.code.loop(m) as k:
                    self._rows(action, k, 1)

    def _some(self, action, k):
        """Copy a chunk that begins with row k."""
        self._rows(action, k, self.count)

    def _rows(self, action, k, count):
        code, x, W = self.code, self.vectors, self.W
        offset = index(code.mul(k, x.rs))
        starts = [code.builder.add(start, offset) for start in x.starts]
        rows = W.block(k, 0, count, x.n)
        if action == "read" and count > 1:
            self._fetch(starts, count)
        if x.kind == "whole":
            move(action, replace(x, m=count, starts=starts), rows)
        else:  # what is whole is not, of some rows
            some = replace(x, m=count, starts=starts, kind={"wholeT": "rowsT"}.get(x.kind, x.kind))
            getattr(some, action)(rows)

    def _fetch(self, starts, count):
        """Fetch what is read next but one, or by the next V systems."""
        b, x = self.code.builder, self.vectors
        size = 1
        if x.kind == "whole":
            size = count * x.n * x.parts * x.item
        elif x.kind == "lanes":
            starts = [b.add(starts[0], index(self.code.mul(i, x.rs))) for i in range(count)]
        else:
            return
        for start in starts:
            for line in range(0, size, LINE):
                prefetch(b, b.inttoptr(b.add(start, b.add(self.distance, INDEX(line))), BYTES))


def move(action, vectors: Ordinary, W: Elements):
    """Read W, or write it, in one go where it is contiguous as the vectors are."""
    if vectors.kind == "whole":
        size = vectors.code.mul(vectors.m, vectors.n)
        vectors, W = replace(vectors, m=1, n=size), W._replace(m=1, n=size, cs=W.rs if vectors.n == 1 else W.cs)
    getattr(vectors, action)(W)


class First:
    """A block that is left out unless row k is the first of a chunk, of which it has the number."""

    def __init__(self, code, k, count):
        b = code.builder
        self.chunk = b.sdiv(index(k), INDEX(count))
        self.block = b.if_then(b.icmp_signed("==", b.mul(self.chunk, INDEX(count)), index(k)))

    def __enter__(self):
        self.block.__enter__()
        return self.chunk

    def __exit__(self, *error):
        return self.block.__exit__(*error)
