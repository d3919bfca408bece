"""Locks that a forked process finds open: whoever held one at that moment is in the other process."""

import os
import threading
import weakref

_locks: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock:
    """A lock, to be held by ``with``.

    Attributes
    ----------
    broken : bool
        Whether this process was forked off while another thread held it, and what that did was left half done.
    """

    def __init__(self):
        self._lock, self.broken = threading.Lock(), False
        _locks.add(self)

    def reopen(self):
        self.broken |= self._lock.locked()
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
