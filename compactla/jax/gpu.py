"""What XLA calls on a CUDA GPU: functions of `compactla.linalg` on its memory, in its stream.

Results are written to XLA's memory; work space is taken from the stream. Nothing waits for the GPU but the first call
of a function, which compiles. Python's lock is taken while kernels are launched.
"""

import ast
import ctypes
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from compactla.cuda import driver
from compactla.cuda.arrays import Array, Memory
from compactla.cuda.libraries import Library
from compactla.foreign import inner_calls
from compactla.jax import frame, handler
from compactla.jax.plans import Description
from compactla.jax.stacks import CHOICES, CHOLESKY, EIGH
from compactla.linalg.stacks import own

# Functions whose options on a CPU say more. XLA computes Hermitian parts.
OTHERS = {"cholesky": CHOLESKY, "eigh": EIGH}


class Xla(Library):
    """XLA, during a call: its stream, and its memory for results."""

    name = "xla"

    def __init__(self):
        self._queues, self.call = {}, threading.local()

    def stream(self, index: int) -> int:
        return self.call.stream

    def array(self, x: Any) -> Array:
        raise TypeError(f"is a {type(x).__name__}, must not")

    def give(self, a: Array) -> Array:
        return a

    def empty(self, shape: Sequence[int], dtype: np.dtype, index: int) -> tuple[Any, int, Any]:
        for place, result in enumerate(self.call.results):
            if result[:2] == (shape, dtype):
                del self.call.results[place]
                return None, result[2], self
        owner = Room(index, math.prod(shape) * dtype.itemsize, self.call.stream)
        return None, owner.address, owner


class Room:
    """Work space in a stream."""

    def __init__(self, index, nbytes, stream):
        self.index, self.stream = index, stream
        self.address = driver.allocate(index, max(nbytes, 1), stream)

    def __del__(self):
        driver.free(self.index, self.address, self.stream)


XLA = Xla()


def compute(given: frame.Frame) -> None:
    """Compute what a call is for."""
    description = Description(*ast.literal_eval(frame.text(given, handler.TEXT)))
    choice = CHOICES[description.name](**dict(description.options))
    stacked = OTHERS.get(description.name, choice.stacked)
    options = choice.options[: len(stacked.options)]
    inputs, outputs = (buffers(x) for x in (given.arguments, given.results))
    if not all(math.prod(shape) for shape, _ in (*inputs, *outputs)):
        return
    queue = XLA.queue(driver.device_of(inputs[0][1]))
    dtype, arrays = np.dtype(description.dtype), []
    for (shape, place), operand, letters in zip(inputs, description.operands, stacked.inputs.values(), strict=True):
        assert not own(letters)
        a = Array(queue, shape, dtype, data=Memory(0, given), offset=place)
        arrays.append(a.transpose(*range(len(shape) - 2), -1, -2) if operand[2] else a)
    made = stacked.made((), stacked.sizes(arrays) or {}, dtype.char)
    XLA.call.stream = frame.stream(given)
    XLA.call.results = [(shape, kind, place) for (shape, place), (_, kind) in zip(outputs, made, strict=True)]
    with inner_calls():
        found = stacked(arrays, options, "nan", "same")
        for x, (_, place) in zip(found, outputs, strict=True):
            if x.offset != place:
                driver.copy(queue.device.index, place, x.copy().offset, x.nbytes, XLA.call.stream)


def buffers(given):
    """Shapes and addresses of arguments or results."""
    entries = [given.entries[i].contents for i in range(given.count)]
    return [(tuple(x.shape[k] for k in range(x.rank)), x.data or 0) for x in entries]


def answer(given: Any) -> int | None:
    """Do what a call frame asks for. Returns the address of an error, or None."""
    try:
        if not frame.answer(given.contents, 0) and given.contents.stage == frame.EXECUTE:
            compute(given.contents)
    except BaseException as problem:  # which would be lost here
        return frame.error(given.contents, f"compactla.jax: {problem!r}")
    return None


ANSWER = frame.HANDLER(answer)
ADDRESS = ctypes.cast(ANSWER, ctypes.c_void_p).value
