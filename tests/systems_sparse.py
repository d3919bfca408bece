"""Batches of sparse systems of one pattern, for tests."""

import numpy as np

from cases import random
from compactla.gpu import sparse_rounds
from compactla.search import LOCAL_BYTES


def run_in_rounds(monkeypatch, room=LOCAL_BYTES // 2):
    """Kernels of GPUs also on other devices, with so many bytes of local memory; with 0, those of CPUs."""
    monkeypatch.setattr(sparse_rounds, "room_of", lambda device: room)
    monkeypatch.setattr(sparse_rounds, "AHEAD", 1)  # PoCL copies what follows a barrier under a condition


def pattern(rng, m, n=None, density=0.3):
    """Indices and indptr, with the diagonal where there is one."""
    mask = rng.random((m, m if n is None else n)) < density
    np.fill_diagonal(mask, True)
    return np.nonzero(mask)[1], np.append(0, mask.sum(1).cumsum())


def values(rng, nm, indices, indptr, dtype, dominance=4, hermitian=False):
    """Values of a pattern, with diagonals that dominate; `hermitian` makes them so, where the pattern is symmetric."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    data = random(rng, (nm, len(indices)), dtype)
    if hermitian:
        order = np.lexsort((rows, indices))  # of the transposes
        data = (data + data[:, order].conj()) / 2
    data[:, rows == indices] += dominance
    return data


def dense(data, indices, indptr, n):
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    a = np.zeros((len(data), len(indptr) - 1, n), data.dtype)
    a[:, rows, indices] = data
    return a
