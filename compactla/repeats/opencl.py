"""Calls with pyopencl Arrays, and with packs, that are made again."""

import importlib
from typing import Any

import pyopencl as cl
import pyopencl.array as cla

from compactla.calls.arrays import Arrays
from compactla.calls.notes import AGAIN, ALIGNED, Located, Result
from compactla.gpu.arrays import contiguous, lacks_memory, out_of_order, seen_as, unset
from compactla.gpu.launch import repeated_calls
from compactla.overlap import origin
from compactla.repeats.packs import around, of_kind

ROOM = 2**18  # bytes that a call may work in, which are kept for later ones


class OpenCLArrays(Arrays):
    """pyopencl Arrays."""

    def read(self, x: Any, starts: list[int]) -> Any:
        queue = x.queue
        if queue is None or not x.size or not isinstance(x.base_data, cl.MemoryObjectHolder):
            return None
        starts.append(x.offset)
        return queue.int_ptr, x.dtype, x.shape, x.strides, x.offset % ALIGNED

    def known(self, x: Any) -> Any:
        return repeated_calls(x.queue)

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        a = seen_as(x, x.shape, x.strides)
        a.base_data = cl.Buffer.from_int_ptr(x.base_data.int_ptr)
        notes.note(a, given=number)
        return a

    def handed_back(self, notes: Any, given: Any, found: Any) -> Any:
        if isinstance(found, tuple | list):
            parts = [self.handed_back(notes, given, x) for x in found]
            return getattr(type(found), "_make", type(found))(parts)
        if (inner := around(found)) is not None:
            known = notes.origin(inner[0])
            if known is not None and known.given is not None:
                return given[known.given]
            inner[0].offset = int(inner[0].offset)
            return of_kind(found, inner[0])
        known = notes.origin(found) if isinstance(found, cla.Array) else None
        if known is None:
            return found
        if known.given is not None and known.array is found:
            return given[known.given]
        found.offset = int(found.offset)
        return found

    def again(self, notes: Any, targets: Any, found: Any) -> Any:
        given, result = notes.given, Result(notes, viewer, found, around)
        queue = given[0].queue
        if result.build is None or sum(result.room) > ROOM or out_of_order(queue):
            return None
        if any(a.queue != queue for a in given) or any(launch[0] != queue for launch in notes.launches):
            return None
        count = len(given) + len(result.made)  # of arrays that differ from call to call
        allocators = {known.number: known.allocator for known in notes.origins.values()}
        new = [
            (shape, dtype, contiguous(shape, dtype.itemsize), allocators[number])
            for number, (shape, dtype) in enumerate(result.made, len(given))
        ]
        near = notes.near(targets)
        steps = [Step(notes, launch, count) for launch in notes.launches]
        build, flag = result.build, notes.flag

        def again(objects, starts):
            arrays = [x if type(x) is cla.Array else x.view.buffer for x in objects]
            for target, other, low, high in near:
                (memory, start), (another, first) = origin(arrays[target]), origin(arrays[other])
                if memory == another and low < first - start < high:
                    return AGAIN
            queue = arrays[0].queue
            try:
                for shape, dtype, strides, k in new:
                    allocator = None if k is None else arrays[k].allocator
                    arrays.append(unset(shape, dtype, queue, allocator, strides))
                    starts.append(0)
                objects += arrays[len(objects) :]
            except cl.Error as error:
                if lacks_memory(error):  # which an ordinary call tells in its words
                    return AGAIN
                raise
            for step in steps:
                step.start(queue, arrays, starts)
            if flag is not None and flag.is_set():
                return AGAIN
            return build(objects)

        return again


def viewer(shape, strides, dtype, offset):
    """A function that makes views of new arrays, so many bytes behind their beginnings."""

    def view(a):
        found = seen_as(a, shape, strides)
        found.offset = offset
        return found

    return view


class Step:
    """A launch, some arguments of which follow from where arrays are.

    Attributes
    ----------
    buffers : list of (int, int)
        Arguments that are the memory of arrays, and numbers of these.
    moves : list of (int, int, int, int)
        Arguments that follow from offsets: numbers of arrays, what their offset is shifted by, and what is added then.
    waits : list of int
        Numbers of the arrays whose events it waits for, and leaves its own.
    """

    def __init__(self, notes, launch, count):
        _, self.kernel, self.work_items, self.group, origins, values = launch
        own = {id(known.memory): known for known in notes.origins.values() if not known.kept and known.number < count}
        self.waits = sorted({known.number for known in origins if id(known.memory) in own})
        self.buffers, self.moves, self.values = [], [], []
        for place, value in enumerate(values):
            known = own.get(id(value))
            if known is not None:
                self.buffers.append((place, known.number))
                value = None
            elif type(value) is Located:
                if id(value.origin.memory) in own:
                    self.moves.append((place, *value.again()))
                value = int(value)
            self.values.append(value)

    def start(self, queue, arrays, starts):
        """Launch it for these arrays and offsets."""
        values, before = self.values.copy(), []
        for place, number in self.buffers:
            values[place] = arrays[number].base_data
        for place, number, shift, apart in self.moves:
            values[place] = (starts[number] >> shift) + apart
        for number in self.waits:
            before += arrays[number].events
        event = self.kernel(queue, self.work_items, self.group, *values, wait_for=before)
        for number in self.waits:
            arrays[number].events[:] = (event,)


class OpenCLPacks(OpenCLArrays):
    """Packs in OpenCL memory, and integers beside them."""

    def read(self, x: Any, starts: list[int]) -> Any:
        view = x.view
        a = view.buffer
        if not a.size or not isinstance(a.base_data, cl.MemoryObjectHolder):
            return None
        starts.append(a.offset)
        return x.queue.int_ptr, x.nm, view.layout, *view.place[1:], a.offset % ALIGNED

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        return of_kind(x, super().seen(x.view.buffer, number, notes))


class Packs(Arrays):
    """Packs, and integers beside them, wherever they are."""

    def read(self, x: Any, starts: list[int]) -> Any:
        kind = of_queue(x.queue)
        return kind and kind.read(x, starts)

    def known(self, x: Any) -> Any:
        return repeated_calls(x.queue)

    def seen(self, x: Any, number: int, notes: Any) -> Any:
        return of_queue(x.queue).seen(x, number, notes)

    def handed_back(self, notes: Any, given: Any, found: Any) -> Any:
        return of_queue(given[0].queue).handed_back(notes, given, found)

    def again(self, notes: Any, targets: Any, found: Any) -> Any:
        return of_queue(notes.given[0].queue).again(notes, targets, found)


def of_queue(queue):
    """What repeats calls with packs that live there; None if nothing does."""
    if queue is None or isinstance(queue, cl.CommandQueue):
        return queue and OPENCL_PACKS
    if queue.packs is None:
        queue.packs = importlib.import_module("compactla.repeats.cuda").packs(queue)
    return queue.packs


KIND, PACKS, OPENCL_PACKS = OpenCLArrays(), Packs(), OpenCLPacks()
