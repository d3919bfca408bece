"""How the packs of a call are shared out over threads: the calling one, and helpers that are parked between calls.

They are ours, and need neither OpenMP nor TBB: several threads may call at once, and a forked process starts its own.
"""

import bisect
import functools
import itertools
import os
import queue
import threading

import numba

# The calling thread is one of them; the environment variable NUMBA_NUM_THREADS sets how many there are.
THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]
# Least work of a thread, in operations on vectors of a register or elements moved. They take 30 us or more, and handing
# them to another thread takes 10 to 20.
GRAIN = 131_072


class Job:
    """Part of a call, for a helper."""

    def __init__(self, kernel, *args):
        self.kernel, self.args = kernel, args
        self.error, self.pending, self.signal = None, True, queue.SimpleQueue()

    def run(self):
        try:
            self.kernel(*self.args)
        except BaseException as error:
            self.error = error
        self.pending = False
        self.signal.put(None)

    def wait(self):
        """Return when the job is done and no sooner: its arrays are in use until then, whatever interrupts this."""
        while self.pending:
            try:
                self.signal.get()
            except BaseException as error:
                self.error = error


class Helper(threading.Thread):
    """A thread that runs jobs. No process waits for it at its end."""

    def __init__(self):
        super().__init__(name="compactla", daemon=True)
        self.jobs = queue.SimpleQueue()
        self.start()

    def run(self):
        while True:
            self.jobs.get().run()


class Pool:
    """The helpers of this process: started when they are first needed, and each at work for one call at a time."""

    def __init__(self):
        self.idle, self.size, self.growing = [], 0, threading.Lock()

    def hire(self, wanted):
        """As many helpers as are wanted, or fewer if others have them."""
        helpers = []
        while len(helpers) < wanted:
            try:
                helpers.append(self.idle.pop())
            except IndexError:
                if not self.grow():
                    break
        return helpers

    def grow(self):
        """Whether there is one more idle helper."""
        with self.growing:
            if self.size >= THREADS - 1:
                return False
            try:
                self.idle.append(Helper())
            except RuntimeError:  # the system has no more threads, or the interpreter is about to end
                return False
            self.size += 1
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
    if cost < 2 * GRAIN or threads == 1 or THREADS == 1:
        if work is None:
            kernel(*args)
        else:
            kernel(*args, work[0])
        return
    _, count, *others = args
    crew, most = pool(), THREADS if threads is None else min(threads, THREADS)
    helpers = crew.hire(min(most, count, int(cost // GRAIN)) - 1)
    parts = len(helpers) + 1
    bounds = [count * t // parts for t in range(parts + 1)]
    if offset is not None:
        bounds = [bisect.bisect_left(offset, offset[-1] * t // parts) for t in range(parts + 1)]
    jobs = []
    for t, ends in enumerate(itertools.pairwise(bounds)):
        jobs.append(Job(kernel, *ends, *others, *([] if work is None else [work[t]])))
    for helper, job in zip(helpers, jobs[1:], strict=True):
        helper.jobs.put(job)
    jobs[0].run()
    for job in jobs:
        job.wait()
    crew.idle.extend(helpers)
    for job in jobs:
        if job.error is not None:
            raise job.error
