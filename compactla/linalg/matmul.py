"""matmul: products."""

import numpy as np

from compactla.checks import check_dtype, check_launch, is_device_array
from compactla.linalg import numpys
from compactla.linalg.places import as_arrays
from compactla.linalg.stacks import Result, Stacked


def matmul(x1, x2, /, *, threads=None):
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
    if type(x1) is type(x2) is np.ndarray and threads is None and x1.size < MANY and x2.size < MANY:
        return np.matmul(x1, x2)
    if is_device_array(x1) or is_device_array(x2):
        as_arrays(x1, x2, devices=("x1", "x2"))
        check_dtype(x1.dtype, "x1")
        check_dtype(x2.dtype, "x2")
    else:
        if threads is not None:
            check_launch(threads, None, None)
        if not gains(x1, x2):
            return NUMPYS(x1, x2)
        if x2.ndim == 2 and x1.flags.c_contiguous:
            return np.matmul(x1.reshape(-1, x1.shape[-1]), x2).reshape(*x1.shape[:-1], x2.shape[1])
    a = x1[None] if x1.ndim == 1 else x1
    b = x2[:, None] if x2.ndim == 1 else x2
    (product,) = MATMUL((a, b), compute="same", threads=threads)
    if x1.ndim == 1:
        return product[..., 0, :] if x2.ndim > 1 else product[0, 0]
    return product[..., 0] if x2.ndim == 1 else product


def gains(x1, x2):
    """Whether factors are arrays of matrices so many and so small that NumPy's products are slower."""
    if type(x1) is not np.ndarray or type(x2) is not np.ndarray:
        return False
    if not (min(x1.ndim, x2.ndim) and max(x1.ndim, x2.ndim) > 2 and max(x1.size, x2.size) >= MANY):
        return False
    k = x1.shape[-1]
    m, n = (x1.shape[-2] if x1.ndim > 1 else 1), (x2.shape[-1] if x2.ndim > 1 else 1)
    return m * k + k * n + m * n <= FEW and FLOATS.issuperset((x1.dtype.char, x2.dtype.char))


NUMPYS = getattr(numpys, "matmul", np.matmul)  # numpy.linalg has it since NumPy 2
FLOATS = frozenset("fdFD")
MANY = 4096  # numbers in a factor
FEW = 75  # numbers in a product and its factors: those of 5 x 5
MATMUL = Stacked(
    "matmul",
    inputs={"x1": "mk", "x2": "kn"},
    outputs=(Result("mn"),),
    work=lambda m, k, n, **_: m * k * n,
    numpy=np.matmul,
)
