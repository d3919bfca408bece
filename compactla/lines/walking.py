"""The way of lines along the strongest couplings: where they go on, turn and end, and which chords they have.

Block rows are integers of one type, whatever that of indices is: functions are compiled for each type that they get.
"""

import functools

import numpy as np

from compactla.cpu.late import CompiledLate, part

# How much stronger than a chord the links between its ends are.
STRONGER = 1.001
# Weight of a chord of the other sign than diffusion has.
OPPOSITE = 1e6
# What a line does at its end: it ends there, goes on to a block row, or closes to a ring with that.
ENDS, GOES_ON, CLOSES = range(3)


def ranks(indptr, strength):
    """The strongest, the third strongest and the weakest coupling of every block row; 0 where there is none."""
    found = np.zeros((3, len(indptr) - 1))
    _rank(indptr, strength, *found)
    return found


@CompiledLate
def _rank(indptr, strength, strongest, third, weakest):
    """The same, into vectors of zeros."""
    for i in range(len(strongest)):
        first = second = last = 0.0
        least = np.inf
        for k in range(indptr[i], indptr[i + 1]):
            s = strength[k]
            least = min(least, s)
            if s > first:
                first, second, last = s, first, second
            elif s > second:
                second, last = s, second
            elif s > last:
                last = s
        strongest[i], third[i] = first, last
        if least < np.inf:
            weakest[i] = least


def walk(indptr, indices, strength, block_indptr, block_indices, opposite, least, apart, order):
    """Lines as links: the two block rows (nrow, 2) beside each one on its line, or -1.

    Lines start at block rows in this order, along couplings of more than ``least[0]`` at both ends, and go on along
    those of more than ``least[1]``, or ``least[2]`` where they turn. Indices are sorted, those of the blocks too.

    A chord is a coupling of two block rows of a line that are not neighbours on it, which is left out of the line's
    matrix. Each is weaker than all links of the line between its ends, as a break would give up one of these, and the
    last of them is more than `apart` times as strong as what else is coupled to its ends: beyond a turn there would be
    chords all along. One of which `opposite` holds counts as much stronger, as without it the matrix may be indefinite.
    A line that has a single chord, between its ends, is a ring, which is opened at its weakest coupling.
    """
    nrow = len(order)
    link, path = np.full((nrow, 2), -1), (np.full(nrow, -1), np.empty(nrow, np.int64), np.empty(nrow))
    graph, blocks = (indptr, indices, strength), (block_indptr, block_indices, opposite)
    _walk(graph, blocks, path, link, tuple(least), apart, order)
    return link


@functools.partial(CompiledLate, enough=1 << 20)  # compiles in 2 s
def _walk(graph, blocks, path, link, least, apart, order):
    """The same, into links of -1; a path is the line of each block row, which begins as -1, and see `_weakest`."""
    indptr, indices, _ = graph
    line, ahead, weakest = path
    for start in order:
        if line[start] >= 0:
            continue
        line[start] = start
        # one way from the start, then the other
        row, verdict = start, GOES_ON
        for side in range(2):
            if verdict == CLOSES:
                break
            tail, before, row, slot = row, link[start, 0], start, side
            if before >= 0:
                _turn_round(path, link, start)
            while True:
                # the strongest coupling, unless it makes chords or a weak turn: then the best that does not
                enough = least[0] if before < 0 else least[1]
                following, s = _strongest(*graph, line, enough, row)
                verdict = ENDS if following < 0 else GOES_ON
                if following >= 0 and (
                    _chords(indptr, indices, line, tail, row, following)
                    or _is_weak_turn(*graph, least[2], before, row, following, s)
                ):
                    following, s, verdict = _choose(graph, blocks, path, least, apart, tail, before, row)
                if verdict == ENDS:
                    break
                # append the block row
                line[following] = start
                link[row, slot] = following
                link[following, 0] = row
                ahead[row], weakest[row] = following, 0
                before, row, slot = row, following, 1
                if verdict == CLOSES:
                    _open(graph, link, tail, row)
                    break


@part
def _turn_round(path, link, start):
    """Let the block rows of a line, that has gone one way from its start, lead back there."""
    _, ahead, weakest = path
    previous, row = start, link[start, 0]
    while row >= 0:
        ahead[row], weakest[row] = previous, 0
        previous, row = row, link[row, 1]


