"""Programs of the OpenCL sources: files, and macros that they are built with."""

import itertools
import re

import numpy as np

from compactla import routine
from compactla.digests import INCLUDE, closure
from compactla.gpu.program import SOURCES
from compactla.lines.storage import STORAGE

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
SWITCH = re.compile(r"#ifdef (?!CLA_|cl_|__)(\w+)|\bdefined\((?!CLA_|cl_|__)(\w+)\)")
DEFAULTS = re.compile(r"(?m)^#ifndef (?!CLA_)(\w+)\n((?:#define \w+ .*\n|\n)+)#endif")  # of macros that come together
DEFAULT = re.compile(r"#define (\w+) (.*\S)")
TEXTS = {file.name: COMMENT.sub("", file.read_text()) for file in sorted(SOURCES.glob("*.[ch]*"))}
HEADER = TEXTS.pop("cuda.h")
FILES = {file for file in TEXTS if not file.endswith("_step.h")}  # which are parts of kernels


def switches(file):
    """Names that a file has parts for; nothing, and each of them, are all macros that it needs to be compiled."""
    return [None, *dict.fromkeys(itertools.chain(*SWITCH.findall(TEXTS[file]))).keys() - {""}]


def complete(file, defines):
    """Macros, and the default values of those that a file wants together with them, and does not define itself."""
    files = closure([file], lambda name: set(INCLUDE.findall(TEXTS[name])) & TEXTS.keys())
    own = {macro for name in files for macro, _ in DEFAULT.findall(DEFAULTS.sub("", TEXTS[name]))}
    for name in files:
        for first, block in DEFAULTS.findall(TEXTS[name]):
            if first in own:
                continue
            defaults = {macro: value.replace(" ", "") for macro, value in DEFAULT.findall(block)}
            defines = defaults | defines if defaults.keys() & defines.keys() else defines
    return defines


