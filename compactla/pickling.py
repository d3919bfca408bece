"""How objects that hold arrays are copied, where they live, and pickled on the CPU."""

import contextlib
import copy
import importlib
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from compactla.backends import backend, device_module, device_name
from compactla.checks import DEVICES, is_device_array, stays
from compactla.locks import ReadWriteLock

# Arrays that are unpickled just now and can't be written, by their identity, and the copies that take their places.
_writeable: dict[int, tuple[weakref.ref, np.ndarray]] = {}


class Made:
    """An object that is copied and pickled by what it is made from: arrays, numbers and a queue.

    Attributes
    ----------
    _parts : function
        Returns the arguments that make the same. It is no abstract method, for `isinstance` takes longer with these.
    """

    __slots__ = ()
    _way_to_host = "see to('cpu')"
    _parts: Callable[[], tuple[Any, ...]]

    def __copy__(self) -> Any:
        return type(self)(*self._parts())

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(*_deep(self._parts(), memo))

    def __reduce__(self) -> tuple[Any, ...]:
        _check_pickled(self)
        return type(self), self._parts()


class Copied:
    """An object whose copies have factors of their own.

    Attributes
    ----------
    _not_copied : tuple of str
        Attributes that `_prepare` sets, of copies too.
    """

    _not_copied: tuple[str, ...] = ()
    _way_to_host = "make it there"

    def _prepare(self):
        """Set what is not copied."""

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # one that shared the factors would change with them

    def __deepcopy__(self, memo: Any) -> Any:
        made = memo[id(self)] = type(self).__new__(type(self))
        with self._reading:
            state = _deep(self.__getstate__(), memo)
        made.__setstate__(state)
        return made

    @property
    def _reading(self):
        """What a thread holds while nothing of it must change."""
        lock = getattr(self, "_lock", None)
        return lock.here.lock if isinstance(lock, ReadWriteLock) else contextlib.nullcontext()

    def __reduce_ex__(self, protocol: Any) -> Any:
        _check_pickled(self)
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()  # SciPy's operators have some of their own
        return {name: by_name(value) for name, value in state.items() if name not in self._not_copied}

    def __setstate__(self, state: Any) -> None:
        take = getattr(super(), "__setstate__", self.__dict__.update)
        take({name: _own(value) for name, value in state.items()})
        self._prepare()


class _Named:
    """A module, which can't be pickled, by its name: SciPy's operators have one since SciPy 1.18."""

    def __init__(self, module):
        self.name = module.__name__

    def __reduce__(self):
        return importlib.import_module, (self.name,)


def by_name(value: Any) -> Any:
    """A value as it is pickled: a module by its name."""
    return _Named(value) if isinstance(value, ModuleType) else value


def named(value: Any) -> Any:
    """A value of `by_name` that was copied, not pickled."""
    return importlib.import_module(value.name) if isinstance(value, _Named) else value


def _deep(value, memo):
    """A copy of a value; arrays on a device are copied there, and queues stay."""
    kind = type(value)
    if kind is dict:
        return {name: _deep(x, memo) for name, x in value.items()}
    if isinstance(value, tuple | list):
        parts = (_deep(x, memo) for x in value)
        return value._make(parts) if hasattr(value, "_make") else kind(parts)
    if is_device_array(value):
        if id(value) not in memo:
            memo[id(value)] = _beside(value)
        return memo[id(value)]
    if kind.__module__.startswith(DEVICES) and hasattr(value, "device"):  # a queue
        return value
    return copy.deepcopy(value, memo)


def _beside(a):
    """A copy of an array on its device."""
    if stays(a):
        return a.copy()
    if not a.flags.c_contiguous:
        return device_module("linalg.arrays").spread(a, a.shape, a.strides, a.dtype)
    target = backend(a.queue).empty(a.shape, a.dtype, a.queue, a.allocator)
    backend(a.queue, "lines").copy(a, target)
    return target


def _own(value):
    """A value with copies of the arrays that can't be written, such as those that joblib maps from files."""
    if type(value) in (list, tuple):
        return type(value)(map(_own, value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_own, value))
    if isinstance(value, Made):
        return type(value)(*map(_own, value._parts()))
    if not isinstance(value, np.ndarray) or value.flags.writeable:
        return value
    key = id(value)  # the same in several objects of one pickle
    if key not in _writeable:
        _writeable[key] = weakref.ref(value, lambda _: _writeable.pop(key)), np.array(value, order="K")
    return _writeable[key][1]


def _check_pickled(x):
    """Refuse what lives on an OpenCL device, which another process does not have."""
    queue = getattr(x, "queue", None)
    queues = queue if isinstance(queue, list) else [queue]
    if any(type(one).__module__.startswith("pyopencl") for one in queues):
        where = f"{type(x).__name__} lives on {device_name(queue)}"
        raise TypeError(f"{where}, must live on the CPU to be pickled: {x._way_to_host}")
