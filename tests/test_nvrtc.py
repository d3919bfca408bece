"""All OpenCL sources as CUDA C++, by NVIDIA's runtime compiler, which needs no GPU."""

import itertools
import re
import sys

import numpy as np
import pytest

from cases import exhaustive, slow
from compactla.cuda.compile import MISSING, compile, cuda_source, options
from compactla.gpu.linalg.blocks import Operands, blocks, has_size
from compactla.search import LOCAL_BYTES
from compactla.strides import Place
from programs import FILES, FUSED, HEADER, KRON, OTHERS, TEXTS, TRIANGLE, complete, of_rows, switches

KERNEL = re.compile(r"__kernel\b[^;{]*?\bvoid\s+(?:#.*\s)?([a-z]\w*)\(")
DEFINED = re.compile(r"(?m)^ *# *define (\w+)|^(?:CLA_INLINE|static|typedef)\b[^;{(]*?\b(\w+) ?(?:\(|;)|^} (\w+);")
# Matrix units multiply doubles.
UNITS = [
    ("gemm.cl", {"GEMM_MMA": 1, "DEPTH": 8, "AHEAD": 2, "ACONJ": 1} | dict.fromkeys("MNK", 24), "dD"),
    ("gemm_blocks.cl", {"MMA": 1, "TALL": 1, "TI": 3, "TJ": 2, "TEAMJ": 1, "CHUNK": 2, "DEPTH": 16, "ACONJ": 1}, "dD"),
    ("kron_mma.cl", KRON | {"GROUP": 64, "SLICES": 2, "AHEAD": 1, "FACTORS": 3, "AOWN": 0}, "d"),
]
REFUSED = {"kron_mma.cl", "minors_bands.cl", "GEMM_MMA"}  # of other numbers


def ptx(source, dtype, vlen=32, **defines):
    """PTX, little optimized: machine code takes several times as long."""
    pytest.importorskip("cuda.bindings.nvrtc")
    return compile(
        cuda_source(source), [*options(np.dtype(dtype), vlen, defines, "compute_90"), "--Ofast-compile=max"]
    ).decode()


@pytest.mark.parametrize("dtype", ["d", slow("F")])
@pytest.mark.parametrize("file", sorted(FILES))
def test_files_compile_alone(file, dtype):
    """With no macros but the name of a part, which all of its kernels come out of."""
    kernels = set(KERNEL.findall(TEXTS[file]))
    for switch in switches(file):
        if dtype == "F" and REFUSED & {file, switch}:
            kernels -= {"gemm_mma", "kron_mma", "both_minors"}
            continue
        defines = {switch: 1} if switch else {}
        kernels -= set(re.findall(r"\.entry (\w+)", ptx(f'#include "{file}"\n', dtype, **defines)))
    assert not kernels


@pytest.mark.parametrize(("file", "defines", "dtypes"), UNITS)
def test_matrix_units_compile(file, defines, dtypes):
    for dtype in dtypes:
        text = ptx(f'#include "{file}"\n', dtype, **complete(file, defines))
        assert "mma.sync.aligned.m16n8k" in text and "mma.sync.aligned.m8n8k4" in text


@pytest.mark.parametrize("room", [0, 227 * 1024])
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("n", [5, 24, 31, 64, 100])
def test_blocks_compile(n, char, room):
    """What is chosen for products on NVIDIA's GPUs fits into local memory, and copies past registers."""
    item = np.dtype(char).itemsize
    places = (Place(n, n, n * n * item, n * item, item),) * 3
    operands = Operands(np.dtype(char), places, (16, 16, 16), (False, True), n > 24, False)
    macros = blocks(operands, LOCAL_BYTES, True, has_size(n, n, n, operands.dtype, True), room=room).macros
    assert macros.get("CLA_ROOM", 0) <= room
    text = ptx('#include "gemm_blocks.cl"\n', char, 1, **macros)
    held = sum(map(int, re.findall(r"\.shared [^\n]*\[(\d+)\]", text)))
    assert held in range(LOCAL_BYTES + 1) and (held == 0) == ("CLA_ROOM" in macros)
    assert "cp.async" in text and ("mma.sync" in text) == (char in "dD")


