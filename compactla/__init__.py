"""Compact-layout batched linear algebra for thousands of small matrices, on CPUs and OpenCL devices."""

import importlib

from compactla import routine
from compactla.layout import Pack, pack

__version__ = "0.2.0"
# What is imported when it is first asked for, and where from: routines are found by their names.
_LAZY = {
    "Banded": "bands.banded",
    "BandedSPD": "bands.bandedspd",
    "BatchCSR": "sparse.csr",
    "BatchLU": "sparse.lu",
    "BlockTridiag": "lines.blocktridiag",
    "LinePreconditioner": "lines.precond",
    "LineRelaxation": "lines.relaxation",
    "PivotError": "pivots",
    "Tridiag": "bands.tridiag",
    "find_lines": "lines.finding",
    "patch_numpy": "patch.patching",
    "prepare": "calls.prepared",
    "unpatch_numpy": "patch.patching",
    **dict.fromkeys(["kron_apply", "kron_sum_apply", "kron_sum_solve", "kron_work"], "kron.products"),
    **{name: f"dense.{name}" for name in routine.names()},
}
_MODULES = "cpu", "gpu", "krylov", "linalg"  # likewise
__all__ = ["Pack", "pack", *_LAZY, *_MODULES]


def __dir__():
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"compactla.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"compactla.{_LAZY[name]}"), name)
    globals()[name] = found
    return found