TILE = {"BLOCK": 3, "CLA_TILE": 3}
BANDS = [  # forms with pivoting, their names in bands.cl, and rows of a tile
    {"SOURCE": 1, "KU": 1, "REACH": 2, "PIVOTING": 1, "TURNS": 4},
    {"SOURCE": 2, "KU": 2, "KL": 2, "REACH": 2, "PIVOTING": 0, "TURNS": 1},
    {"SOURCE": 3, "KU": 2, "KL": 2, "REACH": 2, "PIVOTING": 0, "TURNS": 2},
    {"SOURCE": 0, "KU": 2, "REACH": 3, "PIVOTING": 1, "TURNS": 2, "WIDE": 1},
]
STACKS = [  # where neighbours in memory are in rows or columns
    {"FLAT": 0, "ACOLUMNS": 0, "BCOLUMNS": 1, "PLACES": 1},
    {"FLAT": 2, "ACOLUMNS": 1, "BCOLUMNS": 0, "PLACES": 0},
]
BLOCKS = {"DEPTH": 8, "APITCH": 14, "BPITCH": 14}
PLACES = [
    {"SIZED": 0, "ACOLUMNS": 1, "ACONJ": 1, "PLACES": 1, "CWIDE": 2},
    {"SIZED": 1, "M": 5, "N": 7, "K": 6, "BCOLUMNS": 1, "BCONJ": 1, "STAGES": 1, "MATRICES": 2, "AOWN": 0, "AWIDE": 2},
]
KRON = {"ROWS": 2, "PENCILS": 2, "ROUNDS": 2, "AOWN": 1, "ACONJ": 1}
FUSED = {"N": 3, "R": 2, "BPARTS": 2, "ATYPE": "char"}
TRIANGLE = {"R": 5, "P": 2, "Q": 2, "TEAMS": 2, "CHUNK": 2}
WATCHED = [{"PERTURB": 1, "SHIFT": 0, "PIVOTING": 1}, {"PERTURB": 0, "SHIFT": 1, "PIVOTING": 0}]
VARIANTS = [  # of what is no routine's
    *(("gemm.cl", {"GEMM_TEAM": 1, "N": m, "M": m, "K": k, "TI": 3, "ACONJ": 1, "AHEAD": ahead, "ROUNDS": 1 + ahead})
      for ahead, m, k in ((0, 5, 5), (1, 6, 8), (3, 6, 5))),
    *(("gemm_stacks.cl", {"K": 5, "TI": 3, "ACONJ": 1} | where) for where in STACKS),
    *(("gemm_blocks.cl", {**BLOCKS, **where}) for where in PLACES),
    *(("fused.cl", {**FUSED, f"FUSED_{name}": 1, "LINE": line, "ASTAGED": int(line > 0), "BSTAGED": 0, "UPLO": 1})
      for name in ("SOLVE", "INV", "CHOLESKY", "DET", "SLOGDET") for line in (0, 9)),
    *(("grid_lu.cl", FUSED | {f"GRID_{name}": 1, "P": 4, "Q": 2 - staged, "STAGED": staged, "TURNS": 2 * staged})
      for name in ("SOLVE", "INV", "LU_FACTOR", "DET", "SLOGDET") for staged in range(2)),
    *(("team_eigh.cl", FUSED | {"MEMBERS": 4, "TEAMS": 2 - far, "IN_GLOBAL": far, "UPLO": 1, "VECTORS": vectors})
      for far in range(2) for vectors in range(2)),
    *(("team_svd.cl", FUSED | {"MEMBERS": 4, "TEAMS": 2 - far, "IN_GLOBAL": far, "OUTCOME": outcome, "M": m,
                               "WIDE": int(m < 3), "P": min(m, 3), "Q": 3})
      for outcome, far, m in ((0, 0, 5), (0, 1, 2), (1, 0, 2), (2, 1, 5), (3, 0, 5), (3, 1, 2))),
    *(("team_svd.cl", FUSED | {"MEMBERS": 4, "TEAMS": 2 - far, "IN_GLOBAL": far, "OUTCOME": 3, "M": 5, "CHAINED": 1})
      for far in range(2)),
    *(("grid_bidiagonal.cl", FUSED | {"M": 5, "P": 1 + wide, "Q": 2, "TEAMS": 2, "OUTCOME": outcome, "WIDE": wide})
      for outcome, wide in ((1, 1), (3, 0))),
    *((f"singular_{how}.cl", FUSED | {"M": 5, "MATRICES": 2, "OUTCOME": outcome})
      for how in ("values", "bisection") for outcome in (1, 3)),
    *(("grid_posv.cl", FUSED | {"P": 2, "Q": 2, "TEAMS": 2, "UPLO": uplo}) for uplo in range(2)),
    *(("fused.cl", FUSED | {"FUSED_QR": 1, "M": 4, "MODE": mode, "LINE": 17, "ASTAGED": 1}) for mode in range(4)),
    *(("grid_cholesky.cl", FUSED | {"P": 2, "Q": 2, "TEAMS": 2, "UPLO": 1, "CLEAN": clean}) for clean in range(2)),
    *(("grid_qr.cl", FUSED | {"M": 5, "P": 1 + mode % 2, "Q": 2, "TEAMS": 2, "MODE": mode}) for mode in range(4)),
    *(("grid_triangular.cl", FUSED | TRIANGLE | {"TRANS": trans, "DIAG": unit, "PANEL": 3 - unit, "UPLO": unit})
      for trans in range(3) for unit in range(2)),
    *(("grid_triangular.cl", FUSED | TRIANGLE | {"GRID_CHO_SOLVE": 1, "PANEL": 3 - uplo, "UPLO": uplo})
      for uplo in range(2)),
    *(("grid_triangular.cl", FUSED | TRIANGLE | {"GRID_LU_SOLVE": 1, "PANEL": 3 - trans % 2, "TRANS": trans})
      for trans in range(3)),
    ("stacks.cl", {"SPREAD": 1, "TARGET": "char", "TARGET_PARTS": 2}),
    ("stacks.cl", {"FILL": 1, "TELL": 1, "SQUARES": 1, "CLEAR": 1}),
    ("stacks.cl", {"DETERMINANT": 1, "LOGARITHM": 1, "ZEROS": 1, "CUT": 1}),
    *(("pack.cl", {f"{move}_TILED": 1, "ELEMENTS": 6, "FLAT": flat, "ALONG": flat})
      for move in ("PACK", "UNPACK") for flat in range(2)),
    *(("kron_team.cl", KRON | {"FACTORS": n, "SUM": total, "DIRECT": direct, "INTERLEAVED": total,
                               "AHEAD": int(n > 1 and not direct)})
      for n, total, direct in ((1, 0, 0), (2, 0, 1), (2, 1, 0), (3, 0, 0), (3, 1, 0))),
    *(("kron_solve.cl", KRON | {"FACTORS": n, "INTERLEAVED": n % 2, "POWN": 1, "PCONJ": 1}) for n in (1, 2, 3)),
    *(("sweeps.cl", {"PRODUCT": product}) for product in range(2)),
    *(("csrmm.cl", {"CSRMM_BATCH": 1, "TRANS": trans, "SCALED": int(trans > 0)}) for trans in range(3)),
    ("csrilu.cl", {"CSRILU_BATCH": 1, "CLA_TEAM": 2, "CLA_TEAM_LANES": 4}),
    *(("csrlu.cl", {"SIZE": size, "LANES": 4, "MEMBERS": 2, "NUMBERS": 100, "ARS": 32, "FRS": 32}) for size in (1, 4)),
    *(("csrstream.cl", {"LANES": 4, "MEMBERS": 2, "ROWS": 3, "COLUMNS": 5, "VRS": 32, "AHEAD": 2, "TRANS": ordinary * 2,
                        "ORDINARY": ordinary, "ALONG": ordinary, "PRODUCT": product})
      for ordinary in range(2) for product in range(2)),
    *(("batch_krylov.cl", {f"{name}_BATCH": 1, "PRECONDITIONER": kind})
      for name in ("PRECONDITION", "CG", "BICGSTAB", "GMRES") for kind in range(4)),
    *(("batch_krylov.cl", {"PRECONDITION_BATCH": 1, "PRECONDITIONER": 1, "TRANS": trans}) for trans in (1, 2)),
    *(("bands.cl", {f"{what}_BANDS": 1, "COLUMNS": count, "ALONG_X": 1} | form)
      for what, count in (("FACTOR", 0), ("SOLVE", 2), ("BOTH", 1)) for form in BANDS),
    *(("minors_bands.cl", {"BOTH_MINORS": 1, "SOURCE": kind, "COLUMNS": 1 + kind // 3}) for kind in (0, 1, 3)),
    *(("parted_bands.cl", {f"{what}_PARTED": 1, "SOURCE": 3, "MEMBERS": 3, "DEEP": 2, "ALONG_X": 1})
      for what in ("FACTOR", "SOLVE", "BOTH")),
    *(("pivoted_bands.cl", {f"{what}_PIVOTED": 1, "SOURCE": 1 - own, "MEMBERS": 12, "DEEP": 4, "SPREAD": 1 + 3 * own,
                            "ALONG_X": own})
      for what in ("BOTH", "REDUCE", "JOIN", "EXPAND") for own in range(2)),
    *(("stored.cl", {"CLA_STORED": f"CLA_STORED_{name.upper()}"}) for name in STORAGE),
    *(("blocktridiag.cl", {f"{what}_LINES": 1, **TILE}) for what in ("FACTOR", "SOLVE", "SPREAD")),
    ("blocktridiag.cl", {"SOLVE_LINES": 1, "SWAPPED": 1}),
    ("blocktridiag.cl", {"SPREAD_LINES": 1, "INVERSES": 1, "BLOCK": 3}),
    ("blocktridiag.cl", {"COUPLE_ROWS": 1, "BLOCK": 3, "HELD": 2}),
    *(("watched_lu.cl", {**watched, **tile, "INVERSES": inverses})
      for inverses, (watched, tile) in enumerate(itertools.product(WATCHED, (TILE, {})))),
    *(("thomas.cl", {"FACTOR_LINE": 1, "BLOCK": 3, "AHEAD": ahead}) for ahead in range(2)),
    *(("thomas.cl", {"FACTOR_TEAM": 1, "BLOCK": 6 - ahead % 2, "TEAM": 3, "AHEAD": ahead}) for ahead in range(7)),
    *(("thomas_warp.cl", {"FACTOR_WARP": 1, "BLOCK": 3 + ahead, "TEAM": 2, "AHEAD": ahead}) for ahead in (1, 2)),
    *(("thomas.cl", {"FACTOR_TEAM": 1, "BLOCK": 6, "TEAM": 3, "WATCH": 1, **watched}) for watched in WATCHED),
    *(("thomas_solve.cl", {"SOLVE_TEAM": 1, "BLOCK": 3, "RHS": 2, "AHEAD": 1 + regular, "AHEAD_UP": 2 - regular,
                           "REGULAR": regular, "CLA_STORED": f"CLA_STORED_{name.upper()}"})
      for regular, name in ((0, "REAL"), *((1, name) for name in ("REAL", *STORAGE)))),
]  # fmt: skip
OTHERS = [(file, complete(file, defines)) for file, defines in VARIANTS]


def of_rows():
    """The kernels of all routines, each with every value of its switches."""
    for row in map(routine.named, routine.names()):
        file = row.search.file
        yield file, {f"{row.name}_batch".upper(): 1}
        macros = {letter.upper(): 5 for letter in row.letters}
        macros |= {f"{A.name.upper()}CONJ": int(not A.kind and (A.half or not A.written)) for A in row.operands}
        seen = set()
        for choice in filter(None, row.search.candidates((5,) * len(row.letters), np.dtype("f"), [32])):
            tunables = row.search.kernels[choice["kernel"]].tunables
            switches = choice["kernel"], *(choice[name] for name in tunables if len(tunables[name]) <= 3)
            if switches not in seen:
                seen.add(switches)
                tunables = {name: choice[name] for name in tunables}
                for values in itertools.product(*(range(len(row.options[name])) for name in row.compiled)):
                    option = dict(zip(map(str.upper, row.compiled), values, strict=True))
                    own = row.search.file_of(choice)
                    yield own, complete(own, {choice["kernel"].upper(): 1, **macros, **tunables, **option})
