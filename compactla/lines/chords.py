"""Chords of lines: couplings between blocks of one line that are not neighbours on it, which its solve leaves out."""

import warnings

import numpy as np

from compactla.cpu.late import CompiledLate
from compactla.lines.couplings import couplings, in_blocks
from compactla.lines.walking import outweighing

MESSAGE = (
    "lines have chords ({count}): couplings between block rows of one line that are not neighbours on it, and stronger "
    "than some that are between these; the first of them rows {row} and {column} of lines[{line}]. Solves leave these "
    "out, and sweeps may diverge; lines from compactla.find_lines have only weaker ones"
)


def warn_of_chords(M, sizes, paths, stacklevel=3) -> None:
    """Warn where lines have chords that outweigh a link between their ends, and say how many.

    Parameters
    ----------
    M : scipy.sparse BSR or CSR matrix or array
        The matrix; a coupling is a block in which a number is not zero.
    sizes : compactla.lines.sizes.Sizes
        The sizes of its block rows.
    paths : compactla.lines.extraction.Paths
        The lines.
    stacklevel : int, optional
        Whose call the warning is about, as for `warnings.warn`.
    """
    line, place = paths.places()
    per_row = 1 if M.format == "bsr" else sizes.largest
    padded = sizes.padded(M)
    arguments = padded.indptr, padded.indices, per_row, line, place, paths.length, paths.ring
    entries = np.empty((_find_entries(*arguments, np.empty((0, 3), np.int64)), 3), np.int64)
    if len(entries):
        _find_entries(*arguments, entries)
        values = M.data[entries[:, 2]].reshape(len(entries), -1)
        chords = np.unique(np.sort(entries[(values != 0).any(axis=1), :2], axis=1), axis=0)
        if len(chords):
            chords = chords[_outweighing(in_blocks(M, sizes), chords, paths)]
        if len(chords):
            row, column = chords[0]
            text = MESSAGE.format(count=len(chords), row=row, column=column, line=line[row])
            warnings.warn(text, UserWarning, stacklevel=stacklevel)


def _outweighing(M, chords, paths) -> np.ndarray:
    """Flags of the chords that outweigh a link between their ends."""
    S, opposite = couplings(M)
    places = np.sort(np.argsort(paths.rows)[chords], axis=1)
    order = np.argsort(places[:, 1])
    outweighs = np.empty(len(chords), np.bool_)
    graph, blocks = (S.indptr, S.indices, S.data), (M.indptr, M.indices, opposite)
    outweighs[order] = outweighing(*graph, *blocks, paths.rows, places[order])
    return outweighs


@CompiledLate
def _find_entries(indptr, indices, b, line, place, length, ring, found):
    """Count the entries of a matrix in CSR form, with `b` rows to a block row, that are where a chord would be.

    The block row, the block column and the place of each are written into `found`, as far as there is room.
    """
    count = 0
    for row in range(len(line)):
        for k in range(indptr[row * b], indptr[row * b + b]):
            column = indices[k] // b
            if line[column] == line[row]:
                apart = abs(place[column] - place[row])
                if apart > 1 and not (ring[line[row]] and apart == length[line[row]] - 1):
                    if count < len(found):
                        found[count, 0], found[count, 1], found[count, 2] = row, column, k
                    count += 1
    return count
