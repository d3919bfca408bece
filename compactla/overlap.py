"""Which arrays share memory, and which have several elements in one place."""

import ctypes

import numpy as np

# Where an array's object has the address of its data: behind what all objects begin with.
DATA = object.__basicsize__
MOST_WORK = 1_000_000  # of NumPy to see whether arrays share memory; takes 0.1 s


def repeats(shape, strides, size) -> bool:
    """Whether elements of `size`, in the unit of the strides, overlap; there are at most three axes."""
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
    return any(stride < size for stride, _ in axes) or _meet(axes, size)


def _meet(axes, size) -> bool:
    """Whether steps along the axes lead closer than `size` back to where they began.

    Steps along the longest axis are those that come closest after others along the other axes.
    """
    few, some, many = sorted([*axes, (0, 1), (0, 1)], key=lambda axis: axis[1])[-3:]
    second = np.arange(1 - some[1], some[1]) * some[0]
    for first in range(few[1]):
        ahead = second + first * few[0]
        back = np.clip((2 * ahead + many[0]) // (2 * many[0]), 1 - many[1], many[1] - 1)
        close = abs(ahead - back * many[0]) < size
        if first == 0:
            close[some[1] - 1] = False  # no steps at all
        if close.any():
            return True
    return False


def share_memory(a, b) -> bool:
    """Whether arrays that live in one place share memory; on a device, what is between elements counts too.

    Strides for which this is hard to tell, as it can be to any degree, are taken for those of shared memory.
    """
    if isinstance(a, np.ndarray):
        try:
            return np.may_share_memory(a, b) and np.shares_memory(a, b, max_work=MOST_WORK)  # type: ignore[arg-type]
        except RuntimeError:  # NumPy's TooHardError, which has been in several places
            return True
    if a.size == 0 or b.size == 0 or a.base_data != b.base_data:
        return False
    (start, end), (first, last) = _extent(a), _extent(b)
    return start < last and first < end


def _extent(a) -> tuple[int, int]:
    """Where in its buffer a device array begins and ends, in bytes."""
    start, end = reach(a)
    return a.offset + start, a.offset + end


def reach(a) -> tuple[int, int]:
    """Bytes from the first element of an array that is not empty to where its memory begins, and to where it ends."""
    if a.flags.c_contiguous:
        return 0, a.nbytes
    ends = [stride * (count - 1) for stride, count in zip(a.strides, a.shape, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + a.dtype.itemsize


def shadows(arrays) -> list[np.ndarray]:
    """NumPy arrays, never to be read, which are in the same places as device arrays to each other."""
    buffers: dict = {None: None}
    if arrays and hasattr(arrays[0], "place"):
        return [a.place for a in arrays]
    for a in arrays:
        if a.base_data not in buffers:
            address = len(buffers) << 44
            buffers[a.base_data] = (ctypes.c_char * a.base_data.size).from_address(address)
    return [np.ndarray(a.shape, a.dtype, buffers[a.base_data], a.offset, a.strides) for a in arrays]


def address(a) -> int:
    """Where an array is in memory."""
    return ctypes.c_size_t.from_address(id(a) + DATA).value


def address_slowly(a) -> int:
    """The same, where objects are not as in CPython."""
    return a.ctypes.data


if address(a := np.empty(1)) != address_slowly(a):
    address = address_slowly


def span(a) -> tuple:
    """Where the memory of a contiguous array begins and ends, in its buffer if it is on a device; and that buffer."""
    if isinstance(a, np.ndarray):
        start = address(a)
        return start, start + a.nbytes, None
    return a.offset, a.offset + a.nbytes, a.base_data


def clash(written, read, places, others, size):
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
        offsets = (np.arange(m)[:, None] * rs + np.arange(n) * cs).ravel()
        starts = np.array([address(arrays[q]) for q in some], np.int64)
        found.append((starts[:, None] + offsets).ravel())
        owners.append(np.repeat(some, m * n))
    return np.concatenate(found), np.concatenate(owners)
