"""The CPU's kernels that routines pick, in loops of compiled code, in one thread."""

import ctypes

import numba

from compactla.calls.launch import Recording
from compactla.cpu import run
from compactla.cpu.emit.numba_words import call
from compactla.cpu.threads.pool import words_of


def rounds_of(case):
    """``rounds_of(case)(count)`` is a call that runs the case's kernel over the batch so often, in compiled code."""
    kernel, (lo, hi, *others), memory = launched(case)
    words = words_of(kernel)
    filled = words.filled([others])
    place = ctypes.addressof(ctypes.c_char.from_buffer(filled))

    def calls(rounds, memory=(memory, filled)):
        return lambda: loop(rounds, words.function, lo, hi, place)

    return calls


@numba.njit(nogil=True)
def loop(rounds, function, lo, hi, place):
    for _ in range(rounds):
        call(function, lo, hi, place)


def launched(case):
    """The kernel that a call of the case runs, its arguments, and the views that own the memory of what a call makes.

    The call is recorded, but not made.
    """
    recording = Recording(1)
    case.bound(threads=recording)
    kernels = {kernel.entry: kernel for _, kernel, *_ in run.chosen.known.values()}
    step = [step for step in recording.steps if step.func in kernels][-1]
    return kernels[step.func], step.args, recording.kept
