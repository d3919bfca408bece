"""numpy.linalg, and functions of scipy.linalg, for stacks of small matrices.

Names, signatures and results are NumPy's and SciPy's. The stacks are computed many matrices at a time, and a matrix that
has no result is named, or filled with NaN.
"""

from numpy.linalg import LinAlgError as LinAlgError

from compactla.linalg.cho_factor import cho_factor as cho_factor
from compactla.linalg.cho_solve import cho_solve as cho_solve
from compactla.linalg.cholesky import cholesky as cholesky
from compactla.linalg.eigh import eigh as eigh
from compactla.linalg.eigh import eigvalsh as eigvalsh
from compactla.linalg.lstsq import lstsq as lstsq
from compactla.linalg.norms import cond as cond
from compactla.linalg.norms import matrix_norm as matrix_norm
from compactla.linalg.norms import matrix_rank as matrix_rank
from compactla.linalg.norms import norm as norm
from compactla.linalg.norms import vector_norm as vector_norm
from compactla.linalg.pinv import pinv as pinv
from compactla.linalg.qr import qr as qr
from compactla.linalg.solve import solve as solve
from compactla.linalg.solve_banded import solve_banded as solve_banded
from compactla.linalg.solveh_banded import solveh_banded as solveh_banded
from compactla.linalg.svd import svd as svd
from compactla.linalg.svd import svdvals as svdvals
