"""The CPU's kernels that routines pick, in loops of compiled code, in one thread."""

import functools

import numba

from compactla.calls.launch import Recording
from compactla.cpu import run


def rounds_of(case):
    """``rounds_of(case)(count)`` is a call that runs the case's kernel over the batch so often, in compiled code."""
    kernel, args, memory = launched(case)
    loop = loop_of(kernel)

    def calls(rounds, memory=memory):
        return lambda: loop(rounds, *args)

    return calls


def launched(case):
    """The kernel that a call of the case runs, its arguments, and the views that own the memory of what a call makes.

    The call is recorded, but not made.
    """
    recording = Recording(1)
    case.bound(threads=recording)
    kernels = {kernel.entry: kernel for _, kernel, *_ in run.chosen.known.values()}
    step = [step for step in recording.steps if step.func in kernels][-1]
    return kernels[step.func], step.args, recording.kept


@functools.cache
def loop_of(kernel):
    @numba.njit(nogil=True)
    def loop(rounds, *args):
        for _ in range(rounds):
            kernel(*args)

    return loop
