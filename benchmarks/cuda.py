"""The same work by cuBLAS, through CuPy, and by PyTorch, on a CUDA GPU: each in its own layout, matrix after matrix."""

import ctypes
import re
from pathlib import Path

import numpy as np

try:
    import cupy
    import torch
    from cupy_backends.cuda.libs import cublas
except ImportError:  # asv imports all files here
    cupy = torch = cublas = None

NO_TRANS, LEFT, RIGHT, LOWER, UPPER, NON_UNIT, UNIT = 0, 0, 1, 0, 1, 0, 1
ROUNDS = 10


def cuda_seconds(call):
    """Median time of a call on the current CUDA stream of CuPy or PyTorch."""
    times = []
    for _ in range(ROUNDS + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return float(np.median(times[2:]))


def pointers(a):
    """Addresses of the matrices of a CuPy array, one row for each leading index."""
    count = int(np.prod(a.shape[:-2]))
    step = a.shape[-1] * a.shape[-2] * a.itemsize
    return (a.data.ptr + step * cupy.arange(count, dtype=cupy.int64)).reshape(a.shape[:-2])


def dominant(nm, n, dtype):
    return cupy.random.uniform(-1, 1, (nm, n, n), dtype=dtype) + 2 * n * cupy.eye(n, dtype=dtype)


def as_torch(a):
    return torch.from_dlpack(a)


def peers_gemm(n, nm, dtype, update):
    a, b, c = (cupy.random.uniform(-1, 1, (nm, n, n), dtype=dtype) for _ in range(3))
    ta, tb, tc = map(as_torch, (a, b, c))
    if update:
        yield "torch.baddbmm", lambda: torch.baddbmm(tc, ta, tb, beta=1, alpha=-1, out=tc)
    else:
        yield "torch.bmm", lambda: torch.bmm(ta, tb, out=tc)
    handle = cupy.cuda.device.get_cublas_handle()
    one, beta = np.array(-1.0 if update else 1.0, dtype), np.array(float(update), dtype)
    gemm = cublas.dgemmStridedBatched if dtype == np.float64 else cublas.sgemmStridedBatched
    yield "cublas gemmStridedBatched", lambda: gemm(
        handle, 0, 0, n, n, n, one.ctypes.data, a.data.ptr, n, n * n, b.data.ptr, n, n * n, beta.ctypes.data,
        c.data.ptr, n, n * n, nm)  # fmt: skip


def peers_getrf(n, nm, dtype):
    a = dominant(nm, n, dtype)
    saved, where, info = a.copy(), pointers(a), cupy.zeros(nm, cupy.int32)
    handle = cupy.cuda.device.get_cublas_handle()
    getrf = cublas.dgetrfBatched if dtype == np.float64 else cublas.sgetrfBatched
    yield "cublas getrfBatched", lambda: getrf(handle, n, where.data.ptr, n, 0, info.data.ptr, nm)
    ta = as_torch(saved)
    yield "torch lu_factor_ex", lambda: torch.linalg.lu_factor_ex(ta, pivot=False)


def peers_trsm(n, nm, dtype, upper):
    a, b = dominant(nm, n, dtype), cupy.random.uniform(-1, 1, (nm, n, n), dtype=dtype)
    pa, pb, one = pointers(a), pointers(b), np.array(1.0, dtype)
    handle = cupy.cuda.device.get_cublas_handle()
    trsm = cublas.dtrsmBatched if dtype == np.float64 else cublas.strsmBatched
    uplo, diag = (UPPER, NON_UNIT) if upper else (LOWER, UNIT)
    yield "cublas trsmBatched", lambda: trsm(handle, LEFT, uplo, NO_TRANS, diag, n, n, one.ctypes.data, pa.data.ptr, n,
                                             pb.data.ptr, n, nm)  # fmt: skip
    ta, tb = as_torch(a), as_torch(b)
    yield "torch solve_triangular", lambda: torch.linalg.solve_triangular(
        ta, tb, upper=upper, unitriangular=not upper, out=tb)  # fmt: skip


class Cublas:
    """cuBLAS's batched calls on a stream; CuPy's own refuse to be captured in a graph."""

    def __init__(self, stream, dtype):
        maps = Path("/proc/self/maps").read_text()
        self.library = ctypes.CDLL(re.search(r"/\S*libcublas\.so\S*", maps).group())
        self.letter = "D" if dtype == np.float64 else "S"
        self.real = ctypes.c_double if dtype == np.float64 else ctypes.c_float
        self.handle = ctypes.c_void_p()
        self.call("cublasCreate_v2", ctypes.byref(self.handle))
        self.call("cublasSetStream_v2", self.handle, ctypes.c_void_p(stream.ptr))

    def call(self, name, *args):
        status = getattr(self.library, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    def __getattr__(self, name):
        def batched(*args):
            args = [ctypes.c_void_p(a.data.ptr) if isinstance(a, cupy.ndarray) else a for a in args]
            args = [ctypes.byref(self.real(a)) if isinstance(a, float) else a for a in args]
            self.call(f"cublas{self.letter}{name}Batched", self.handle, *args)

        return batched


def peers_lines(b, lines, K, dtype):
    """Times of loops of cuBLAS's batched calls over the block rows, as graphs: factor and solve."""
    d = dominant(K * lines, b, dtype).reshape(K, lines, b, b)
    e, f = (cupy.random.uniform(-1, 1, (K - 1, lines, b, b), dtype=dtype) / b for _ in range(2))
    x, info = cupy.random.uniform(-1, 1, (K, lines, 1, b), dtype=dtype), cupy.zeros(lines, cupy.int32)
    pd, pe, pf, px = map(pointers, (d, e, f, x))
    cupy.cuda.get_current_stream().synchronize()

    def factor(blas):
        for k in range(K):
            blas.getrf(b, pd[k], b, None, info, lines)
            if k < K - 1:
                blas.trsm(LEFT, LOWER, NO_TRANS, UNIT, b, b, 1.0, pd[k], b, pf[k], b, lines)
                blas.trsm(RIGHT, UPPER, NO_TRANS, NON_UNIT, b, b, 1.0, pd[k], b, pe[k], b, lines)
                blas.gemm(NO_TRANS, NO_TRANS, b, b, b, -1.0, pe[k], b, pf[k], b, 1.0, pd[k + 1], b, lines)

    def solve(blas):
        for k in range(K):
            if k:
                blas.gemm(NO_TRANS, NO_TRANS, b, 1, b, -1.0, pe[k - 1], b, px[k - 1], b, 1.0, px[k], b, lines)
            blas.trsm(LEFT, LOWER, NO_TRANS, UNIT, b, 1, 1.0, pd[k], b, px[k], b, lines)
        for k in reversed(range(K)):
            if k < K - 1:
                blas.gemm(NO_TRANS, NO_TRANS, b, 1, b, -1.0, pf[k], b, px[k + 1], b, 1.0, px[k], b, lines)
            blas.trsm(LEFT, UPPER, NO_TRANS, NON_UNIT, b, 1, 1.0, pd[k], b, px[k], b, lines)

    for name, loop in (("factor", factor), ("solve", solve)):
        stream = cupy.cuda.Stream(non_blocking=True)
        blas = Cublas(stream, dtype)
        loop(blas)  # cuBLAS loads its kernels outside of the graph
        stream.synchronize()
        with stream:
            stream.begin_capture()
            loop(blas)
            graph = stream.end_capture()
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
            yield name, cuda_seconds(lambda graph=graph, stream=stream: graph.launch(stream))


def call(library, routine, n, nm, dtype):
    """A call of "cublas" or "torch" that does the work of a case of `compactla.bench.cases`, to its end."""
    peers = {
        "gemm": lambda: peers_gemm(n, nm, np.dtype(dtype), True),
        "trsm": lambda: peers_trsm(n, nm, np.dtype(dtype), False),
        "getrfnp": lambda: peers_getrf(n, nm, np.dtype(dtype)),
    }[routine]()
    begin = next(begin for name, begin in peers if name.startswith(library))

    def run():
        begin()
        torch.cuda.synchronize()

    return run