@part
def _strongest(indptr, indices, strength, line, enough, row):
    """The block row on no line that one is coupled to most, and how strongly; -1 if there is none."""
    strongest, most = -1, 0.0
    for k in range(indptr[row], indptr[row + 1]):
        other, s = np.int64(indices[k]), strength[k]
        if line[other] < 0 and s > max(most, enough[row], enough[other]):
            strongest, most = other, s
    return strongest, most


@part
def _chords(indptr, indices, line, tail, row, other):
    """Whether `other` has chords to a line that ends with `row`: 0 for none, 1 for one to its `tail`, 2 for others."""
    chords = 0
    for k in range(indptr[other], indptr[other + 1]):
        if line[indices[k]] == line[row] and indices[k] != row:
            if indices[k] != tail:
                return 2
            chords = 1
    return chords


@part
def _is_weak_turn(indptr, indices, strength, least, before, row, other, s):
    weak = before >= 0 and s <= max(least[row], least[other])
    return weak and _turns(indptr, indices, strength, before, row, other, s)


@part
def _choose(graph, blocks, path, least, apart, tail, before, row):
    """The strongest way on from the end `row` of a line, chords weighed: which block row, how strongly, what then.

    The other end of the line is `tail`, and `before` comes before `row`, or is -1.
    """
    indptr, indices, strength = graph
    line = path[0]
    enough = least[0] if before < 0 else least[1]
    beside = apart * _second(graph, line, row, row)
    following, most, verdict = -1, 0.0, ENDS
    for k in range(indptr[row], indptr[row + 1]):
        other, s = np.int64(indices[k]), strength[k]
        if line[other] < 0 and s > max(most, enough[row], enough[other]):
            chords = _chords(indptr, indices, line, tail, row, other)
            goes_on = chords == 0 or (
                s > beside
                and s > apart * _second(graph, line, row, other)
                and _are_weaker(graph, blocks, path, row, other)
            )
            closes = chords == 1 and tail != before and not _is_opposite(blocks, tail, other)
            if (goes_on or closes) and not _is_weak_turn(*graph, least[2], before, row, other, s):
                following, most, verdict = other, s, GOES_ON if goes_on else CLOSES
    return following, most, verdict


@part
def _are_weaker(graph, blocks, path, row, other):
    """Whether the chords of a line that goes on to `other` are, than each link between their ends."""
    indptr, indices, strength = graph
    line, s = path[0], _link(graph, blocks, row, other)
    for k in range(indptr[other], indptr[other + 1]):
        member = np.int64(indices[k])
        if line[member] == line[row] and member != row:
            c = STRONGER * strength[k] * (OPPOSITE if _is_opposite(blocks, other, member) else 1)
            if not (c < s and c < _weakest(graph, blocks, path, member, row)):
                return False
    return True


@part
def _is_opposite(blocks, row, other):
    """Whether what couples two block rows, in one direction at least, is of the other sign than diffusion has."""
    indptr, indices, opposite = blocks
    there, back = _find(indptr, indices, row, other), _find(indptr, indices, other, row)
    return (there >= 0 and opposite[there]) or (back >= 0 and opposite[back])


@part
def _link(graph, blocks, row, other):
    """The strength of a link when compared with chords: small if its sign is not that of diffusion."""
    return _strength(graph, row, other) / (OPPOSITE if _is_opposite(blocks, row, other) else 1)


@part
def _weakest(graph, blocks, path, row, end):
    """The weakest link of a line between a block row on it and its end.

    Each block row has one `ahead` of it, and the `weakest` link on the way there, or 0 as long as nobody has asked. The
    next call finds them further ahead.
    """
    _, ahead, weakest = path
    least = np.inf
    while row != end:
        following = ahead[row]
        for i in (row, following):
            if i != end and weakest[i] == 0:
                weakest[i] = _link(graph, blocks, i, ahead[i])
        if following != end:
            weakest[row] = min(weakest[row], weakest[following])
            ahead[row] = following = ahead[following]
        least = min(least, weakest[row])
        row = following
    return least


