"""Krylov methods for one large system, or for batches of small ones, each of which stops when it has converged."""

from compactla.krylov.isai import ISAI
from compactla.krylov.lines import Lines
from compactla.krylov.preconditioners import ILU0, BlockJacobi, Identity, Jacobi
from compactla.krylov.solve import Report, bicgstab, cg, gmres

__all__ = [
    "ILU0",
    "ISAI",
    "BlockJacobi",
    "Identity",
    "Jacobi",
    "Lines",
    "Report",
    "SparseMatrix",
    "bicgstab",
    "cg",
    "gmres",
]


def __getattr__(name):
    if name != "SparseMatrix":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compactla.krylov.system import SparseMatrix

    return SparseMatrix
