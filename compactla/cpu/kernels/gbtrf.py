"""gbtrf at the register level (`eliminate`) and at the pack level (`gbtrf`): LU factorizations of band matrices.

The rows that a pivot touches are in registers, as far as they reach: a window of kl + 1 rows and kl + ku + 1 columns
that goes down the diagonal. Several packs go side by side, since a pivot waits for the one before it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import IntOrIndex
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags, Lanes
from compactla.cpu.kernels.getrf import numbered
from compactla.cpu.kernels.getrfnp import reciprocal
from compactla.cpu.kernels.laswp import choose, exchange, integers


class Band:
    """A band matrix as SciPy orders its diagonals: element (i, j) is A[ku + i - j, j]."""

    def __init__(self, code: Code, A: Elements, kl: int) -> None:
        self.code, self.A, self.kl, self.ku, self.n = code, A, kl, A.m - 1 - kl, A.n
        self.vector = A.vector

    def row(self, i: IntOrIndex, whole: bool) -> list[Lanes]:
        """Row i from column i - kl to i + ku; zeros behind the last row and column, which there are unless `whole`."""
        lanes = []
        for t in range(self.A.m):
            j = i + (t - self.kl)
            last = i if t < self.kl else j
            lanes.append(guarded(self.code, self.A, self.A.m - 1 - t, j, last, whole))
        return lanes


def guarded(code, A, r, j, last, whole):
    """A[r, j], or zero where j is negative, or `last` is beyond the last column: unless there is the `whole` of it."""
    if whole:
        return A[r, j]
    inside = (code.unknown(last) < A.n) & (code.unknown(j) >= 0)
    x = A[r, inside.select(j, 0)]
    return inside.select(x, x.constant(0))


class BandWindow:
    """Rows k to k + kl of a matrix that is being eliminated, and of right-hand sides beside it."""

    def __init__(self, source: Any, B: Elements | None = None) -> None:
        self.source, self.B, self.code = source, B, source.code
        self.kl, self.ku, self.width = source.kl, source.ku, source.kl + source.ku + 1
        self.columns = 0 if B is None else B.n
        self.slots = self.code.registers(source.vector, self.kl + 1, self.width + self.columns)
        for i in range(self.kl + 1):
            row = source.row(i, False)
            self._put(i, row[self.kl - i :] + [row[0].constant(0)] * (self.kl - i), i, False)

    def _put(self, i, entries, row, whole):
        """Let row i of the window be that row of the matrix."""
        for t, x in enumerate(entries):
            self.slots[i, t] = x
        for c in range(self.columns):
            self.slots[i, self.width + c] = self._right(row, c, whole)

    def _right(self, row, c, whole):
        return self.B[row if whole else self.code.min(row, self.B.m - 1), c]

    def swap(self, k: IntOrIndex, whole: bool) -> list[Flags]:
        """Exchange the first row with that of the largest first element: flags of the row that it is, for each lane.

        Rows behind the last are not taken, not even for one of NaN.
        """
        rows = range(self.kl + 1)
        flags = choose([self.slots[i, 0] for i in rows])
        if not whole:
            kind = integers(self.source.vector)
            there = (self.source.n - (k + i) for i in rows[1:])
            flags = [flag & (self.code.broadcast(n, kind) > 0) for flag, n in zip(flags, there, strict=True)]
        for t in range(self.width + self.columns):
            for i, x in enumerate(exchange([self.slots[i, t] for i in rows], flags)):
                self.slots[i, t] = x
        return flags

    def step(self, k: IntOrIndex, whole: bool) -> tuple[Flags, Lanes, list[Lanes], list[Lanes]]:
        """Eliminate the first column, and go on by a row: where the pivot is zero, its reciprocal, the multiples of the
        first row that were subtracted from the others, and that row."""
        zero, inverse = reciprocal(self.slots[0, 0])
        top = [self.slots[0, t] for t in range(self.width + self.columns)]
        multiples = [self.slots[i, 0] * inverse for i in range(1, self.kl + 1)]
        for i, multiple in enumerate(multiples, 1):
            for t in range(1, self.width):
                self.slots[i - 1, t - 1] = (-multiple).fma(top[t], self.slots[i, t])
            self.slots[i - 1, self.width - 1] = multiple.constant(0)
            for c in range(self.width, self.width + self.columns):
                self.slots[i - 1, c] = (-multiple).fma(top[c], self.slots[i, c])
        row = k + (self.kl + 1)
        self._put(self.kl, self.source.row(row, whole), row, whole)
        return zero, inverse, multiples, top


def eliminate(
    code: Code, windows: Sequence[BandWindow], n: IntOrIndex, pivoting: bool, info: Sequence, keep: Callable,
    begin: Callable | None = None,
) -> None:  # fmt: skip
    """Eliminate band matrices side by side.

    ``keep(w, k, inverse, multiples, row, flags)`` is told of each step of window w; `info` is where pivots of each are
    reported that are zero. ``begin(k)`` comes before step k, which needs row k + kl + 1.
    """

    def step(k, whole):
        if begin:
            begin(k)
        for w, window in enumerate(windows):
            flags = window.swap(k, whole) if pivoting else None
            zero, inverse, multiples, top = window.step(k, whole)
            keep(w, k, inverse, multiples, top, flags)
            report(code, [zero], info[w], k + 1)

    first = windows[0]
    whole = code.max(n - (first.width + first.kl), 0)
    with code.loop(whole) as k:
        step(k, True)
    with code.loop(n - whole) as t:
        step(whole + t, False)


@routine
def gbtrf(
    code: Code, A: Elements, U: Elements, L: Elements, ipiv: Any, info: Any, kl: int, pivoting: bool = True,
    ahead: Any = (),
) -> None:  # fmt: skip
    """The LU factorizations of the V band matrices of a pack, with row interchanges, in a Numba function.

    Parameters
    ----------
    A : matrix
        (kl + ku + 1) x n, from `matrix`: element (i, j) is ``A[ku + i - j, j]``. It is read only, its corners are not.
    U : matrix
        (kl + ku + 1) x n, which gets the rows of U: ``U[t, k]`` is its element (k, k + t) for t > 0, ``U[0, k]`` the
        reciprocal of its pivot k. Without `pivoting` the last kl rows are left alone.
    L : matrix
        kl x n, which gets multiples: ``L[i, k]`` times row k was subtracted from row k + i + 1.
    ipiv : matrix of integers
        n x 1, which gets the row that each lane swapped with each row.
    info : array of V int64
        Set to ``k + 1`` for a matrix whose pivot k is the first that is exactly zero, for which ``U[0, k]`` is 1 then;
        otherwise left alone.
    kl : int
        A constant: how many diagonals there are below the main one.
    pivoting : bool
        A constant: whether rows are swapped.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    keep = functools.partial(store, code, [(U, L, ipiv)], bool(pivoting))
    eliminate(code, [BandWindow(Band(code, A, kl))], A.n, bool(pivoting), [info], keep)


def store(code, matrices, pivoting, w, k, inverse, multiples, top, flags):
    """Keep the results of a step in matrices U, L and ipiv."""
    U, L, ipiv = matrices[w]
    U[0, k] = inverse
    for t in range(1, U.m if pivoting else U.m - len(multiples)):
        U[t, k] = top[t]
    for i, multiple in enumerate(multiples):
        L[i, k] = multiple
    if pivoting:
        ipiv[k, 0] = numbered(code, flags, ipiv.vector, k)
