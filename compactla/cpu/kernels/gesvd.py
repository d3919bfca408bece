"""gesvd at the pack level: QR with the largest columns first, then one-sided Jacobi on the rows of R.

A = Q R, and rotations of rows make R = V S Vh, so that U = Q V. U is orthogonal then whatever the rank of A. Where
nothing is left to factor, rows of numbers that count as zeros are put into R, so that Vh is orthogonal too. Columns of
A may differ in size: small singular values that are due to that are as accurate as large ones (Drmac and Veselic, "New
fast and accurate Jacobi SVD algorithm").
"""

import functools
import math
import operator
from collections.abc import Callable

from compactla.cpu.emit.code import Code, check_fit, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import IntOrIndex
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.householder import reflect, reflector
from compactla.cpu.kernels.jacobi import SWEEPS, sweep
from compactla.cpu.kernels.norms import add_squares, larger, scaling, squared

# Elements are scaled to 2**LARGEST at most, and singular values below 2**(1 - LARGEST) count as zeros: there are no
# squares to overflow or underflow. By the bits of a real number.
LARGEST = {32: 42, 64: 300}
SMALL = 4  # Matrices of no more rows than these are kept in registers.
PAIRS = 2  # of rows whose angles are found side by side
TERMS = 2  # of an inner product that are added up side by side


@routine
def gesvd(code, A, U, s, Vh, info, compute_uv=True, ahead=()):
    """U diag(s) Vh = A for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        m x n with m >= n, from `matrix`; it is overwritten.
    U, s, Vh : matrix
        m x n, n x 1 and real, n x n. Without `compute_uv`, U and Vh are room to work in.
    info : array of V int64
        Set to the number of sweeps that were tried for a matrix that would have needed more, or that has NaN or
        infinity in it, of which all singular values become NaN; otherwise left alone.
    compute_uv : bool
        A constant: whether U and Vh are wanted.
    ahead : tuple of matrices
        Not fetched: there is little to load for so much arithmetic.
    """
    # Where the factors are computed.
    m, n = A.m, A.n
    for name, X, sizes in (("U", U, (m, n)), ("s", s, (n, 1)), ("Vh", Vh, (n, n))):
        check_fit(name, (X.m, X.n), sizes)
    kept = isinstance(m, int) and isinstance(n, int) and m <= SMALL
    if kept:
        W, Q, R, sizes = (code.room(X.vector, X.m, X.n) for X in (U, A, Vh, s))
    else:  # no loop is written out
        A, U, s, Vh = (X._replace(m=code.unknown(X.m), n=code.unknown(X.n)) for X in (A, U, s, Vh))
        W, Q, R, sizes = U, A, Vh, s
    # QR of the scaled matrix, with columns in the order of their norms.
    largest = largest_part(code, A)
    scale = scaling(largest, LARGEST[A.vector.real.bitwidth])
    copy(code, A, W, scale.scaled)
    triangularise(code, W, Q, sizes)
    if compute_uv:
        copy(code, W, R)
        zero = code.zero(W.vector)
        copy(code, W, W, lambda x: zero)
        for i in code.each(A.n):
            W[i, i] = zero.constant(1)
    else:
        R = W
    # Sweeps turn rows of R until none are to be turned: then their norms are the singular values.
    V = W.block(0, 0, A.n, A.n) if compute_uv else None
    failed = sweep(code, s.vector, lambda turned: rotate_all(code, R, V, kept, turned))
    finite = largest < math.inf
    report(code, [failed | ~finite], info, SWEEPS)
    normalise(code, R, s, lambda x: finite.select(scale.restored(x), x.constant(math.nan)), compute_uv)
    # U <- Q times the rotations of the rows.
    if compute_uv:
        for i in code.each(A.n):
            k = A.n - 1 - i
            v, top, rest = parts(code, W, Q, k)
            reflect(code, v, Q[k, k], top, rest)
        copy(code, W, U, lambda x: x + zero)  # no zero is negative: how many sweeps there were would tell that
        copy(code, R, Vh)


def copy(code: Code, A: Elements, B: Elements, f: Callable = lambda x: x) -> None:
    """B <- f(A), element by element."""
    for i in code.each(B.m):
        for j in code.each(B.n):
            B[i, j] = f(A[i, j])


