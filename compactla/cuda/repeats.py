"""How calls with arrays of a library are made again: see `compactla.calls.repeats`."""

from typing import Any

import numpy as np

from compactla.calls.notes import AGAIN, ALIGNED, Located, Result
from compactla.cuda import driver
from compactla.cuda.arrays import Array, Memory
from compactla.cuda.libraries import Library, library
from compactla.foreign import hand_back
from compactla.gpu.launch import repeated_calls
from compactla.integers import Integers
from compactla.layout import Pack

APART = 256  # bytes between the beginnings of arrays in work space are a multiple of this
ROOM = 2**24  # bytes of work space of a call; more takes longer than what is saved
BYTE = np.dtype(np.uint8)
WORD = 8  # bytes of addresses and integers among arguments


def kind(package: str, of: type) -> Any:
    """What repeats calls with arrays of this type; None where the library can't tell what calls depend on."""
    found = library(package)
    return CudaArrays(found) if of in found.repeated else None


class CudaArrays:
    """Arrays of a library, and calls that are made again with them."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def read(self, x: Any, starts: list[int]) -> Any:
        """What plans of calls depend on, of an array whose address joins `starts`; None if they need to see more."""
        return self.library.read(x, starts)

    def anchor(self, x: Any) -> Any:
        """An array of the library, of one that is given."""
        return x

    def around(self, x: Any) -> Any:
        """The array that a result is around, and what makes such of another; None where the result is an array."""
        return None

    def known(self, x: Any) -> Any:
        """The calls with arrays in such memory that this thread makes again."""
        return repeated_calls(self.library.queue(self.library.index(x)))

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        """An argument as a call sees it that is recorded."""
        a = self.library.array(x)
        notes.note(a, given=number)
        return a

    def handed_back(self, notes: Any, given: Any, found: Any) -> Any:
        """The result of a call that was recorded, as the user sees it."""
        return hand_back(found)

    def again(self, notes: Any, targets: Any, found: Any) -> Any:
        """A function of arrays and their addresses that makes a call again; None if it can't be made so.

        Parameters
        ----------
        notes : compactla.calls.notes.Notes
            What it did.
        targets : list of int
            Numbers of the arguments that it writes to.
        found : object
            What it returned.
        """
        given, result = notes.given, Result(notes, self.library.viewer, found, self.around)
        queue = given[0].queue
        if result.build is None or sum(result.room) > ROOM or any(a.queue is not queue for a in given):
            return None
        new = [self.library.maker(*like) for like in result.made]
        begins = np.cumsum([0, *(-(-size // APART) * APART for size in result.room)]).tolist()
        space = self.library.maker((begins.pop(),), BYTE) if result.room else None
        near = notes.near(targets)
        steps = [step for step in map(Step, notes.launches) if all(step.grid)]
        address, stream, index = self.library.address, self.library.stream, queue.device.index
        build, flag, start, anchor = result.build, notes.flag, driver.launch, self.anchor
        kept = [origin.array for origin in notes.origins.values() if origin.kept]

        def again(arrays, starts):
            for target, other, low, high in near:
                if low < starts[other] - starts[target] < high:
                    return AGAIN
            try:
                first = anchor(arrays[0])
                for make in new:
                    x = make(first)
                    arrays.append(x)
                    starts.append(address(x))
                if space is not None:
                    room = space(first)  # which has to be there until the last launch
                    begin = address(room)
                    starts += [begin + apart for apart in begins]
            except (MemoryError, RuntimeError):  # are told of in the words of an ordinary call
                return AGAIN
            current = stream(index)
            for step in steps:
                words = step.words
                for place, number, shift, apart in step.moves:
                    words[place] = (starts[number] >> shift) + apart
                start(index, step.function, step.grid, step.group, current, step.parameters, step.room)
            if flag is not None and flag.is_set():
                return AGAIN
            return build(arrays)

        again.kept = kept  # type: ignore[attr-defined]
        return again


class CudaPacks(CudaArrays):
    """Packs in the memory of a library."""

    def read(self, x: Any, starts: list[int]) -> Any:
        view = x.view
        if not self.library.repeated or not view.buffer.flags.writeable:
            return None
        starts.append(view.buffer.offset)
        return x.nm, view.layout, *view.place[1:], view.buffer.offset % ALIGNED

    def anchor(self, x: Any) -> Any:
        return x.view.buffer.base_data.owner

    def around(self, x: Any) -> Any:
        if not isinstance(x, Pack | Integers):
            return None
        a, nm, queue, adopt = x.view.buffer, x.nm, x.queue, self._adopted
        shape, dtype = a.shape, a.dtype
        if isinstance(x, Integers):
            return a, lambda theirs: Integers(adopt(theirs, queue, shape, dtype), nm, queue)
        like = Pack(a, nm)
        like.view.buffer, like.view.address = None, 0  # which would keep the memory
        return a, lambda theirs: like.around(adopt(theirs, queue, shape, dtype))

    def _adopted(self, x, queue, shape, dtype):
        return Array(queue, shape, dtype, data=Memory(0, x), offset=self.library.address(x), given=x)

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        a = x.view.buffer
        memory = Memory(0, a.base_data.owner)
        a = Array(a.queue, a.shape, a.dtype, strides=a.strides, data=memory, offset=a.offset)
        notes.note(a, given=number)
        return Pack(a, x.nm)

    def handed_back(self, notes: Any, given: Any, found: Any) -> Any:
        if isinstance(found, tuple):
            parts = [self.handed_back(notes, given, x) for x in found]
            return getattr(type(found), "_make", tuple)(parts)
        if isinstance(found, Pack | Integers):
            a = found.view.buffer
            origin = notes.origin(a)
            if origin is None:
                return found
            if origin.given is not None:
                return given[origin.given]
            a.offset = int(a.offset)
            return Pack(a, found.nm) if isinstance(found, Pack) else Integers(a, found.nm, found.queue)
        return hand_back(found)


class Step:
    """A launch, with arguments of its own, of which those in `moves` follow from where arrays are.

    Attributes
    ----------
    words : memoryview
        The arguments, as integers of 8 bytes.
    moves : list of (int, int, int, int)
        Places among these, numbers of arrays, and what the address is shifted by and what is added then.
    """

    __slots__ = ("function", "grid", "group", "kernel", "moves", "parameters", "room", "words")

    def __init__(self, launch):
        _, kernel, work_items, group, _, values = launch
        self.kernel = kernel.copy(values)
        self.function, self.parameters, self.words = self.kernel.function, self.kernel.parameters, self.kernel.words
        self.room = self.kernel.room
        self.grid, self.group = (work_items[0] // group[0], work_items[1] // group[1]), group
        self.moves = []
        for place, value in zip(self.kernel.places, values, strict=True):
            if type(value) is Located and not value.origin.kept:
                self.moves.append((place // WORD, *value.again()))
