"""The CPU's kernels in loops of compiled code, in one thread: those that the routines pick, and a user's own."""

import functools

import numba
import numpy as np

import compactla as cla
from compactla.bench import cases
from compactla.calls.recording import Recording
from compactla.cpu import gemm, getrfnp, matrix, run, trsm


def rounds_of(case):
    """``rounds_of(case)(count)`` is a call that runs the case's kernel over the batch so often, in compiled code."""
    kernel, args, memory = launched(case)
    loop = loop_of(kernel)

    def calls(rounds, memory=memory):
        return lambda: loop(rounds, *args)

    return calls


def launched(case):
    """The kernel that a call of the case runs, its arguments, and the views that own the memory of what a call makes.

    The call is recorded, but for the kernel.
    """
    noted, recording = [], Recording(1)

    def note(kernel, cost, args, threads):
        noted[:] = kernel, args

    share, run.share = run.share, note
    try:
        case.bound(threads=recording)
    finally:
        run.share = share
    return *noted, recording.kept


@functools.cache
def loop_of(kernel):
    @numba.njit(nogil=True)
    def loop(rounds, *args):
        for _ in range(rounds):
            kernel(*args)

    return loop


class OwnFactor(cases.Factor):
    """LU of the lines in one thread, as users write it in a loop of their own: `written_out`"""

    def call(self):
        return self.factor_with(self.T)

    def factor_with(self, T):
        factor, npack, V = written_out(T.vlen, self.n), -(-self.nm // T.vlen), T.vlen
        info = np.zeros((npack, V), np.int64)
        factor(*(a.reshape(npack, -1, *a.shape[1:]) for a in (T.lower, T.diag, T.upper)), info)
        return info.reshape(-1)[: self.nm]

    def factored(self):
        T = cla.BlockTridiag(self.lower, self.diag, self.upper)
        T.info = self.factor_with(T)
        return T


@functools.cache
def written_out(V, b):
    """A user's block tridiagonal LU, for arrays (npack, K, b, b, V), or (npack, K, b, b, 2, V) of complex numbers."""

    @numba.njit(nogil=True)
    def factor(lower, diag, upper, info):
        last = diag.shape[1] - 1
        for p in range(diag.shape[0]):
            for k in range(last + 1):
                D, j = matrix(diag[p, k], V, b, b), min(k, last - 1)
                if k > 0:
                    E, F = matrix(lower[p, k - 1], V, b, b), matrix(upper[p, k - 1], V, b, b)
                    after = matrix(diag[p, min(k + 1, last)], V, b, b), matrix(lower[p, j], V, b, b)
                    gemm(E, F, D, -1, 1, (*after, matrix(upper[p, j], V, b, b)))
                getrfnp(D, info[p], k * b, "R")
                if k < last:
                    F = matrix(upper[p, k], V, b, b)
                    trsm(D, F, "L", "L", "N", "U")
                    trsm(D, F, "L", "U", "N", "R")

    return factor
