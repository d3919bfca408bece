"""Programs of the OpenCL sources: files, and macros that they are built with."""

import itertools

import numpy as np

from compactla import routine
from compactla.lines.storage import STORAGE

LANES = {"LANES": 4, "COLUMNS": 2, "TEAM": 3}
STRIDES = {f"{matrix}{axis}S": 8 for matrix in "ABC" for axis in "RC"}
GEMM = {"M": 5, "N": 5, "K": 5, "ACONJ": 1, "BCONJ": 0, "ACOMMON": 0, "BCOMMON": 0, "ALPHA": 1, "BETA": 1, **STRIDES}
TEAM = {"LANES": 4, "TI": 3, "TJ": 2, "DEPTH": 4, **GEMM}
TILE = {"BLOCK": 3, "CLA_TILE": 3}
SOLVE = {"SOLVE_TEAM": 1, "BLOCK": 3, "LANES": 4, "RHS": 2}
BAND = {"KL": 1, "KU": 2, "COMMON": 0, "ALONG_A": 0, "ALONG_B": 0, "ALONG_X": 1, "WIDE": 0}
BANDS = [  # forms with pivoting, their names in bands.cl, and rows of a tile
    {"SOURCE": 1, "KU": 1, "REACH": 2, "PIVOTING": 1, "TURNS": 4},
    {"SOURCE": 2, "KL": 2, "REACH": 2, "PIVOTING": 0, "TURNS": 1},
    {"SOURCE": 3, "KL": 2, "REACH": 2, "PIVOTING": 0, "TURNS": 2},
    {"SOURCE": 0, "REACH": 3, "PIVOTING": 1, "TURNS": 2, "WIDE": 1},
]
STACKS = dict.fromkeys("AOWN BOWN ACONJ BETA GEMM_STACKS".split(), 1) | {"M": 4, "N": 4, "K": 5, "BCONJ": 0}
KRON = {
    "GROUP": 4,
    "ITEMS": 2,
    "PENCILS": 2,
    "ROWS": 2,
    "WIDE": 1,
    "WHOLE": 1,
    "ROUNDS": 2,
    "XV": 1,
    "YV": 1,
    "BETA": 1,
    **{f"{what}{axis}": 2 for what in "MN" for axis in "ABC"},
    **{f"{axis}V": 1 for axis in "ABCPQRKLM"},
    **{f"{axis}{what}": int(axis in "AP") for axis in "ABCPQR" for what in ("OWN", "CONJ")},
}
WATCH = {"FACTOR_WATCHED": 1, "EPSILON": 1e-7, "LEAST": 1e-30}
FUSED = {"GROUP": 32, "N": 3, "R": 2, "UPLO": 1, "TARGET": "float", "APARTS": 1, "BPARTS": 2, "ATYPE": "char",
         "BTYPE": "float", "ASTAGED": 1, "BSTAGED": 0, "ARS": 3, "ACS": 1, "BRS": 4, "BCS": 2}  # fmt: skip
