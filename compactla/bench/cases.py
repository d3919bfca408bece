"""Cases to measure: the routines on batches of random matrices, the work that they do, and how wrong they are.

A case runs again and again: factorizations and solves in place are timed on operands that they map to themselves, or
back and forth. Its residual is that of one call on general operands.
"""

import abc
import functools
from typing import Any, ClassVar

import numpy as np

import compactla as cla
from compactla import oracle, routine
from compactla.integers import Integers
from compactla.oracle import lines

SEED = 2017
IN_CACHE = 64  # matrices that fit into a cache next to the core
DISTINCT = 4001  # matrices at most; the others of a batch repeat them
SAMPLE = 512  # at most, matrices of a result that are checked, in a wider precision


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
    vlen: int | None = None

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
        return cla.pack(a, self.vlen, queue=self.queue)

    def elements(self, count) -> int:
        """Bytes of so many numbers of every matrix."""
        return int(count * self.nm * self.dtype.itemsize)

    @abc.abstractmethod
    def call(self) -> Any:
        """The call that is timed."""

    @abc.abstractmethod
    def residual(self) -> float:
        """How wrong the results are, in units of rounding errors; `oracle.THRESHOLD` is too much."""

    def finish(self):
        """Wait for the device."""
        if self.queue is not None:
            self.queue.finish()

    def run(self, calls=1):
        """So many calls, to their end."""
        for _ in range(calls):
            self.call()
        self.finish()


class Dense(Case):
    """A routine that has a row, on square matrices and with as many right-hand sides

    Parameters
    ----------
    name : str
        That of the routine.
    sizes : dict, optional
        Those by letters of the row that are not n.
    vlen : int, optional
        Vector length of the packs.
    **options
        Options and scalars of its function.

    Attributes
    ----------
    operands : tuple of ndarray
        General ones, (nm, n, n) each; `repeatable` are those that are timed.
    """

    def __init__(self, name, n, nm, dtype=np.float64, queue=None, threads=None, *, sizes=None, vlen=None, **options):
        super().__init__(n, nm, dtype, queue, threads)
        self.routine, self.row, self.oracle = name, routine.named(name), oracle.named(name)
        defaults = {option: letters[0] for option, letters in self.row.options.items()}
        self.options = defaults | dict.fromkeys(self.row.scaling, 1) | options
        sizes = dict.fromkeys(self.row.letters, n) | (sizes or {})
        self.vlen, self.sizes = vlen, tuple(sizes.values())
        self.operands = self.oracle.operands(functools.partial(self.random, nm), **sizes, **self.options)
        self.repeatable = self.oracle.repeatable(*self.operands, **self.options)
        unread = {name for name in self.row.scaling if self.options[name] == 0}
        self.flops = 2 * self.row.work(self.sizes) * nm * self.work
        self.nbytes = self.elements(self.row.elements(self.sizes, self.dtype, unread))
        self.footprint = self.elements(sum(self.row.touched(self.sizes, self.dtype)))
        self.loop = "copy" if unread else "axpy" if len(self.operands) > 1 else "update"
        outputs = {}
        if queue is not None:  # a call that leaves them there does not wait
            outputs = {output: on_device(np.zeros(nm, np.int32), queue) for output in self.row.outputs}
        packs = self.arguments(self.repeatable)
        self.bound = functools.partial(self.row.function, *packs, **self.options, **outputs, **self.threads)

    def call(self):
        return self.bound()

    def prepared(self):
        """The same call, prepared."""
        return cla.prepare(self.bound.func, *self.bound.args, **self.bound.keywords)

    def arguments(self, arrays):
        """Arguments of the public function, integers in their layout too."""
        packs = [None if A.kind else self.pack(a) for A, a in zip(self.row.inputs, arrays, strict=True)]
        main = next(A for A in packs if A is not None)
        return [
            Integers.given(a[:, :, 0], main, a.shape[1], operand.name) if A is None else A
            for operand, A, a in zip(self.row.inputs, packs, arrays, strict=True)
        ]

    def residual(self):
        packs = self.arguments(self.operands)
        after, output = self.row.results(packs, self.row.function(*packs, **self.options, **self.threads))
        if self.row.outputs == ("info",) and output.any():
            return np.inf
        return self.error_of(after)

    def error(self, result, residual=None):
        """Of what the main operand holds after a call in another library, or a tuple of what all do; `residual` is not
        the oracle's."""
        after = list(result if isinstance(result, tuple) else self.operands)
        if not isinstance(result, tuple):
            after[self.row.main] = result
        return self.error_of(after, residual)

    def error_of(self, after, residual=None):
        """Of all operands after a call: the largest scaled residual, by the routine's oracle."""
        before, after = ([a if a is None else a[self.sample] for a in x] for x in (self.operands, after))
        return float((residual or self.oracle.residual)(before, after, **self.options).max(initial=0))


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
        """Of the last lines, of which x may be a part."""
        few = slice(-min(len(x), self.DIFFERENT), None)
        before = [a[few] for a in (self.lower, self.diag, self.upper, self.rhs)]
        return float(lines.residual(before, x[few]).max(initial=0))


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


def on_device(a, queue, pool=False):
    """The array where the queue is, perhaps in a pool, from which its results come too."""
    if queue is None:
        return a
    import pyopencl.array
    from pyopencl.tools import ImmediateAllocator, MemoryPool

    return pyopencl.array.to_device(queue, a, allocator=MemoryPool(ImmediateAllocator(queue)) if pool else None)
