"""Vectors of V systems, read and written in chunks while others are worked on: memory and arithmetic wait together."""

from dataclasses import replace

from compactla.cpu.emit.index import is_known, value_of
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.prefetch import BYTES, LINE, prefetch
from compactla.cpu.memory.matrices import Ordinary

ON = 512  # bytes that are fetched ahead where the next V systems are too far away
GROUP = 16  # times V neighbouring systems: memory moves more at once than the numbers of V of them


class Chunks:
    """An ordinary m x n matrix with few columns, of a number that is known, and what it is copied to or from.

    A chunk has `room.count` rows. While one is worked on the next is read, and what comes later is fetched into the
    second cache: of the next V systems if those of an array have less than `room.near` bytes.
    """

    def __init__(self, vectors: Ordinary, W: Elements, room):
        self.code, self.vectors, self.W, self.count = vectors.code, vectors, W, room.count
        V = vectors.vector.lanes
        self.whole = vectors.m // room.count
        step = vectors.starts[-1] - vectors.starts[0]
        near = step * V < room.near * (V - 1)
        following = step + step // max(V - 1, 1)
        self.distance = near.select(following, ON)

    def start(self):
        """Read the first chunk, and what there is behind the last whole one."""
        self._last("read")
        with self._there(0):
            self._some("read", 0)

    def begin(self, k):
        """Read the chunk behind row k, if that is the first of one."""
        with self._if_first(k) as chunk:
            following = chunk + 1
            with self._there(following):
                self._some("read", following * self.count)

    def prepare(self, k):
        """Fetch what the chunk that begins with row k is written to, if one does."""
        x = self.vectors
        with self._if_first(k):
            offset = k * x.rs
            starts = [start + offset for start in x.starts]
            fetch(replace(x, m=self.count, starts=starts), 0, k, write=True)

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
        return self.code.when(self.code.unknown(chunk) < self.whole)

    def _last(self, action):
        """The rows behind the last whole chunk: along with rows before it, if there are as many as in a chunk."""
        code, m = self.code, self.vectors.m
        done = self.whole * self.count
        with code.when(done < m):
            with code.either(self.whole > 0) as (many, few):
                with many:
                    self._some(action, m - self.count)
                with few, code.loop(m) as k:
                    self._row(action, k)

    def _some(self, action, k):
        """Copy a chunk that begins with row k: the code for it is there once."""
        x, W, count = self.vectors, self.W, self.count

        def emit(code, k, base, step, rs, cs, distance, adjacent, *starts):
            k, distance = map(code.index, (k, distance))
            some = replace(x, code=code, rs=rs, cs=cs, adjacent=adjacent, starts=list(starts))
            copy_rows(action, some, W._replace(code=code, base=base, rs=step), k, count, distance)

        values = [*map(value_of, (k, W.base, W.rs, x.rs, x.cs, self.distance, x.adjacent, *x.starts))]
        name = f"compactla.chunk {action} {x.vector} {x.real} {x.kind} {x.n} {count}"
        self.code.call(name, [value.type for value in values], emit, *values, attributes=("noinline",))

    def _row(self, action, k):
        copy_rows(action, self.vectors, self.W, k, 1, self.distance)


def copy_rows(action, vectors: Ordinary, W: Elements, k, count, distance):
    """Read or write some rows of W from row k on; what is read so far behind them is fetched into the cache."""
    offset = k * vectors.rs
    some = replace(vectors, m=count, starts=[start + offset for start in vectors.starts])
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
        size = x.vector.lanes * x.parts * x.item
        turn = x.starts[0] // size % GROUP
        other = x.code.unknown(k) // x.m % GROUP
        with x.code.when(turn == other):
            rows = [x.starts[0] + i * x.rs for i in range(x.m)]
            following = (GROUP - turn) * size
            fetch_lines(b, rows, following, GROUP * size, write)


def fetch_lines(b, starts, distance, size, write):
    """Fetch so many bytes that are so far behind some addresses, past the first cache: they would fill it."""
    for start in starts:
        for line in range(0, size, LINE):
            prefetch(b, b.inttoptr(value_of(start + (distance + line)), BYTES), write, first=False)


def move(action, vectors: Ordinary, W: Elements):
    """Read W, or write it, in one go where it is contiguous as the vectors are."""
    if vectors.kind == "whole":
        size = vectors.m * vectors.n
        vectors, W = replace(vectors, m=1, n=size), W._replace(m=1, n=size, cs=W.rs if is_known(vectors.n, 1) else W.cs)
    getattr(vectors, action)(W)


class First:
    """A block that is left out unless row k is the first of a chunk, of which it has the number."""

    def __init__(self, code, k, count):
        self.chunk = code.unknown(k) // count
        self.block = code.when(self.chunk * count == k)

    def __enter__(self):
        self.block.__enter__()
        return self.chunk

    def __exit__(self, *error):
        return self.block.__exit__(*error)
