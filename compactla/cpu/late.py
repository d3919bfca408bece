"""Functions that Python itself runs while they have little to do: compiling them would take longer."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba.extending import register_jitable

from compactla.cpu.compile import compiled_in_place

# Numbers in the arguments of all calls of a function from which on it is compiled: Python takes .1 to .7 us for each,
# Numba .1 to .4 s for most functions.
ENOUGH = 1 << 18
part = functools.partial(register_jitable, _nrt=False)()


class CompiledLate:
    """A function of arrays, compiled by Numba once its calls have got so many numbers.

    Until then Python runs it. As it gets arrays of real numbers as memoryviews, which are faster there, it has all
    indices in one pair of brackets. Both ways give the same bits if it computes in integers and double precision.
    Complex numbers would be rounded in two ways: with them, it is compiled at once.

    Parameters
    ----------
    function : callable
        The function, which makes no arrays. What it calls is marked with `part`.
    enough : int, optional
        How many numbers; default: `ENOUGH`.
    """

    def __init__(self, function: Callable, enough: int | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function, self.compiled = function, compiled_in_place(function)
        self.left = ENOUGH if enough is None else enough

    def __call__(self, *args: Any) -> Any:
        if self.left > 0:
            arrays = list(arrays_in(args))
            self.left -= sum(a.size for a in arrays)
            if self.left > 0 and all(a.dtype.kind in "biuf" and a.dtype.isnative for a in arrays):
                return self.function(*map(viewed, args))
        return self.compiled(*args)


def arrays_in(args: tuple) -> Iterator[np.ndarray]:
    """The arrays among arguments, and in tuples of them."""
    return itertools.chain.from_iterable(
        arrays_in(x) if isinstance(x, tuple) else (x,) for x in args if isinstance(x, tuple | np.ndarray)
    )


def viewed(x):
    """An argument with memoryviews in place of arrays."""
    if isinstance(x, tuple):
        return tuple(map(viewed, x))
    return memoryview(x) if isinstance(x, np.ndarray) else x
