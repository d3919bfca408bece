"""Memory for threads to work in."""

import threading

from compactla.room import Room
from compactla.view import REAL

rooms = threading.local()


def room(dtype, threads, size):
    """Room for each thread to work in, which the calling thread keeps."""
    kept = rooms.__dict__.get(dtype.char)
    if kept is None:
        kept = rooms.__dict__[dtype.char] = Room(REAL[dtype.char], None)
    return kept.array((threads, size))
