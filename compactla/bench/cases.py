"""Cases that the command `bench`, asv's benchmarks and the tuner time: routines on batches of random matrices.

A case runs again and again, on operands that the routine maps to themselves, or back and forth; or on general ones,
which the tuner restores between calls. Its residual is that of one call on general operands.
"""

import abc
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

import compactla as cla
from compactla import oracle, results, routine
from compactla.checks import on_host
from compactla.dtypes import INTEGERS
from compactla.integers import Integers
from compactla.layout import check_vlen
from compactla.types import Array, Queue

SEED = 2017
IN_CACHE = 64  # matrices that fit into a cache next to the core
SAMPLE = 128  # matrices of a result that are checked, in a wider precision


class Case(abc.ABC):
    """A routine on a batch; the classes below describe operands and options.

    Parameters
    ----------
    n : int or tuple of int
        Order of square matrices, or all sizes of the routine.
    nm : int
        Number of matrices.
    dtype, queue, threads, vlen
        Type of the matrices, and where and how they live and calls run; as for `compactla.pack`.

    Attributes
    ----------
    flops, nbytes : float
        Operations on real numbers, and bytes read plus bytes written, of one call: each operand counts once.
    loop : str
        The loop of `ceilings.bandwidth` that moves bytes like the routine, for the bandwidth that it is held against.
    footprint : int
        Bytes of all operands.
    drawn : tuple of ndarray
        General operands of `distinct` matrices, in whole packs, which the batch repeats.
    target : pyopencl.array.Array
        Array that a call on a device writes.
    saved : list of tuple
        Arrays of a device that a call overwrites, and copies of them.
    """

    DISTINCT = 4000  # matrices at most
    routine: str
    flops: float
    loop: str = "update"
    nbytes: int
    footprint: int
    drawn: tuple
    target: Any

    def __init__(self, n, nm, dtype=np.float64, queue=None, threads=None, vlen=None):
        self.n, self.nm, self.dtype, self.queue = n, nm, np.dtype(dtype), queue
        self.threads = {} if threads is None else {"threads": threads}
        self.vlen = check_vlen(vlen, self.dtype, queue)
        self.npack = -(-nm // self.vlen)
        self.distinct = min(self.npack, max(self.DISTINCT // self.vlen, 1)) * self.vlen
        self.work = 4 if self.dtype.kind == "c" else 1  # a complex multiply-add is four real ones
        self.rng, self.saved = np.random.default_rng(SEED), []

    def all_sizes(self, count):
        """All sizes of the routine, which has so many."""
        return self.n if isinstance(self.n, tuple) else (self.n,) * count

    def random(self, *shape):
        """Uniform numbers in (-1, 1), and complex ones whose parts are."""
        x = self.rng.random((*shape, 2 if self.dtype.kind == "c" else 1), np.finfo(self.dtype).dtype)
        return (2 * x - 1).view(self.dtype)[..., 0]

    def whole(self, a):
        """The batch as an ordinary array, which repeats the matrices of another."""
        return np.resize(a, (self.nm, *a.shape[1:]))

    def batch(self, a):
        """The batch as an array where it lives, which repeats the matrices of another."""
        return on_device(a, self.queue, self.nm)

    def pack(self, a):
        """The batch as a pack, which repeats the matrices of an array."""
        return cla.pack(self.whole(a), self.vlen) if self.queue is None else cla.Pack(self.compact(a), self.nm)

    def compact(self, a):
        """The batch in the compact layout, which repeats the matrices of an array."""
        return on_device(lanes_last(a, self.vlen), self.queue, self.npack)

    def elements(self, count) -> int:
        """Bytes of so many numbers of every matrix."""
        return int(count * self.nm * self.dtype.itemsize)

    @property
    def checked(self):
        """Matrices of each pack that is checked: the first, the last and some between."""
        packs = np.linspace(0, self.npack - 1, max(SAMPLE // self.vlen, 3)).astype(int)
        return [np.arange(p * self.vlen, min((p + 1) * self.vlen, self.nm)) for p in np.unique(packs)]

    def part(self, x, q):
        """Matrices `q`, those of one pack, of an operand or of what a call returned."""
        p = q[0] // self.vlen
        if isinstance(x, tuple):
            return tuple(self.part(y, q) for y in x)
        if isinstance(x, Integers):
            return Integers(x.data[p : p + 1], len(q), x.queue)
        return cla.Pack(x.data[p : p + 1], len(q)) if isinstance(x, cla.Pack) else x[q[0] : q[-1] + 1]

    @abc.abstractmethod
    def call(self) -> Any:
        """Make the call that is timed."""

    @abc.abstractmethod
    def residual(self) -> float:
        """Scaled residual of a call, in units of rounding errors; `oracle.THRESHOLD` is too much."""

    def finish(self):
        """Wait for the device."""
        if self.queue is not None:
            self.queue.finish()

    def run(self, calls=1):
        """Make so many calls, to their end."""
        for _ in range(calls):
            self.call()
        self.finish()

    def start(self):
        """Make a call on a device, and return the event of its last kernel."""
        self.call()
        return self.target.events[-1]

    def restore(self):
        """Restore what calls have overwritten on a device."""
        import pyopencl as cl

        for target, source in self.saved:
            cl.enqueue_copy(self.queue, target.base_data, source.base_data)
            target.events.clear()


class Dense(Case):
    """A routine that has a row, on matrices and as many right-hand sides.

    Parameters
    ----------
    name : str
        Name of the routine.
    general : bool
        Whether calls are timed on general operands, which `restore` is for; on a device only.
    **options
        Options and scalars of its function.
    """

    def __init__(
        self, name: str, n: Any, nm: int, dtype: Any = "d", queue: Queue = None, threads: int | None = None,
        vlen: int | None = None, general: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(n, nm, dtype, queue, threads, vlen)
        self.routine, self.row, self.oracle, self.general = name, routine.named(name), oracle.named(name), general
        defaults = {option: letters[0] for option, letters in self.row.options.items()}
        self.options = defaults | dict.fromkeys(self.row.scaling, 1) | options
        self.sizes = self.all_sizes(len(self.row.letters))
        self.drawn = self.oracle.operands(functools.partial(self.random, self.distinct), *self.sizes, **self.options)
        unread = {name for name in self.row.scaling if self.options[name] == 0}
        self.flops = 2 * self.row.work(self.sizes) * nm * self.work
        self.nbytes = self.elements(self.row.elements(self.sizes, self.dtype, unread))
        self.footprint = self.elements(sum(self.row.touched(self.sizes, self.dtype)))
        self.loop = "copy" if unread else "axpy" if len(self.drawn) > 1 else "update"
        self.timed = self.drawn if general else self.oracle.repeatable(*self.drawn, **self.options)
        self.bound = self.bind(self.timed)
        if queue is not None:
            self.target = self.bound.args[self.row.main].data
        if general:
            given = zip(self.row.inputs, self.bound.args, strict=True)
            changed = [A.data for operand, A in given if operand.written and operand.scaled_by not in unread]
            self.saved = [(data, data.copy()) for data in changed]

    @functools.cached_property
    def operands(self) -> Any:
        """General operands of the whole batch."""
        return list(map(self.whole, self.drawn))

    @functools.cached_property
    def repeatable(self) -> Any:
        """The operands that are timed, of the whole batch."""
        return list(map(self.whole, self.timed))

    def bind(self, arrays: Sequence[Array]) -> Any:
        """The call on a batch that repeats these operands, integers in their layout too."""
        given = [self.integers(a) if A.kind else self.pack(a) for A, a in zip(self.row.inputs, arrays, strict=True)]
        outputs = {}
        if self.queue is not None:  # a call that leaves them there does not wait
            outputs = {output: on_device(np.zeros(self.nm, np.int32), self.queue) for output in self.row.outputs}
        return functools.partial(self.row.function, *given, **self.options, **outputs, **self.threads)

    def integers(self, a: Array) -> Any:
        return Integers(self.compact(a.astype(INTEGERS[self.queue is not None])), self.nm, self.queue)

    def call(self) -> Any:
        return self.bound()

    def prepared(self) -> Any:
        """The call that is timed, prepared."""
        return cla.prepare(self.bound.func, *self.bound.args, **self.bound.keywords)

    def residual(self) -> Any:
        if self.general:
            self.restore()
        call = self.bound if self.general else self.bind(self.drawn)
        returned = call()
        info = returned[-1] if isinstance(returned, tuple) else returned
        if self.row.outputs == ("info",) and on_host(info).any():
            return np.inf
        found = []
        for q in self.checked:
            after, _ = results.unpacked(self.row, [self.part(A, q) for A in call.args], self.part(returned, q))
            found.append(self.compare(q, after))
        return max(found)

    def error(self, result: Any, residual: Any = None) -> Any:
        """Scaled residual of a call in another library, from the main operand after it, or a tuple of all operands.

        `residual` stands for the function of the oracle.
        """
        after = list(result if isinstance(result, tuple) else self.operands)
        if not isinstance(result, tuple):
            after[self.row.main] = result
        return self.error_of(after, residual)

    def error_of(self, after: Any, residual: Any = None) -> Any:
        """Scaled residual of a call, from all operands after it."""
        q = np.concatenate(self.checked)
        return self.compare(q, [a if a is None else a[q] for a in after], residual)

    def compare(self, q: np.ndarray, after: Any, residual: Any = None) -> Any:
        """Scaled residual of matrices `q`, from their operands after a call."""
        before = [a[q % self.distinct] for a in self.drawn]
        return float((residual or self.oracle.residual)(before, after, **self.options).max(initial=0))


class Copy(Case):
    """A copy between an ordinary array and a pack, on the device"""

    loop = "copy"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        m, n = self.all_sizes(2)
        a = self.random(self.distinct, m, n)
        self.drawn, self.A, self.array = (a,), self.pack(a), self.batch(a)
        self.flops, self.nbytes = 0, self.elements(2 * m * n)
        self.footprint = self.nbytes

    @functools.cached_property
    def a(self):
        """The matrices of the batch."""
        return self.whole(*self.drawn)

    def residual(self):
        self.run()
        return max(self.error(self.found(q), q) for q in self.checked)

    @abc.abstractmethod
    def found(self, q):
        """Matrices `q` after a call."""

    def error(self, result, q=None):
        """0, or infinity: a copy, of matrices `q` or of all, is right or wrong."""
        return 0.0 if np.array_equal(result, self.a if q is None else self.drawn[0][q % self.distinct]) else np.inf


class Pack(Copy):
    """pack: a copy of an array to a pack that is there"""

    routine = "pack"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.target = self.A.data

    def call(self):
        return cla.pack(self.array, out=self.A, **self.threads)

    def found(self, q):
        return self.part(self.A, q).to("cpu").unpack()


class Unpack(Copy):
    """unpack: a copy of a pack to an array that is there"""

    routine = "unpack"

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.target = self.array = self.batch(np.zeros_like(self.drawn[0]))

    def call(self):
        self.A.unpack(out=self.array, **self.threads)

    def found(self, q):
        return on_host(self.part(self.array, q))


class Kron(Case):
    """kron_apply: Kronecker products of factors n x n, one for each axis of an item, on arrays"""

    routine, loop = "kron", "copy"

    def __init__(self, *args, axes=2, **options):
        super().__init__(*args, **options)
        (n,) = self.all_sizes(1)
        self.factors = [self.random(n, n) for _ in range(axes)]
        X = self.random(self.distinct, *[n] * axes)
        self.drawn, self.F, self.X = (X,), [on_device(F, self.queue) for F in self.factors], self.batch(X)
        self.target = self.Y = self.batch(np.zeros_like(X))
        self.flops = 2 * self.nm * axes * n ** (axes + 1) * self.work
        self.nbytes = self.footprint = self.elements(2 * n**axes)

    def call(self):
        return cla.kron_apply(self.F, self.X, self.Y, **self.threads)

    def residual(self):
        self.run()
        return max(self.compare(q, on_host(self.part(self.Y, q))) for q in self.checked)

    def compare(self, q, Y):
        """Residual of items `q`, scaled as that of a product."""
        exact = self.drawn[0][q % self.distinct].astype(np.result_type(self.dtype, np.float64))
        scale = abs(exact)
        for axis, F in enumerate(self.factors, 1):
            exact, scale = (
                np.moveaxis(np.moveaxis(x, axis, -1) @ f.T, -1, axis) for x, f in ((exact, F), (scale, abs(F)))
            )
        return float((abs(Y - exact) / (scale * sum(Y.shape[1:]) * np.finfo(self.dtype).eps)).max())


def lanes_last(a, vlen):
    """Matrices in the compact layout, whole packs of them: (npack, ..., V), or (npack, ..., 2, V) of complex ones."""
    a = np.moveaxis(a.reshape(-1, vlen, *a.shape[1:]), 1, -1)
    return np.ascontiguousarray(np.stack([a.real, a.imag], -2) if a.dtype.kind == "c" else a)


def on_device(a, queue, count=None, pool=False):
    """An array where the queue is, perhaps in a pool, from which its results come too.

    It has so many of the items of `a`, which it repeats; default: as many as there are.
    """
    shape = len(a) if count is None else count, *a.shape[1:]
    if queue is None:
        return np.resize(a, shape)
    import pyopencl as cl
    import pyopencl.array
    from pyopencl.tools import ImmediateAllocator, MemoryPool

    found = cl.array.empty(queue, shape, a.dtype, allocator=MemoryPool(ImmediateAllocator(queue)) if pool else None)
    done, total = min(a.nbytes, found.nbytes), found.nbytes
    cl.enqueue_copy(queue, found.base_data, np.ascontiguousarray(a[: shape[0]]))
    while done < total:
        some = min(done, total - done)
        cl.enqueue_copy(queue, found.base_data, found.base_data, byte_count=some, dst_offset=done)
        done += some
    return found
