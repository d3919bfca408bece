"""The work of a case by cuBLAS, through CuPy, and by PyTorch, on a CUDA GPU: each in the layout of its own.

A function of `ROUTINES` makes, of operands in the shape that NumPy has them, a call that works on them in place, and
says where the result is.
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
    """On the device, every matrix in the order of columns, as BLAS has them."""
    return cupy.ascontiguousarray(cupy.asarray(a).swapaxes(-1, -2))


def by_rows(a):
    return cupy.asnumpy(a.swapaxes(-1, -2))


def pointers(a):
    """Addresses of the matrices of an array, one row for each leading index."""
    count = int(np.prod(a.shape[:-2]))
    step = a.shape[-1] * a.shape[-2] * a.itemsize
    return (a.data.ptr + step * cupy.arange(count, dtype=cupy.int64)).reshape(a.shape[:-2])


def torch_gemm(case, a, b, c):
    a, b, c = (torch.from_dlpack(cupy.asarray(x)) for x in (a, b, c))
    if case.beta:
        return lambda: torch.baddbmm(c, a, b, out=c), lambda: c.cpu().numpy()
    return lambda: torch.bmm(a, b, out=c), lambda: c.cpu().numpy()


def torch_trsm(case, a, b):
    a, b = (torch.from_dlpack(cupy.asarray(x)) for x in (a, b))
    return lambda: torch.linalg.solve_triangular(a, b, upper=False, out=b), lambda: b.cpu().numpy()


def torch_getrfnp(case, a):
    a = torch.from_dlpack(cupy.asarray(a))

    def factor():
        return torch.linalg.lu_factor_ex(a, pivot=False)

    return factor, lambda: factor().LU.cpu().numpy()


def cublas_gemm(case, a, b, c):
    blas, n = Cublas(case.dtype), case.n
    a, b, c = map(by_columns, (a, b, c))
    step = ctypes.c_longlong(n * n)

    def call():
        blas.gemmStridedBatched(
            NO_TRANS, NO_TRANS, n, n, n, 1.0, a, n, step, b, n, step, float(case.beta), c, n, step, len(c)
        )

    return call, lambda: by_rows(c)


def cublas_trsm(case, a, b):
    blas, n = Cublas(case.dtype), case.n
    a, b = map(by_columns, (a, b))
    pa, pb = pointers(a), pointers(b)

    def call(operands=(a, b)):  # which live as long as their addresses are used
        blas.trsmBatched(LEFT, LOWER, NO_TRANS, NON_UNIT, n, n, 1.0, pa, n, pb, n, len(b))

    return call, lambda: by_rows(b)


def cublas_getrfnp(case, a):
    blas, n, a = Cublas(case.dtype), case.n, by_columns(a)
    pa, info = pointers(a), cupy.zeros(len(a), cupy.int32)
    return lambda: blas.getrfBatched(n, pa, n, None, info, len(a)), lambda: by_rows(a)


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


def cublas_lines(case):
    """Timed on identities, which are their own factors and leave x alone."""
    diag = np.broadcast_to(np.eye(case.n, dtype=case.dtype), case.diag.shape)
    timed = Lines(case, np.zeros_like(case.lower), diag, np.zeros_like(case.upper), case.rhs)
    checked = Lines(case, *(a[-case.DIFFERENT :] for a in (case.lower, case.diag, case.upper, case.rhs)))
    return timed.graph(getattr(timed, case.routine)), lambda: case.error(checked.solution())


def batched(make, timed, checked):
    """The call on operands that it maps to themselves, and the residual of one call on general operands."""

    def call_and_residual(case):
        call, _ = make(case, *timed(case))

        def run():
            call()
            torch.cuda.synchronize()

        def residual():
            once, result = make(case, *checked(case))
            once()
            return case.error(result())

        return run, residual

    return call_and_residual


def gemm_operands(case):
    return case.a, case.b, case.c


ROUTINES = {
    ("torch", "gemm"): batched(torch_gemm, gemm_operands, gemm_operands),
    ("cupy", "gemm"): batched(cublas_gemm, gemm_operands, gemm_operands),
    ("torch", "trsm"): batched(torch_trsm, lambda case: (case.repeatable(), case.b), lambda case: (case.a, case.b)),
    ("cupy", "trsm"): batched(cublas_trsm, lambda case: (case.repeatable(), case.b), lambda case: (case.a, case.b)),
    ("torch", "getrfnp"): batched(torch_getrfnp, lambda case: (case.a,), lambda case: (case.a,)),
    ("cupy", "getrfnp"): batched(cublas_getrfnp, lambda case: (case.repeatable(),), lambda case: (case.a,)),
    ("cupy", "factor"): cublas_lines,
    ("cupy", "solve"): cublas_lines,
}


def call(library, case):
    """What a library does for a case, to its end, and how wrong that is."""
    return ROUTINES[library, case.routine](case)
