"""Reports of the pivots in a factorization of lines."""

from typing import Any, NamedTuple

import numpy as np

from compactla.checks import on_host
from compactla.types import Array

# Numbers that kernels which watch pivots keep of each line: rows of an array (packs, WATCHED, V).
SMALLEST, LARGEST, FACTOR, REPLACED, NORM = range(5)
WATCHED = 5


class Report(NamedTuple):
    """Report of a factorization, line by line: arrays (nlines,), or None where not asked for; see `BlockTridiag`.

    Attributes
    ----------
    info : ndarray of int64
        0, or 1 + the index of the first pivot that is exactly zero, counted over the rows of the line.
    block, pivot : ndarray of int64
        Block of the line, and pivot in the block, both from 0; -1 where there is none.
    smallest : ndarray or None
        The smallest |pivot| met, before a policy changed it.
    growth : ndarray or None
        The largest entry of U over the largest entry of the line's matrix, U the upper triangular factor of the line
        with unit lower triangular blocks before it: the reciprocal of the "reciprocal pivot growth" of LAPACK's xGESVX.
        It is taken while the line is factored, so it does not depend on whether factors or inverses are stored.
    replaced : ndarray of int64 or None
        How many pivots were below the threshold and replaced, with ``pivots="perturb"``.
    """

    info: np.ndarray
    block: np.ndarray
    pivot: np.ndarray
    smallest: np.ndarray | None = None
    growth: np.ndarray | None = None
    replaced: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"Report({len(self.info)} lines, {np.count_nonzero(self.info)} with a zero pivot)"

    @classmethod
    def of(cls, info: Array, b: int, watched: Any = None, sizes: Any = None) -> "Report":
        """From `info`, the size of blocks, and the numbers that kernels kept: (WATCHED, nlines).

        `sizes`, of `compactla.lines.sizes`, are those of block rows that differ.
        """
        info = on_host(info)
        zero, first = info > 0, np.maximum(info - 1, 0)
        places = np.divmod(first, max(b, 1)) if sizes is None else sizes.locate(first + 1)
        block, pivot = (np.where(zero, place, -1) for place in places)
        if watched is None:
            return cls(info, block, pivot)
        with np.errstate(all="ignore"):
            growth = watched[FACTOR] / watched[LARGEST]
        return cls(info, block, pivot, watched[SMALLEST], growth, watched[REPLACED].astype(np.int64))


class PivotError(np.linalg.LinAlgError):
    """A pivot is zero: raised with ``pivots="raise"``, after everything else is done.

    Attributes
    ----------
    report : Report
        That of all lines.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        bad = np.flatnonzero(report.info)
        places = [f"line {q}: pivot {report.pivot[q]} of block {report.block[q]}" for q in bad[:5]]
        more = f", and on {len(bad) - 5} more lines" if len(bad) > 5 else ""
        super().__init__(f"zero pivots on {len(bad)} of {len(report.info)} lines: {'; '.join(places)}{more}")

    def __reduce__(self) -> tuple[Any, ...]:
        return PivotError, (self.report,)
