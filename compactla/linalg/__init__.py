"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg.det import det, slogdet
from compactla.linalg.inv import inv
from compactla.linalg.lu import lu_factor, lu_solve
from compactla.linalg.matrix_power import matrix_power
from compactla.linalg.solve import solve
from compactla.linalg.solve_triangular import solve_triangular

__all__ = [
    "LinAlgError",
    "det",
    "inv",
    "lu_factor",
    "lu_solve",
    "matrix_power",
    "slogdet",
    "solve",
    "solve_triangular",
]
