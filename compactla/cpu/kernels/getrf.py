"""getrf at the register level (`factor`) and at the pack level (`getrf`).

What fits registers is in lists of columns there, and rows are exchanged by blending. Of larger matrices a few columns
at a time are factored in memory.
"""

from typing import Any

from numba.core import cgutils

from compactla.cpu.emit.code import Code, Number, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import Condition
from compactla.cpu.emit.loops import starts
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.getrfnp import reciprocal
from compactla.cpu.kernels.laswp import blend, choose, exchange, integers, swap, tree

IN_REGISTERS = 64  # real vectors of a matrix, of which some may be spilled
PANEL = 4  # columns


def eliminate(columns, q, j):
    """Subtract from column j, below row q, the multiples of column q."""
    top = columns[j][q]
    pairs = zip(columns[q][q + 1 :], columns[j][q + 1 :], strict=True)
    columns[j][q + 1 :] = [(-multiple).fma(top, x) for multiple, x in pairs]


def factor(code: Code, A: Elements, ipiv: Elements, info, first):
    """Register tile: A <- L\\U, for an A whose size is known.

    Where no lane swaps rows first it is tried without, which takes half of the time or less; all is done again where
    that was wrong.
    """
    b, kind = code.builder, ipiv.vector
    columns = [[A[i, j] for i in range(A.m)] for j in range(A.n)]
    flags = choose(columns[0])
    swaps = cgutils.alloca_once_value(b, anywhere(code, flags).value)

    def finish(columns, zeros, rows):
        for j, column in enumerate(columns):
            for i, x in enumerate(column):
                A[i, j] = x
        for q, row in enumerate(rows):
            ipiv[q, 0] = row
        report(code, zeros, info, first + 1)

    with code.when(~Condition(b, b.load(swaps))):
        tried, zeros, wrong = unswapped([*map(list, columns)])
        b.store(anywhere(code, wrong).value, swaps)
        with code.when(~Condition(b, b.load(swaps))):
            finish(tried, zeros, [code.broadcast(q, kind) for q in range(len(zeros))])
    if flags:
        with code.when(Condition(b, b.load(swaps))):
            zeros, chosen = swapped(columns, flags)
            finish(columns, zeros, [numbered(code, flags, kind, q) for q, flags in enumerate(chosen)])


def unswapped(columns):
    """The factors without swaps, which pivots are zero, and flags that tell whether a row is to be swapped."""
    zeros, wrong = [], []
    for q in range(min(len(columns), len(columns[0]))):
        pivot, *below = columns[q][q:]
        size = pivot.abs1()
        wrong += [~(size >= x.abs1()) for x in below]
        zero, inverse = reciprocal(pivot)
        zeros.append(zero)
        columns[q][q + 1 :] = [x * inverse for x in below]
        for j in range(q + 1, len(columns)):
            eliminate(columns, q, j)
    return columns, zeros, wrong


def swapped(columns, flags):
    """Factor in place, with the flags of the first swap: which pivots are zero, and the flags of all swaps."""
    m, n = len(columns[0]), len(columns)
    zeros, chosen = [], []
    for q in range(min(m, n)):
        chosen.append(flags)
        for j in [*range(q, n), *range(q)]:
            columns[j][q:] = exchange(columns[j][q:], chosen[q])
            if j == q:
                zero, inverse = reciprocal(columns[q][q])
                zeros.append(zero)
                columns[q][q + 1 :] = [x * inverse for x in columns[q][q + 1 :]]
            elif j > q:
                eliminate(columns, q, j)
            if j == q + 1 < m:  # the next pivot waits for it
                flags = choose(columns[j][q + 1 :])
    return zeros, chosen


def anywhere(code, flags):
    """Whether a flag is set in any lane."""
    return tree(lambda x, y: x | y, flags).any() if flags else Condition(code.builder, cgutils.false_bit)


def numbered(code, flags, kind, q):
    """The row that each lane swaps with row q."""
    row = code.broadcast(q, kind)
    for i, flag in enumerate(flags, 1):
        row = flag.select(code.broadcast(q + i, kind), row)
    return row


def search(code, A, q0, s, threshold, inverse=None):
    """The row that each lane swaps with row q0 + s, after columns q0 to q0 + s - 1 were subtracted from that column.

    The last of these is multiplied by `inverse` on the way.
    """
    q, kind = q0 + s, integers(A.vector)
    above = []
    for k in range(s):
        row = q0 + k
        x = A[row, q]
        for p in range(k):
            x = (-A[row, q0 + p]).fma(above[p], x)
        A[row, q] = x
        above.append(x)
    largest, place = code.registers(A.vector.reals, 1), code.registers(kind, 1)
    largest[0, 0], place[0, 0] = code.zero(A.vector.reals).constant(-1), code.broadcast(q, kind)
    with code.loop(A.m - q) as t:
        i = q + t
        x = A[i, q]
        for k in range(s):
            multiple = A[i, q0 + k]
            if k == s - 1:
                multiple = A[i, q0 + k] = multiple * inverse
            x = (-multiple).fma(above[k], x)
        if s:
            A[i, q] = x
        size = x.abs1()
        larger = size > largest[0, 0]
        largest[0, 0] = larger.select(size, largest[0, 0])
        place[0, 0] = larger.select(code.broadcast(i, kind), place[0, 0])
    if threshold == 1:
        return place[0, 0]
    least = largest[0, 0] * code.broadcast(threshold, A.vector).real
    return (A[q, q].abs1() >= least).select(code.broadcast(q, kind), place[0, 0])


