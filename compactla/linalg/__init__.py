"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg.cho_factor import cho_factor
from compactla.linalg.cho_solve import cho_solve
from compactla.linalg.cholesky import cholesky
from compactla.linalg.lstsq import lstsq
from compactla.linalg.qr import QRResult, qr
from compactla.linalg.solve import solve
from compactla.linalg.solve_banded import solve_banded
from compactla.linalg.solveh_banded import solveh_banded

__all__ = ["LinAlgError", "cho_factor", "cho_solve", "cholesky", "solve", "solve_banded", "solveh_banded"]
__all__ = ["LinAlgError", "QRResult", "lstsq", "qr", "solve"]
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
