"""matmul: products."""

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from compactla.calls.recording import repeats
from compactla.checks import check_dtype, check_launch, is_device_array
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.threads.sharing import THREADS, parts_for
from compactla.dense.gemm import gemm
from compactla.foreign import adopt
from compactla.linalg import _dispatched
from compactla.linalg.arguments import as_arrays, common_lead
from compactla.linalg.stacks import Result, Stacked
from compactla.strides import in_stack
from compactla.types import Array


@repeats()
def matmul(x1: Array, x2: Array, /, *, threads: int | None = None) -> Array:
    """Products x1 x2, for stacks of matrices.

    Parameters
    ----------
    x1, x2 : (k,) or (..., m, k), (k,) or (..., k, n) array_like
        Factors: a vector, a row or a column, where there is one axis, else matrices. Stacks are broadcast against each
        other.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., m, n) ndarray
        Products, without the axis of a vector.

    Raises
    ------
    ValueError
        If shapes do not fit together, or one is that of a number.

    See Also
    --------
    numpy.matmul : The same, one matrix after the other, which is called where it is as fast.
    compactla.gemm : The same for packs.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.matmul(np.arange(4.0).reshape(2, 1, 2), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([[[0., 2.]],
    <BLANKLINE>
           [[2., 8.]]])
    """
    if type(x1) is type(x2) is np.ndarray and threads is None and not gains(x1, x2):
        return np.matmul(x1, x2)
    x1, x2 = adopt(x1, "x1"), adopt(x2, "x2")
    if is_device_array(x1) or is_device_array(x2):
        as_arrays(x1, x2, devices=("x1", "x2"))
        check_dtype(x1.dtype, "x1")
        check_dtype(x2.dtype, "x2")
    else:
        if threads is not None:
            check_launch(threads, None, None)
        if not gains(x1, x2, threads):
            return np.matmul(x1, x2) if type(x1) is type(x2) is np.ndarray else NUMPYS(x1, x2)
    a = x1[None] if x1.ndim == 1 else x1
    b = x2[:, None] if x2.ndim == 1 else x2
    product = multiplied(a, b, threads)
    if product is None:
        (product,) = MATMUL((a, b), compute="same", threads=threads)
    if x1.ndim == 1:
        return product[..., 0, :] if x2.ndim > 1 else product[0, 0]
    return product[..., 0] if x2.ndim == 1 else product


def multiplied(a, b, threads):
    """Products of matrices of one type that are evenly far apart, as `compactla.gemm` computes them; None of others."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.dtype != b.dtype or not a.dtype.isnative:
        return None
    if a.shape[-1] != b.shape[-2]:
        return None
    if max(a.ndim, b.ndim) == 3 and (min(a.ndim, b.ndim) == 2 or len(a) == len(b)):
        lead, stacks = (len(a if a.ndim == 3 else b),), [a, b]
    else:
        lead, stacks = common_lead((a, b)), []
        if lead is None:
            return None
        for x in (a, b):
            (*_, rs, cs), step = in_stack(x, lead)
            if step is None:
                return None
            stacks.append(as_strided(x, (math.prod(lead), *x.shape[-2:]), (step, rs, cs)))
    product = np.empty((math.prod(lead), a.shape[-2], b.shape[-1]), a.dtype)
    gemm(*stacks, product, threads=threads)
    return product if len(lead) == 1 else product.reshape(*lead, *product.shape[1:])


def gains(x1: Any, x2: Any, threads: int | None = None) -> bool:
    """Whether factors are arrays of matrices so many and so small that NumPy's products are slower.

    NumPy takes some nanoseconds more for each product, and some microseconds less for a call, and has no threads for
    the matrices of a stack.
    """
    if type(x1) is not np.ndarray or type(x2) is not np.ndarray or max(x1.size, x2.size) < MANY:
        return False
    if not FLOATS.issuperset((x1.dtype.char, x2.dtype.char)) or not x1.ndim or not x2.ndim:
        return False
    if x1.ndim < 3 and x2.ndim < 3:
        return False
    k = x1.shape[-1]
    m, n = (x1.shape[-2] if x1.ndim > 1 else 1), (x2.shape[-1] if x2.ndim > 1 else 1)
    if m * k + k * n + m * n <= FEW:
        return True
    extent = max(m, k, n)
    if x1.dtype != x2.dtype or extent > LARGEST:
        return False
    count = max(x1.size // max(m * k, 1), x2.size // max(k * n, 1))
    if count >= COUNT and not are_dots(x1, x2, m, n, k):
        return True
    return THREADS > 1 and parts_for(count * m * k * n / native_width(x1.dtype), count, threads) > 1


def are_dots(x1: np.ndarray, x2: np.ndarray, m: int, n: int, k: int) -> bool:
    """Whether products are of a vector and a large matrix, of which what is added up follows each other in memory."""
    if n == 1:
        matrix, step = x1, x1.strides[-1]
    elif m == 1:
        matrix, step = x2, x2.strides[-2]
    else:
        return False
    return step == matrix.itemsize and max(m, n) * k * matrix.itemsize > VECTOR


NUMPYS = getattr(_dispatched, "matmul", np.matmul)  # numpy.linalg has it since NumPy 2
FLOATS = frozenset("fdFD")
MANY = 4096  # numbers in a factor
# Extent of matrices of one type, and their number from which on one thread gains; bytes of matrices of which NumPy's
# products with vectors are as fast.
LARGEST, COUNT, VECTOR = 32, 500, 2304
FEW = 75  # numbers in a product and its factors: those of 5 x 5
MATMUL = Stacked(
    "matmul",
    inputs={"x1": "mk", "x2": "kn"},
    outputs=(Result("mn"),),
    work=lambda m, k, n, **_: m * k * n,
    numpy=np.matmul,
    fails=False,
)
