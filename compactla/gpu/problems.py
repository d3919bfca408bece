"""What `tune` times: a call of each routine, on batches that fill a device, checked against NumPy."""

from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pyopencl.array

from compactla import blas, lapack
from compactla.gpu import run
from compactla.layout import Pack, pack
from compactla.lines.blocktridiag import BlockTridiag
from compactla.lines.storage import STORAGE

BYTES = {True: 2**30, False: 2**24}  # of the data that is worked on, on GPUs and on other devices
DISTINCT = 15  # packs of random numbers; the rest of a batch repeats them
BLOCKS_A_LINE, FEW_LINES = 128, 512
EPSILON = {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}  # of what factors are stored in


class Problem:
    """A call of a routine, on a batch that fills the device: `start()` returns its event, `error()` is scaled."""

    def __init__(self, queue, size, dtype, vlen, nbytes, storage=""):
        self.queue, self.size, self.dtype, self.vlen, self.storage = queue, size, dtype, vlen, storage
        self.rng = np.random.default_rng(0)
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
        if self.dtype.kind == "c":
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

    def pack(self, a, in_place=False):
        return Pack(self.device_array(a, in_place))

    def restore(self):
        for target, source in self.saved:
            cl.enqueue_copy(self.queue, target.base_data, source.base_data)
            target.events.clear()

    def host(self, array, p):
        """The matrices of pack p, (V, ...)"""
        a = run.download(array[p])
        a = a[..., 0, :] + 1j * a[..., 1, :] if self.dtype.kind == "c" else a
        return np.moveaxis(a, -1, 0).astype(np.result_type(self.dtype, np.float64))

    def error(self):
        """The largest scaled residual of the first, a middle and the last pack."""
        packs = {0, self.npack // 2, self.npack - 1}
        with np.errstate(all="ignore"):
            worst = max(float(np.nan_to_num(self.residual(p).max(), nan=np.inf)) for p in packs)
        return worst / (EPSILON.get(self.storage) or np.finfo(self.dtype).eps)

    def dominant(self, n, weight=2):
        return self.random(n, n) + (weight * n * np.eye(n)).astype(self.dtype)

    # what the routines below define
    values: Callable[[], int]
    moved: Callable[[], float]
    prepare: Callable[[], None]
    start: Callable[[], cl.Event]
    residual: Callable[[int], np.ndarray]


class Gemm(Problem):
    """C <- A B, or with `update` C <- C - A B"""

    update = False

    def values(self):
        m, n, k = self.size
        return m * k + k * n + m * n

    def moved(self):
        m, n, _ = self.size
        return (self.values() + m * n * self.update) * self.dtype.itemsize * self.vlen * self.npack

    def prepare(self):
        m, n, k = self.size
        self.a, self.b, self.c = self.random(m, k), self.random(k, n), self.random(m, n)
        self.A, self.B, self.C = self.pack(self.a), self.pack(self.b), self.pack(self.c, in_place=self.update)

    def start(self):
        blas.gemm(self.A, self.B, self.C, -1 if self.update else 1, 1 if self.update else 0)
        return self.C.data.events[-1]

    def residual(self, p):
        a, b, c = (x[p % DISTINCT].astype(np.result_type(self.dtype, np.float64)) for x in (self.a, self.b, self.c))
        expected = c - a @ b if self.update else a @ b
        return abs(self.host(self.C.data, p) - expected) / (abs(a) @ abs(b) + abs(c)) / (self.size[2] + 2)


class GemmUpdate(Gemm):
    update = True


class Trsm(Problem):
    """B <- inv(U) B, which has more to do than a unit triangle"""

    options = ("L", "U", "N", "N")  # side, uplo, trans, diag

    def values(self):
        n, r = self.size
        return n * n + n * r

    def moved(self):
        n, r = self.size
        unit = self.options[3] == "U"
        triangle = n * (n - 1) // 2 + n * (not unit)
        return (triangle + 2 * n * r - r * unit) * self.dtype.itemsize * self.vlen * self.npack

    def prepare(self):
        n, r = self.size
        self.a = self.random(n, n) / n + 2 * np.eye(n, dtype=self.dtype)
        self.b = self.random(n, r) if self.options[0] == "L" else self.random(r, n)
        self.A, self.B = self.pack(self.a), self.pack(self.b, in_place=True)

    def start(self):
        blas.trsm(self.A, self.B, *self.options)
        return self.B.data.events[-1]

    def residual(self, p):
        n, (side, uplo, trans, diag) = self.size[0], self.options
        a, b = (v[p % DISTINCT].astype(np.result_type(self.dtype, np.float64)) for v in (self.a, self.b))
        a = np.tril(a) if uplo == "L" else np.triu(a)
        if diag == "U":
            a[:, range(n), range(n)] = 1
        a = a if trans == "N" else a.swapaxes(-1, -2)
        x = self.host(self.B.data, p)
        if side == "R":
            a, b, x = a.swapaxes(-1, -2), b.swapaxes(-1, -2), x.swapaxes(-1, -2)
        return abs(a @ x - b) / (abs(a) @ abs(x) + abs(b)) / n


class Getrfnp(Problem):
    """A <- L\\U"""

    def values(self):
        return self.size[0] * self.size[1]

    def moved(self):
        m, n = self.size
        return ((2 * m * n - n) * self.dtype.itemsize + 4) * self.vlen * self.npack

    def prepare(self):
        m, n = self.size
        self.a = self.random(m, n) + (2 * max(m, n) * np.eye(m, n)).astype(self.dtype)
        self.A = self.pack(self.a, in_place=True)

    def start(self):
        assert not lapack.getrfnp(self.A).any()
        return self.A.data.events[-1]

    def residual(self, p):
        m, n = self.size
        lu, a = self.host(self.A.data, p), self.a[p % DISTINCT]
        lower = np.tril(lu, -1)[..., : min(m, n)] + np.eye(m, min(m, n))
        upper = np.triu(lu)[..., : min(m, n), :]
        return abs(lower @ upper - a) / (abs(lower) @ abs(upper)) / max(m, n)


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
        self.A = Pack.empty(nm, *self.size, self.dtype, self.vlen, self.queue)

    def start(self):
        pack(self.source, out=self.A)
        return self.A.data.events[-1]

    def residual(self, p):
        return abs(self.host(self.A.data, p) - self.a[p % DISTINCT])


class UnpackBatch(PackBatch):
    """unpack to an array that lies on the device"""

    def prepare(self):
        super().prepare()
        pack(self.source, out=self.A)
        self.source.fill(0)

    def start(self):
        self.A.unpack(self.source)
        return self.source.events[-1]

    def residual(self, p):
        return abs(run.download(self.source[p * self.vlen : (p + 1) * self.vlen]) - self.a[p % DISTINCT])


class Factor(Problem):
    """Lines of blocks, factored; checked by a solve"""

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
        lines = self.npack * self.vlen
        rows = np.arange(lines * K).reshape(self.npack, self.vlen, K).swapaxes(1, 2).reshape(-1, self.vlen)
        offset = np.arange(self.npack + 1) * K
        self.T = BlockTridiag.from_packed(*packed, offset, rows, lines, queue=self.queue, storage=self.storage or None)
        some = self.rng.uniform(-1, 1, (DISTINCT * self.vlen * K, b, nrhs)).astype(self.dtype)
        self.rhs = pyopencl.array.empty(self.queue, (lines * K, b, nrhs), self.dtype)
        for start in range(0, self.rhs.nbytes, some.nbytes):
            count = min(some.nbytes, self.rhs.nbytes - start)
            cl.enqueue_copy(self.queue, self.rhs.base_data, some.view(np.uint8).reshape(-1)[:count], dst_offset=start)
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
        wide = np.result_type(self.dtype, np.float64)
        lower, diag, upper = (a[p % DISTINCT].astype(wide) for a in self.blocks)
        x = run.download(self.x[p * V * K : (p + 1) * V * K]).reshape(V, K, b, nrhs).astype(wide)
        r, scale = self.b[p % DISTINCT] - diag @ x, abs(diag) @ abs(x) + abs(self.b[p % DISTINCT])
        r[:, 1:] -= lower @ x[:, :-1]
        r[:, :-1] -= upper @ x[:, 1:]
        return abs(r) / scale / b


class Solve(Factor):
    """Lines of blocks, solved for right-hand sides"""

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


class SolveFew(Solve):
    packs = FactorFew.packs


PROBLEMS = {"gemm": Gemm, "trsm": Trsm, "getrfnp": Getrfnp, "pack": PackBatch, "unpack": UnpackBatch}
PROBLEMS |= {"factor": Factor, "factor_few": FactorFew, "solve": Solve, "solve_few": SolveFew}
