"""Calls with arrays in CUDA memory that are made again."""

import math
import operator
from typing import Any

import numpy as np

from compactla.calls.arrays import Arrays
from compactla.calls.notes import AGAIN, ALIGNED, Located, Result
from compactla.cuda import driver
from compactla.cuda.arrays import Array, Memory
from compactla.cuda.libraries import Repeated, library
from compactla.foreign import hand_back
from compactla.gpu.launch import repeated_calls
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.repeats.packs import around, of_kind

APART = 256  # bytes between the beginnings of arrays in work space are a multiple of this
SHARE = 4  # part of the memory of packs that work space beside them has at most; it lasts as they do
ROOM = 2**24  # bytes of work space of a call; more takes longer than what is saved
BYTE = np.dtype(np.uint8)
WORD = 8  # bytes of addresses and integers among arguments


def kind(package: str, of: type) -> "CudaArrays | None":
    """What repeats calls with arrays of this type; None where the library can't tell what calls depend on."""
    found = library(package)
    return CudaArrays(found) if isinstance(found, Repeated) and of in found.repeated else None


def packs(queue: Any) -> "CudaPacks | None":
    """What repeats calls with packs in memory of a library; None likewise."""
    return CudaPacks(queue.library) if isinstance(queue.library, Repeated) else None


class CudaArrays(Arrays):
    """Arrays of a library."""

    def __init__(self, library: Repeated) -> None:
        self.library = library

    def read(self, x: Any, starts: list[int]) -> Any:
        return self.library.read(x, starts)

    def anchor(self, x: Any) -> Any:
        """An array of the library, of one that is given."""
        return x

    def around(self, x: Any) -> Any:
        return around(x, adopted)

    def known(self, x: Any) -> Any:
        return repeated_calls(self.library.queue(self.library.index(x)))

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        a = self.library.array(x)
        notes.note(a, given=number)
        return a

    def handed_back(self, notes: Any, given: Any, found: Any) -> Any:
        if isinstance(found, tuple):
            parts = [self.handed_back(notes, given, x) for x in found]
            return getattr(type(found), "_make", tuple)(parts)
        if not isinstance(found, Pack | Integers):
            return hand_back(found)
        a = found.view.buffer
        origin = notes.origin(a)
        if origin is None:
            return found
        if origin.given is not None:
            return given[origin.given]
        a.offset = int(a.offset)
        return of_kind(found, a)

    def again(self, notes: Any, targets: Any, found: Any) -> Any:
        given, result = notes.given, Result(notes, self.library.viewer, found, self.around, viewer)
        queue = given[0].queue
        if notes.borrowed is not None:
            return self._borrowed(notes, result) if result.build is not None and not notes.launches else None
        if result.build is None or sum(result.room) > ROOM or any(a.queue is not queue for a in given):
            return None
        new: list[tuple[Any, int]] = []
        inside = 0  # bytes of packs, which share memory
        for number, like in enumerate(result.made, len(given)):
            if number in result.inside:
                new.append((None, inside))
                inside += spaced(math.prod(like[0]) * like[1].itemsize)
            else:
                new.append((self.library.maker(*like), 0))
        begins = np.cumsum([0, *map(spaced, result.room)]).tolist()
        room = begins.pop()
        joined = room if SHARE * room <= inside else 0  # is beside the packs
        block = self.library.maker((inside + joined,), BYTE) if result.inside else None
        space = self.library.maker((room,), BYTE) if room > joined else None
        near = notes.near(targets)
        steps = [step for step in map(Step, notes.launches) if all(step.grid)]
        address, stream, index = self.library.address, self.library.stream, queue.device.index
        build, flag, launch, anchor = result.build, notes.flag, driver.launch, self.anchor

        def again(arrays, starts):
            for target, other, low, high in near:
                if low < starts[other] - starts[target] < high:
                    return AGAIN
            try:
                first = anchor(arrays[0])
                if block is not None:
                    packs = block(first)
                    start = address(packs)
                for make, apart in new:
                    if make is None:
                        arrays.append((packs, start + apart))
                        starts.append(start + apart)
                    else:
                        x = make(first)
                        arrays.append(x)
                        starts.append(address(x))
                if room:
                    own = space and space(first)  # which has to be there until the last launch
                    begin = start + inside if own is None else address(own)
                    starts += [begin + apart for apart in begins]
            except (MemoryError, RuntimeError):  # are told of in the words of an ordinary call
                return AGAIN
            current = stream(index)
            for step in steps:
                words = step.words
                for place, number, shift, apart in step.moves:
                    words[place] = (starts[number] >> shift) + apart
                launch(index, step.function, step.grid, step.group, current, step.parameters, step.room)
            if flag is not None and flag.is_set():
                return AGAIN
            return build(arrays)

        return again

    def _borrowed(self, notes, result):
        """A function that makes a call again that a library computes."""
        found, read, results = notes.borrowed
        readers = [self._reader(notes, x) for x in read]
        if None in readers:
            return None
        build, numbers = result.build, [notes.origin(x).number for x in results]
        order = sorted(range(len(numbers)), key=numbers.__getitem__)

        def again(arrays, starts):
            try:
                made, failed = found([reader(arrays) for reader in readers])
            except (MemoryError, RuntimeError, np.linalg.LinAlgError):
                return AGAIN
            if failed is not None:
                return AGAIN
            arrays += [made[k] for k in order]
            return build(arrays)

        return again

    def _reader(self, notes, x):
        """What finds an array among those of a call that it is given; None of others."""
        origin = notes.origin(x)
        if origin is None or (origin.given is None and not origin.kept):
            return None
        if origin.kept:
            theirs = self.library.give(x)
            return lambda arrays: theirs
        if x is origin.array:
            return operator.itemgetter(origin.given)
        view = self.library.viewer(x.shape, x.strides, x.dtype, int(x.offset) - origin.start)
        return lambda arrays: view(arrays[origin.given])


