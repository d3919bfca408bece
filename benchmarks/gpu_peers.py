"""Batched routines and lines of blocks on a CUDA GPU, beside cuBLAS (through CuPy) and PyTorch in the same run.

    python benchmarks/gpu_peers.py [--out results.json] [--quick] [--only NAME]

Times are of the device's clock, medians of 10 calls. `fraction` is the bandwidth that the bytes that must move make of
a time, over that of the best copy kernel. Peers get their own layout, one matrix after the other, and do the same work;
loops of cuBLAS's batched calls over block rows run as CUDA graphs.
"""

import argparse
import ctypes
import json
import platform
import re
import time
from pathlib import Path

import numpy as np
import pyopencl as cl

import compactla as cla
from compactla.gpu import problems, run, tune
from compactla.gpu.devices import devices

try:
    import cupy
    import torch
    from cupy_backends.cuda.libs import cublas
except ImportError:  # asv imports all files here
    cupy = torch = cublas = None

SQUARES = [3, 5, 8, 9, 10, 15, 16, 24, 32]
BLOCKS = [3, 5, 9, 10, 15]
NO_TRANS, LEFT, RIGHT, LOWER, UPPER, NON_UNIT, UNIT = 0, 0, 1, 0, 1, 0, 1
ROUNDS = 10


class TrsmLower(problems.Trsm):
    options = ("L", "L", "N", "U")


class TrsmRight(problems.Trsm):
    options = ("R", "U", "N", "N")


class TrsmRightLower(problems.Trsm):
    options = ("R", "L", "T", "U")


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


class Report:
    def __init__(self, tuner, only):
        self.tuner, self.only, self.rows = tuner, only, []

    def ours(self, name, problem, size, dtype, vlen=None, nbytes=None, peers=()):
        if self.only and not name.startswith(self.only):
            return
        dtype = np.dtype(dtype)
        vlen = vlen or run.default_vlen(dtype, self.tuner.queue)
        case = problem(self.tuner.queue, size, dtype, vlen, nbytes or self.tuner.nbytes)
        case.start().wait()
        error = case.error() if hasattr(case, "residual") else 0.0
        assert error < tune.THRESHOLD, (name, size, error)
        seconds = tune.median_seconds(case)
        row = {
            "name": name,
            "dtype": dtype.name,
            "size": size,
            "vlen": vlen,
            "matrices": case.npack * vlen,
            "ms": seconds * 1e3,
            "fraction": case.moved() / seconds / self.tuner.copy,
            "peers_ms": {},
        }
        nm = row["matrices"]
        del case
        for peer, call in peers and peers(nm):
            try:
                row["peers_ms"][peer] = (call if isinstance(call, float) else cuda_seconds(call)) * 1e3
            except (RuntimeError, AttributeError, TypeError) as failure:
                print(f"{peer}: {failure}")
        cupy.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
        self.rows.append(row)
        fastest = min(row["peers_ms"].items(), key=lambda item: item[1], default=None)
        beside = f"{fastest[1] / row['ms']:7.1f}x  {fastest[0]} {fastest[1]:.4g} ms" if fastest else ""
        print(f"{name:10} {dtype.name:10} {size!s:14} {row['ms']:8.4f} ms {row['fraction']:6.3f}  {beside}", flush=True)


