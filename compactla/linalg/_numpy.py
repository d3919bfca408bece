"""NumPy's own functions, also where ours are computed in their places: see `compactla.patch`."""

from types import FunctionType
from typing import Any

from numpy import linalg
from numpy.linalg import *  # noqa: F403 - NumPy's names, which are functions of their own below


def implementation(function: Any) -> FunctionType:
    """What a function of NumPy does with arrays of no library that has one in its place."""
    return getattr(function, "_implementation", function)


def copied(function: Any) -> FunctionType:
    """A function of NumPy or SciPy as it is now, whatever it is made to do later."""
    made = implementation(function)
    copy = FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, made.__closure__)
    copy.__kwdefaults__ = made.__kwdefaults__
    return copy


FUNCTIONS = [name for name in linalg.__all__ if hasattr(implementation(getattr(linalg, name)), "__code__")]
globals().update({name: copied(getattr(linalg, name)) for name in FUNCTIONS})
