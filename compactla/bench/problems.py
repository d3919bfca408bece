"""Problems that `tune` times: a call of each routine, on batches that fill a device, checked against its oracle."""

import math
from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pyopencl.array

from compactla import oracle, routine
from compactla.gpu.arrays import download
from compactla.integers import Integers
from compactla.kron.products import kron_apply
from compactla.layout import Pack, pack
from compactla.lines.blocktridiag import BlockTridiag
from compactla.lines.storage import STORAGE
from compactla.oracle import lines

BYTES = {True: 2**30, False: 2**24}  # of the data that is worked on, on GPUs and on other devices
DISTINCT = 15  # packs of random numbers; the rest of a batch repeats them
BLOCKS_A_LINE, FEW_LINES = 128, 512
EPSILON = {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}  # of what factors are stored in


class Problem:
    """A call of a routine, on a batch that fills the device: `start()` returns its event, `error()` is scaled."""

    storable = False  # whether `storage` is for it

    def __init__(self, name, queue, size, dtype, vlen, nbytes, storage=""):
        self.name, self.queue, self.size, self.dtype, self.vlen = name, queue, size, dtype, vlen
        self.storage, self.rng = storage, np.random.default_rng(0)
        self.npack = max(DISTINCT, self.packs(nbytes))
        self.saved: list[tuple] = []
        self.prepare()

    def packs(self, nbytes) -> int:
        return nbytes // (self.values() * self.dtype.itemsize * self.vlen)

    def random(self, *shape):
        a = self.rng.uniform(-1, 1, (DISTINCT, self.vlen, *shape))
        return (a + 1j * self.rng.uniform(-1, 1, a.shape) if self.dtype.kind == "c" else a).astype(self.dtype)

    def device_array(self, a, in_place=False):
        """Matrices (DISTINCT, V, ...) in the compact layout, repeated to `npack` packs."""
        lanes_last = np.moveaxis(a, 1, -1)
        if lanes_last.dtype.kind == "i":
            lanes_last = lanes_last.astype(np.int32)
        elif self.dtype.kind == "c":
            lanes_last = np.stack([lanes_last.real, lanes_last.imag], -2)
        one = np.ascontiguousarray(lanes_last)
        target = pyopencl.array.empty(self.queue, (self.npack, *one.shape[1:]), one.dtype)
        cl.enqueue_copy(self.queue, target.base_data, one)
        done, total = one.nbytes, target.nbytes
        while done < total:
            some = min(done, total - done)
            cl.enqueue_copy(self.queue, target.base_data, target.base_data, byte_count=some, dst_offset=done)
            done += some
        if in_place:
            self.saved.append((target, target.copy()))
        return target

    def restore(self):
        for target, source in self.saved:
            cl.enqueue_copy(self.queue, target.base_data, source.base_data)
            target.events.clear()

    def host(self, array, p):
        """The matrices of pack p, (V, ...)"""
        a = download(array[p])
        a = a[..., 0, :] + 1j * a[..., 1, :] if self.dtype.kind == "c" else a
        return np.moveaxis(a, -1, 0)

    def error(self):
        """The largest scaled residual of the first, a middle and the last pack."""
        return max(float(self.residual(p).max()) for p in {0, self.npack // 2, self.npack - 1})

    # what the routines below define
    values: Callable[[], int]  # numbers of a matrix or line, in all operands
    moved: Callable[[], float]  # bytes, of the batch
    prepare: Callable[[], None]
    start: Callable[[], cl.Event]
    residual: Callable[[int], np.ndarray]  # of pack p, for each matrix


class Dense(Problem):
    """A routine that has a row, with its default options"""

    def values(self):
        number = self.row.numbers(self.size)
        return sum(number[rows] * number[columns] for rows, columns in (A.sizes for A in self.row.operands))

    @property
    def row(self):
        return routine.named(self.name)

    @property
    def unread(self):
        """The scalars that are zero by default."""
        return {name for name in self.row.scaling if not self.row.scalars[name]}

    def moved(self):
        numbers = self.row.elements(self.size, self.dtype, self.unread) * self.dtype.itemsize
        return (numbers + 4 * len(self.row.outputs)) * self.vlen * self.npack

    def prepare(self):
        sizes = dict(zip(self.row.letters, self.size, strict=True))
        drawn = oracle.named(self.name).operands(lambda *shape: self.random(*shape).reshape(-1, *shape), **sizes)
        self.before = [a.reshape(DISTINCT, self.vlen, *a.shape[1:]) for a in drawn]
        nm = self.npack * self.vlen
        self.operands = []
        for A, a in zip(self.row.inputs, self.before, strict=True):
            data = self.device_array(a, A.written and A.scaled_by not in self.unread)
            self.operands.append(Integers(data, nm, self.queue) if A.kind == "integer" else Pack(data))
        self.outputs = {name: pyopencl.array.zeros(self.queue, nm, np.int32) for name in self.row.outputs}

    def start(self):
        self.returned = self.row.function(*self.operands, **self.outputs)
        return self.operands[self.row.main].data.events[-1]

    def error(self):
        failed = "info" in self.outputs and download(self.outputs["info"]).any()
        return np.inf if failed else super().error()

    def residual(self, p):
        lanes, before = slice(p * self.vlen, (p + 1) * self.vlen), [a[p % DISTINCT] for a in self.before]
        parts = [Pack(A.data[p : p + 1]) if isinstance(A, Pack) else A for A in self.operands]
        after, _ = self.row.results(parts, self.part(self.returned, p, lanes))
        return oracle.named(self.name).residual(before, after)

    def part(self, found, p, lanes):
        """Of what a call returned that of pack p."""
        if isinstance(found, tuple):
            return tuple(self.part(x, p, lanes) for x in found)
        if isinstance(found, Integers):
            return Integers(download(found.data[p : p + 1]), self.vlen)
        return Pack(found.data[p : p + 1]) if isinstance(found, Pack) else found[lanes]


class PackBatch(Problem):
    """pack of an array that lies on the device"""

    def values(self):
        return self.size[0] * self.size[1]

    def moved(self):
        return 2 * self.source.nbytes

    def prepare(self):
        nm = self.npack * self.vlen
        self.a = self.random(*self.size)
        self.source = pyopencl.array.empty(self.queue, (nm, *self.size), self.dtype)
        for start in range(0, nm, len(self.a.reshape(-1, *self.size))):
            some = self.a.reshape(-1, *self.size)[: nm - start]
            cl.enqueue_copy(self.queue, self.source.base_data, some, dst_offset=start * some[0].nbytes)
        self.A = Pack.empty(nm, *self.size, self.dtype, self.vlen, queue=self.queue)

    def start(self):
        pack(self.source, out=self.A)
        return self.A.data.events[-1]

    def residual(self, p):
        return self.wrong(self.host(self.A.data, p), p)

    def wrong(self, found, p):
        """0, or infinity: a copy is right or wrong."""
        return np.where(found == self.a[p % DISTINCT], 0, np.inf)


class UnpackBatch(PackBatch):
    """unpack to an array that lies on the device"""

    def prepare(self):
        super().prepare()
        pack(self.source, out=self.A)
        self.source.fill(0)

    def start(self):
        self.A.unpack(out=self.source)
        return self.source.events[-1]

    def residual(self, p):
        return self.wrong(download(self.source[p * self.vlen : (p + 1) * self.vlen]), p)


class Factor(Problem):
    """Lines of blocks, factored; checked by a solve"""

    pivots = "report"

    def values(self):
        return (3 * BLOCKS_A_LINE - 2) * self.size[0] ** 2

    def packs(self, nbytes):
        """On a GPU as many lines as keep it busy, since a line is a chain."""
        return super().packs(nbytes) if nbytes < BYTES[True] else (2**14 if self.size[0] <= 6 else 2**12) // self.vlen

    def moved(self):
        b, K = self.size[0], BLOCKS_A_LINE
        return ((5 * K - 4) * b * b * self.dtype.itemsize + 8) * self.vlen * self.npack

    def prepare(self):
        b, K = self.size[0], BLOCKS_A_LINE
        nrhs = self.size[1] if len(self.size) > 1 else 1
        self.blocks = [self.random(K - 1, b, b), self.random(K, b, b), self.random(K - 1, b, b)]
        self.blocks[1] += (6 * b * np.eye(b)).astype(self.dtype)
        packed = [self.device_array(a, in_place=True) for a in self.blocks]
        packed = [a.reshape(a.shape[0] * a.shape[1], *a.shape[2:]) for a in packed]
        count = self.npack * self.vlen
        rows = np.arange(count * K).reshape(self.npack, self.vlen, K).swapaxes(1, 2).reshape(-1, self.vlen)
        offset = np.arange(self.npack + 1) * K
        options = {"storage": self.storage or None, "pivots": self.pivots}
        self.T = BlockTridiag.from_packed(*packed, offset, rows, count, queue=self.queue, **options)
        some = self.rng.uniform(-1, 1, (DISTINCT * self.vlen * K, b, nrhs)).astype(self.dtype)
        self.rhs = pyopencl.array.empty(self.queue, (count * K, b, nrhs), self.dtype)
        for start in range(0, self.rhs.nbytes, some.nbytes):
            part = some.view(np.uint8).reshape(-1)[: self.rhs.nbytes - start]
            cl.enqueue_copy(self.queue, self.rhs.base_data, part, dst_offset=start)
        self.b, self.x = some.reshape(DISTINCT, self.vlen, K, b, nrhs), pyopencl.array.zeros_like(self.rhs)

    def restore(self):
        super().restore()
        self.T._lines._spare.clear()  # it fits the kernel that was chosen before

    def start(self):
        assert not self.T.refactor().any()
        return self.T.diag.events[-1]

    def error(self):
        self.T.solve_rows(self.rhs, self.x)
        return super().error()

    def residual(self, p):
        K, V, (b, nrhs) = BLOCKS_A_LINE, self.vlen, self.rhs.shape[1:]
        x = download(self.x[p * V * K : (p + 1) * V * K]).reshape(V, K, b, nrhs)
        before = [a[p % DISTINCT] for a in (*self.blocks, self.b)]
        return lines.residual(before, x, EPSILON.get(self.storage))


class Solve(Factor):
    """Lines of blocks, solved for right-hand sides"""

    storable = True

    def moved(self):
        b, nrhs = self.size
        K = BLOCKS_A_LINE
        parts = 2 if self.dtype.kind == "c" else 1
        number = STORAGE[self.storage].itemsize * parts if self.storage else self.dtype.itemsize
        factors, vectors = (3 * K - 2) * b * b * number, 4 * K * b * nrhs * self.dtype.itemsize
        return (factors + vectors) * self.vlen * self.npack

    def prepare(self):
        super().prepare()
        assert not self.T.refactor().any()
        self.saved.clear()

    def start(self):
        self.T.solve_rows(self.rhs, self.x)
        return self.x.events[-1]

    def error(self):
        return Problem.error(self)


class FactorFew(Factor):
    """Too few lines to fill the device"""

    def packs(self, nbytes):
        return max(1, FEW_LINES // self.vlen)


class FactorWatched(Factor):
    """Lines of blocks, factored with an eye on the pivots"""

    pivots = "perturb"


class SolveFew(Solve):
    packs = FactorFew.packs


class Kron(Problem):
    """Kronecker products of two or three factors, the last number of the name, on arrays"""

    @property
    def shape(self):
        """Of an item."""
        return self.size * int(self.name[-1])

    def values(self):
        return math.prod(self.shape)

    def moved(self):
        return 2 * self.X.nbytes

    def prepare(self):
        draw = self.random(*self.shape).reshape(-1, *self.shape)
        self.factors = [self.random(*self.size * 2)[0, 0] for _ in self.shape]
        self.before = draw
        nm = self.npack * self.vlen
        self.X, self.Y = (pyopencl.array.empty(self.queue, (nm, *self.shape), self.dtype) for _ in range(2))
        for start in range(0, nm, len(draw)):
            some = draw[: nm - start]
            cl.enqueue_copy(self.queue, self.X.base_data, some, dst_offset=start * some[0].nbytes)
        self.given = [pyopencl.array.to_device(self.queue, F) for F in self.factors]

    def start(self):
        kron_apply(self.given, self.X, self.Y)
        return self.Y.events[-1]

    def residual(self, p):
        """Scaled as that of a product."""
        Y = download(self.Y[p * self.vlen : (p + 1) * self.vlen])
        some = np.arange(p * self.vlen, (p + 1) * self.vlen) % len(self.before)
        exact = self.before[some].astype(np.result_type(self.dtype, np.float64))
        scale = abs(exact)
        for axis, F in enumerate(self.factors):
            exact, scale = (
                np.moveaxis(np.moveaxis(x, axis + 1, -1) @ f.T, -1, axis + 1) for x, f in ((exact, F), (scale, abs(F)))
            )
        error = abs(Y - exact) / (scale * sum(self.shape) * np.finfo(self.dtype).eps)
        return error.reshape(self.vlen, -1).max(1)


OTHERS: dict[str, type[Problem]] = {"pack": PackBatch, "unpack": UnpackBatch, "kron2": Kron, "kron3": Kron}
OTHERS |= {"factor": Factor, "factor_few": FactorFew, "factor_watched": FactorWatched}
OTHERS |= {"solve": Solve, "solve_few": SolveFew}


def kind(name) -> type[Problem]:
    """The class of the problem that results for a name of `shapes.searches` are tuned with."""
    return OTHERS.get(name, Dense)