def factor_panel(code, A, ipiv, info, first, q0, width, threshold, left):
    """Factor some columns from q0 on, and swap rows of all, or, if those on the `left` are not, from q0 on."""
    zeros, inverse, start = [], None, 0 if left else q0
    swapped = A.block(0, start, A.m, A.n - start)
    for s in range(width):
        q = q0 + s
        place = search(code, A, q0, s, threshold, inverse)
        ipiv[q, 0] = place.astype(ipiv.vector.dtype)
        swap_where_wanted(code, swapped, q, place)
        zero, inverse = reciprocal(A[q, q])
        zeros.append(zero)
    with code.loop(A.m - q - 1) as t:
        A[q + 1 + t, q] = A[q + 1 + t, q] * inverse
    report(code, zeros, info, first + q0 + 1)


def swap_where_wanted(code, B, q, place):
    """Swap row q of B with row `place` of each lane, if any lane swaps two."""
    with code.when((~(place == code.broadcast(q, place.vector))).any()):
        swap(code, B, q, place)


def subtract_panel(code, A, q0, width):
    """Update what is right of a panel: rows of U, and the rest."""
    q1 = q0 + width
    for start, c in code.panels(A.n - q1, PANEL):
        columns = [q1 + start + k for k in range(c)]
        above = []
        for k in range(width):
            row = q0 + k
            x = [A[row, j] for j in columns]
            for p in range(k):
                multiple = -A[row, q0 + p]
                x = [multiple.fma(y, z) for y, z in zip(above[p], x, strict=True)]
            for j, y in zip(columns, x, strict=True):
                A[row, j] = y
            above.append(x)
        for t in code.rounds(code.unknown(A.m - q1)):
            i = q1 + t
            x = [A[i, j] for j in columns]
            for k in range(width):
                multiple = -A[i, q0 + k]
                x = [multiple.fma(y, z) for y, z in zip(above[k], x, strict=True)]
            for j, y in zip(columns, x, strict=True):
                A[i, j] = y


def in_panels(A):
    """How many columns of a matrix are factored in memory, before the rest fits registers."""
    steps = range(min(A.m, A.n))
    return next((q for q in steps if (A.m - q) * (A.n - q) * len(A.vector.parts) <= IN_REGISTERS), len(steps))


def rounds(A, count):
    """Number of rounds in the innermost loops of panels of so many columns."""
    ends = [*range(PANEL, count, PANEL), count] if count else []
    return sum(len(starts(A.n - q, PANEL)) * (A.m - q) for q in ends)


@routine
def getrf(
    code: Code, A: Elements, ipiv: Any, info: Any, first: Any = 0, threshold: Any = 1, left: bool = True,
    ahead: Any = (),
) -> None:  # fmt: skip
    """A <- L\\U with row interchanges for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        m x n, from `matrix`.
    ipiv : matrix of integers
        min(m, n) x 1, which gets the row that each lane swapped with each row.
    info : array of V int64
        Set to ``first + i + 1`` for a matrix whose pivot i is the first that is exactly zero; otherwise left alone.
    first : int
        What the first pivot counts as.
    threshold : number
        A row stays where it is if its element is at least so many times the largest that it could be swapped for. The
        constant 1 is compiled in.
    left : bool
        The constant False leaves rows of L where they were when they were made, where only U is wanted, and what stands
        on its right in A.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    first = first.index(code) if isinstance(first, Number) else first
    known = isinstance(A.m, int) and isinstance(A.n, int)
    steps = code.min(A.m, A.n)
    count = in_panels(A) if known and threshold == 1 else steps
    if ahead:
        code.fetch_ahead(ahead, rounds(A, count))
    for q, width in code.panels(count, PANEL):
        factor_panel(code, A, ipiv, info, first, q, width, threshold, left)
        subtract_panel(code, A, q, width)
    if known and count < steps:
        rest, pivots = A.block(count, count, A.m - count, A.n - count), ipiv.block(count, 0, steps - count, 1)
        factor(code, rest, pivots, info, first + count)
        if count:
            swap_left(code, A.block(count, 0, rest.m, count), pivots, left)


def swap_left(code, L, ipiv, wanted):
    """Let rows of `ipiv` count from the first, and swap rows of L, which fit registers, as `factor` did, if wanted."""
    places = [ipiv[q, 0] for q in range(ipiv.m)]
    for q, row in enumerate(places):
        ipiv[q, 0] = row + row.constant(L.n)
    if wanted:
        with code.when(anywhere(code, [~(row == row.constant(q)) for q, row in enumerate(places)])):
            blend(code, L, places)