@part
def _second(graph, line, own, row):
    """The second strongest coupling of a block row to those that are not on the line of `own`."""
    indptr, indices, strength = graph
    first = second = 0.0
    for k in range(indptr[row], indptr[row + 1]):
        s = strength[k]
        if line[indices[k]] != line[own] and s > second:
            first, second = max(first, s), min(first, s)
    return second


@part
def _open(graph, link, tail, end):
    """Close a line to a ring, and open that at its weakest coupling."""
    link[tail, 0 if link[tail, 0] < 0 else 1] = end
    link[end, 1] = tail
    before, row, first, second, least = end, tail, end, tail, _strength(graph, end, tail)
    while row != end:
        following = link[row, 0] if link[row, 0] != before else link[row, 1]
        s = _strength(graph, row, following)
        if s < least:
            first, second, least = row, following, s
        before, row = row, following
    link[first, 0 if link[first, 0] == second else 1] = -1
    link[second, 0 if link[second, 0] == first else 1] = -1


@part
def _strength(graph, row, other):
    """The strength of the coupling of two block rows."""
    indptr, indices, strength = graph
    k = _find(indptr, indices, row, other)
    return strength[k] if k >= 0 else 0.0


@part
def _find(indptr, indices, row, column):
    """The place of an entry in a CSR matrix with sorted indices; -1 if there is none."""
    first, stop = indptr[row], indptr[row + 1]
    while first < stop:
        middle = (first + stop) // 2
        if indices[middle] < column:
            first = middle + 1
        else:
            stop = middle
    return first if first < indptr[row + 1] and indices[first] == column else -1


@part
def _turns(indptr, indices, strength, before, row, other, s):
    """Whether a line that comes from `before` turns at `row`, around a corner of the cell between its neighbours.

    That corner is coupled to both, and more strongly to `other` than `row` is by `s`, or not to `row`.
    """
    m, stop = indptr[before], indptr[before + 1]
    for k in range(indptr[other], indptr[other + 1]):
        corner = np.int64(indices[k])
        while m < stop and indices[m] < corner:
            m += 1
        if m < stop and indices[m] == corner != row:
            if strength[k] > s or _find(indptr, indices, corner, row) < 0:
                return True
    return False


def outweighing(indptr, indices, strength, block_indptr, block_indices, opposite, rows, chords):
    """Flags of the chords that outweigh a link of their line between their ends; matrices are as for `walk`.

    The lines are `rows`, one after the other, and `chords` (n, 2) are places there, sorted by the second.
    """
    outweighs, path = np.zeros(len(chords), np.bool_), (rows, np.empty(len(rows), np.int64), np.zeros(len(rows)))
    graph, blocks = (indptr, indices, strength), (block_indptr, block_indices, opposite)
    _outweigh(graph, blocks, path, chords, outweighs)
    return outweighs


@CompiledLate
def _outweigh(graph, blocks, path, chords, outweighs):
    """The same, into flags."""
    rows, ahead, _ = path
    end = 0
    for i in range(len(chords)):
        while end < chords[i, 1]:
            ahead[rows[end]] = rows[end + 1]
            end += 1
        row, other = np.int64(rows[chords[i, 0]]), np.int64(rows[end])
        c = _strength(graph, row, other) * (OPPOSITE if _is_opposite(blocks, row, other) else 1)
        outweighs[i] = not c <= _weakest(graph, blocks, path, row, other)


def collect(link, min_length):
    """The block rows of all lines one after the other, and where each starts."""
    nrow = len(link)
    flat, offset = np.empty(nrow, np.int64), np.zeros(nrow + 1, np.int64)
    nline = _collect(link, min_length, flat, offset, np.zeros(nrow, np.bool_))
    return flat, offset[: nline + 1]


@CompiledLate
def _collect(link, min_length, flat, offset, done):
    """The same, into arrays, with a flag for each block row; returns the number of lines."""
    nline = filled = 0
    for end in range(len(link)):
        if done[end] or (link[end, 0] >= 0 and link[end, 1] >= 0):
            continue
        start, before, row = filled, -1, end
        while row >= 0:
            flat[filled] = row
            done[row] = True
            filled += 1
            following = link[row, 0] if link[row, 0] != before else link[row, 1]
            before, row = row, following
        if filled - start >= min_length:
            nline += 1
            offset[nline] = filled
        else:
            for stop in range(start + 1, filled + 1):
                nline += 1
                offset[nline] = stop
    return nline
