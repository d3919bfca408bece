"""Locks that a forked process finds open: whoever held one at that moment is in the other process."""

import os
import weakref
from _thread import RLock

_locks: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock(RLock):  # type: ignore[misc]
    """A lock, to be held by ``with``.

    What ``with`` calls is Python's own: methods written in Python could be interrupted while they hold the lock.
    """

    def __init__(self):
        _locks.add(self)

    def reopen(self):
        if self.acquire(blocking=False):  # nobody else has it
            self.release()
        else:
            self._at_fork_reinit()


def _reopen():
    for lock in _locks:
        lock.reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen)
