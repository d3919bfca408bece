"""numpy.linalg, and functions of scipy.linalg, for stacks of small matrices.

Names, signatures and results are NumPy's and SciPy's. Many matrices are computed at a time, and one that has no result
is named, or filled with NaN. See README.md beside this file.
"""

from numpy.linalg import LinAlgError

from compactla.linalg import _numpy_only
from compactla.linalg._numpy_only import *  # noqa: F403 - all that gains nothing here
from compactla.linalg.cho_factor import cho_factor
from compactla.linalg.cho_solve import cho_solve
from compactla.linalg.cholesky import cholesky
from compactla.linalg.cholesky_update import cholesky_update
from compactla.linalg.det import det, slogdet
from compactla.linalg.eig import eig, eigvals
from compactla.linalg.eigh import eigh, eigvalsh
from compactla.linalg.expm import expm
from compactla.linalg.fractional_matrix_power import fractional_matrix_power
from compactla.linalg.inv import inv
from compactla.linalg.ldl import ldl
from compactla.linalg.logm import logm
from compactla.linalg.lstsq import lstsq
from compactla.linalg.lu import lu_factor, lu_solve
from compactla.linalg.matmul import matmul
from compactla.linalg.matrix_power import matrix_power
from compactla.linalg.nnls import nnls
from compactla.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from compactla.linalg.pinv import pinv
from compactla.linalg.qr import qr
from compactla.linalg.schur import hessenberg, schur
from compactla.linalg.solve import solve
from compactla.linalg.solve_banded import solve_banded
from compactla.linalg.solve_triangular import solve_triangular
from compactla.linalg.solveh_banded import solveh_banded
from compactla.linalg.sqrtm import sqrtm
from compactla.linalg.svd import svd, svdvals
from compactla.linalg.sylvester import solve_continuous_lyapunov, solve_discrete_lyapunov, solve_sylvester

__all__ = [
    "LinAlgError",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cholesky_update",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "fractional_matrix_power",
    "hessenberg",
    "inv",
    "ldl",
    "logm",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "nnls",
    "norm",
    "pinv",
    "qr",
    "schur",
    "slogdet",
    "solve",
    "solve_banded",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "svd",
    "svdvals",
    "vector_norm",
]
__all__ += _numpy_only.__all__
