"""The memory is MKL's compact format: buffers are exchanged with the real MKL, from the PyPI package `mkl`."""

import ctypes
import platform
import sys
from importlib import metadata
from itertools import product

import numpy as np
import pytest

import compactla as cla
from benchmarks import mkl as peer
from cases import dominant, random, same_bits, scalars
from compactla import oracle, routine

# The package exists for these machines only.
ELSEWHERE = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or sys.platform == "darwin",
    reason="MKL is for Linux and Windows on x86-64",
)
pytestmark = [pytest.mark.slow, ELSEWHERE]

ROW, COLUMN = peer.ROW, 102
SIDE, UPLO, TRANS, DIAG = peer.OPTIONS.values()
BATCH = 21  # a partial pack in every format


@pytest.fixture(scope="module")
def library():
    path = next(f for f in metadata.files("mkl") if f.name.startswith(("libmkl_rt", "mkl_rt")))
    library = ctypes.CDLL(str(path.locate()))
    library.MKL_Set_Threading_Layer(1)  # sequential: needs no OpenMP runtime
    return library


@pytest.fixture(params=[ROW, COLUMN], ids=["row", "column"])
def layout(request):
    return request.param


@pytest.fixture(params=peer.REGISTERS)
def mkl(request, library, layout, dtype):
    return MKL(library, layout, dtype, request.param)


class MKL:
    """MKL's compact routines for one layout, type and format, on Packs and on arrays.

    A column-major pack is the transpose of a row-major one.
    """

    def __init__(self, library, layout, dtype, form):
        self.library, self.layout, self.dtype = library, layout, dtype
        self.real = np.finfo(dtype).dtype
        self.form, nbytes = peer.REGISTERS[form]
        self.vlen = nbytes // self.real.itemsize

    def function(self, name):
        return getattr(self.library, f"mkl_{peer.LETTER[self.dtype]}{name}_compact")

    def call(self, name, *args):
        self.function(name)(self.layout, *args, self.form, BATCH)

    def scalar(self, x):
        """Real numbers go by value, complex ones by address."""
        by_value = {"f": ctypes.c_float, "d": ctypes.c_double}.get(self.dtype.char)
        return by_value(x) if by_value else np.array(x, self.dtype).ctypes

    def row_major(self, A):
        return A if self.layout == ROW else A.swapaxes(1, 2) if isinstance(A, np.ndarray) else A.T

    def operand(self, A):
        """A pack as MKL's routines take it: address, leading dimension."""
        return A.data.ctypes, self.row_major(A).n

    def pack_here(self, a):
        return self.row_major(cla.pack(self.row_major(a), self.vlen))

    def pack_there(self, a):
        """MKL's pack, and a `Pack` of that very memory."""
        source = np.ascontiguousarray(self.row_major(a))
        sd, ld = source.shape[1:]
        nbytes = self.function("get_size")(ld, sd, self.form, BATCH)
        parts = (2, self.vlen) if self.dtype.kind == "c" else (self.vlen,)
        data = np.full(nbytes // self.real.itemsize, np.nan, self.real).reshape(-1, sd, ld, *parts)
        self.call("gepack", *a.shape[1:], addresses(source), ld, data.ctypes, ld)
        return self.row_major(cla.Pack(data, BATCH))

    def unpack_there(self, A):
        target = np.empty(self.row_major(A).shape, self.dtype)
        self.call("geunpack", A.m, A.n, addresses(target), target.shape[2], *self.operand(A))
        return self.row_major(target)

    def gemm(self, A, B, C, alpha, beta, transa, transb):
        k = A.n if transa == "N" else A.m
        scale, keep = self.scalar(alpha), self.scalar(beta)
        operands = (*self.operand(A), *self.operand(B), keep, *self.operand(C))
        self.call("gemm", TRANS[transa], TRANS[transb], C.m, C.n, k, scale, *operands)

    def trsm(self, A, B, side, uplo, trans, diag, alpha):
        if trans == "C" and self.dtype.kind == "f":
            trans = "T"  # MKL 2026.2 does not solve then: mkl_dtrsm_compact with MKL_CONJTRANS only scales B
        options = SIDE[side], UPLO[uplo], TRANS[trans], DIAG[diag]
        self.call("trsm", *options, B.m, B.n, self.scalar(alpha), *self.operand(A), *self.operand(B))

    def getrfnp(self, A):
        info = ctypes.c_int(-1)
        self.call("getrfnp", A.m, A.n, *self.operand(A), ctypes.byref(info))


def addresses(a):
    return (ctypes.c_void_p * len(a))(*(matrix.ctypes.data for matrix in a))


def exchanges(mkl):
    """The libraries that pack, compute and unpack."""
    yield mkl.pack_here, mkl, cla.Pack.unpack
    yield mkl.pack_there, cla, mkl.unpack_there


@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 4), (3, 5), (5, 2)])
def test_memory_is_the_same(mkl, m, n, rng):
    a = random(rng, (BATCH, m, n), mkl.dtype)
    here, there = mkl.pack_here(a), mkl.pack_there(a)
    assert same_bits(np.ascontiguousarray(here.data), np.ascontiguousarray(there.data))
    assert same_bits(there.unpack(), a)
    assert same_bits(np.ascontiguousarray(mkl.unpack_there(here)), a)