def largest_part(code: Code, A: Elements) -> Lanes:
    """The largest |re| or |im| of all elements; NaN where one is."""
    largest = code.registers(A.vector.reals, 1)
    largest[0, 0] = code.zero(A.vector.reals)
    for i in code.each(A.m):
        for j in code.each(A.n):
            largest[0, 0] = larger(largest[0, 0], A[i, j])
    return largest[0, 0]


def parts(code: Code, W: Elements, Q: Elements, k: IntOrIndex) -> tuple[Elements, Elements, Elements]:
    """Reflector k in Q, and the row and the rows of W that it works on."""
    after, below = k + 1, W.m - k - 1
    return Q.block(after, k, below, 1), W.block(k, 0, 1, W.n), W.block(after, 0, below, W.n)


def triangularise(code: Code, W: Elements, Q: Elements, sizes: Elements) -> None:
    """W <- Q^H W: a triangle, whose columns are in the order that they had; reflectors and their tau go to Q.

    Every step takes the largest column that is left in a lane. `sizes` has the squared norm of what is left of each, or
    -1 - k where step k took it.
    """
    reals, zero, one = W.vector.reals, code.zero(W.vector), code.zero(W.vector.reals).constant(1)
    least = 2.0 ** (1 - LARGEST[reals.real.bitwidth])
    for j in code.each(W.n):
        (sizes[j, 0],) = products(code, W.block(0, j, W.m, 1))

    def see(j, squares):
        sizes[j, 0] = (sizes[j, 0] < 0).select(sizes[j, 0], squares)

    best, element = code.registers(reals, 2), code.registers(W.vector, 1)
    for k in code.each(W.n):
        # The largest column that is left, which goes to Q.
        best[0, 0], best[1, 0] = one.constant(-0.5), one.constant(-1)
        for j in code.each(W.n):
            better = sizes[j, 0] > best[0, 0]
            best[0, 0] = better.select(sizes[j, 0], best[0, 0])
            best[1, 0] = better.select(code.broadcast(j, reals), best[1, 0])
        size, chosen = best[0, 0], best[1, 0]
        column = Q.block(k, k, W.m - k, 1)
        for i in code.each(column.m):
            element[0, 0] = zero
            for j in code.each(W.n):
                taken = chosen == code.broadcast(j, reals)
                element[0, 0] = taken.select(W[k + i, j], element[0, 0])
            column[i, 0] = element[0, 0]
        # Its reflector; none where the column counts as zero.
        v, top, rest = parts(code, W, Q, k)
        beta, tau = reflector(code, Q[k, k], v)
        nothing = size < least * least
        Q[k, k] = tau = nothing.select(zero, tau)
        pivot, step = nothing.select(one.constant(least / 2), beta), -code.broadcast(k + 1, reals)
        # Reflect the columns, and note the squares of what is left of them.
        for j in code.each(W.n):
            sizes[j, 0] = (chosen == code.broadcast(j, reals)).select(step, sizes[j, 0])
        reflect(code, v, tau.conjugate(), top, rest, see)
        for j in code.each(W.n):
            taken = chosen == code.broadcast(j, reals)
            top[0, j] = taken.select(pivot, nothing.select(zero, top[0, j]))
    for i in code.each(W.n):
        for j in code.each(W.n):
            W[i, j] = (-sizes[j, 0] > code.broadcast(i, reals)).select(W[i, j], zero)


def products(code: Code, x: Elements, y: Elements | None = None) -> list[Lanes]:
    """The squared norm of a column; of two columns both, and x^H y."""
    columns = [x] if y is None else [x, y]
    squares, mixed = code.registers(x.vector.reals, len(columns), TERMS), code.registers(x.vector, 1, TERMS)
    for t in range(TERMS):
        mixed[0, t] = code.zero(x.vector)
        for c in range(len(columns)):
            squares[c, t] = code.zero(x.vector.reals)
    for i, count in code.tiles(x.m, TERMS):
        for t in range(count):
            values = [column[i + t, 0] for column in columns]
            for c, value in enumerate(values):
                squares[c, t] = add_squares(value, squares[c, t])
            if y is not None:
                mixed[0, t] = values[0].conjugate().fma(values[1], mixed[0, t])
    totals = [functools.reduce(operator.add, (squares[c, t] for t in range(TERMS))) for c in range(len(columns))]
    if y is not None:
        totals.append(functools.reduce(operator.add, (mixed[0, t] for t in range(TERMS))))
    return totals


