"""Prepared calls: arguments are checked once, and each later call only launches the work."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from compactla.calls.launch import Recording, Unrecorded
from compactla.digests import PACKAGE
from compactla.locks import ReadWriteLock


class Prepared:
    """A call whose arguments were checked, as `prepare` returns it."""

    __slots__ = ("__weakref__", "_function", "_kept", "_result", "_steps")
    _told = ", checked once"

    def __init__(self, function: Callable[..., Any], steps: Any, result: Any, kept: Any) -> None:
        self._function, self._steps, self._result, self._kept = function, tuple(steps), result, kept

    def __call__(self) -> Any:
        for step in self._steps:
            step()
        return self._result

    def __repr__(self) -> str:
        name = getattr(self._function, "__qualname__", repr(self._function))
        owner = getattr(self._function, "__self__", None)
        return f"{type(self).__name__}({name}" + ("" if owner is None else f" of {owner!r}") + f"{self._told})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"{self!r} is for this process, must be prepared again in another")


class Alone(Prepared):
    """A call that other threads wait for that make the same."""

    __slots__ = ("_lock",)

    def __init__(self, lock, *args):
        super().__init__(*args)
        self._lock = lock

    def __call__(self):
        with self._lock:
            for step in self._steps:
                step()
        return self._result


class Changing(Prepared):
    """A call that makes new factors, while no other uses them."""

    __slots__ = ("_lock",)

    def __init__(self, lock, *args):
        super().__init__(*args)
        self._lock = lock

    def __call__(self):
        return self._lock.write(Prepared.__call__, self)


class Unchanged(Prepared):
    """An ordinary call, or the same without checks."""

    __slots__ = ("_call",)
    _told = ", checked in each call"

    def __init__(self, function, call):
        super().__init__(function, (), None, None)
        self._call = call

    def __call__(self):
        return self._call()


def prepare(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Prepared":
    """A call that can be made again and again: its arguments are checked once, and kernels are chosen once.

    Parameters
    ----------
    function : function or method
        A function of this package, such as `compactla.gemm`, or a method of one of its objects, such as ``T.refactor``,
        ``T.solve`` or ``P.solve``.
    *args, **kwargs
        Its arguments, ``threads`` and ``wait_for`` too.

    Returns
    -------
    function
        ``run()`` does the same as ``function(*args, **kwargs)``, with the same result. It keeps its arguments.

    Raises
    ------
    TypeError
        If `function` is not one of this package.
    TypeError, ValueError, RuntimeError
        As the function raises them for these arguments. Nothing was written then, and nothing is written before the
        first ``run()``.

    See Also
    --------
    compactla.gemm, compactla.BlockTridiag, compactla.LinePreconditioner

    Notes
    -----
    Packs, arrays and factors are read and written where they are: each ``run()`` takes their current contents.
    Arguments that a call would convert are read once: scalars, also one for each matrix, and pivots in ordinary arrays.

    Prepared are all routines on packs, and `compactla.gemm` on arrays of three axes; ``refactor`` and ``solve`` of
    `compactla.BlockTridiag`, ``solve`` of `compactla.LinePreconditioner` and `compactla.LineRelaxation`, and on the CPU
    that of `compactla.Tridiag`, `compactla.Banded` and `compactla.BandedSPD` with factors. Vectors have to be where the
    lines are, contiguous, and of their dtype. New results of these, such as `info` or a solution, are made once:
    every ``run()`` writes to the same arrays and returns them, so copy those that are to be kept. ``T.info`` is such a
    copy.
    On a device nothing waits where an array is given for `info`.

    All else, such as the functions of `compactla.linalg`, is an ordinary call whenever it is run: with checks, and with
    new results.

    Several threads may run it, one at a time where there is work space or there are factors. Factors are used, or made
    anew, as by the method itself: calls that change them wait for calls that use them, and these for them.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A, B, C = cla.pack(np.ones((100, 3, 4))), cla.pack(np.ones((100, 4, 2))), cla.Pack.zeros(100, 3, 2)
    >>> run = cla.prepare(cla.gemm, A, B, C, beta=1)
    >>> for _ in range(3):
    ...     assert run() is C
    >>> float(C.unpack().max())
    12.0

    A solve, of which each step of a computation has a new right-hand side in the same array:

    >>> rng = np.random.default_rng(0)
    >>> diag = rng.random((100, 8, 3, 3)) + 9 * np.eye(3)
    >>> T = cla.BlockTridiag(rng.random((100, 7, 3, 3)), diag, rng.random((100, 7, 3, 3)))
    >>> info = T.factor()
    >>> rhs, x = np.ones((100, 8, 3)), np.empty((100, 8, 3))
    >>> solve = cla.prepare(T.solve, rhs, out=x)
    >>> for _ in range(2):
    ...     rhs[...] = solve()
    >>> bool(np.array_equal(x, T.solve(T.solve(np.ones((100, 8, 3))))))
    True
    """
    check_function(function)
    parameters = inspect.signature(function)
    parameters.bind(*args, **kwargs)
    call: Callable[[], Any] = functools.partial(function, *args, **kwargs)
    if "threads" in parameters.parameters:
        recording = Recording(kwargs.get("threads"))
        try:
            result = function(*args, **{**kwargs, "threads": recording})
        except Unrecorded as error:
            call = error.instead or call
        else:
            found = function, recording.steps, result, (args, kwargs, recording.kept)
            if recording.lock is None:
                return Prepared(*found)
            kind = Changing if isinstance(recording.lock, ReadWriteLock) else Alone
            return kind(recording.lock, *found)
    return Unchanged(function, call)


def check_function(function) -> None:
    """Refuse objects that cannot be called, or of another package."""
    owner = getattr(function, "__self__", None)
    modules = [getattr(x, "__module__", None) for x in (function, type(owner), type(function))]
    if not callable(function) or not any(str(name).split(".")[0] == PACKAGE.name for name in modules):
        raise TypeError(f"function is {function!r}, must be a function of compactla or a method of what it makes")
