"""Incomplete sparse approximate inverses: each row is the solution of a small dense system."""

from functools import cached_property

import numpy as np

from compactla.backends import backend, device_module
from compactla.dense.getrf import getrf
from compactla.dense.getrs import getrs
from compactla.foreign import accepts_foreign
from compactla.krylov.preconditioners import Preconditioner, operator_of
from compactla.layout import Pack
from compactla.sparse.csr import BatchCSR, Operator

# Sizes that small systems are filled up to, so that few kernels are compiled; larger ones share code.
SIZES = 3, 5, 9, 14, 20, 27, 32
NUMBERS = 2**22  # of the small systems that are solved at a time
ZERO, ONE = -1, -2  # in place of places among the values


class ISAI(Preconditioner):
    """The incomplete sparse approximate inverse M whose pattern is that of A, which has to have the whole diagonal.

    In the pattern of each row, M A is the identity. A row whose small system is exactly singular is that of `Jacobi`.

    Parameters
    ----------
    A : BatchCSR or Pack
        The matrices, which are square.

    Attributes
    ----------
    info : (nm,) ndarray of int64
        0, or i + 1 where the system of row i is the first that is exactly singular.

    Raises
    ------
    TypeError, ValueError
        If `A` is of another kind.

    See Also
    --------
    compactla.krylov.ILU0, compactla.krylov.Jacobi

    References
    ----------
    .. [1] Anzt, Huckle, Bräckle and Dongarra, "Incomplete sparse approximate inverses for parallel preconditioning",
       Parallel Computing 71 (2018).

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.pack(np.full((2, 3, 3), 1.0) + 4 * np.eye(3))
    >>> M = cla.krylov.ISAI(A)
    >>> bool(cla.krylov.gmres(A, np.ones((2, 3)), M=M)[1].converged.all())
    True
    """

    @accepts_foreign
    def __init__(self, A: BatchCSR | Pack) -> None:
        super().__init__(A)
        self._info = operator_of(A).pattern.diagonal  # which is looked for

    @property
    def info(self) -> np.ndarray:
        """(nm,) integers: 0, or i + 1 where the system of row i is the first that is exactly singular."""
        with self._reading:
            self.operator()
            found = backend(self.queue).download(self._info)[: self.nm].astype(np.int64)
        return np.where(found > self.n, 0, found)

    @cached_property
    def _groups(self):
        """Rows whose systems are filled up to one size, with the places of the values of these."""
        pattern = operator_of(self.A).pattern
        counts = np.diff(pattern.indptr)
        sizes = np.append(SIZES, np.arange(SIZES[-1] + 1, max(counts.max(initial=0), SIZES[-1]) + 1))
        of_rows = sizes[np.searchsorted(sizes, counts)]
        groups = [(k, np.flatnonzero(of_rows == k)) for k in np.unique(of_rows)]
        return [(rows, systems(pattern, rows, k)) for k, rows in groups]

    def _make(self, A, launch):
        values = A.values.beside(A.values.m, 1) if self._made is None else self._made.values
        if self.queue is not None:
            self._info = device_module("sparse").approximate(A.values, A.pattern, self._groups, values, launch)
            return Operator("csr", values, A.pattern)
        given, data, (npack, V) = A.values.data, values.data, (len(values.data), values.vlen)
        found = np.zeros((npack, V), np.int64)
        for rows, places in self._groups:
            size = places[0].size * V * data.dtype.itemsize // 8
            some = max(1, NUMBERS // (size * max(npack, 1)))
            packs = max(1, NUMBERS // size)
            for r in range(0, len(rows), some):
                for p in range(0, npack, packs):
                    part, which = slice(p, p + packs), slice(r, r + some)
                    solved(A.pattern, data[part], found[part], given[part], rows[which], places[which], launch.threads)
        self._info = found.reshape(-1)
        return Operator("csr", values, A.pattern)


def systems(pattern, rows, k):
    """(len(rows), k, k) where the entries of the small systems are, transposed, `ZERO` or `ONE`."""
    n, first, counts = pattern.n, pattern.indptr[rows, None], np.diff(pattern.indptr)[rows, None]
    there = np.arange(k) < counts
    columns = pattern.indices[np.where(there, first + np.arange(k), first)]
    keys, wanted = pattern.rows * n + pattern.indices, columns[:, None, :] * n + columns[:, :, None]
    places = np.searchsorted(keys, wanted)
    places[keys[np.minimum(places, len(keys) - 1)] != wanted] = ZERO
    places[~(there[:, None, :] & there[:, :, None])] = ZERO
    behind, unit = np.nonzero(~there)
    places[behind, unit, unit] = ONE
    return places


def solved(pattern, data, info, given, rows, places, threads):
    """Enter rows of the inverses into `data`, and into `info` where they are the first whose systems are singular."""
    count, k = places.shape[:2]
    flat, (npack, V) = places.reshape(-1), info.shape
    taken = given[:, np.maximum(flat, 0), 0]
    real = taken[..., 0, :] if taken.ndim == 4 else taken
    taken[:, flat < 0] = 0
    real[:, flat == ONE] = 1
    matrices = Pack(taken.reshape(npack * count, k, k, *taken.shape[2:]))
    unit = pattern.diagonal[rows] - pattern.indptr[rows]
    sides = np.zeros((npack, count, k, 1, *taken.shape[2:]), taken.dtype)
    ones = sides[..., 0, :] if taken.ndim == 4 else sides
    ones[:, np.arange(count), unit] = 1
    columns = Pack(sides.reshape(npack * count, *sides.shape[2:]))
    ipiv, singular = getrf(matrices, threads=threads)
    getrs(matrices, ipiv, columns, threads=threads)
    bad = singular.reshape(npack, count, V) != 0
    p, row, lane = np.nonzero(bad)
    sides[p, row, ..., lane] = 0
    diagonal = given[p, pattern.diagonal[rows[row]], 0, ..., lane]
    sides[p, row, unit[row], 0, ..., lane] = reciprocals(diagonal)
    for c in range(count):
        first, last = pattern.indptr[rows[c]], pattern.indptr[rows[c] + 1]
        data[:, first:last] = sides[:, c, : last - first]
    first = np.where(bad, rows[:, None] + 1, pattern.n + 1).min(1)
    np.copyto(info, first, where=(first <= pattern.n) & ((info == 0) | (first < info)))


def reciprocals(x):
    """1 / x, and 1 where it is zero, of numbers that are pairs of real and imaginary parts if they are complex."""
    z = x[..., 0] + 1j * x[..., 1] if x.ndim == 2 else x
    with np.errstate(all="ignore"):
        inverse = 1 / np.where(z == 0, 1, z)
    return np.stack([inverse.real, inverse.imag], -1) if x.ndim == 2 else inverse
