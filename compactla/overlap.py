"""Which arrays share memory, and which have several elements in one place."""

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from compactla.types import Array

# Where an array's object has the address of its data: behind what all objects begin with.
DATA = object.__basicsize__
word_at = ctypes.c_size_t.from_address
MOST_WORK = 1_000_000  # of NumPy to see whether arrays share memory; takes 0.1 s


def repeats(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Whether elements of `size`, in the unit of the strides, overlap, with any number of axes.

    Strides for which this is hard to tell, as it can be to any degree, are taken for those of elements that do.
    """
    if 0 in shape:
        return False
    axes = sorted((abs(stride), count) for stride, count in zip(strides, shape, strict=True) if count > 1)
    extent = size
    for stride, count in axes:
        if stride < extent:  # elements of this axis lie between those of the axes before it
            break
        extent += stride * (count - 1)
    else:
        return False
    if axes[0][0] < size:
        return True
    steps, counts = zip(*axes, strict=True)
    some = as_strided(np.empty(1, f"V{size}"), counts, steps)  # which is never read
    for _ in axes:  # the first in which the places of two elements differ
        if _meet(some[:1], some[1:]):
            return True
        some = some[0, ...]
    return False


def has_repeats(a: Array) -> bool:
    """Whether elements of an array overlap, wherever it lives."""
    return not a.flags.forc and repeats(a.shape, a.strides, a.dtype.itemsize)


def meet(span, other) -> bool:
    """Whether places from a beginning to an end are between those of another."""
    return span[0] < other[1] and other[0] < span[1]


def share_memory(a: Array, b: Array) -> bool:
    """Whether arrays have a byte in common, wherever they live."""
    on_host = isinstance(a, np.ndarray)
    if on_host != isinstance(b, np.ndarray):
        return False
    if on_host:
        return np.may_share_memory(a, b) and _meet(a, b)
    if a.size == 0 or b.size == 0:
        return False
    (memory, start), (other, first) = origin(a), origin(b)
    if memory != other:
        return False
    (low, high), (lowest, highest) = reach(a), reach(b)
    return start + low < first + highest and first + lowest < start + high and _meet(*shadows([a, b]))


def _meet(a, b) -> bool:
    """Whether NumPy arrays have a byte in common, or it is too hard for NumPy to tell."""
    try:
        return np.shares_memory(a, b, max_work=MOST_WORK)  # type: ignore[arg-type] # the stubs know no other than -1 and 0
    except RuntimeError:  # NumPy's TooHardError, which has been in several places
        return True


def is_same(a: Array, b: Array) -> bool:
    """Whether each element of an array has the same place as that of another, wherever these live."""
    if type(a) is not type(b) or a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    return address(a) == address(b) if isinstance(a, np.ndarray) else origin(a) == origin(b)


def origin(a: Array) -> tuple:
    """The memory object that an array on a device is in, and where in it; sub-buffers are in that of their parent."""
    memory = a.base_data
    parent = getattr(memory, "associated_memobject", None)
    return (memory, a.offset) if parent is None else (parent, memory.offset + a.offset)


def reach(a: Array) -> tuple[int, int]:
    """Bytes from the first element of an array that is not empty to where its memory begins, and to where it ends."""
    if a.flags.c_contiguous:
        return 0, a.nbytes
    ends = [stride * (count - 1) for stride, count in zip(a.strides, a.shape, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + a.dtype.itemsize


def shadows(arrays: Sequence[Array]) -> list[np.ndarray]:
    """NumPy arrays, never to be read, which are in the same places as device arrays to each other."""
    if arrays and hasattr(arrays[0], "place"):
        return [a.place for a in arrays]
    buffers: dict = {None: None}  # that of arrays without elements
    found = []
    for a in arrays:
        memory, start = origin(a)
        if memory not in buffers:
            buffers[memory] = (ctypes.c_char * memory.size).from_address(len(buffers) << 44)
        found.append(np.ndarray(a.shape, a.dtype, buffers[memory], start, a.strides))
    return found


def address(a: Array) -> int:
    """Where an array is in memory."""
    return word_at(id(a) + DATA).value


def address_slowly(a) -> int:
    """The address of an array, where objects are not as in CPython."""
    return a.ctypes.data


if address(a := np.empty(1)) != address_slowly(a):
    address = address_slowly


def span(a: Array) -> tuple:
    """Where the memory of a contiguous array begins and ends, in its buffer if it is on a device; and that buffer."""
    memory, start = (None, address(a)) if isinstance(a, np.ndarray) else origin(a)
    return start, start + a.nbytes, memory


def clash(
    written: Sequence[np.ndarray], read: Sequence[np.ndarray], places: np.ndarray, others: np.ndarray, size: int
) -> tuple[int, int, str] | None:
    """The first two arrays found that share memory, of those written with each other and with those that are read.

    Parameters
    ----------
    written, read : list of ndarray
        Arrays of two axes, of elements of `size` bytes; those written have none twice.
    places, others : (2, n) ndarray of int64
        Where the memory of each begins and ends.

    Returns
    -------
    (int, int, str) or None
        Places in the lists, and "written" or "read".
    """
    if apart(places, others):
        return None
    addresses, owners = elements_of(written)
    order = np.argsort(addresses, kind="stable")
    addresses, owners = addresses[order], owners[order]
    close = np.flatnonzero(np.diff(addresses) < size)
    if len(close):
        first, second = sorted(owners[close[0] : close[0] + 2].tolist())
        return second, first, "written"
    if len(read) and len(addresses):
        found, readers = elements_of(read)
        next_ = np.searchsorted(addresses, found - size + 1)
        hits = np.flatnonzero(np.append(addresses, np.iinfo(np.int64).max)[next_] < found + size)
        if len(hits):
            return int(owners[next_[hits[0]]]), int(readers[hits[0]]), "read"
    return None


def apart(places, others):
    """Whether none of the memory from (2, n) beginnings to ends is between others, nor between those of each other."""
    starts, ends = places[:, np.argsort(places[0], kind="stable")]
    some = starts < ends
    starts, ends = starts[some], ends[some]
    if (starts[1:] < ends[:-1]).any():
        return False
    next_ = np.searchsorted(ends, others[0], side="right")
    return not (np.append(starts, np.iinfo(np.int64).max)[next_] < others[1]).any()


def elements_of(arrays):
    """Addresses of the elements of arrays of two axes, and of which array each is."""
    alike: dict[tuple, list[int]] = {}
    for q, a in enumerate(arrays):
        alike.setdefault((a.shape, a.strides), []).append(q)
    found, owners = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for ((m, n), (rs, cs)), some in alike.items():
        i, j = np.arange(m, dtype=np.int64), np.arange(n, dtype=np.int64)
        offsets = (i[:, None] * rs + j * cs).ravel()
        starts = np.array([address(arrays[q]) for q in some], np.int64)
        found.append((starts[:, None] + offsets).ravel())
        owners.append(np.repeat(some, m * n))
    return np.concatenate(found), np.concatenate(owners)
