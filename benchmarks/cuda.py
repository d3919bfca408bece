"""The work of a case by cuBLAS, through CuPy, and by PyTorch, on a CUDA GPU: each in the layout of its own.

For a routine NAME that has a row these are the functions ``torch_NAME``, of operands as tensors, and ``cupy_NAME``, of
operands by columns, both with the routine's options. They return a call: PyTorch's return what the routine leaves in
its main operand, or a tuple of all operands in the order of the row; those of cuBLAS leave it in the last operand.
"""

import ctypes
import re
from pathlib import Path

import numpy as np

try:
    import cupy
    import torch
except ImportError:  # asv imports all files here
    cupy = torch = None

NO_TRANS, LEFT, RIGHT, LOWER, UPPER, NON_UNIT, UNIT = 0, 0, 1, 0, 1, 0, 1
SCALARS = {"f": ctypes.c_float, "d": ctypes.c_double, "F": ctypes.c_float * 2, "D": ctypes.c_double * 2}


class Cublas:
    """cuBLAS's batched calls on a stream, by their names without type; CuPy's own refuse to be captured in a graph."""

    def __init__(self, dtype, stream=None):
        cupy.cuda.device.get_cublas_handle()  # loads the library
        self.library = ctypes.CDLL(re.search(r"/\S*libcublas\.so\S*", Path("/proc/self/maps").read_text()).group())
        self.char = np.dtype(dtype).char
        self.handle = ctypes.c_void_p()
        self.call("cublasCreate_v2", ctypes.byref(self.handle))
        if stream is not None:
            self.call("cublasSetStream_v2", self.handle, ctypes.c_void_p(stream.ptr))

    def call(self, name, *args):
        status = getattr(self.library, name)(*args)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    def __getattr__(self, name):
        letter = {"f": "S", "d": "D", "F": "C", "D": "Z"}[self.char]

        def routine(*args):
            self.call(f"cublas{letter}{name}", self.handle, *map(self.argument, args))

        return routine

    def argument(self, x):
        if isinstance(x, cupy.ndarray):
            return ctypes.c_void_p(x.data.ptr)
        if isinstance(x, float):
            parts = (x, 0.0) if self.char in "FD" else (x,)
            return ctypes.byref(SCALARS[self.char](*parts))
        return x


def by_columns(a):
    """A copy on the device with every matrix in the order of columns, as in BLAS."""
    return cupy.ascontiguousarray(cupy.asarray(a).swapaxes(-1, -2))


def by_rows(a):
    return cupy.asnumpy(a.swapaxes(-1, -2))


def pointers(a):
    """Addresses of the matrices of an array, one row for each leading index."""
    count = int(np.prod(a.shape[:-2]))
    step = a.shape[-1] * a.shape[-2] * a.itemsize
    return (a.data.ptr + step * cupy.arange(count, dtype=cupy.int64)).reshape(a.shape[:-2])


def torch_gemm(a, b, c, beta, **options):
    return lambda: torch.baddbmm(c, a, b, out=c) if beta else torch.bmm(a, b, out=c)


def torch_trsm(a, b, **options):
    return lambda: torch.linalg.solve_triangular(a, b, upper=False, out=b)


def torch_getrfnp(a):
    return lambda: torch.linalg.lu_factor_ex(a, pivot=False).LU


def torch_potrf(a, **options):
    return lambda: torch.linalg.cholesky_ex(a).L


def torch_potrs(a, b, **options):
    return lambda: torch.cholesky_solve(b, a)


def torch_posv(a, b, **options):
    return lambda: torch.cholesky_solve(b, torch.linalg.cholesky_ex(a).L)


def torch_getrf(a, **options):
    def call():
        LU, pivots, _ = torch.linalg.lu_factor_ex(a)
        return LU, pivots - 1

    return call


def torch_gesv(a, b):
    return lambda: torch.linalg.solve_ex(a, b).result


def torch_getrs(a, ipiv, b, **options):
    pivots = ipiv[:, :, 0].int() + 1
    return lambda: torch.linalg.lu_solve(a, pivots, b)


def torch_geqrf(a):
    return lambda: torch.geqrf(a)


def torch_ormqr(a, tau, c, **options):
    return lambda: torch.ormqr(a, tau[:, :, 0], c)


def torch_syev(a, **options):
    def call():
        w, V = torch.linalg.eigh(a)
        return V, w

    return call


def torch_gesvd(a, **options):
    return lambda: (a, *torch.linalg.svd(a, full_matrices=False))


def cupy_gemm(a, b, c, beta, **options):
    blas, n = Cublas(a.dtype), a.shape[-1]
    step = ctypes.c_longlong(n * n)
    operands = a, n, step, b, n, step, float(beta), c, n, step
    return lambda: blas.gemmStridedBatched(NO_TRANS, NO_TRANS, n, n, n, 1.0, *operands, len(c))


def cupy_trsm(a, b, **options):
    blas, n, pa, pb = Cublas(a.dtype), a.shape[-1], pointers(a), pointers(b)
    return lambda: blas.trsmBatched(LEFT, LOWER, NO_TRANS, NON_UNIT, n, n, 1.0, pa, n, pb, n, len(b))


