"""Locks that a forked process finds open: whoever held one at that moment is in the other process."""

import os
import threading
import weakref

_locks: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock:
    """A lock, to be held by ``with``."""

    def __init__(self):
        self.reopen()
        _locks.add(self)

    def reopen(self):
        self._lock = threading.Lock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *error):
        self._lock.release()


def _reopen():
    for lock in _locks:
        lock.reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen)
