"""What is measured: the routines on batches of random matrices, the work that they do, and how wrong they are.

A case runs again and again: factorizations and solves in place are timed on operands that they map to themselves, or
back and forth. Its residual is that of one call on general operands.
"""

import abc
import functools
from typing import Any, ClassVar

import numpy as np

import compactla as cla

SEED = 2017
IN_CACHE = 64  # matrices that fit into a cache next to the core
DISTINCT = 4001  # matrices at most; the others of a batch repeat them
SAMPLE = 512  # at most, matrices of a result that are checked, in a wider precision
PASS = 30  # LAPACK's tests, and those of this package, accept residuals below


class Case(abc.ABC):
    """A routine on a batch: operands and options are those of the constructor, which the classes below describe.

    Attributes
    ----------
    flops, nbytes : float
        Operations on real numbers, and bytes read plus bytes written, of one call: each operand counts once.
    loop : str
        The loop of `ceilings.bandwidth` that moves bytes like the routine, for the bandwidth that it is held against.
    footprint : int
        Bytes of all operands.
    """

    routine: ClassVar[str]
    flops: float
    loop: str = "update"
    nbytes: int
    footprint: int

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None):
        self.n, self.nm, self.dtype, self.queue = n, nm, np.dtype(dtype), queue
        self.threads = {} if threads is None else {"threads": threads}
        self.work = 4 if self.dtype.kind == "c" else 1  # a complex multiply-add is four real ones
        self.rng = np.random.default_rng(SEED)

    def random(self, count, *shape):
        """Uniform in (-1, 1), complex parts too."""
        real = np.finfo(self.dtype).dtype
        x = self.rng.random((min(count, DISTINCT), *shape, 2 if self.dtype.kind == "c" else 1), real)
        return np.resize((2 * x - 1).view(self.dtype)[..., 0], (count, *shape))

    @property
    def sample(self):
        """Which matrices are checked: of all lanes."""
        return slice(None, None, -(-self.nm // SAMPLE) | 1)

    def dominant(self, *shape):
        return self.random(*shape) + 2 * shape[-1] * np.eye(shape[-1], dtype=self.dtype)

    def pack(self, a):
        return cla.pack(a, queue=self.queue)

    def elements(self, count) -> int:
        """Bytes of so many numbers of every matrix."""
        return int(count * self.nm * self.dtype.itemsize)

    @abc.abstractmethod
    def call(self) -> Any:
        """What is timed."""

    @abc.abstractmethod
    def residual(self) -> float:
        """How wrong the results are, in units of rounding errors; see `PASS`."""

    def finish(self):
        """Wait for the device."""
        if self.queue is not None:
            self.queue.finish()

    def run(self, calls=1):
        """So many calls, to their end."""
        for _ in range(calls):
            self.call()
        self.finish()


class Gemm(Case):
    """C <- A B + beta C"""

    routine = "gemm"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None, beta=1):
        super().__init__(n, nm, dtype, queue, threads)
        self.a, self.b, self.c = (self.random(nm, n, n) for _ in range(3))
        self.A, self.B, self.C = map(self.pack, (self.a, self.b, self.c))
        self.beta, self.loop = beta, "axpy" if beta else "copy"
        self.flops = 2 * n**3 * nm * self.work
        self.nbytes, self.footprint = self.elements((4 if beta else 3) * n**2), self.elements(3 * n**2)

    def call(self):
        cla.gemm(self.A, self.B, self.C, beta=self.beta, **self.threads)

    def residual(self):
        return self.error(cla.gemm(self.A, self.B, self.pack(self.c), beta=self.beta, **self.threads).unpack())

    def error(self, result):
        """max |C' - C| / (eps (n |A| |B| + |beta| |C|)), element by element."""
        wide = np.result_type(self.dtype, np.float64 if self.dtype.char in "fF" else np.longdouble)
        a, b, c, result = (x[self.sample].astype(wide) for x in (self.a, self.b, self.c, result))
        bound = self.n * (abs(a) @ abs(b)) + abs(self.beta * c)
        return scaled(abs(result - (a @ b + self.beta * c)), bound, self.dtype)


class Trsm(Case):
    """B <- inv(op(A)) B, or B <- B inv(op(A))"""

    routine, loop = "trsm", "axpy"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None, side="L", uplo="L", trans="N", diag="N"):
        super().__init__(n, nm, dtype, queue, threads)
        self.options = {"side": side, "uplo": uplo, "trans": trans, "diag": diag}
        self.a, self.b = self.dominant(nm, n, n) / (2 * n), self.random(nm, n, n)
        self.A, self.B = self.pack(self.repeatable()), self.pack(self.b)
        self.flops = n**3 * nm * self.work
        triangle = n * (n - 1) // 2 if diag == "U" else n * (n + 1) // 2
        self.nbytes, self.footprint = self.elements(triangle + 2 * n**2), self.elements(triangle + n**2)

    def repeatable(self):
        """[I 0; X -I], its own inverse, or [I 0; X I] for a unit diagonal, whose powers grow slowly; or transposed."""
        n, half = self.n, self.n // 2
        a = np.zeros_like(self.a)
        a[:, range(n), range(n)] = np.where((np.arange(n) < half) | (self.options["diag"] == "U"), 1, -1)
        a[:, half:, :half] = self.b[:, half:, :half]
        return a if self.options["uplo"] == "L" else a.swapaxes(1, 2)

    def call(self):
        cla.trsm(self.A, self.B, **self.options, **self.threads)

    def residual(self):
        return self.error(cla.trsm(self.pack(self.a), self.pack(self.b), **self.options, **self.threads).unpack())

    def triangle(self, a):
        """op(A), as trsm reads it."""
        a = np.tril(a) if self.options["uplo"] == "L" else np.triu(a)
        if self.options["diag"] == "U":
            a[:, range(self.n), range(self.n)] = 1
        return {"N": a, "T": a.swapaxes(1, 2), "C": a.conj().swapaxes(1, 2)}[self.options["trans"]]

    def error(self, x):
        T, b, x = self.triangle(self.a[self.sample]), self.b[self.sample], x[self.sample]
        if self.options["side"] == "R":
            T, x, b = (y.swapaxes(1, 2) for y in (T, x, b))
        T, x, b = map(widen, (T, x, b))
        return scaled(norm1(b - T @ x), self.n * norm1(T) * norm1(x), self.dtype)