OTHERS = [  # in all of their variants
    *(("gemm.cl", {"GEMM_TEAM": 1, "AHEAD": ahead, "ROUNDS": 1 + ahead, **TEAM, "M": m, "N": m, "K": k})
      for ahead, m, k in ((0, 5, 5), (1, 6, 8), (3, 6, 5))),
    *(("gemm_stacks.cl", {"LANES": 4, "TI": 3, "TJ": 2, "WIDE": 1, "WIDEA": 1, "FLAT": flat, "ACOLUMNS": flat // 2,
                          "BCOLUMNS": 1 - flat // 2, "PLACES": 1 - flat // 2} | STACKS) for flat in (0, 2)),
    ("gemm_stacks.cl", {"GEMM_BLOCKS": 1, "PLACES": 1}),
    *(("fused.cl", {**FUSED, f"FUSED_{name}": 1, "LINE": line, "ASTAGED": int(line > 0)})
      for name in ("SOLVE", "INV", "CHOLESKY", "DET", "SLOGDET") for line in (0, 9)),
    *(("fused_teams.cl", FUSED | {"INV": inv, "R": 3, "ROWS": 2, "TEAM": 2, "MATRICES": 16, "STAGED": inv, "WARP": 0})
      for inv in range(2)),
    ("stacks.cl", {"SPREAD": 1, "AXES": 3, "SOURCE": "float", "TARGET": "char", "SOURCE_PARTS": 1, "TARGET_PARTS": 2}),
    ("stacks.cl", {"FILL": 1, "CLEAR": 1, "M": 3, "N": 2, "DETERMINANT": 1, "LOGARITHM": 1, "ZEROS": 1, "CUT": 1}),
    ("pack.cl", {}),
    *(("pack.cl", {f"{move}_TILED": 1, "LANES": 4, "ELEMENTS": 6, "GROUP": 8, "FLAT": flat, "ALONG": flat})
      for move in ("PACK", "UNPACK") for flat in range(2)),
    ("krylov.cl", {"GROUP": 8}),
    ("kron.cl", {"KRON_AXIS": 1, "AXES": 2}),
    ("kron.cl", {"KRON_DIVIDE": 1}),
    *(("kron_team.cl", KRON | {"KRON_TEAM": 1, "FACTORS": n, "SUM": total, "DIRECT": direct, "INTERLEAVED": total,
                          "AHEAD": int(n > 1 and not direct)})
      for n, total, direct in ((1, 0, 0), (2, 0, 1), (2, 1, 0), (3, 0, 0), (3, 1, 0))),
    *(("kron_solve.cl", KRON | {"KRON_SOLVE": 1, "FACTORS": n, "SUM": 0, "DIRECT": 0, "INTERLEAVED": n % 2})
      for n in (1, 2, 3)),
    *(("sweeps.cl", {"PRODUCT": product}) for product in range(2)),
    *(("csrmm.cl", {"CSRMM_BATCH": 1, "TRANS": trans, "SCALED": int(trans > 0)}) for trans in range(3)),
    ("csrmm.cl", {"TAKE_ROWS": 1}),
    ("isai.cl", {}),
    ("blockmv.cl", {"UNIT_BLOCKS": 1}),
    ("csrilu.cl", {"CSRILU_BATCH": 1, "CLA_TEAM": 2, "CLA_TEAM_LANES": 4}),
    *(("batch_krylov.cl", {f"{name}_BATCH": 1, "PRECONDITIONER": kind})
      for name in ("PRECONDITION", "CG", "BICGSTAB", "GMRES") for kind in range(4)),
    *(("batch_krylov.cl", {"PRECONDITION_BATCH": 1, "PRECONDITIONER": 1, "TRANS": trans}) for trans in (1, 2)),
    *(("bands.cl", {f"{what}_BANDS": 1, "COLUMNS": count} | BAND | form)
      for what, count in (("FACTOR", 0), ("SOLVE", 2), ("BOTH", 1)) for form in BANDS),
    *(("parted_bands.cl", {f"{what}_PARTED": 1, **BAND, "KU": 1, "SOURCE": 3, "LANES": 4, "MEMBERS": 3, "DEEP": 2})
      for what in ("FACTOR", "SOLVE", "BOTH")),
    *(("stored.h", {"ROUND_BLOCKS": 1, "CLA_STORED": f"CLA_STORED_{name.upper()}"}) for name in STORAGE),
    *(("blocktridiag.cl", {f"{what}_LINES": 1, **some})
      for what in ("FACTOR", "SOLVE", "SPREAD") for some in (TILE, {})),
    ("blocktridiag.cl", {"SOLVE_LINES": 1, "SWAPPED": 1}),
    ("blocktridiag.cl", {"RESIDUAL_LINES": 1}),
    ("blocktridiag.cl", {"SPREAD_LINES": 1, "INVERSES": 1, "BLOCK": 3}),
    ("blocktridiag.cl", {"COUPLE_ROWS": 1}),
    ("blocktridiag.cl", {"COUPLE_ROWS": 1, "BLOCK": 3, "HELD": 2}),
    ("watched_lu.cl", {"PERTURB": 1, "SHIFT": 0, "PIVOTING": 1, "INVERSES": 1, **WATCH, **TILE}),
    ("watched_lu.cl", {"PERTURB": 0, "SHIFT": 1, "PIVOTING": 0, "INVERSES": 0, **WATCH}),
    ("thomas_solve.cl", {"DESCRIBE_LINES": 1, "BLOCK": 1}),
    *(("thomas.cl", {"FACTOR_LINE": 1, "BLOCK": 3, "GROUP": 8, "AHEAD": ahead}) for ahead in range(2)),
    *(("thomas.cl", {"FACTOR_TEAM": 1, "BLOCK": 6 - ahead % 2, "AHEAD": ahead, **LANES}) for ahead in range(5)),
    *(("thomas.cl", {"FACTOR_TEAM": 1, "BLOCK": 6, "AHEAD": 1, **LANES, "WATCH": 1, "PIVOTING": int(way != "SHIFT"),
                     "PERTURB": 0, "SHIFT": 0, **WATCH, way: 1}) for way in ("PERTURB", "SHIFT")),
    ("thomas_solve.cl", {"REGULAR": 0, "AHEAD": 1, "AHEAD_UP": 2, **SOLVE}),
    *(("thomas_solve.cl", {"REGULAR": 1, "AHEAD": 2, "AHEAD_UP": 1, **SOLVE,
                           "CLA_STORED": f"CLA_STORED_{name.upper()}"}) for name in ("REAL", *STORAGE)),
]  # fmt: skip


def of_rows():
    """The kernels of all routines, each with every value of its switches."""
    for row in map(routine.named, routine.names()):
        common = {f"{A.name.upper()}COMMON": 0 for A in row.operands}
        yield row.search.file, {f"{row.name}_batch".upper(): 1, **common}
        macros = {letter.upper(): 5 for letter in row.letters} | dict.fromkeys(map(str.upper, row.scalars), 1)
        macros |= {f"{A.name.upper()}{which}": 8 for A in row.operands for which in ("RS", "CS")}
        macros |= {f"{A.name.upper()}CONJ": int(not A.kind and (A.half or not A.written)) for A in row.operands}
        macros |= common
        seen = set()
        for choice in filter(None, row.search.candidates((5,) * len(row.letters), np.dtype("f"), [32])):
            tunables = row.search.kernels[choice["kernel"]].tunables
            switches = choice["kernel"], *(choice[name] for name in tunables if len(tunables[name]) <= 3)
            if switches not in seen:
                seen.add(switches)
                tunables = {name: choice[name] for name in tunables}
                for values in itertools.product(*(range(len(row.options[name])) for name in row.compiled)):
                    option = dict(zip(map(str.upper, row.compiled), values, strict=True))
                    yield row.search.file, {choice["kernel"].upper(): 1, **macros, **tunables, **option}