def rotate_all(code: Code, R: Elements, V: Elements, kept: bool, turned: Callable) -> None:
    """Rotate all pairs of rows of R, which V R does not change; the first of two becomes the larger.

    The order is that of cyclic sweeps by rows, with pairs that share no row side by side: those of one p + q.
    """
    if kept:
        for total in range(1, 2 * R.n - 2):
            first, end = max(0, total - R.n + 1), (total + 1) // 2
            rotate(code, R, V, [(p, total - p) for p in range(first, end)], turned)
        return
    with code.loop(2 * R.n - 3) as behind:
        total = behind + 1
        first = code.max(total - (R.n - 1), 0)
        for i, count in code.tiles((total + 1) // 2 - first, PAIRS):
            some = [first + (i + t) for t in range(count)]
            rotate(code, R, V, [(p, total - p) for p in some], turned)


def rotate(code, R, V, pairs, turned):
    """Make rows p and q of R orthogonal for disjoint pairs, and the first the larger one, in lanes where they are not.

    All angles come first: they take long, and none waits for another.
    """
    rows = [[R.block(i, 0, 1, R.n).T for i in pair] for pair in pairs]
    limit = tolerance(code, R)
    rotations = [rotation(*products(code, x, y), limit) for x, y in rows]
    acts = functools.reduce(operator.or_, (acts for _, _, acts in rotations))
    turned(acts)
    with code.when(acts.any()):
        for (p, q), (x, y), (cosine, sine, _) in zip(pairs, rows, rotations, strict=True):
            turn(code, x, y, cosine, sine.conjugate())
            if V is not None:
                turn(code, V.block(0, p, V.m, 1), V.block(0, q, V.m, 1), cosine, sine)


def tolerance(code, R):
    """The square of the cosine of rows that count as orthogonal, which rounding may lead to."""
    reals = R.vector.reals
    eps = 2.0 ** (-52 if reals.real.bitwidth == 64 else -23)
    n = code.broadcast(R.n, reals)
    return (n + n.constant(64)) * n.constant(eps * eps)


def rotation(a, b, between, tolerance):
    """Cosine and sine for rows of squared norms a and b and inner product `between`; where they act.

    That is where the rows are not orthogonal, or the second is the larger one. No number leaves the range that squares
    of norms have.
    """
    one, half = a.constant(1), a.constant(0.5)
    inverse_a, inverse_b = a.rsqrt(), b.rsqrt()
    cosine = between * inverse_a * inverse_b
    square = squared(cosine)
    oblique, swapped = square > tolerance, a < b
    largest = swapped.select(inverse_b, inverse_a)
    if between.vector.is_complex:
        inverse = square.rsqrt()
        size, phase = square * inverse, cosine * inverse
        phase = oblique.select(phase, phase.constant(1))
    else:
        size, phase = abs(cosine), one.copysign(cosine)
    smaller = swapped.select(a * inverse_a, b * inverse_b)
    difference, twice = abs(a - b) * largest * largest, (size + size) * (smaller * largest)
    inverse = difference.fma(difference, twice * twice).rsqrt()
    square = (half * difference).fma(inverse, half)
    root = square.rsqrt()
    c = oblique.select(square * root, one)
    s = oblique.select(half * twice * inverse * root, one.constant(0))
    return swapped.select(s, c), phase * swapped.select(c, s), oblique | swapped


def turn(code, x, y, cosine, sine):
    """x <- cosine x + sine y, y <- cosine y - conj(sine) x, of two columns."""
    back = -sine.conjugate()
    for i, count in code.tiles(x.m, TERMS):
        places = [i + t for t in range(count)]
        for k, a, b in [(k, x[k, 0], y[k, 0]) for k in places]:
            x[k, 0] = sine.fma(b, cosine * a)
            y[k, 0] = back.fma(a, cosine * b)


def normalise(code, R, s, restored, vectors):
    """s <- the norms of the rows of R, `restored`, in their order; with `vectors`, the rows become unit vectors."""
    zero = code.zero(R.vector)
    least = 2.0 ** (1 - LARGEST[R.vector.real.bitwidth])
    for i in code.each(R.n):
        row = R.block(i, 0, 1, R.n).T
        (square,) = products(code, row)
        inverse, size = square.rsqrt(), square.sqrt()  # whose rounding keeps the order
        s[i, 0] = restored((square < least * least).select(size.constant(0), size))
        if vectors:
            for j in code.each(R.n):
                row[j, 0] = row[j, 0].fma(inverse, zero)
