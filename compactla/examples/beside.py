"""A program with compactla.linalg and with numpy.linalg, of which it uses the names they have in common."""

import time

import numpy as np

from compactla import linalg
from compactla.cpu.threads.sharing import THREADS


def beside_numpy(program, rounds=3):
    """Run a program with both modules in turns, and print the least time of each.

    Parameters
    ----------
    program : function
        Function to be timed; it is called with a module.
    rounds : int, optional
        How often, after a first time, in which kernels are compiled or loaded.

    Returns
    -------
    ours, theirs
        Results of the program with compactla.linalg and with numpy.linalg.
    """
    start = time.perf_counter()
    ours = program(linalg)
    first = time.perf_counter() - start
    seconds = {linalg: [], np.linalg: []}
    for _ in range(rounds):
        for module, times in seconds.items():
            start = time.perf_counter()
            result = program(module)
            times.append(time.perf_counter() - start)
    least, numpy = map(min, seconds.values())
    print(f"compactla.linalg {least:.3g} s on {THREADS} threads (the first time {first:.3g} s)")
    print(f"numpy.linalg     {numpy:.3g} s, {numpy / least:.1f} times as long")
    return ours, result