def cupy_getrfnp(a):
    blas, n, pa, info = Cublas(a.dtype), a.shape[-1], pointers(a), cupy.zeros(len(a), cupy.int32)
    return lambda: blas.getrfBatched(n, pa, n, None, info, len(a))


def cupy_potrf(a, **options):
    from cupy_backends.cuda.libs import cusolver

    factor = getattr(cusolver, {"f": "s", "d": "d", "F": "c", "D": "z"}[a.dtype.char] + "potrfBatched")
    handle, n, pa, info = cupy.cuda.device.get_cusolver_handle(), a.shape[-1], pointers(a), cupy.zeros(len(a), "i")
    return lambda: factor(handle, LOWER, n, pa.data.ptr, n, info.data.ptr, len(a))


class Lines:
    """Loops of cuBLAS's batched calls over the block rows of lines, each captured as a CUDA graph."""

    def __init__(self, case, lower, diag, upper, rhs):
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.blas, self.b, self.nrhs = Cublas(case.dtype, self.stream), case.n, case.nrhs
        self.operands = [by_columns(np.ascontiguousarray(a.swapaxes(0, 1))) for a in (lower, diag, upper, rhs)]
        self.E, self.D, self.F, self.x = map(pointers, self.operands)
        self.info = cupy.zeros(len(diag), cupy.int32)
        cupy.cuda.get_current_stream().synchronize()

    def gemm(self, A, B, C, n):
        self.blas.gemmBatched(
            NO_TRANS, NO_TRANS, self.b, n, self.b, -1.0, A, self.b, B, self.b, 1.0, C, self.b, len(self.info)
        )

    def trsm(self, side, uplo, diag, A, B, n):
        self.blas.trsmBatched(side, uplo, NO_TRANS, diag, self.b, n, 1.0, A, self.b, B, self.b, len(self.info))

    def factor(self):
        for k in range(len(self.D)):
            self.blas.getrfBatched(self.b, self.D[k], self.b, None, self.info, len(self.info))
            if k < len(self.D) - 1:
                self.trsm(LEFT, LOWER, UNIT, self.D[k], self.F[k], self.b)
                self.trsm(RIGHT, UPPER, NON_UNIT, self.D[k], self.E[k], self.b)
                self.gemm(self.E[k], self.F[k], self.D[k + 1], self.b)

    def solve(self):
        for k in range(len(self.D)):
            if k:
                self.gemm(self.E[k - 1], self.x[k - 1], self.x[k], self.nrhs)
            self.trsm(LEFT, LOWER, UNIT, self.D[k], self.x[k], self.nrhs)
        for k in reversed(range(len(self.D))):
            if k < len(self.D) - 1:
                self.gemm(self.F[k], self.x[k + 1], self.x[k], self.nrhs)
            self.trsm(LEFT, UPPER, NON_UNIT, self.D[k], self.x[k], self.nrhs)

    def graph(self, loop):
        """The loop as one launch; cuBLAS loads its kernels in a first round, outside of it."""
        loop()
        self.stream.synchronize()
        with self.stream:
            self.stream.begin_capture()
            loop()
            graph = self.stream.end_capture()
        return lambda: (graph.launch(self.stream), self.stream.synchronize())

    def solution(self):
        self.factor()
        self.solve()
        self.stream.synchronize()
        return by_rows(self.operands[3]).swapaxes(0, 1)


def cupy_lines(case):
    """Timed on identities, which are their own factors and leave x alone."""
    diag = np.broadcast_to(np.eye(case.n, dtype=case.dtype), case.diag.shape)
    timed = Lines(case, np.zeros_like(case.lower), diag, np.zeros_like(case.upper), case.rhs)
    checked = Lines(case, *(a[-case.DISTINCT :] for a in (case.lower, case.diag, case.upper, case.rhs)))
    return timed.graph(getattr(timed, case.routine)), lambda: case.error(checked.solution())


def torch_prepared(prepare, operands, options):
    """A call of PyTorch's, and the same with its results in arrays (nm, rows, columns)."""
    call = prepare(*(torch.from_dlpack(cupy.asarray(a)) for a in operands), **options)

    def results():
        found = call()
        if not isinstance(found, tuple):
            return found.cpu().numpy()
        return [x.cpu().numpy().reshape(*x.shape, *[1][: 3 - x.ndim]) for x in found]

    return call, results


def cupy_prepared(prepare, operands, options):
    """A call of cuBLAS's, and the same with its result."""
    arrays = [by_columns(a) for a in operands]
    call = prepare(*arrays, **options)

    def result(arrays=arrays):  # which live as long as their addresses are used
        call()
        return by_rows(arrays[-1])

    return call, result


def has(library, routine) -> bool:
    """Whether a library, "cupy" or "torch", has a routine that has a row."""
    return f"{library}_{routine}" in globals()


def call(library, case):
    """A call of a library that solves a case, to its end, and a function that returns its residual."""
    if case.routine in ("factor", "solve"):
        return cupy_lines(case)
    prepared, prepare = globals()[f"{library}_prepared"], globals()[f"{library}_{case.routine}"]
    timed, result = prepared(prepare, case.repeatable, case.options)

    def run(keep=result):
        timed()
        torch.cuda.synchronize()

    def residual():
        found = prepared(prepare, case.operands, case.options)[1]()
        return case.error_of(found) if isinstance(found, list) else case.error(found)

    return run, residual
