"""How the packs of a call are shared out over threads: the calling one, and helpers that are parked between calls.

They are ours, and need neither OpenMP nor TBB: several threads may call at once, and a forked process starts its own.
How they are reached is in `pool`.
"""

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from compactla.calls.launch import NOW, Launch
from compactla.cpu.emit.choices import choices
from compactla.cpu.emit.machine import share_of_processors
from compactla.cpu.threads.pool import BOX, hand_out, server, words_of
from compactla.overlap import address


def threads_of_process() -> int:
    """How many the environment variable NUMBA_NUM_THREADS says, else as many as the process may use of the cores."""
    most: int = vars(numba.config)["NUMBA_NUM_THREADS"]
    share = None if "NUMBA_NUM_THREADS" in os.environ else share_of_processors()
    return most if share is None else min(most, share)


THREADS = threads_of_process()  # the calling thread is one of them
GRAIN = choices().grain  # least work of a thread


def is_small(cost: float) -> bool:
    """Whether nothing of so much work is given to other threads."""
    return cost < 3 * GRAIN


boxes: np.ndarray


def park():
    """Make boxes for the helpers of this process, which start when they are first needed."""
    global boxes
    boxes = np.zeros((THREADS - 1, BOX), np.int64)


park()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=park)


def share(
    kernel: Any, cost: float, args: tuple, launch: Launch = NOW, offset: np.ndarray | None = None,
    work: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Call ``kernel(*args)``, args = (0, count, ...), or rather ``kernel(lo, hi, ...)`` for parts of that range.

    There are at most `launch.threads` parts, each in a thread of its own, and as many as `cost` is worth. Item i is
    ``offset[i + 1] - offset[i]`` of the work; default: all are equal. A last argument is ``work[t]`` in thread t, if
    there is `work`.
    """
    if is_small(cost) and not launch.recorded:  # most calls
        kernel.entry(*args) if work is None else kernel.entry(*args, work[0])
    else:
        launch.run(*divided(kernel, cost, args, launch.threads, offset, work))


def divided(
    kernel: Any, cost: float, args: tuple, threads: int | None = None, offset: np.ndarray | None = None,
    work: Sequence[int] | None = None,
) -> tuple:  # fmt: skip
    """The function that does the same, and its arguments, which have the memory that is read, but that of `work`."""
    parts = parts_for(cost, args[1], threads)
    if parts == 1:
        return kernel.entry, *args, *([] if work is None else work[:1])
    _, count, *others = args
    words = words_of(kernel)
    memory = words.filled([others] if work is None else [[*others, work[t]] for t in range(parts)])
    step = 0 if work is None else words.struct.size
    return hand, memory, parts, words.function, count, offset, step, args


def parts_for(cost: float, count: int, threads: int | None = None) -> int:
    """How many parts of so many items work is shared out in."""
    if is_small(cost):
        return 1
    parts = max(1, min(THREADS, count, int(cost // GRAIN), THREADS if threads is None else threads))
    return 1 if is_small(cost - cost / parts) else parts


def hand(memory, parts, function, count, offset, step, args):
    """Call a function for parts of some items, with the words in `memory`, which are of `args`."""
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    starts = 0 if offset is None else address(offset)
    hand_out(address(boxes), len(boxes), server(), parts, function, count, starts, place, step)
