"""The sparse systems with lines that the tests of lines, preconditioner and command line share."""

from importlib.resources import files
from itertools import pairwise

import numpy as np
import scipy.sparse

from cases import random
from compactla.cli.files import read_system
from compactla.lines.extraction import check_paths
from compactla.lines.packed import sort_into_packs


def scattered(rng, lengths, b, dtype):
    """A matrix (BSR) whose lines wander through its block rows, and the lines.

    It lacks some of the blocks of the lines and has many others, but no chords; the diagonal blocks dominate.
    """
    nrow = sum(lengths)
    lines = np.split(rng.permutation(nrow), np.cumsum(lengths)[:-1])
    wanted = rng.random((nrow, nrow)) < 0.1
    for line in lines:
        wanted[np.ix_(line, line)] = False
        wanted[line[1:], line[:-1]] = rng.random(len(line) - 1) < 0.8
        wanted[line[:-1], line[1:]] = rng.random(len(line) - 1) < 0.8
    wanted[np.diag_indices(nrow)] = True
    pattern = scipy.sparse.csr_array(wanted)
    data = random(rng, (pattern.nnz, b, b), dtype)
    data[pattern.indices == np.repeat(np.arange(nrow), np.diff(pattern.indptr))] += 6 * b * np.eye(b, dtype=dtype)
    return scipy.sparse.bsr_array((data, pattern.indices, pattern.indptr), shape=(nrow * b, nrow * b)), lines


def pack_lines(lines, nrow, vlen):
    """The slots of lines that go through all block rows, each once."""
    paths = check_paths(lines, nrow, False)
    return sort_into_packs(paths.rows, paths.length, vlen)


def line_part(M, lines, b):
    """The dense matrix that a line preconditioner of `M` is the inverse of."""
    keep = np.zeros((M.shape[0] // b,) * 2)
    for line in lines:
        keep[line, line] = 1
        keep[line[1:], line[:-1]] = 1
        keep[line[:-1], line[1:]] = 1
    return M.toarray() * np.kron(keep, np.ones((b, b))).astype(bool)


def convection_diffusion(nx, ny, b, wind=0.5, stretch=100.0):
    """Convection-diffusion of b coupled quantities on nx x ny cells stretched along y, and its lines.

    Without wind it is symmetric positive definite.
    """

    def second_difference(n, wind):
        return scipy.sparse.diags_array([-1.0 - wind, 2.0 + wind, -1.0], offsets=[-1, 0, 1], shape=(n, n))

    grid = scipy.sparse.kron(scipy.sparse.eye_array(nx), stretch * second_difference(ny, wind))
    grid = grid + scipy.sparse.kron(second_difference(nx, wind), scipy.sparse.eye_array(ny))
    coupling = np.eye(b) + 0.2 * np.ones((b, b)) + wind * np.triu(np.ones((b, b)), 1)
    M = scipy.sparse.kron(grid, coupling, format="csr").tobsr(blocksize=(b, b))
    return M, np.arange(nx * ny).reshape(nx, ny)


def canonical(M):
    return M


def unsorted(M):
    """A copy with the blocks or entries of every row in reverse order."""
    order = np.concatenate([np.arange(start, stop)[::-1] for start, stop in pairwise(M.indptr)])
    return type(M)((M.data[order], M.indices[order], M.indptr), shape=M.shape)


def duplicated(M):
    """A copy in which every block or entry is the sum of two."""
    part = np.repeat(M.data, 2, axis=0)
    part[::2] *= 0.25
    part[1::2] *= 0.75
    return type(M)((part, np.repeat(M.indices, 2), 2 * M.indptr), shape=M.shape)


def unsorted_duplicated(M):
    return unsorted(duplicated(M))


STORED = [canonical, unsorted, duplicated, unsorted_duplicated]


def shipped():
    """The matrix that comes with the package, a right-hand side, and its lines."""
    system = read_system(files("compactla") / "data" / "sherman5_b3.npz")
    return system.M, system.rhs, system.lines
