"""Code of functions that call one of two others with their arguments."""

import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

THINGS = "ours, theirs, choose and ndarray"  # a constant in whose place there are these


def choosing(function: FunctionType, condition: str, ours: Callable, theirs: Callable, choose: Callable) -> CodeType:
    """Code for a function that calls one of two functions with its arguments, and returns what they return.

    It has the parameters of the function, whose defaults it uses, and as many variables of functions around. What it
    works with is among its constants: no name is added to the module of the function, and code that runs goes on while
    it is replaced.

    Parameters
    ----------
    function : function
        A function that may get the code as its own.
    condition : str
        Expression of the function's parameters, `choose` and `ndarray` that tells whether `ours` is called.
    ours, theirs, choose : function
        Two functions of the same parameters, and one for the condition.
    """
    own = function.__code__
    taken, given = parameters(own)
    around = ", ".join(own.co_freevars)
    choice = f"_ours({given}) if {condition} else _theirs({given})"
    body = f"_ours, _theirs, choose, ndarray = {THINGS!r}; return {choice}; [{around}]"  # the latter are variables then
    source = f"def around({around}):\n def {own.co_name}({taken}): {body}\n return {own.co_name}"
    names: dict[str, Any] = {}
    exec(source, names)
    code = names["around"](*own.co_freevars).__code__
    things = ours, theirs, choose, np.ndarray
    constants = tuple(things if x == THINGS else x for x in code.co_consts)
    # Who asks for the source, or where an error came from, finds the function's own.
    same = {name: getattr(own, name) for name in ("co_filename", "co_firstlineno", "co_qualname")}
    return code.replace(co_consts=constants, **same)


def parameters(code: CodeType) -> tuple[str, str]:
    """The parameters of code, without defaults, as it takes them and as they are given to another function."""
    names = iter(code.co_varnames)
    positional = [next(names) for _ in range(code.co_argcount)]
    keywords = [next(names) for _ in range(code.co_kwonlyargcount)]
    taken, given = [*positional], [*positional]
    if code.co_posonlyargcount:
        taken.insert(code.co_posonlyargcount, "/")
    if code.co_flags & inspect.CO_VARARGS:
        rest = f"*{next(names)}"
        taken.append(rest)
        given.append(rest)
    elif keywords:
        taken.append("*")
    taken += keywords
    given += [f"{name}={name}" for name in keywords]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        rest = f"**{next(names)}"
        taken.append(rest)
        given.append(rest)
    return ", ".join(taken), ", ".join(given)