class Getrfnp(Case):
    """A <- L\\U"""

    routine = "getrfnp"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None):
        super().__init__(n, nm, dtype, queue, threads)
        self.a = self.dominant(nm, n, n)
        self.A = self.pack(self.repeatable())
        self.factor = functools.partial(cla.getrfnp, **self.threads)
        if queue is not None:
            from compactla import gpu

            self.factor = functools.partial(gpu.getrfnp, info=on_device(np.zeros(nm, np.int32), queue))  # waits not
        self.flops = 2 / 3 * n**3 * nm * self.work
        self.nbytes, self.footprint = self.elements(2 * n**2), self.elements(n**2)

    def repeatable(self):
        """Unit upper triangular matrices: they are their own factors."""
        return np.triu(self.a, 1) + np.eye(self.n, dtype=self.dtype)

    def call(self):
        return self.factor(self.A)

    def residual(self):
        A = self.pack(self.a)
        info = cla.getrfnp(A, **self.threads)
        return np.inf if info.any() else self.error(A.unpack())

    def error(self, lu):
        """max ||A - L U|| / (n eps ||A||) in the 1-norm."""
        a, lu = widen(self.a[self.sample]), widen(lu[self.sample])
        L, U = np.tril(lu, -1) + np.eye(self.n), np.triu(lu)
        return scaled(norm1(a - L @ U), self.n * norm1(a), self.dtype)


class Copy(Case):
    """Between an ordinary array and a pack, on the device"""

    loop = "copy"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None):
        super().__init__(n, nm, dtype, queue, threads)
        self.a = self.random(nm, n, n)
        self.A = self.pack(self.a)
        self.array = on_device(self.a, queue)
        self.flops, self.nbytes = 0, self.elements(2 * n**2)
        self.footprint = self.nbytes

    def error(self, result):
        """0, or infinity: a copy is right or wrong."""
        return 0.0 if np.array_equal(result, self.a) else np.inf


class Pack(Copy):
    """pack: from an array to a pack that is there"""

    routine = "pack"

    def call(self):
        return cla.pack(self.array, out=self.A, **self.threads)

    def residual(self):
        return self.error(self.call().unpack())


class Unpack(Copy):
    """unpack: from a pack to an array that is there"""

    routine = "unpack"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None):
        super().__init__(n, nm, dtype, queue, threads)
        self.array = on_device(np.zeros_like(self.a), queue)

    def call(self):
        self.A.unpack(out=self.array, **self.threads)

    def residual(self):
        self.run()
        return self.error(self.array if self.queue is None else self.array.get())


