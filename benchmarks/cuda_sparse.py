"""Batches of sparse matrices of one pattern on an NVIDIA GPU, against copies, cuSPARSE and dense solves.

``python -m benchmarks.cuda_sparse`` prints nanoseconds for a matrix by the device's clock, and which part that is of
the speed of a copy of what has to be read and written: by a product values and two vectors; by factors values and what
becomes of them, while `info` comes to the host; by solutions these and two vectors; by a step of CG, BiCGSTAB or GMRES,
of which a matrix takes `iterations`, values for each product, and the vectors that the method has in it. Peers have the
nearest that there is: cuSPARSE's product, and CuPy's CG with it, of one matrix that has all others on its diagonal,
which it reads the places of as well; and PyTorch's products and solutions of dense matrices.
"""

import argparse
import time

import numpy as np

import compactla as cla
from compactla.examples import batches

from .cuda_clock import cuda_seconds

try:
    import cupy
    import cupyx.scipy.sparse
    import cupyx.scipy.sparse.linalg
    import torch
except ImportError:  # asv imports all files here
    cupy = torch = None

FEW = 500  # different matrices, which are repeated
BATCHES = {  # and how many there are then
    "hydrogen": (lambda: batches.hydrogen(FEW), 400_000),
    "larger": (lambda: batches.larger(FEW), 40_000),
    "five-point": (lambda: batches.five_point(FEW, 12, 12), 40_000),
}
GOAL = 1e-8
MOST = 2**31  # bytes of dense matrices
VECTORS = {"cg": (1, 10), "bicgstab": (2, 18), "gmres": (1, 12)}  # products in a step, and vectors that it moves
TIMES, CALLS = 3, 5  # calls in a row hide what the host does


def copy_speed():
    """Bytes a second that a copy reads and writes."""
    a = torch.empty(2**29, dtype=torch.float64, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.nbytes / min(cuda_seconds(lambda: b.copy_(a), TIMES) for _ in range(TIMES))


def seconds(call):
    """Time of a call, the least of a few rows of calls."""
    call()
    return min(cuda_seconds(call, CALLS) for _ in range(TIMES))


def ours(data, indices, indptr, b):
    """Names, calls, numbers of a matrix that have to be moved, and the part of the matrices that a call takes."""
    A, n, nnz = cla.BatchCSR((data, indices, indptr)), b.shape[1], len(indices)
    F = cla.BatchLU(A)
    F.factor()
    factors = F.nnz
    yield "product", lambda: A @ b, nnz + 2 * n, 1
    yield "factor", F.factor, nnz + factors, 1
    yield "solve", lambda: F.solve(b), factors + 2 * n, 1
    M = cla.krylov.ILU0(A)
    definite = n == 144
    for method in ("cg", "bicgstab", "gmres") if definite else ("bicgstab", "gmres"):
        solver = getattr(cla.krylov, method)
        for name, chosen in (("", None), (" with ILU0", M)):
            report = solver(A, b, rtol=GOAL, M=chosen)[1]
            steps = float(np.mean(np.asarray(report.iterations)))
            products, vectors = VECTORS[method]
            numbers = steps * (products * (nnz + (nnz if chosen else 0)) + vectors * n)
            label = f"{method}{name}, {steps:.1f} iterations"
            yield label, lambda solver=solver, chosen=chosen: solver(A, b, rtol=GOAL, M=chosen), numbers, 1


def peers(data, indices, indptr, b):
    """Likewise, of other libraries."""
    (nm, nnz), n = data.shape, b.shape[1]
    all_indices = (cupy.arange(nm, dtype=np.int32)[:, None] * n + cupy.asarray(indices, np.int32)).ravel()
    ends = cupy.arange(nm, dtype=np.int32)[:, None] * nnz + cupy.asarray(indptr[:-1], np.int32)
    all_ends = cupy.append(ends.ravel(), np.int32(nm * nnz))
    whole = cupyx.scipy.sparse.csr_matrix((cupy.asarray(data).ravel(), all_indices, all_ends), (nm * n, nm * n))
    x = cupy.asarray(b).ravel()
    yield "product: cuSPARSE", lambda: whole @ x, nnz + 2 * n, 1
    count = min(nm, MOST // (8 * n * n))
    rows = np.repeat(np.arange(n), np.diff(indptr))
    dense = torch.zeros(count, n, n, dtype=data.dtype, device="cuda")
    dense[:, torch.from_numpy(rows).cuda(), torch.from_numpy(np.asarray(indices, np.int64)).cuda()] = data[:count]
    part = count / nm
    yield "product: dense, torch", lambda: torch.bmm(dense, b[:count, :, None]), nnz + 2 * n, part
    yield "factor, solve: dense, torch", lambda: torch.linalg.solve(dense, b[:count]), nnz + 2 * n, part
    if n == 144:
        found = [0]

        def cg():
            found[0] = 0
            cupyx.scipy.sparse.linalg.cg(whole, x, rtol=GOAL, callback=lambda _: found.__setitem__(0, found[0] + 1))

        cg()
        products, vectors = VECTORS["cg"]
        yield f"cg: CuPy, {found[0]} iterations", cg, found[0] * (products * nnz + vectors * n), 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="nothing more is begun after so many")
    options = parser.parse_args()
    end, speed = time.monotonic() + options.seconds, copy_speed()
    print(f"{torch.cuda.get_device_name()}: copy {speed * 1e-9:.0f} GB/s")
    for name, (make, count) in BATCHES.items():
        few, indices, indptr = make()
        data, n = torch.from_numpy(np.resize(few, (count, few.shape[1]))).cuda(), len(indptr) - 1
        b = torch.randn(count, n, dtype=torch.float64, device="cuda")
        print(f"{name}: {count} matrices, {n} rows, {len(indices)} elements")
        with cupy.cuda.Stream.from_external(torch.cuda.current_stream()):
            for part in (ours, peers):
                try:
                    for label, call, numbers, used in part(data, indices, indptr, b):
                        if time.monotonic() > end:
                            print("out of time")
                            return
                        taken = seconds(call) / (count * used)
                        share = 8 * numbers / speed / taken
                        print(f"  {label:34}{1e9 * taken:10.2f} ns {share:6.2f} of copy", flush=True)
                except Exception as trouble:  # one that fails shouldn't cost the others
                    print(f"  {type(trouble).__name__}: {str(trouble)[:200]}", flush=True)


if __name__ == "__main__":
    main()
