"""Direct LU factors of sparse matrices of one pattern: one order of pivots, and one list of operations, for all."""

import threading
from typing import NamedTuple

import numpy as np

from compactla.checks import as_array, check_launch, option
from compactla.layout import Pack, pack_padded
from compactla.sparse.csr import BatchCSR, as_given, columns, contiguous
from compactla.sparse.elimination import Tiles, ordered
from compactla.view import backend


class BatchLU:
    def __init__(self, A):
        self.A, self.nm, self.n, self.dtype, self.vlen = A, A.nm, A.shape[0], A.dtype, A.vlen
        self.perm, self.filled = ordered(A.pattern)
