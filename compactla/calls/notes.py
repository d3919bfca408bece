"""What a call with arrays on a device does: noted while it runs, so that `compactla.repeats` makes it again."""

import operator
import threading
from collections.abc import Callable
from typing import Any

from compactla.overlap import reach

ALIGNED = 64  # bytes: arrays of calls that are alike begin equally far behind multiples of them
FAR = 2**40  # addresses are larger, and numbers of anything else are not
SIMPLE = {str, bool, int, type(None)}  # types of arguments that are equal if they mean the same
AGAIN: Any = object()  # in place of a result: the call has to be an ordinary one


class State(threading.local):
    """What is recorded in a thread, if something is."""

    notes: "Notes | None" = None


state = State()


class Origin:
    """Memory that a call uses.

    Attributes
    ----------
    array : array
        The array in it, as the call sees it.
    start : int
        Where it begins.
    given : int or None
        The place of an argument among the arrays of the call; None of others.
    allocator : int or None
        The place of the argument whose allocator made it.
    kept : bool
        Whether it is the same for each call.
    number : int or None
        Its number in later calls.
    """

    number: int | None = None

    def __init__(self, array, given=None, allocator=None, kept=False):
        self.array, self.start = array, int(array.offset)
        self.given, self.allocator, self.kept = given, allocator, kept
        self.memory = array.base_data  # by whose identity it is found