def call_overhead(device):
    """Microseconds of a call from Python on prepared packs, and of pyopencl's own enqueue of its kernel."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    A, B, C = (cla.Pack.zeros(64, 5, 5, queue=queue) for _ in range(3))
    cla.gemm(A, B, C)
    key = next(key for key in run.plans() if key[0] == context and key[1] == "gemm")
    plan = run.plans()[key]
    values = (64, 1.0, 0.0, A.data.base_data, 0, A.view.ps, B.data.base_data, 0, B.view.ps,
              0.0, 0.0, C.data.base_data, 0, C.view.ps)  # fmt: skip

    def enqueue():
        plan.kernel(queue, (plan.group, 1), (plan.group, 1), *values)

    def least(call):
        times = []
        for _ in range(200):
            start = time.perf_counter()
            for _ in range(20):
                call()
            times.append((time.perf_counter() - start) / 20)
            queue.finish()
        return float(np.median(times)) * 1e6

    return {"call_us": least(lambda: cla.gemm(A, B, C)), "enqueue_us": least(enqueue)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", help="JSON file for the results")
    parser.add_argument("--quick", action="store_true", help="double precision and few sizes only")
    parser.add_argument("--only", help="rows whose name begins so")
    args = parser.parse_args()
    if cupy is None:
        parser.exit(2, "gpu_peers.py needs CuPy and PyTorch\n")
    device = next(d for d in devices() if "NVIDIA" in d.platform.name)
    f, d, z = np.float32, np.float64, np.complex128
    squares, blocks = (SQUARES[:2], BLOCKS[:1]) if args.quick else (SQUARES, BLOCKS)
    with tune.Tuner(device, builders=0) as tuner:
        print(f"{device.name.strip()}, driver {device.driver_version}: a copy moves {tuner.copy / 1e9:.0f} GB/s")
        report = Report(tuner, args.only)
        for n in squares:
            report.ours("gemm", problems.Gemm, (n, n, n), d, peers=lambda nm, n=n: peers_gemm(n, nm, d, False))
            report.ours("gemm -=", problems.GemmUpdate, (n, n, n), d, peers=lambda nm, n=n: peers_gemm(n, nm, d, True))
            report.ours("getrfnp", problems.Getrfnp, (n, n), d, peers=lambda nm, n=n: peers_getrf(n, nm, d))
            report.ours("trsm LLNU", TrsmLower, (n, n), d, peers=lambda nm, n=n: peers_trsm(n, nm, d, False))
            report.ours("trsm LUNN", problems.Trsm, (n, n), d, peers=lambda nm, n=n: peers_trsm(n, nm, d, True))
            report.ours("trsm RUNN", TrsmRight, (n, n), d)
            report.ours("trsm RLTU", TrsmRightLower, (n, n), d)
        for b in blocks:
            lines = 16384 if b <= 6 else 4096
            loop = dict(peers_lines(b, lines, problems.BLOCKS_A_LINE, d)) if not args.only else None
            for name, problem, size in (("factor", problems.Factor, (b,)), ("solve", problems.Solve, (b, 1))):
                peers = loop and (lambda nm, seconds=loop[name]: [("cublas loop", seconds)])
                report.ours(name, problem, size, d, peers=peers)
            report.ours("solve", problems.Solve, (b, 8), d)
        for lines in (512, 64, 32) if not args.quick else ():
            problems.FEW_LINES = lines
            for b in blocks:
                report.ours(f"factor {lines}", problems.FactorFew, (b,), d)
                report.ours(f"solve {lines}", problems.SolveFew, (b, 1), d)
        for n in squares:
            report.ours("pack", problems.PackBatch, (n, n), d)
            report.ours("unpack", problems.UnpackBatch, (n, n), d)
        if not args.quick:
            for n in SQUARES:
                report.ours("gemm", problems.Gemm, (n, n, n), f, peers=lambda nm, n=n: peers_gemm(n, nm, f, False))
                report.ours("getrfnp", problems.Getrfnp, (n, n), f, peers=lambda nm, n=n: peers_getrf(n, nm, f))
                report.ours("trsm LLNU", TrsmLower, (n, n), f, peers=lambda nm, n=n: peers_trsm(n, nm, f, False))
                report.ours("trsm LUNN", problems.Trsm, (n, n), f, peers=lambda nm, n=n: peers_trsm(n, nm, f, True))
                report.ours("gemm", problems.Gemm, (n, n, n), z)
            for b in BLOCKS:
                report.ours("factor", problems.Factor, (b,), f)
                report.ours("solve", problems.Solve, (b, 1), f)
            for n in (24, 32):
                report.ours("gemm V=8", problems.Gemm, (n, n, n), d, vlen=8)
        overhead = call_overhead(device)
        print("call overhead", {name: round(value, 2) for name, value in overhead.items()})
    if args.out:
        about = {"device": device.name.strip(), "driver": device.driver_version, "host": platform.platform()}
        versions = {"cupy": cupy.__version__, "torch": torch.__version__, "pyopencl": cl.VERSION_TEXT}
        with open(args.out, "w") as file:
            json.dump({**about, "versions": versions, "copy_gb_s": tuner.copy / 1e9, "overhead": overhead,
                       "rows": report.rows}, file, indent=1)  # fmt: skip


if __name__ == "__main__":
    main()
