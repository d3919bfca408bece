"""Locks that a forked process finds open: whoever held one at that moment is in the other process.

Objects that keep factors have a `ReadWriteLock`: calls that use factors read, and calls that make new ones write.
"""

import contextlib
import itertools
import os
import threading
import weakref
from _thread import RLock
from collections.abc import Callable, Iterable
from typing import Any

_locks: "weakref.WeakSet[Lock]" = weakref.WeakSet()
TOGETHER = 8  # locks that are taken by one statement, where there are many: each needs a frame of the stack


class Lock(RLock):  # type: ignore[misc] # C's class is a function to mypy
    """A lock, to be held by ``with``.

    What ``with`` calls is Python's own: methods written in Python could be interrupted while they hold the lock.
    """

    def __init__(self) -> None:
        _locks.add(self)

    def reopen(self) -> None:
        if self.acquire(blocking=False):  # nobody else has it
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined] # not in the stubs


class Reader:
    """What a thread holds while it reads: a lock of its own, so that threads do not wait for each other.

    Attributes
    ----------
    lock : Lock
        That lock. A writer takes it away before it waits for it, so that the next call waits for the writer.
    """

    __slots__ = ("__weakref__", "_own", "_writing", "lock")

    def __init__(self, writing):
        self.lock = self._own = Lock()
        self._writing = writing

    def __getattr__(self, name):
        if name != "lock":
            raise AttributeError(name)
        if not self._own._is_owned():  # calls within a call go on
            with self._writing:
                self.lock = self._own
        return self._own

    def withdrawn(self):
        """The lock, after it was taken away."""
        with contextlib.suppress(AttributeError):
            del self.lock
        return self._own


class Shared:
    """What threads have in common that use a `ReadWriteLock`."""

    numbers = itertools.count()

    def __init__(self):
        self.number, self.writing = next(self.numbers), Lock()
        self.readers: set[weakref.ref[Reader]] = set()
        self.calls: set[weakref.ref[Lock]] = set()

    def between_calls(self, function, args):
        """Call a function between calls of which one at a time is made."""
        return holding(living(self.calls), function, args)


class ReadWriteLock(threading.local):
    """A lock that any number of threads hold at once to read, or one alone to write.

    ``with lock.here.lock:`` reads. Within it, and within `write`, the same thread may read again.
    """

    def __init__(self, shared: Shared) -> None:  # in each thread that comes here
        self.shared, self.here = shared, Reader(shared.writing)
        with shared.writing:
            shared.readers.add(weakref.ref(self.here, shared.readers.discard))

    def for_calls(self) -> Lock:
        """A lock that writers wait for, for calls of which any thread makes one at a time; asked for by a reader."""
        lock = Lock()
        self.shared.calls.add(weakref.ref(lock, self.shared.calls.discard))
        return lock

    def write(self, function: Any, *args: Any) -> Any:
        """Call a function while no other thread reads or writes."""
        shared, here = self.shared, self.here
        if here.lock._is_owned() and not shared.writing._is_owned():
            raise RuntimeError("values change within a call that uses them, must change after it")
        with shared.writing:
            if len(shared.readers) > 1:  # not this thread alone
                locks = [reader.withdrawn() for reader in living(shared.readers) if reader is not here]
                return holding(locks, shared.between_calls, (function, args))
            return holding(living(shared.calls), function, args) if shared.calls else function(*args)


def read_write_lock() -> ReadWriteLock:
    """A new lock for many readers, or one writer."""
    return ReadWriteLock(Shared())


def living(references) -> list:
    """The objects that weak references are to and that are still there."""
    return [x for reference in references.copy() if (x := reference()) is not None]


def reading(locks: Iterable, function: Callable, *args: Any) -> Any:
    """Call a function while nobody writes what these locks are for; every thread takes them in the same order."""
    ordered = sorted(set(locks), key=lambda lock: lock.shared.number)
    return holding([lock.here.lock for lock in ordered], function, args)


def holding(locks, function, args) -> Any:
    """Call a function with these locks held, which are let go however it ends."""
    if len(locks) > TOGETHER:
        a, b, c, d, e, f, g, h, *rest = locks
        with a, b, c, d, e, f, g, h:  # not an exit stack, which could be interrupted between a lock and its note of it
            return holding(rest, function, args)
    if not locks:
        return function(*args)
    with locks[0]:
        return function(*args) if len(locks) == 1 else holding(locks[1:], function, args)


def _reopen():
    for lock in _locks:
        lock.reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen)
