"""Vectors of V systems, read and written in chunks while others are worked on: memory and arithmetic wait together."""

from dataclasses import replace

from compactla.cpu.emit.matrices import INDEX, Elements, index
from compactla.cpu.emit.prefetch import BYTES, LINE, prefetch
from compactla.cpu.memory.matrices import Ordinary

NEAR = 1 << 19  # bytes of V systems up to which those of the next V are fetched ahead
ON = 512  # bytes that are fetched ahead in larger ones
GROUP = 16  # times V neighbouring systems: memory moves more at once than the numbers of V of them


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

    def prepare(self, k):
        """Fetch what the chunk that begins with row k is written to, if one does."""
        b, x = self.code.builder, self.vectors
        with self._if_first(k):
            offset = index(self.code.mul(k, x.rs))
            starts = [b.add(start, offset) for start in x.starts]
            fetch(replace(x, m=self.count, starts=starts), INDEX(0), k, write=True)

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
        """The rows behind the last whole chunk: along with rows before it, if there are as many as in a chunk."""
        b, m = self.code.builder, index(self.vectors.m)
        done = b.mul(self.whole, INDEX(self.count))
        with b.if_then(b.icmp_signed("<", done, m)):
            with b.if_else(b.icmp_signed(">", self.whole, INDEX(0))) as (many, few):
                with many:
                    self._some(action, b.sub(m, INDEX(self.count)))
                with few, self.code.loop(m) as k:
                    self._row(action, k)

    def _some(self, action, k):
        """Copy a chunk that begins with row k: the code for it is there once."""
        x, W, count = self.vectors, self.W, self.count

        def emit(code, k, base, step, rs, cs, distance, adjacent, *starts):
            some = replace(x, code=code, rs=rs, cs=cs, adjacent=adjacent, starts=list(starts))
            copy_rows(action, some, W._replace(code=code, base=base, rs=step), k, count, distance)

        values = [index(k), W.base, index(W.rs), x.rs, x.cs, self.distance, x.adjacent, *x.starts]
        name = f"compactla.chunk {action} {x.vector} {x.real} {x.kind} {x.n} {count}"
        self.code.call(name, [value.type for value in values], emit, *values, attributes=("noinline",))

    def _row(self, action, k):
        copy_rows(action, self.vectors, self.W, k, 1, self.distance)


def copy_rows(action, vectors: Ordinary, W: Elements, k, count, distance):
    """Read or write some rows of W from row k on; what is read so far behind them is fetched into the cache."""
    code = vectors.code
    offset = index(code.mul(k, vectors.rs))
    some = replace(vectors, m=count, starts=[code.builder.add(start, offset) for start in vectors.starts])
    if action == "read" and count > 1:
        fetch(some, distance, k)
    if some.kind == "wholeT":  # which some rows are not
        some = replace(some, kind="rowsT")
    move(action, some, W.block(k, 0, count, vectors.n))


def fetch(vectors: Ordinary, distance, k, write=False):
    """Fetch what is so many bytes behind some rows of known number, from row k on, as far as they are contiguous.

    Where systems are neighbours some rows of all systems of the next group are fetched, by each V of this one others.
    """
    b, x = vectors.builder, vectors
    size = x.m * x.n * x.parts * x.item
    if x.kind == "whole":
        fetch_lines(b, x.starts, distance, size, write)
    elif x.kind == "lanes":
        size = INDEX(x.vector.lanes * x.parts * x.item)
        turn = b.urem(b.udiv(x.starts[0], size), INDEX(GROUP))
        other = b.urem(b.udiv(index(k), INDEX(x.m)), INDEX(GROUP))
        with b.if_then(b.icmp_unsigned("==", turn, other)):
            rows = [b.add(x.starts[0], index(x.code.mul(i, x.rs))) for i in range(x.m)]
            following = b.mul(b.sub(INDEX(GROUP), turn), size)
            fetch_lines(b, rows, following, GROUP * size.constant, write, first=False)


def fetch_lines(b, starts, distance, size, write, first=True):
    """Fetch so many bytes that are so far behind some addresses."""
    for start in starts:
        for line in range(0, size, LINE):
            prefetch(b, b.inttoptr(b.add(start, b.add(distance, INDEX(line))), BYTES), write, first)


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
