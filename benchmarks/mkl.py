"""Intel MKL's compact routines through ctypes: from the package `mkl`, or from a library that is given."""

import ctypes
import functools
import itertools
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np

import compactla as cla
from compactla import routine
from compactla.bench.timing import best
from compactla.cpu.arrays import empty
from compactla.cpu.emit.machine import machine
from compactla.dtypes import DTYPES
from compactla.oracle import THRESHOLD

from .peers import PEERS, Peers

REGISTERS = {"SSE": (181, 16), "AVX": (182, 32), "AVX512": (183, 64)}  # MKL's number, bytes of a vector
LETTER = {dtype: letter for letter, dtype in DTYPES.items()}
ROW = 101
OPTIONS = {
    "side": {"L": 141, "R": 142},
    "uplo": {"U": 121, "L": 122},
    "trans": {"N": 111, "T": 112, "C": 113},
    "diag": {"N": 131, "U": 132},
}
SEQUENTIAL = 1
BLOCKS = 4096  # of a line, above which its calls, four for each, would take minutes to make
SLACK = 2**16  # bytes behind every array: trsm of MKL 2026.2 writes past the end of B


class Library(NamedTuple):
    functions: ctypes.CDLL
    version: str


@functools.cache
def load(path=None) -> Library | None:
    """MKL from its package, if that is installed, or from the file of its runtime library, ``libmkl_rt``."""
    if path is None:
        try:
            found = next(f for f in metadata.files("mkl") or () if f.name.startswith(("libmkl_rt", "mkl_rt")))
        except (metadata.PackageNotFoundError, StopIteration):
            return None
        path = found.locate()
    if llvmlite.binding.get_host_cpu_name().startswith("znver"):
        # MKL up to 2020.0 has its fast kernels on processors of AMD only if told to; later ones never have.
        os.environ.setdefault("MKL_DEBUG_CPU_TYPE", "7" if machine()[0] == 64 else "5")
    text = ctypes.create_string_buffer(200)
    try:
        functions = ctypes.CDLL(str(path))
        functions.MKL_Set_Threading_Layer(SEQUENTIAL)
        functions.mkl_get_version_string(text, len(text))
    except (OSError, AttributeError) as error:
        raise OSError(f"{path} cannot be used as the runtime library of MKL, libmkl_rt: {error}") from error
    version = re.search(r"Version (\d[\d.]*)", text.value.decode())
    return Library(functions, version[1] if version else "of unknown version")


def has(name) -> bool:
    """Whether MKL has a routine that does the work of a case of this name."""
    return name in OTHERS or bool(PEERS.get(name, Peers()).compact)


def suits(case) -> bool:
    """Whether MKL does that work, and in few enough calls."""
    return has(case.routine) and not (OTHERS.get(case.routine) is lines and case.diag.shape[1] > BLOCKS)


def candidates(case, library, threads):
    """Name, call and residual of MKL in each of its formats whose vectors this processor has."""
    for form, (_, nbytes) in REGISTERS.items():
        if nbytes <= machine()[0]:
            compact = Compact(library, case.dtype, form, threads)
            yield f"MKL {library.version} {form}", *OTHERS.get(case.routine, dense)(case, compact)


def fastest(case, library, threads):
    """The fastest of the candidates on this machine, among those that are right if some are.

    With columns that do not come in fours trsm of MKL 2026.2 is wrong in real numbers, in the smaller formats.
    """

    def rank(candidate):
        _, call, residual = candidate
        return not residual() < THRESHOLD, best(call, least=2)

    return min(candidates(case, library, threads), key=rank)


def fastest_in_cache(case, library):
    """Name of the fastest, a function of a number of rounds that calls it within compiled code, and its residual."""
    name, call, residual = fastest(case, library, 1)
    loop = compiled_loop(call)
    return name, lambda rounds: lambda: loop(rounds, *(x.value for x in call.args)), residual