class Located(int):
    """A number that follows from where memory begins: bytes from there on, divided by `unit`."""

    origin: Origin
    unit: int

    def __new__(cls, value, origin, unit=1):
        number = super().__new__(cls, value)
        number.origin, number.unit = origin, unit
        return number

    def __add__(self, other):
        return Located(int(self) + other, self.origin, self.unit)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, Located):  # which is in the same memory
            return int(self) - int(other)
        return Located(int(self) - other, self.origin, self.unit)

    def __floordiv__(self, other):
        return Located(int(self) // other, self.origin, self.unit * other)

    def __mod__(self, other):
        if ALIGNED % (self.unit * other):
            refuse()
        return int(self) % other

    def again(self) -> tuple[int | None, int, int]:
        """How it follows later: the number of the memory, what its beginning is shifted by, and what is added then."""
        shift = self.unit.bit_length() - 1
        return self.origin.number, shift, int(self) - (self.origin.start >> shift)


class Notes:
    """What a call does.

    Attributes
    ----------
    origins : dict
        The memory that it uses, by the identity of the object that stands for it.
    launches : list of tuple
        Kernels, work-items, work-groups, and arguments.
    flag : object or None
        What it waits for at last, `compactla.gpu.arrays.Flag`.
    refused : bool
        Whether it does more than can be made again.
    failed : bool
        Whether the flag was set, or there were such matrices otherwise: other arrays may do better.
    borrowed : tuple or None
        What computed in place of launches, a function of arrays of a library, the arrays that it read, and its results.
    """

    borrowed: tuple[Callable, list, list] | None = None

    def __init__(self) -> None:
        self.origins: dict[int, Origin] = {}
        self.launches: list[tuple] = []
        self.flag: Any = None
        self.refused = self.failed = False

    def note(self, array: Any, **about: Any) -> None:
        """Note memory that the call uses, of an array that nothing is known of yet."""
        origin = Origin(array, **about)
        self.origins[id(origin.memory)] = origin
        array.offset = Located(origin.start, origin)

    def made(self, array: Any, allocator: Any) -> None:
        """Note a new array, of an allocator or of the usual one."""
        givers = [x.given for x in self.origins.values() if x.given is not None and x.array.allocator is allocator]
        self.note(array, allocator=givers[0] if givers else None)
        self.refused |= allocator is not None and not givers

    def launch(self, queue: Any, kernel: Any, work_items: tuple, group: tuple, arrays: Any, values: Any) -> None:
        """Note a launch."""
        origins = [self.origins.get(id(a.base_data)) for a in arrays]
        units = [x.unit for x in values if type(x) is Located]
        lost = any(type(x) is int and x > FAR for x in values)
        self.refused |= lost or None in origins or any(ALIGNED % unit for unit in units) or self.flag is not None
        self.launches.append((queue, kernel, work_items, group, origins, list(values)))

    def borrow(self, found: Callable, read: list, results: list, failed: bool) -> None:
        """Note what a library computed, and whether there were matrices without a result."""
        self.refused |= self.borrowed is not None or bool(self.launches)
        self.borrowed, self.failed = (found, read, results), failed
        for x in results:
            self.note(x)

    def wait(self, flag: Any, is_set: bool) -> None:
        """Note that a flag was waited for."""
        self.refused |= self.flag is not None
        self.flag, self.failed = flag, is_set

    def origin(self, array: Any) -> Origin | None:
        """The memory of an array."""
        return self.origins.get(id(getattr(array, "base_data", None)))

    @property
    def given(self) -> list:
        """The arrays among the arguments."""
        return [origin.array for origin in self.origins.values() if origin.given is not None]

    def near(self, targets: list[int]) -> list[tuple[int, int, int, int]]:
        """When the memory of two arrays may meet of which the first is written to, by their numbers.

        They are apart unless the second begins so many bytes behind the first that it is between two others.
        """
        spans, found = [reach(a) if a.size else (0, 0) for a in self.given], []
        for target in targets:
            start, end = spans[target]
            found += [(target, k, start - last, end - first) for k, (first, last) in enumerate(spans) if k != target]
        return found


def keep(array: Any) -> None:
    """Note that an array is the same for each call."""
    if state.notes is not None:
        state.notes.note(array, kept=True)


def refuse() -> None:
    """Note that what is done here can't be made again by launches."""
    if state.notes is not None:
        state.notes.refused = True


class Result:
    """How the result of a call follows from its arrays, which have numbers then: arguments, new ones in it, all others.

    Attributes
    ----------
    made : list of (tuple of int, dtype)
        Shapes and types of the new arrays in it.
    inside : set of int
        Numbers of those that are in objects around them alone.
    room : list of int
        Bytes of all other new arrays.
    around : function
        The array that an object in the result is around, and what makes such an object; None of other objects.
    within : function
        Makes views of arrays inside such objects, as `view` of others.
    build : function
        Makes what the call returns, of the arguments and the new arrays; None if that is more than can be made again.
    """

    def __init__(
        self, notes: Notes, view: Callable, found: Any, around: Callable = lambda x: None,
        within: Callable | None = None,
    ) -> None:  # fmt: skip
        self._notes, self._view, self._around, self._within = notes, view, around, within or view
        self.made: list[tuple] = []
        self.inside: set[int] = set()
        self._alone: set[int] = set()
        self.room: list[int] = []
        self._next = 0
        for origin in notes.origins.values():
            if origin.given is not None:
                origin.number = origin.given
                self._next += 1
        try:
            self.build = self._built(found)
        except TypeError:
            self.build = None
        if self.inside & self._alone:
            self.build = None
        if self.build is None:
            return
        for origin in notes.origins.values():
            if origin.number is None and not origin.kept:
                self._number(origin)
                self.room.append(origin.array.nbytes)

    def _number(self, origin):
        origin.number = self._next
        self._next += 1

    def _built(self, x):
        kind = type(x)
        if kind in SIMPLE:
            return lambda arrays: x
        if isinstance(x, tuple | list):
            parts, make = [self._built(part) for part in x], getattr(kind, "_make", kind)
            return lambda arrays: make([part(arrays) for part in parts])
        if (inner := self._around(x)) is not None:
            x, make = inner
            array, number = self._array(x, self._within), self._notes.origin(x).number
            if self._notes.origin(x).given is not None:
                return array
            self.inside.add(number)
            return lambda arrays: make(array(arrays))
        array = self._array(x, self._view)
        self._alone.add(self._notes.origin(x).number)
        return array

    def _array(self, x, view):
        """What finds an array of the result among those of a call."""
        origin = self._notes.origin(x)
        if origin is None or origin.kept or (origin.given is not None and x is not origin.array):
            raise TypeError
        if origin.given is not None:
            return operator.itemgetter(origin.given)
        offset, is_new = int(x.offset) - origin.start, origin.number is None
        if x.dtype != origin.array.dtype:
            raise TypeError
        whole = is_new and offset == 0 and x.flags.c_contiguous and x.nbytes == origin.array.nbytes
        if self._notes.borrowed is not None:  # whose arrays have shapes of their own
            whole = whole and x.shape == origin.array.shape
        if is_new:
            self._number(origin)
            like = x if whole else origin.array
            self.made.append((like.shape, like.dtype))
        if whole:
            return operator.itemgetter(origin.number)
        number, seen = origin.number, view(x.shape, x.strides, x.dtype, offset)
        return lambda arrays: seen(arrays[number])
