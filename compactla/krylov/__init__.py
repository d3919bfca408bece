"""Krylov methods for batches of small systems, each of which stops when it has converged."""

from compactla.krylov.preconditioners import ILU0, BlockJacobi, Identity, Jacobi
from compactla.krylov.solve import Report, bicgstab, cg, gmres

__all__ = ["ILU0", "BlockJacobi", "Identity", "Jacobi", "Report", "bicgstab", "cg", "gmres"]