class Compact:
    """MKL's routines for one type and format; all operands are arrays (npack, m, n, V) or (npack, m, n, 2, V).

    Each method prepares a call, which has no arguments then.
    """

    def __init__(self, library, dtype, form, threads):
        self.functions, self.dtype, self.threads = library.functions, np.dtype(dtype), threads
        self.real = np.finfo(dtype).dtype
        self.number, nbytes = REGISTERS[form]
        self.vlen = nbytes // self.real.itemsize

    def prepare(self, name, *args, nm):
        """The function, bound to its arguments as ctypes has them."""
        function = getattr(self.functions, f"mkl_{LETTER[self.dtype]}{name}_compact")
        known = (ctypes.c_int(x) if isinstance(x, int) else x for x in (ROW, *args, self.number, nm))
        return functools.partial(function, *known)

    def batch(self, data):
        return len(data) * self.vlen

    def option(self, name, letter):
        if letter == "C" and self.dtype.kind == "f":
            letter = "T"  # mkl_dtrsm_compact of 2026.2 does not solve with MKL_CONJTRANS
        return OPTIONS["trans" if name.startswith("trans") else name][letter]

    def scalar(self, x):
        """Real numbers go by value, complex ones by address."""
        by_value = {"f": ctypes.c_float, "d": ctypes.c_double}.get(self.dtype.char)
        return by_value(x) if by_value else pointer(np.array(x, self.dtype))

    def dense(self, name, *operands, **given):
        """A routine that has a row; its scalars are 1 where none are given."""
        row = routine.named(name)
        values = dict.fromkeys(row.scalars, 1) | given
        arrays = {A.name: a for A, a in zip(row.inputs, operands, strict=True)}
        args, made = [], {}
        for word in PEERS[name].compact.split():
            if word in arrays:
                args += pointer(arrays[word]), arrays[word].shape[2]
            elif any(A.output and A.name == word for A in row.operands):  # a column: it has no leading dimension
                shape = self.batch(operands[-1]), min(operands[-1].shape[1:3]), 1
                made[word] = self.packed(np.zeros(shape, self.dtype))
                args.append(pointer(made[word]))
            elif word in row.options:
                args.append(self.option(word, values[word]))
            elif word in row.scalars:
                args.append(self.scalar(values[word]))
            elif word == "work":  # a pack is room enough
                work = np.empty_like(operands[-1][0])
                args += pointer(work), work.size
            elif word == "info":
                args.append(pointer(np.zeros(1, np.int32)))
            else:
                args.append(size(row, word, operands, values))
        call = self.prepare(name, *args, nm=self.batch(operands[-1]))
        call.made = made
        return call

    def gepack(self, a, A):
        return self.transfer("gepack", a, A)

    def geunpack(self, a, A):
        return self.transfer("geunpack", a, A)

    def transfer(self, name, a, A):
        m, n = a.shape[1:]
        addresses = a.ctypes.data + np.arange(len(a), dtype=np.int64) * a.strides[0]
        call = self.prepare(name, m, n, pointer(addresses), n, pointer(A), n, nm=len(a))
        call.matrices = a  # which addresses do not keep
        return call

    def packed(self, a):
        """A pack of its own, which may be written past its end."""
        return roomy(cla.pack(a, vlen=self.vlen).data)


def size(row, letter, operands, values):
    """The size that a letter stands for, of arrays (npack, m, n, ...) as MKL takes them."""
    for A, a in zip(reversed(row.inputs), reversed(operands), strict=True):
        if letter in A.sizes:
            transposed = values.get(f"trans{A.name.lower()}", "N") != "N"
            return a.shape[1 + (A.sizes.index(letter) ^ transposed)]
    raise ValueError(f"{letter} is no size of {row.name}")


def pointer(a):
    """The address of an array, which lives as long as this."""
    return a.ctypes.data_as(ctypes.c_void_p)


def roomy(a):
    """A copy of an array that may be written past its end."""
    slack = SLACK // a.itemsize
    copy = empty((a.size + slack,), a.dtype, None)[: a.size].reshape(a.shape)
    copy[...] = a
    return copy


def compiled_loop(call):
    """A compiled loop around the function of a prepared call: ``loop(rounds, *values)`` with those of its arguments."""
    kinds = [ctypes.c_size_t if isinstance(x, ctypes.c_void_p) else type(x) for x in call.args]
    function = ctypes.CFUNCTYPE(None, *kinds)(ctypes.cast(call.func, ctypes.c_void_p).value)

    @numba.njit(nogil=True)
    def loop(rounds, *args):
        for _ in range(rounds):
            function(*args)

    return loop


# The routines of `cases`, on packs that are there already: a call, and its residual.


