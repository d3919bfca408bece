"""The choice of kernels: properties of matrices that are known when a kernel is compiled, and the cost of its work."""

import numpy as np

from compactla.cpu.emit.matrices import native_width
from compactla.cpu.emit.numba_matrices import form
from compactla.view import Layout

# Sizes for which code is compiled that knows the size; larger ones share code.
STATIC = 32
# Bytes that are moved in the time of a vector operation, where they come from a cache that several cores share.
MOVED = 16


def width(dtype: np.dtype, vlen: int) -> int:
    """Lanes to compute with at a time: a divisor of the vector length that fits a register."""
    native = native_width(dtype)
    return vlen if vlen <= native else next(w for w in range(native, 0, -1) if vlen % w == 0)


def parts(dtype: np.dtype) -> int:
    return 2 if dtype.kind == "c" else 1


def known_form(A: Layout, known, conj=False, stored="", sizes="mn", lanes=None):
    """Form of a matrix of which all is known, or nothing but the type, and which of the `sizes` are "1"."""
    lanes = lanes or width(A.dtype, A.vlen)
    if known:
        return form(A.dtype, lanes, A.m, A.n, A.strides, conj, stored)
    m, n = (1 if size == "1" else None for size in sizes)
    return form(A.dtype, lanes, m, n, conj=conj, stored=stored)


def pack_bytes(A: Layout) -> int:
    """Bytes of the matrices of a pack."""
    return A.m * A.n * A.vlen * A.dtype.itemsize


def operations(A: Layout, count, moved=0):
    """Vector operations as long as `count` multiply-adds of each matrix of a pack, or as moving so many bytes."""
    return max(A.vlen / width(A.dtype, A.vlen) * parts(A.dtype) ** 2 * count, moved / MOVED)
