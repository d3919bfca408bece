"""The block rows that form lines, and the places of their blocks: the symbolic part of preconditioners."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from compactla.checks import check_dtype, check_size, check_unmasked
from compactla.cpu.late import CompiledLate
from compactla.lines.cutting import check_periodic
from compactla.lines.host_copies import Runs
from compactla.lines.sizes import PADDING, Sizes, check_sizes
from compactla.pickling import Copied


class Paths(NamedTuple):
    """The way that lines take through the block rows of a matrix."""

    rows: np.ndarray  # the block rows of all lines, one line after the other
    length: np.ndarray  # (nlines,)
    ring: np.ndarray  # (nlines,): whether the last and the first block row of a line are neighbours too

    @property
    def line(self):
        """The line of each of `rows`."""
        return np.repeat(np.arange(len(self.length)), self.length)

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """For each block row the line that it is on, and its place there."""
        line, place = np.empty((2, len(self.rows)), np.int64)
        line[self.rows] = self.line
        place[self.rows] = np.arange(len(self.rows)) - np.repeat(np.cumsum(self.length) - self.length, self.length)
        return line, place

    def some(self, which) -> "Paths":
        """The lines for which `which` holds."""
        return Paths(self.rows[which[self.line]], self.length[which], self.ring[which])


def check_paths(lines, nrow: int, periodic) -> Paths:
    """Check that every one of `nrow` block rows is on exactly one line.

    Parameters
    ----------
    lines : sequence of sequences of int, or (nlines, length) array of int
        The block rows along each line.
    nrow : int
        Number of block rows of the matrix.
    periodic : bool or (nlines,) array_like of bool
        Which lines close to rings. Those of one or two blocks do not, as these are coupled in one way only.

    Raises
    ------
    TypeError
        If `lines` is not a sequence of sequences of integers, or `periodic` not of bool.
    ValueError
        If a line is empty or a block row is out of range, on no line or there twice, or `periodic` does not fit.
    """
    rows, length = flatten(lines)
    check_cover(rows, np.repeat(np.arange(len(length)), length), nrow)
    return Paths(rows, length, check_periodic(periodic, len(length)) & (length > 2))


def flatten(lines: Any) -> tuple[np.ndarray, np.ndarray]:
    """All lines in one array, and their lengths."""
    if isinstance(lines, np.ndarray) and lines.ndim == 2:
        check_unmasked(lines, "lines")
        arrays, length = [lines.ravel()], np.full(len(lines), lines.shape[1], np.int64)
    else:
        try:
            lines = list(lines)
            check_unmasked(lines, "lines")
            length = np.array([len(line) for line in lines], np.int64)
            arrays = [np.asarray(line) for line in lines]
        except (TypeError, ValueError) as error:
            raise TypeError(f"lines must be a sequence of sequences of block rows: {error}") from error
    empty = np.flatnonzero(length == 0)
    if len(empty):
        raise ValueError(f"lines[{empty[0]}] is empty, must hold at least one block row")
    dimensions, types = {a.ndim for a in arrays}, {a.dtype for a in arrays}
    if not dimensions <= {1}:
        raise TypeError(f"lines has {max(dimensions) + 1} dimensions, must be a sequence of sequences of integers")
    for dtype in types:
        if dtype.kind not in "iu":
            raise TypeError(f"lines holds entries of type {dtype}, must hold integers")
    if np.dtype(np.uint64) in types:
        largest = max(a.max(initial=0) for a in arrays)
        if largest > np.iinfo(np.int64).max:
            raise ValueError(f"lines holds block row {largest}, must be less than 2**63")
    return np.concatenate([np.zeros(0, np.int64), *arrays], dtype=np.int64), length


def split(flat, length) -> list[np.ndarray]:
    """The block rows along each line, of all lines in one array."""
    stop = np.cumsum(length)
    return [flat[i:j] for i, j in zip((stop - length).tolist(), stop.tolist(), strict=True)]


def check_cover(flat: np.ndarray, line: np.ndarray, nrow: int) -> None:
    outside = np.flatnonzero((flat < 0) | (flat >= nrow))
    if len(outside):
        i = outside[0]
        raise ValueError(f"lines[{line[i]}] holds block row {flat[i]}, must be one of 0 to {nrow - 1}")
    count = np.bincount(flat, minlength=nrow)
    wrong = np.flatnonzero(count != 1)
    if len(wrong):
        row = wrong[0]
        on = [f"lines[{i}]" for i in line[flat == row]]
        where = " and ".join(on[:2]) if on else "no line"
        message = f"block row {row} is on {where}, must be on exactly one line"
        raise ValueError(f"{message} ({len(wrong)} of {nrow} block rows are not)")


def check_matrix(M: Any, block_size: Any = None) -> Sizes:
    """The sizes of the block rows of a square sparse matrix that lines can be taken from.

    Raises
    ------
    TypeError
        If `M` is not a scipy.sparse matrix or array in BSR or CSR format, or `block_size` holds other than integers.
    ValueError
        If `M` is not square, its arrays do not fit together, or it is not made of square blocks of `block_size`.
    """
    if not scipy.sparse.issparse(M):
        raise TypeError(f"M is a {type(M).__name__}, must be a scipy.sparse matrix in BSR or CSR format")
    if M.format not in ("bsr", "csr"):
        raise TypeError(f"M is in {M.format.upper()} format, must be BSR or CSR: convert it with M.tocsr()")
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"M has shape {M.shape}, must be square")
    check_pattern(M)
    if not (block_size is None or np.ndim(block_size)):
        check_size(block_size, "block_size")
    if M.format == "bsr":
        b, columns = M.blocksize
        if b != columns:
            raise ValueError(f"M has blocks of {b} x {columns}, must have square blocks")
        if np.ndim(block_size):
            raise ValueError("block_size is an array, must be an integer for a matrix in BSR format: use M.tocsr()")
        if block_size not in (None, b):
            raise ValueError(f"block_size is {block_size}, must be that of M, {b}")
    elif block_size is None:
        raise ValueError("block_size is missing, must be given for a matrix in CSR format")
    elif np.ndim(block_size):
        return Sizes(check_sizes(block_size, M.shape[0]))
    elif block_size < 1 or M.shape[0] % block_size:
        raise ValueError(f"block_size is {block_size}, must divide the {M.shape[0]} rows of M")
    else:
        b = int(block_size)
    return Sizes(np.full(M.shape[0] // b, b, np.int64))


def check_pattern(M: Any) -> None:
    """Refuse a matrix in BSR, CSR or CSC format whose arrays do not fit together, which nothing else looks at again."""
    shape = M.shape[::-1] if M.format == "csc" else M.shape
    for name, dimensions in (("data", 3 if M.format == "bsr" else 1), ("indptr", 1), ("indices", 1)):
        a = getattr(M, name)
        if not _is_plain(a) or a.ndim != dimensions:
            raise ValueError(f"M.{name} is a {type(a).__name__} {np.shape(a)}, must be a {dimensions}-D array")
        if name != "data" and (a.dtype.kind not in "iu" or not a.dtype.isnative or a.dtype == np.uint64):
            raise ValueError(f"M.{name} is an array of {a.dtype}, must be one of integers that fit into int64")
    height, width = M.data.shape[1:] or (1, 1)
    if not height or not width or shape[0] % height or shape[1] % width:
        raise ValueError(f"M has blocks of {height} x {width}, must have some that divide its shape {M.shape}")
    nrow, ncol, indptr = shape[0] // height, shape[1] // width, M.indptr
    if len(indptr) != nrow + 1:
        raise ValueError(f"M.indptr has {len(indptr)} entries, must have {nrow + 1}")
    stored = min(len(M.indices), len(M.data))
    if indptr[0] != 0 or indptr[-1] > stored:
        raise ValueError(f"M.indptr goes from {indptr[0]} to {indptr[-1]}, must go from 0 to at most {stored}")
    if not _fits(indptr, M.indices, ncol):
        falls = np.flatnonzero(indptr[1:] < indptr[:-1])
        if len(falls):
            i = falls[0]
            raise ValueError(f"M.indptr[{i + 1}] is {indptr[i + 1]}, must be at least {indptr[i]}, the one before")
        indices = M.indices[: indptr[-1]]
        i = np.flatnonzero((indices < 0) | (indices >= ncol))[0]
        raise ValueError(f"M.indices[{i}] is {indices[i]}, must be one of 0 to {ncol - 1}")


def _is_plain(a) -> bool:
    return isinstance(a, np.ndarray) and not isinstance(a, np.ma.MaskedArray)


@CompiledLate
def _fits(indptr, indices, ncol):
    """Whether `indptr` does not fall, and all indices that it spans are among those of `ncol` columns."""
    fits = True
    for i in range(len(indptr) - 1):
        fits &= indptr[i] <= indptr[i + 1]
    if fits:
        for k in range(indptr[-1]):
            fits &= (indices[k] >= 0) & (indices[k] < ncol)
    return fits


class Blocks(NamedTuple):
    """The pattern of the blocks of a matrix, in CSR form, and where in its values each is."""

    indptr: np.ndarray
    indices: np.ndarray
    place: np.ndarray  # (nblocks,) in BSR form; in CSR form those of numbers, (nblocks, b, b), -1 for none


class Extraction(Copied):
    """The places of a sparse matrix's blocks in its values.

    Parameters
    ----------
    M : scipy.sparse BSR or CSR matrix or array, (n, n)
        The matrix; it is checked.
    block_size : int, array of int or None
        The size of its blocks, or of each block row; None for that of a BSR matrix.

    Attributes
    ----------
    sizes
        The sizes of its block rows.
    indptr, indices
        The pattern, as the first matrix stored it, duplicates summed.
    data_shape
        Shape of the values that places count in.
    """

    def __init__(self, M, block_size=None):
        self.sizes, self.dtype = check_matrix(M, block_size), check_dtype(M.dtype, "M")
        canonical = _canonical(M)
        if canonical.nnz < M.nnz:
            M = canonical
        self.format, self.shape = M.format, M.shape
        self.nrow, b = len(self.sizes.size), self.sizes.largest
        self.block_size = self.sizes.size if self.sizes.differ else b
        self._start = np.arange(self.nrow + 1) if self.format == "bsr" else self.sizes.start
        self.indptr, self.indices = M.indptr.copy(), M.indices[: M.indptr[-1]].copy()
        self.data_shape = (len(self.indices), *M.data.shape[1:])

    def blocks(self) -> Blocks:
        """All blocks that the matrix has, those of a row side by side."""
        if self.format == "bsr":
            return Blocks(self.indptr, self.indices, np.arange(len(self.indices), dtype=np.int64))
        b, numbered = self.sizes.largest, np.arange(1, len(self.indices) + 1, dtype=np.int64)
        places = scipy.sparse.csr_array((numbered, self.indices, self.indptr), shape=self.shape)
        B = self.sizes.padded(places).tobsr(blocksize=(b, b))
        return Blocks(B.indptr, B.indices, B.data - 1)

    def find(self, row, column, no_row: int) -> np.ndarray:
        """Places of the blocks (row, column), both (n, V): (n, V), or (n, b, b, V) of numbers for a CSR matrix.

        -1 stands for a block, or number, of zero; `no_row` is where there are no such rows. Where it is -2, as for
        blocks on the diagonal, the diagonal has `PADDING` past the size of a block row.
        """
        b = 1 if self.format == "bsr" else self.sizes.largest
        place = np.full((len(row), b, b, row.shape[1]), -1, np.int64)
        _find_blocks(self.indptr, self.indices, self._start, row, column, no_row, place)
        return place[:, 0, 0] if self.format == "bsr" else place

    def values_of(self, rows: Runs) -> Runs:
        """All values of these block rows."""
        start = self.indptr[self._start]
        return Runs(start[rows.first], start[rows.stop])

    def matrix(self, data):
        """The matrix of this pattern with these values, in the order that the places count."""
        make = scipy.sparse.bsr_array if self.format == "bsr" else scipy.sparse.csr_array
        return make((data, self.indices, self.indptr), shape=self.shape)

    def values(self, M) -> np.ndarray:
        """The values of a matrix of the same pattern, in the order that the places count.

        Raises
        ------
        TypeError, ValueError
            If the format, the shape, the block size, the dtype or the pattern is another.
        """
        if self._stores_alike(M):
            return np.ascontiguousarray(M.data[: len(self.indices)])
        check_matrix(M, self.block_size)
        if M.dtype != self.dtype:
            raise TypeError(f"M: dtype is {M.dtype}, must be {self.dtype} as at first")
        if M.format != self.format or M.shape != self.shape:
            raise ValueError(f"M is {M.format} {M.shape}, must be {self.format} {self.shape} as at first")
        M = _canonical(M)
        first = _csr(self, np.arange(len(self.indices)))
        first.sort_indices()
        if not _same_pattern(M, first):
            raise ValueError(f"M has another sparsity pattern than at first: {_difference(M, first)}")
        data = np.empty_like(M.data[: M.indptr[-1]])
        data[first.data] = M.data[: M.indptr[-1]]
        return data

    def _stores_alike(self, M) -> bool:
        """Whether only the values of `M` have changed: what it is compared with was checked."""
        if not scipy.sparse.issparse(M) or (M.format, M.shape) != (self.format, self.shape):
            return False
        if not all(_is_plain(a) and a.ndim for a in (M.data, M.indices, M.indptr)):
            return False
        if M.dtype != self.dtype or M.data[: len(self.indices)].shape != self.data_shape:
            return False
        return _same_pattern(M, self)


@CompiledLate
def _find_blocks(indptr, indices, start, row, column, no_row, place):
    """Place of each entry of the blocks (row, column), padded to b x b each, of a matrix in CSR form.

    Block rows and columns begin at `start`. What stays as it is, -1, has no entry, or is off the diagonal of a block
    whose row or column is -1, which has `no_row` on it.
    """
    b = place.shape[1]
    for s in range(place.shape[0]):
        for v in range(place.shape[3]):
            for i in range(b):
                if row[s, v] < 0 or column[s, v] < 0:
                    place[s, i, i, v] = no_row
                elif start[row[s, v]] + i < start[row[s, v] + 1]:
                    first, end = start[column[s, v]], start[column[s, v] + 1]
                    for k in range(indptr[start[row[s, v]] + i], indptr[start[row[s, v]] + i + 1]):
                        if first <= indices[k] < end:
                            place[s, i, indices[k] - first, v] = k
                elif no_row == -2:
                    place[s, i, i, v] = PADDING


def _canonical(M):
    """`M`, or, where its indices are not sorted or not unique, a copy with that, duplicates summed."""
    if M.has_canonical_format:
        return M
    M = M.copy()
    M.sort_indices()
    M.sum_duplicates()
    return M


def _same_pattern(M, first) -> bool:
    return np.array_equal(M.indptr, first.indptr) and np.array_equal(M.indices[: len(first.indices)], first.indices)


def _csr(M, data):
    """The pattern of `M`, of its blocks if it has some, with other values."""
    n = len(M.indptr) - 1
    return scipy.sparse.csr_array((data, M.indices[: len(data)], M.indptr), shape=(n, n), copy=True)


def _difference(M, first) -> str:
    """Names the first entry in which two patterns differ."""
    extra, missing = (_csr(P, np.ones(P.indptr[-1], np.int8)) for P in (M, first))
    difference = (extra - missing).tocoo()
    i = np.flatnonzero(difference.data)[0]
    kind = "block" if M.format == "bsr" else "entry"
    change = "new" if difference.data[i] > 0 else "missing"
    return f"{kind} ({difference.row[i]}, {difference.col[i]}) is {change}"