def shared_out(compact, npack, prepare):
    """A call of what ``prepare(lo, hi)`` prepares, for a range of packs in each thread, as this package shares out."""
    threads = min(compact.threads, npack)
    bounds = [npack * t // threads for t in range(threads + 1)]
    calls = [prepare(lo, hi) for lo, hi in itertools.pairwise(bounds)]
    if threads == 1:
        return calls[0]
    workers = ThreadPoolExecutor(threads)
    return lambda: list(workers.map(lambda call: call(), calls))


def dense(case, compact):
    timed = [compact.packed(a) for a in case.repeatable]

    def prepare(lo, hi):
        return compact.dense(case.routine, *(A[lo:hi] for A in timed), **case.options)

    def residual():
        operands = [compact.packed(a) for a in case.operands]
        call = compact.dense(case.routine, *operands, **case.options)
        call()
        return case.error_of(unpacked(case.row, operands, call, case.nm))

    return shared_out(compact, len(timed[0]), prepare), residual


def unpacked(row, operands, call, nm):
    """All operands after a call of `Compact.dense`, as arrays (nm, rows, columns)."""
    given = iter(operands)
    data = [call.made[A.name] if A.output else next(given) for A in row.operands]
    return [cla.Pack(a, nm).unpack() for a in data]


def pack(case, compact):
    A, V = compact.packed(np.zeros_like(case.a)), compact.vlen

    def residual():
        compact.gepack(case.a, A)()
        return case.error(cla.Pack(A, case.nm).unpack())

    return shared_out(compact, len(A), lambda lo, hi: compact.gepack(case.a[lo * V : hi * V], A[lo:hi])), residual


def unpack(case, compact):
    A, a, V = compact.packed(case.a), roomy(np.zeros_like(case.a)), compact.vlen

    def residual():
        compact.geunpack(a, A)()
        return case.error(a)

    return shared_out(compact, len(A), lambda lo, hi: compact.geunpack(a[lo * V : hi * V], A[lo:hi])), residual


class Lines:
    """Block k of all lines is a batch: four calls a block factor, and four solve; residuals are those of both."""

    def __init__(self, case, compact):
        self.case, self.compact = case, compact
        self.lower, self.diag, self.upper, self.x = map(self.packed, (case.lower, case.diag, case.upper, case.rhs))
        self.npack = self.x.shape[1]

    def make_repeatable(self):
        """Identities, which are their own factors and leave x alone."""
        self.lower[...], self.upper[...] = 0, 0
        self.diag[...] = cla.pack(np.eye(self.case.n, dtype=self.case.dtype)[None], vlen=self.compact.vlen).data

    def packed(self, a):
        """Blocks of lines (nm, K, b, c) as packs (K, npack, b, c, V)."""
        packs = [cla.pack(a[:, k], vlen=self.compact.vlen).data for k in range(a.shape[1])]
        return roomy(np.stack(packs)) if packs else np.empty((0, 1))

    def update(self, A, B, C):
        """C <- C - A B"""
        return self.compact.dense("gemm", A, B, C, transa="N", transb="N", alpha=-1)

    def triangle(self, A, B, side, uplo, diag):
        return self.compact.dense("trsm", A, B, side=side, uplo=uplo, trans="N", diag=diag)

    def factor(self, lo, hi):
        E, D, F = (a[:, lo:hi] for a in (self.lower, self.diag, self.upper))
        calls = []
        for k in range(len(D)):
            if k:
                calls.append(self.update(E[k - 1], F[k - 1], D[k]))
            calls.append(self.compact.dense("getrfnp", D[k]))
            if k + 1 < len(D):
                calls.append(self.triangle(D[k], F[k], "L", "L", "U"))
                calls.append(self.triangle(D[k], E[k], "R", "U", "N"))
        return in_turn(calls)

    def solve(self, lo, hi):
        E, D, F, x = (a[:, lo:hi] for a in (self.lower, self.diag, self.upper, self.x))
        calls = []
        for k in range(len(D)):
            if k:
                calls.append(self.update(E[k - 1], x[k - 1], x[k]))
            calls.append(self.triangle(D[k], x[k], "L", "L", "U"))
        for k in range(len(D) - 1, -1, -1):
            if k + 1 < len(D):
                calls.append(self.update(F[k], x[k + 1], x[k]))
            calls.append(self.triangle(D[k], x[k], "L", "U", "N"))
        return in_turn(calls)

    def residual(self):
        self.factor(0, self.npack)()
        self.solve(0, self.npack)()
        x = np.stack([cla.Pack(block, self.case.nm).unpack() for block in self.x], axis=1)
        return self.case.error(x)


def in_turn(calls):
    def run():
        for call in calls:
            call()

    return run


def lines(case, compact):
    timed = Lines(case, compact)
    timed.make_repeatable()
    call = shared_out(compact, timed.npack, getattr(timed, case.routine))
    return call, lambda: Lines(case, compact).residual()


OTHERS = {"pack": pack, "unpack": unpack, "factor": lines, "solve": lines}
