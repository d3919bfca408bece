"""The pattern that the matrices of a batch share: where their values are."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from compactla.checks import as_integers, check_size


class Pattern:
    """Rows and columns of values, in the order of rows, and in a row of columns.

    Parameters
    ----------
    indices, indptr : (nnz,) and (m + 1,) array_like of int
        See `scipy.sparse.csr_array`; columns may be in any order, but not twice in a row.
    shape : (int, int) or None
        (m, n); default: as many columns as there are rows.

    Attributes
    ----------
    indptr, indices : ndarray of int64
        The pattern with the columns of each row in ascending order.
    order : ndarray of int64 or None
        Where the values are in the order that was given; None if it is this one.
    """

    def __init__(self, indices: Any, indptr: Any, shape: Any = None) -> None:
        self.indptr, given = as_integers(indptr, "indptr"), as_integers(indices, "indices")
        if self.indptr.ndim != 1 or not self.indptr.size:
            raise ValueError(f"indptr has shape {self.indptr.shape}, must be (m + 1,)")
        if given.ndim != 1:
            raise ValueError(f"indices has shape {given.shape}, must be (nnz,)")
        self.m = len(self.indptr) - 1
        self.n = self.m if shape is None else self._columns(shape)
        counts = np.diff(self.indptr)
        if self.indptr[0] or self.indptr[-1] != len(given) or counts.min(initial=0) < 0:
            raise ValueError(f"indptr must ascend from 0 to the {len(given)} entries of indices")
        if len(given) and not 0 <= given.min() <= given.max() < self.n:
            raise ValueError(f"indices are from {given.min()} to {given.max()}, must be from 0 to {self.n - 1}")
        self.rows = np.repeat(np.arange(self.m, dtype=np.int64), counts)
        key = self.rows * max(self.n, 1) + given
        order = np.argsort(key, kind="stable")
        if not np.diff(key[order]).all():
            twice = order[np.flatnonzero(np.diff(key[order]) == 0)[0]]
            raise ValueError(f"indices has column {given[twice]} twice in row {self.rows[twice]}, must have it once")
        self.order = None if (np.diff(order) == 1).all() else order
        self.indices = given if self.order is None else given[order]

    def _columns(self, shape):
        try:
            m, n = shape
        except (TypeError, ValueError):
            raise ValueError(f"shape is {shape!r}, must be (m, n)") from None
        if check_size(m, "shape[0]") != self.m:
            raise ValueError(f"shape is {shape!r}, must have the {self.m} rows of indptr")
        return check_size(n, "shape[1]")

    @classmethod
    def of(cls, rows: np.ndarray, columns: np.ndarray, n: int) -> "Pattern":
        """The pattern of n x n matrices with entries in these rows and columns, which may be there several times."""
        keys = np.sort(rows * max(n, 1) + columns)
        rows, columns = np.divmod(keys[np.diff(keys, prepend=-1) > 0], max(n, 1))
        return cls(columns, np.append(0, np.bincount(rows, minlength=n).cumsum()))

    @classmethod
    @lru_cache(16)
    def dense(cls, n: int) -> "Pattern":
        """The pattern of n x n matrices without zeros."""
        return cls(np.tile(np.arange(n), n), np.arange(n + 1) * n)

    @cached_property
    def places(self) -> np.ndarray:
        """(m, n) where each entry is among the values, -1 for one that is not; there must be few enough."""
        places = np.full((self.m, self.n), -1, np.int64)
        places[self.rows, self.indices] = np.arange(len(self.indices))
        return places

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The places of the diagonal in the values; an error if some of it is missing."""
        found = np.flatnonzero(self.rows == self.indices)
        if self.m != self.n or len(found) < self.n:
            missing = np.setdiff1d(np.arange(self.n), self.indices[found])
            what = f"is {self.m} x {self.n}" if self.m != self.n else f"has no entry ({missing[0]}, {missing[0]})"
            raise ValueError(f"A {what}, must be square with its whole diagonal in the pattern")
        return found

    @cached_property
    def transposed(self) -> tuple[np.ndarray, ...]:
        """indptr and indices of the transposes, and where their entries are among the values."""
        order = np.lexsort((self.rows, self.indices))
        counts = np.bincount(self.indices, minlength=self.n)
        return np.append(0, counts.cumsum()), self.rows[order], order

    @cached_property
    def work(self) -> int:
        """Multiply-adds of incomplete factors without fill."""
        right = self.indptr[1:] - self.diagonal
        return int(right[self.indices[self.indices < self.rows]].sum())

    def blocks(self, b: int) -> np.ndarray:
        """(blocks, b, b) where the entries of the blocks on the diagonal are, -1 for zero, -2 for one behind n."""
        count = -(-self.n // b)
        places = np.full((count, b, b), -1, np.int64)
        block, row, column = self.rows // b, self.rows % b, self.indices % b
        inside = block == self.indices // b
        places[block[inside], row[inside], column[inside]] = np.flatnonzero(inside)
        behind = np.arange(self.n, count * b)
        places[behind // b, behind % b, behind % b] = -2
        return places
