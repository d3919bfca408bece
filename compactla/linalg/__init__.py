"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg.eigh import eigh, eigvalsh
from compactla.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from compactla.linalg.pinv import pinv
from compactla.linalg.solve import solve
from compactla.linalg.svd import svd, svdvals

__all__ = [
    "LinAlgError",
    "cond",
    "eigh",
    "eigvalsh",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "pinv",
    "solve",
    "svd",
    "svdvals",
    "vector_norm",
]