class Lines(Case):
    """Block tridiagonal systems: `nm` lines of K blocks of n x n, cut into so many parts"""

    DIFFERENT = 64  # lines; the others repeat them

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None, K=128, nrhs=1, parts=None):
        super().__init__(n, nm, dtype, queue, threads)
        self.K, self.nrhs = K, nrhs
        self.parts = {} if parts is None else {"parts": parts}
        few = min(nm, self.DIFFERENT)
        lower, upper = self.random(2, few, K - 1, n, n)
        blocks = lower, 2 * self.dominant(few, K, n, n), upper
        self.lower, self.diag, self.upper = (np.resize(a, (nm, *a.shape[1:])) for a in blocks)
        self.rhs = np.resize(self.random(few, K, n, nrhs), (nm, K, n, nrhs))

    def factored(self):
        T = cla.BlockTridiag(self.lower, self.diag, self.upper, queue=self.queue, **self.parts)
        if T.factor(**self.threads).any():
            raise ArithmeticError("a line of the benchmark is singular")
        return T

    def residual(self):
        return self.error(self.factored().solve(self.rhs, **self.threads))

    def error(self, x):
        """max ||b - T x|| / (K n eps ||T|| ||x||) in the 1-norm, over the last lines, of which x may be a part."""
        count = min(len(x), self.DIFFERENT)
        lower, diag, upper, x, b = (widen(a[-count:]) for a in (self.lower, self.diag, self.upper, x, self.rhs))
        r = b - diag @ x
        r[:, 1:] -= lower @ x[:, :-1]
        r[:, :-1] -= upper @ x[:, 1:]
        columns = abs(diag).sum(-2)
        columns[:, :-1] += abs(lower).sum(-2)
        columns[:, 1:] += abs(upper).sum(-2)
        norm = columns.max((1, 2))[:, None]
        return scaled(abs(r).sum((1, 2)), self.K * self.n * norm * abs(x).sum((1, 2)), self.dtype)


class Factor(Lines):
    """LU of the lines, in place"""

    routine = "factor"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None, K=128, nrhs=1, parts=None):
        super().__init__(n, nm, dtype, queue, threads, K, nrhs, parts)
        getrf, trsm, gemm = sum(k + 2 * k**2 for k in range(n)), n**2 * (2 * n - 1), 2 * n**3
        self.flops = nm * self.work * (K * getrf + (K - 1) * (trsm + gemm))
        self.footprint = self.elements((3 * K - 2) * n**2)
        self.nbytes = self.elements((2 * K + 3 * (K - 1)) * n**2)  # the lower blocks are only read
        diag = np.broadcast_to(np.eye(n, dtype=self.dtype), self.diag.shape)
        blocks = np.zeros_like(self.lower), diag, self.upper  # its own factor
        self.T = cla.BlockTridiag(*blocks, queue=queue, **self.parts)

    def call(self):
        return self.T.refactor(**self.threads)


class Solve(Lines):
    """Solution with the factored lines"""

    routine, loop = "solve", "read"

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None, K=128, nrhs=1, parts=None):
        super().__init__(n, nm, dtype, queue, threads, K, nrhs, parts)
        self.flops = nm * self.work * (3 * K - 2) * 2 * n**2 * nrhs
        self.nbytes = self.footprint = self.elements((3 * K - 2) * n**2 + 2 * K * n * nrhs)
        self.T, self.b = self.factored(), on_device(self.rhs, queue, pool=True)

    def call(self):
        return self.T.solve(self.b, **self.threads)

    def residual(self):
        x = self.call()
        return self.error(x if self.queue is None else x.get())


def bandwidth_of(loop, rates) -> float:
    """Bytes per second of a case's loop, of its kinds the fastest; or of the fastest of all, if it was not measured."""
    return max([rate for name, rate in rates.items() if name.endswith(loop)] or rates.values())


def on_device(a, queue, pool=False):
    """The array where the queue is, perhaps in a pool, from which its results come too."""
    if queue is None:
        return a
    import pyopencl.array
    from pyopencl.tools import ImmediateAllocator, MemoryPool

    return pyopencl.array.to_device(queue, a, allocator=MemoryPool(ImmediateAllocator(queue)) if pool else None)


def widen(a):
    return a.astype(np.result_type(a.dtype, np.float64), copy=False)


def norm1(a):
    """Largest absolute column sum of every matrix."""
    return abs(a).sum(-2).max(-1)


def scaled(error, bound, dtype) -> float:
    """Largest error in units of eps times the bound; NaN is infinity."""
    with np.errstate(all="ignore"):
        ratio = np.where(error == 0, 0, error / (np.finfo(dtype).eps * bound))
    return float(np.where(np.isnan(ratio), np.inf, ratio).max(initial=0))
