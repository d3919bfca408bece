"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg.cho_factor import cho_factor
from compactla.linalg.cho_solve import cho_solve
from compactla.linalg.cholesky import cholesky
from compactla.linalg.expm import expm
from compactla.linalg.solve import solve
from compactla.linalg.solve_banded import solve_banded
from compactla.linalg.solveh_banded import solveh_banded

__all__ = ["LinAlgError", "cho_factor", "cho_solve", "cholesky", "expm", "solve", "solve_banded", "solveh_banded"]