def test_gemm(mkl, rng):
    m, n, k = 4, 3, 5
    for i, (transa, transb) in enumerate(product("NTC", repeat=2)):
        # MKL 2026.2 takes the conjugate of alpha in the AVX512 format for C and T together.
        alpha, beta = 0.75 if {transa, transb} == {"T", "C"} else scalars(mkl.dtype)[3], -0.25
        a = random(rng, (BATCH, m, k) if transa == "N" else (BATCH, k, m), mkl.dtype)
        b = random(rng, (BATCH, k, n) if transb == "N" else (BATCH, n, k), mkl.dtype)
        c = random(rng, (BATCH, m, n), mkl.dtype)
        for pack, compute, unpack in exchanges(mkl):
            if compute is cla and i % 4:  # which has a kernel for each option, tested elsewhere
                continue
            A, B, C = map(pack, (a, b, c))
            compute.gemm(A, B, C, alpha, beta, transa, transb)
            ratio = oracle.named("gemm").residual((a, b, c), (a, b, unpack(C)), alpha, beta, transa, transb)
            assert ratio.max() < oracle.THRESHOLD


def test_trsm(mkl, rng):
    # Elsewhere MKL 2026.2 is right for few sizes: it writes behind the end of B, and the result is wrong.
    n, nrhs = (4, 3) if mkl.form == peer.REGISTERS["AVX512"][0] or mkl.dtype.kind == "c" else (4, 4)
    alpha = scalars(mkl.dtype)[3]
    for i, options in enumerate(product("LR", "LU", "NTC", "NU")):
        a = (dominant(rng, BATCH, n, n, mkl.dtype) / n).astype(mkl.dtype)
        b = random(rng, (BATCH, n, nrhs) if options[0] == "L" else (BATCH, nrhs, n), mkl.dtype)
        for pack, compute, unpack in exchanges(mkl):
            if compute is cla and i % 5:
                continue
            A, B = map(pack, (a, b))
            compute.trsm(A, B, *options, alpha)
            ratio = oracle.named("trsm").residual((a, b), (a, unpack(B)), *options, alpha)
            assert ratio.max() < oracle.THRESHOLD


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 5), (4, 6), (6, 3)])
def test_getrfnp(mkl, m, n, rng):
    a = dominant(rng, BATCH, m, n, mkl.dtype)
    for pack, compute, unpack in exchanges(mkl):
        A = pack(a)
        compute.getrfnp(A)
        assert oracle.named("getrfnp").residual((a,), (unpack(A),)).max() < oracle.THRESHOLD


@pytest.mark.parametrize("form", peer.REGISTERS)
@pytest.mark.parametrize("name", [name for name in routine.names() if peer.has(name)])
def test_routines_as_peers(name, form, dtype, rng):
    """Benchmarks call MKL with the arguments in `benchmarks/peers.py`, for both values of every option."""
    row, judge = routine.named(name), oracle.named(name)
    compact = peer.Compact(peer.load(), dtype, form, 1)
    sizes = dict.fromkeys(row.letters, 4)  # which all routines of MKL 2026.2 are right for, in every format
    for letters in zip(*(choices[:2] for choices in row.options.values()), strict=True) if row.options else [()]:
        options = dict(zip(row.options, letters, strict=True))
        before = judge.operands(lambda m, n: random(rng, (BATCH, m, n), dtype), **sizes, **options)
        packs = [compact.packed(a) for a in before]
        call = compact.dense(name, *packs, **options, **dict.fromkeys(row.scaling, 0))
        call()
        after = peer.unpacked(row, packs, call, BATCH)
        assert judge.residual(before, after, **options).max() < oracle.THRESHOLD
