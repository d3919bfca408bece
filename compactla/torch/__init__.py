"""torch.linalg for stacks of small matrices: functions that have derivatives and can be compiled.

Functions are called as those of the same names in `torch.linalg` (`cholesky_solve` and `matmul`: in `torch`), take
tensors on a CPU or a CUDA GPU, and return such, in PyTorch's named tuples. Nothing is copied: on a CPU kernels work on
the memory of tensors, in at most `torch.get_num_threads` threads, and on a GPU in the current stream. They work under
`torch.compile`, without a break of the graph, `torch.vmap` and `torch.func`, and can be derived in both modes, twice
and more often; derivatives are computed by the same kernels, with the factors that the first pass has. What PyTorch
refuses is refused, by errors that have its words, and its types.

Results and derivatives are those of `torch.linalg`. Two arguments are those of `compactla.linalg`:

on_error : {"raise", "nan"}
    Treatment of matrices that have no result: "raise" raises an error that names them, for which the host waits for a
    GPU, "nan" fills their results, and their derivatives, with NaN and leaves all others as they are.
compute : {"same", "double"}
    Computation dtype of single precision: the "same", as in PyTorch, or "double", as in NumPy, which is more accurate.
"""

from compactla.torch.cholesky import cholesky, cholesky_solve
from compactla.torch.det import det, slogdet
from compactla.torch.eigh import eigh, eigvalsh
from compactla.torch.inv import inv
from compactla.torch.lstsq import lstsq
from compactla.torch.matmul import gemm, matmul
from compactla.torch.matrix_exp import matrix_exp
from compactla.torch.pinv import pinv
from compactla.torch.qr import qr
from compactla.torch.solve import solve
from compactla.torch.solve_triangular import solve_triangular
from compactla.torch.svd import svd, svdvals

__all__ = [
    "cholesky",
    "cholesky_solve",
    "det",
    "eigh",
    "eigvalsh",
    "gemm",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]
