"""Operations of Krylov methods for one large system on vectors, the rows of an array, on the CPU.

Rows are cut into pieces of one size, which threads share, and sums over pieces are added up in one order: results do
not depend on the number of threads.
"""

import functools
import struct
from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype

from compactla.calls.launch import NOW, Launch
from compactla.cpu.arnoldi import arnoldi_batch
from compactla.cpu.arnoldi_steps import SOME, shift_batch, steps_batch
from compactla.cpu.arrays import empty
from compactla.cpu.compile import INT, compiled
from compactla.cpu.cost import parts
from compactla.cpu.emit.prefetch import LINE
from compactla.cpu.pieces import PIECE, SUMS, kernel
from compactla.cpu.threads import sharing
from compactla.cpu.threads.pool import server, words_of
from compactla.cpu.threads.sharing import parts_for, share
from compactla.overlap import address
from compactla.types import Array, Queue

SPAN = struct.Struct("4q")  # a row to make, and the first, the stride and the count of those it is made of


class Rows:
    """So many vectors of n numbers, unset; ``rows[k]`` is one of them.

    Ranges name rows. Sums are in double precision, but for those over a piece. In `blocks` whoever reads vectors in
    another shape keeps them. Behind their ends rows have zeros.
    """

    def __init__(self, count: int, n: int, dtype: np.dtype, queue: Queue, launch: Launch = NOW) -> None:
        self.parts = parts(dtype)
        each = LINE // dtype.itemsize
        apart = (-(-n // each) | 1) * each  # odd: places in rows have sets of the first cache of their own
        self.n, self.dtype, self.length = n, dtype, apart * self.parts
        self.blocks: dict = {}
        self.memory = empty((count, apart), dtype, None)
        self.vectors = [row[:n] for row in self.memory]
        self.begin(launch)
        self.pieces = -(-self.length // PIECE)
        self.sums = np.empty(self.pieces * 2 * SOME * (count + 1) * self.parts)
        self.factors = np.empty(SOME * (count + 1), np.result_type(dtype, SUMS))
        self.spans = np.empty((SOME, 4), np.int64)
        self.found: dict[int, np.ndarray] = {}
        self.place = address(self.memory), self.length, self.length
        self.before, self.after = address(self.factors), address(self.sums)
        self.kernels = [kernel(name, dtype.char) for name in ("dots", "combine", "reduce")]
        others = (*[0] * 5, 0.0), (0, address(self.spans), self.before, -1), (0, 0, self.before)
        self.words = [
            (words_of(kernel), np.frombuffer(words_of(kernel).filled([(*self.place, *some, self.after)]), np.int64))
            for kernel, some in zip(self.kernels, others, strict=True)
        ]
        self.called = [x for words, memory in self.words for x in (words.function, address(memory))]
        self.result = np.empty(SOME + 2)
        self.found_at, self.spans_at = address(self.result), address(self.spans)

    def __getitem__(self, k: int) -> Array:
        return self.vectors[k]

    def begin(self, launch: Launch) -> None:
        """Begin with another system, which may leave what is not finite behind the ends of rows."""
        self.launch = launch
        self.memory[:, self.n :] = 0
        self.helpers = address(sharing.boxes), len(sharing.boxes), server()

    def dots(self, rows: range, others: range, scale: float = 1.0) -> Any:
        """The products of rows, conjugate, with neighbouring others, scaled before: (others, rows)."""
        count, two = len(rows), len(others)
        given = rows.start, rows.step, count, others.start, two, scale
        found = self._sums(0, given, two * self.parts * count, self.length * (count + 2))
        if self.parts == 1:
            return found.reshape(two, count)
        found = found.reshape(two, 2, count)
        return found[:, 0] + 1j * found[:, 1]

    def combine(self, *made: Any, against: int | None = None, measured: bool = True) -> Any:
        """Make rows, one after the other, a few: (row, scale, rows, factors), row <- scale row + factors rows.

        Returns the square of the norm of the last one, and row `against`^H times it; None, if they are not `measured`.
        """
        end = 0
        for k, (row, scale, rows, factors) in enumerate(made):
            count = len(rows)
            SPAN.pack_into(self.spans.data, SPAN.size * k, row, rows.start, rows.step, count)
            self.factors[end] = scale
            if count == 1:
                self.factors[end + 1] = factors[0]
            elif count:
                self.factors[end + 1 : end + 1 + count] = factors
            end += 1 + count
        given = len(made), self.spans_at, self.before, -1 if against is None else against
        found = self._sums(1, given, 2 * self.parts, self.length * (end + len(made)), measured)
        if not measured:
            return None
        return found[0], found[1] if self.parts == 1 else complex(found[2], found[3])

    def orthogonalize(self, vectors: Any, j: int, scale: float, passes: int, eps: float) -> tuple[float, float]:
        """Vector j + 1, scaled before as vector j, made orthogonal to those before, and a column of a `Hessenberg`.

        Returns the norm of what is left, and that of the residual. It is done as often as `passes` says, zero for the
        modified process.
        """
        step(self.parts).entry(
            *self._shared(j + 3, 2), self.after, self.before, *vectors.places[:5], len(vectors.rotations), j, passes,
            scale, eps, self.found_at,
        )  # fmt: skip
        norm, residual, kept, *_ = self.result.tolist()
        vectors.count(kept)
        return norm, residual

    def shift(self, vectors: Any, k: int, row: int) -> None:
        """Take off the row after `row` its part along that, and multiply it by what makes it a vector of some norm 1.

        This is the shift number k of a `Hessenberg`.
        """
        place = vectors.places[5] + vectors.shifts.strides[0] * k
        shift(self.parts).entry(*self._shared(4, 2), self.after, self.before, row, place)

    def orthogonalize_some(self, vectors: Any, j: int, some: int, passes: int, eps: float) -> list[float]:
        """Vectors j + 1 to j + some, of which each was made of the one before, and shifted, all made orthonormal.

        Returns the norms of residuals after as many steps as are worth it; for the others see `orthogonalize`.
        """
        _, *places, loss = vectors.places
        steps(self.parts).entry(
            *self._shared(j + 1 + 2 * some, 3), self.after, self.before, *places, len(vectors.rotations), j, some,
            passes, eps, loss, self.found_at,
        )  # fmt: skip
        *residuals, count, kept = self.result.tolist()
        taken = int(count)
        vectors.count(kept, taken)
        return residuals[:taken]

    def _shared(self, rows, count):
        """What kernels of whole steps begin with: pieces, threads for so many rows, and kernels with their words."""
        threads = parts_for(self.length * rows, self.pieces, self.launch.threads)
        return 0, self.pieces, *self.helpers, threads, *self.called[: 2 * count]

    def _sums(self, which, given, count, cost, measured=True):
        """The sums of a kernel over all pieces."""
        share(self.kernels[which], cost, (0, self.pieces, *self.place, *given, self.after), self.launch)
        if not measured:
            return None
        if count not in self.found:
            self.found[count] = self.sums[: self.pieces * count].reshape(-1, count)
        return np.add.reduce(self.found[count])


@functools.cache
def step(parts):
    """The kernel for a step of GMRES."""
    return compiled(arnoldi_batch, (*[INT] * 18, *[from_dtype(SUMS)] * 2, INT), parts)


@functools.cache
def shift(parts):
    return compiled(shift_batch, (INT,) * 12, parts)


@functools.cache
def steps(parts):
    """The kernel for several steps of GMRES."""
    return compiled(steps_batch, (*[INT] * 21, from_dtype(SUMS), INT, INT), parts)
