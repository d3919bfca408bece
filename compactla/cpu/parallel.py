"""How the packs of a call are shared out over threads: the calling one, and helpers that are parked between calls.

They are ours, and need neither OpenMP nor TBB: several threads may call at once, and a forked process starts its own.
How they are reached is in `handover`.
"""

import bisect
import ctypes
import functools
import os
import threading

import numba
import numpy as np

from compactla.cpu.handover import BOX, DONE, GO, hand_out, new_lock, serve, words_of

# The calling thread is one of them; the environment variable NUMBA_NUM_THREADS sets how many there are.
THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
# Least work of a thread, in operations on vectors of a register or elements moved: 10 us or more. Three times as much
# is the least that others have to take off the calling thread: those that are asleep need 30 us or more to begin.
GRAIN = 32_768


class Pool:
    """The helpers of this process: started when they are first needed, and each at work for one call at a time."""

    def __init__(self):
        self.boxes = np.zeros(THREADS * BOX, np.int64)
        self.idle, self.size, self.growing = [], 0, threading.Lock()

    def hire(self, helpers, wanted):
        """Add helpers to a list until it has as many as are wanted, or fewer if others have them.

        Each is either idle or in the list at any time: interrupts come before or after `extend`.
        """
        while len(helpers) < wanted:
            try:
                helpers.extend(map(self.idle.pop, [-1] * (wanted - len(helpers))))
            except IndexError:
                if not self.grow():
                    break

    def grow(self):
        """Whether there is one more idle helper."""
        with self.growing:
            if self.size >= THREADS - 1:
                return False
            box = BOX * self.size
            self.boxes[box + GO], self.boxes[box + DONE] = new_lock(), new_lock()
            args = self.size, self.size + 1, self.boxes
            helper = threading.Thread(target=serve(), args=args, name="compactla", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the system has no more threads, or the interpreter is about to end
                return False
            self.size += 1  # first: an interrupt must not make another helper of that number
            self.idle.append(self.size - 1)
            return True


@functools.cache
def pool():
    return Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)


def share(kernel, cost, args, threads=None, offset=None, work=None):
    """Call ``kernel(*args)``, args = (0, count, ...), or rather ``kernel(lo, hi, ...)`` for parts of that range.

    There are at most `threads` parts, each in a thread of its own, and as many as `cost` is worth. Item i is
    ``offset[i + 1] - offset[i]`` of the work; default: all are equal. A last argument is ``work[t]`` in thread t, if
    there is `work`.
    """
    helpers: list[int] = []
    try:
        if cost >= 3 * GRAIN:
            parts = min(THREADS, args[1], int(cost // GRAIN), THREADS if threads is None else threads)
            if parts > 1 and cost - cost / parts >= 3 * GRAIN:
                pool().hire(helpers, parts - 1)
        if helpers:
            share_out(helpers, kernel, args, offset, work)
        elif work is None:
            kernel(*args)
        else:
            kernel(*args, work[0])
    finally:
        pool().idle.extend(helpers)


def share_out(helpers, kernel, args, offset, work):
    _, count, *others = args
    parts = len(helpers) + 1
    bounds = [count * t // parts for t in range(parts + 1)]
    if offset is not None:
        bounds = [bisect.bisect_left(offset, offset[-1] * t // parts) for t in range(parts + 1)]
    words = words_of(kernel)
    memory = words.filled([others] if work is None else [[*others, work[t]] for t in range(parts)])
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    step = 0 if work is None else words.struct.size
    who, ends = np.array(helpers, np.int64), np.array(bounds, np.int64)
    hand_out()(0, parts - 1, pool().boxes, who, words.function, ends, place, step)
