"""Batched routines and lines of blocks on a CUDA GPU, beside cuBLAS (through CuPy) and PyTorch in the same run.

    python -m benchmarks.gpu_peers [--out results.json] [--quick] [--only NAME]

Times are of the device's clock, medians of 10 calls. `fraction` is the bandwidth that the bytes that must move make of
a time, over that of the best copy kernel. Peers get their own layout, one matrix after the other, and do the same work;
loops of cuBLAS's batched calls over block rows run as CUDA graphs.
"""

import argparse
import json
import platform
import time

import numpy as np
import pyopencl as cl

import compactla as cla
from compactla.gpu import launch, problems, run, tune
from compactla.gpu.devices import devices

from .cuda import cuda_seconds, cupy, peers_gemm, peers_getrf, peers_lines, peers_trsm, torch

SQUARES = [3, 5, 8, 9, 10, 15, 16, 24, 32]
BLOCKS = [3, 5, 9, 10, 15]


class TrsmLower(problems.Trsm):
    options = ("L", "L", "N", "U")


class TrsmRight(problems.Trsm):
    options = ("R", "U", "N", "N")


class TrsmRightLower(problems.Trsm):
    options = ("R", "L", "T", "U")


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
    key = next(key for key in launch.plans() if key[0] == context and key[1] == "gemm")
    plan = launch.plans()[key]
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
                report.ours(name, problem, size, d, peers=peers or ())
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
