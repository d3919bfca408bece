"""Batches that fill a device: the cases that the tuner times, on general operands."""

import math
from typing import Any

import numpy as np

from compactla import routine
from compactla.bench import cases, lines
from compactla.types import Queue

BYTES = {True: 2**30, False: 2**24}  # of the data that is worked on, on GPUs and on other devices
LEAST = 15  # packs
BLOCKS_A_LINE, FEW_LINES = 128, 512
COPIES = {"pack": cases.Pack, "unpack": cases.Unpack}
AXES = {"kron2": 2, "kron3": 3}
FACTORS, SOLVES = ("factor", "factor_few", "factor_watched"), ("solve", "solve_few")


def filling(
    name: str, queue: Queue, size: tuple[int, ...], dtype: np.dtype, vlen: int, nbytes: int, storage: str = ""
) -> cases.Case:
    """The case that results for a name of `choices.searches` are tuned with, of so many bytes."""
    nm = max(LEAST, packs(name, size, dtype, vlen, nbytes)) * vlen
    where: dict[str, Any] = {"nm": nm, "dtype": dtype, "queue": queue, "vlen": vlen}
    if name in COPIES:
        return COPIES[name](size, **where)
    if name in AXES:
        return cases.Kron(size, axes=AXES[name], **where)
    if name in routine.names():
        row = routine.named(name)
        where |= {scalar: row.scalars[scalar] for scalar in row.scaling}
        return cases.Dense(name, size, general=True, **where)
    b, *nrhs = size
    where |= {"K": BLOCKS_A_LINE, "nrhs": nrhs[0] if nrhs else 1, "storage": storage or None}
    if name in SOLVES:
        return lines.GeneralSolve(b, **where)
    return lines.GeneralFactor(b, pivots="perturb" if name == "factor_watched" else "report", **where)


def packs(name, size, dtype, vlen, nbytes) -> int:
    """The number of packs that have so many bytes; of lines, which are chains, those that keep a GPU busy, or a few."""
    if name.endswith("_few"):
        return FEW_LINES // vlen
    if name in FACTORS + SOLVES and nbytes >= BYTES[True]:
        return (2**14 if size[0] <= 6 else 2**12) // vlen
    return nbytes // (numbers(name, size) * dtype.itemsize * vlen)


def numbers(name, size) -> int:
    """Numbers of a matrix, item or line, in all operands."""
    if name in FACTORS + SOLVES:
        return (3 * BLOCKS_A_LINE - 2) * size[0] ** 2
    if name not in routine.names():
        return math.prod(size * AXES.get(name, 1))
    row = routine.named(name)
    number = row.numbers(size)
    return sum(number[A.sizes[0]] * number[A.sizes[1]] for A in row.operands)