@pytest.mark.parametrize("found", [exhaustive(OTHERS), exhaustive(of_rows)], ids=["others", "routines"])
def test_all_variants_compile(found):
    for (file, defines), dtype in zip(found() if callable(found) else found, itertools.cycle("fD"), strict=False):
        assert ptx(f'#include "{file}"\n', dtype, **defines)


@pytest.mark.parametrize("name", ["SOLVE", "INV", "LU_FACTOR", "DET"])
@pytest.mark.parametrize(("P", "Q"), [(4, 1), (16, 1), (32, 2)], ids=["few", "part", "warps"])
def test_lu_of_warps_compiles(name, P, Q):
    """Grids that are parts of a warp, and several, compile with its instructions."""
    grid = FUSED | {f"GRID_{name}": 1, "N": 5, "P": P, "Q": Q, "TEAMS": 64 // (P * Q), "CLA_WARP": 2, "STAGED": 1}
    grid |= {"TURNS": 2 * (Q == 1), "ATYPE": "float", "ARS": "(5)"}
    for dtype in "fD":
        text = ptx('#include "grid_lu.cl"\n', dtype, **complete("grid_lu.cl", grid | {"ASAME": int(dtype == "f")}))
        assert "redux.sync" in text and ("cp.async" in text) == (Q == 1 and dtype == "f")
        assert ("bar.warp.sync" in text) == (Q == 1)


def test_lu_of_packs_compiles():
    """Warps have rows of matrices of packs, which are copied past registers."""
    text = ptx('#include "rows_getrf.cl"\n', "f", GESV_ROWS=1, CLA_WARP=2)
    assert "redux.sync" in text and "bar.warp.sync" in text and "cp.async" in text


@pytest.mark.parametrize("warps", [1, 2])
@pytest.mark.parametrize(
    ("file", "defines", "instruction"),
    [
        ("grid_qr.cl", {"M": 5, "P": 4, "MODE": 2}, "shfl.sync.bfly"),
        ("grid_bidiagonal.cl", {"M": 5, "P": 4, "OUTCOME": 3}, "shfl.sync.bfly"),
        ("grid_triangular.cl", TRIANGLE | {"P": 4, "PANEL": 3, "COPIED": 1}, "cp.async"),
    ],
)
def test_grids_of_warps_compile(file, defines, instruction, warps):
    """Teams that are parts of a warp, or several of them, sum or copy by instructions of warps."""
    grid = {"Q": 16 if warps == 2 else 4, "TEAMS": 3 - warps, "ATYPE": "float", "CLA_WARP": 1}
    for dtype in "fF":
        text = ptx(f'#include "{file}"\n', dtype, **complete(file, FUSED | defines | grid))
        assert instruction in text and ("bar.warp.sync" in text) == (warps == 1)


def names_in(text):
    return {name for match in DEFINED.findall(text) for name in match if name}


def test_words_are_defined_once():
    """No source defines a word of the header, unless it does so only where the word is undefined."""
    words = names_in(HEADER)
    assert {"long", "__local", "atomic_min", "get_global_id", "vload_half", "ushort"} < words
    for file, text in TEXTS.items():
        own = names_in(text) - set(re.findall(r"#ifndef (\w+)\n#define \1\b", text))
        assert not own & words, file
    assert {"cla_lane", "cla_matrix", "cla_lane_of", "CLA_PARTS"} < names_in(TEXTS["lane.h"])


def test_what_does_not_compile():
    with pytest.raises(RuntimeError, match=r'(?s)CLA_REAL=float.*program.cu\(2\): error: identifier "b" is undefined'):
        ptx("__kernel void f(__global CLA_REAL *a)\n{ a[0] = b; }", "f")


def test_without_the_compiler(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(ImportError, match=MISSING):
        compile("", [])