def adopted(part, queue, shape, dtype, strides):
    """An array of a pack in memory that several share, from where it begins there."""
    memory, start = part
    return Array(queue, shape, dtype, strides=strides, data=Memory(0, memory), offset=start)


def viewer(shape, strides, dtype, offset):
    """A function that finds what begins so many bytes behind."""
    return lambda part: (part[0], part[1] + offset)


def spaced(size):
    """Bytes for so many, such that others can follow."""
    return -(-size // APART) * APART


class CudaPacks(CudaArrays):
    """Packs in the memory of a library, and integers beside them."""

    def read(self, x: Any, starts: list[int]) -> Any:
        view = x.view
        if not view.buffer.flags.writeable:
            return None
        starts.append(view.buffer.offset)
        return x.queue, x.nm, view.layout, *view.place[1:], view.buffer.offset % ALIGNED

    def anchor(self, x: Any) -> Any:
        return x.view.buffer.base_data.owner

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        a = x.view.buffer
        memory = Memory(0, a.base_data.owner)
        a = Array(a.queue, a.shape, a.dtype, strides=a.strides, data=memory, offset=a.offset)
        notes.note(a, given=number)
        return of_kind(x, a)


class Step:
    """A launch, with arguments of its own, of which those in `moves` follow from where arrays are.

    Attributes
    ----------
    words : memoryview
        The arguments, as integers of 8 bytes.
    moves : list of (int, int, int, int)
        Places among these, numbers of arrays, and what the address is shifted by and what is added then.
    kept : list of array
        Arrays that are the same for each call.
    """

    __slots__ = ("function", "grid", "group", "kept", "kernel", "moves", "parameters", "room", "words")

    def __init__(self, launch):
        _, kernel, work_items, group, origins, values = launch
        self.kept = [origin.array for origin in origins if origin.kept]
        self.kernel = kernel.copy(values)
        self.function, self.parameters, self.words = self.kernel.function, self.kernel.parameters, self.kernel.words
        self.room = self.kernel.room
        self.grid, self.group = (work_items[0] // group[0], work_items[1] // group[1]), group
        self.moves = []
        for place, value in zip(self.kernel.places, values, strict=True):
            if type(value) is Located and not value.origin.kept:
                self.moves.append((place // WORD, *value.again()))
