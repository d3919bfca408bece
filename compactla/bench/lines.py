"""Cases of block tridiagonal lines: on factors that repeat themselves, or, for the tuner, on general lines."""

import functools

import numpy as np

import compactla as cla
from compactla.bench.cases import Case, on_device
from compactla.checks import on_host
from compactla.lines.storage import STORAGE
from compactla.oracle import lines

EPSILON = {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}  # of what factors are stored in


class Lines(Case):
    """`nm` lines of K blocks of n x n.

    Parameters
    ----------
    K, nrhs : int
        Numbers of blocks of a line, and of right-hand sides.
    **options
        Options of `BlockTridiag`.
    """

    DISTINCT = 64  # lines at most

    def __init__(self, n, nm, dtype="d", queue=None, threads=None, vlen=None, K=128, nrhs=1, **options):
        super().__init__(n, nm, dtype, queue, threads, vlen)
        self.K, self.nrhs, self.options = K, nrhs, options
        few = self.distinct
        lower, upper = self.random(2, few, K - 1, n, n)
        diag = 2 * self.random(few, K, n, n) + 4 * n * np.eye(n, dtype=self.dtype)
        self.drawn = lower, diag, upper, self.random(few, K, n, nrhs)

    lower = functools.cached_property(lambda self: self.whole(self.drawn[0]))
    diag = functools.cached_property(lambda self: self.whole(self.drawn[1]))
    upper = functools.cached_property(lambda self: self.whole(self.drawn[2]))
    rhs = functools.cached_property(lambda self: self.whole(self.drawn[3]))

    def make(self, lower, diag, upper):
        """Lines, which repeat those of these blocks."""
        blocks = map(self.whole, (lower, diag, upper))
        return cla.BlockTridiag(*blocks, queue=self.queue, **self.options)

    def factored(self):
        T = self.make(*self.drawn[:3])
        if T.factor(**self.threads).any():
            raise ArithmeticError("a line of the benchmark is singular")
        return T

    def residual(self):
        return self.error(self.factored().solve(self.rhs, **self.threads))

    def error(self, x):
        """Scaled residual of the last lines, of which `x` may be a part."""
        few = min(len(x), self.DISTINCT)
        return self.compare(np.arange(self.nm - few, self.nm), x[-few:])

    def compare(self, q, x):
        """Scaled residual of lines `q`, from their solutions."""
        eps = EPSILON.get(self.options.get("storage"))
        return float(lines.residual([a[q % self.distinct] for a in self.drawn], x, eps).max(initial=0))


class Factor(Lines):
    """LU of the lines, in place"""

    routine = "factor"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        n, K = self.n, self.K
        getrf, trsm, gemm = sum(k + 2 * k**2 for k in range(n)), n**2 * (2 * n - 1), 2 * n**3
        self.flops = self.nm * self.work * (K * getrf + (K - 1) * (trsm + gemm))
        self.footprint = self.elements((3 * K - 2) * n**2)
        self.nbytes = self.elements((2 * K + 3 * (K - 1)) * n**2)  # the lower blocks are only read
        self.T = self.make(*self.timed())

    def timed(self):
        """Blocks that are factored again and again: their own factors."""
        lower, diag, upper, _ = self.drawn
        return np.zeros_like(lower), np.broadcast_to(np.eye(self.n, dtype=self.dtype), diag.shape), upper

    def call(self):
        return self.T.refactor(**self.threads)


class Solve(Lines):
    """Solution with the factored lines"""

    routine, loop = "solve", "read"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        n, K = self.n, self.K
        self.flops = self.nm * self.work * (3 * K - 2) * 2 * n**2 * self.nrhs
        stored, parts = self.options.get("storage"), 2 if self.dtype.kind == "c" else 1
        number = STORAGE[stored].itemsize * parts if stored else self.dtype.itemsize
        self.nbytes = self.footprint = (3 * K - 2) * n**2 * number * self.nm + self.elements(2 * K * n * self.nrhs)
        self.T = self.factored()

    b = functools.cached_property(lambda self: on_device(self.drawn[3], self.queue, self.nm, pool=True))

    def call(self):
        return self.T.solve(self.b, **self.threads)

    def residual(self):
        return self.error(on_host(self.call()))


class General(Lines):
    """General lines, which are repeated on a device: to copy them there would take long."""

    def make(self, lower, diag, upper):
        V, K = self.vlen, self.K
        packed = map(self.compact, (lower, diag, upper))
        slots = [a.reshape(a.shape[0] * a.shape[1], *a.shape[2:]) for a in packed]
        rows = np.arange(self.nm * K).reshape(self.npack, V, K).swapaxes(1, 2).reshape(-1, V)
        offset = np.arange(self.npack + 1) * K
        return cla.BlockTridiag.from_packed(*slots, offset, rows, self.nm, queue=self.queue, **self.options)

    b = functools.cached_property(lambda self: self.batch(self.drawn[3]))
    x = functools.cached_property(lambda self: self.batch(np.zeros_like(self.drawn[3])))

    def solve(self):
        rows = self.nm * self.K, self.n, self.nrhs
        self.T.solve_rows(self.b.reshape(rows), self.x.reshape(rows))

    def restore(self):
        super().restore()
        self.T._lines._spare.clear()  # it fits the kernel that was chosen before

    def residual(self):
        self.restore()
        self.call()
        if self.T.info.any():
            return np.inf
        self.solve()
        return max(self.compare(q, on_host(self.part(self.x, q))) for q in self.checked)


class GeneralFactor(General, Factor):
    """LU of general lines, which are restored between calls"""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.target = self.T.diag
        self.saved = [(a, a.copy()) for a in (self.T.lower, self.T.diag, self.T.upper)]

    def timed(self):
        return self.drawn[:3]


class GeneralSolve(General, Solve):
    """Solution with the factors of general lines"""

    def call(self):
        self.solve()

    target = property(lambda self: self.x)
