"""Arrays of other libraries as arguments, and results as arrays of theirs.

A function that takes such arrays is decorated with `accepts_foreign`. What it is given becomes an
`compactla.cuda.arrays.Array` where it lies, or an array of NumPy where that is on the host, and what it returns becomes
an array of the library again. Calls that it makes itself see nothing but the former.

Nothing of CUDA is imported before an array in its memory is there.
"""

import functools
import importlib
import inspect
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable)

ROOTS = "torch", "cupy", "cupyx", "jax", "jaxlib"  # packages of the libraries that are known
CUDA = 2, 13  # DLPack's numbers of devices: CUDA's memory, and managed memory
OWN = "compactla", "pyopencl", "numpy", "builtins"
_roots: dict[type, str] = {}
_plain: set[type] = {np.ndarray, type(None)}  # types of arguments that stay as they are


class _Calls(threading.local):
    inside = False


_calls = _Calls()


def root(kind: type) -> str:
    """The package of a library that a type may be of; "" if its objects are no arrays, or live on the CPU."""
    found = _roots.get(kind)
    if found is None:
        packages = [base.__module__.partition(".")[0] for base in kind.__mro__[:-1]]
        is_array = hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack_device__")
        known = [package for package in packages if package in ROOTS]
        foreign = not any(package in OWN for package in packages)
        found = _roots[kind] = known[0] if known and foreign else "others" if is_array and foreign else ""
        if not found and kind not in (tuple, list):
            _plain.add(kind)
    return found


def in_cuda(x: Any) -> bool:
    """Whether an array of another library is in CUDA memory, or an object names a device of it."""
    for name, yes in (("is_cuda", True), ("platform", "gpu"), ("type", "cuda")):  # tensors; devices of JAX, of PyTorch
        found = getattr(x, name, None)
        if isinstance(found, bool | str):
            return found == yes
    if hasattr(x, "__dlpack_device__"):
        try:
            return x.__dlpack_device__()[0] in CUDA
        except Exception:  # is traced, or on several devices
            return False
    return hasattr(x, "__cuda_array_interface__") or type(x).__module__.startswith("cupy.cuda")


def adopt(x: Any, name: str, hosts: list | None = None) -> Any:
    """An argument: an array in CUDA memory where it lies, a queue for what names a device; all else as it is.

    With `hosts` an array on the host becomes one of NumPy, in the same memory, and both are appended there.
    """
    kind = type(x)
    if kind is tuple or kind is list:
        if not any(map(root, set(map(type, x)))):
            return x
        return kind(adopt(a, f"{name}[{i}]", hosts) for i, a in enumerate(x))
    package, is_queue = root(kind), name.partition("[")[0] in ("queue", "device")
    if not package:
        return x
    if not in_cuda(x):
        if hosts is None:
            return x
        a = of_host(x, name)
        hosts.append((x, a))
        return a
    theirs = _libraries().library(package)
    index = theirs.device(x)
    try:
        found = theirs.array(x) if index is None else theirs.queue(index)
        return found.queue if index is None and is_queue else found
    except TypeError as error:
        raise TypeError(f"{name} {error}") from None


@functools.cache
def _libraries():
    return importlib.import_module("compactla.cuda.libraries")


def is_foreign(x: Any) -> bool:
    """Whether an argument is of another library, and in CUDA memory."""
    return bool(root(type(x))) and in_cuda(x)


def hand_back(x: Any) -> Any:
    """A result as the user sees it: arrays are those of the libraries that they came from."""
    kind = type(x)
    if kind is np.ndarray:
        return x
    if kind.__module__ == "compactla.cuda.arrays":
        return x if _calls.inside else x.queue.library.give(x)
    if isinstance(x, tuple) and kind is not tuple and hasattr(x, "_make"):
        return kind._make(map(hand_back, x))
    return kind(map(hand_back, x)) if kind is tuple or kind is list else x


def of_host(x: Any, name: str) -> np.ndarray:
    """An array of another library, on the host, as one of NumPy: read-only if it had to be copied."""
    plain = x.resolve_conj().resolve_neg() if hasattr(x, "resolve_conj") else x
    try:
        a = np.asarray(plain)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} is a {type(x).__name__}, must be an array: {error}") from None
    if plain is not x:
        a.flags.writeable = False
    return a


def as_given(found: Any, hosts: list) -> Any:
    """A result for arrays on the host: what of it is an array of NumPy becomes one of the library of the first."""
    if isinstance(found, tuple | list):
        kind: Any = type(found)
        parts = [as_given(x, hosts) for x in found]
        return kind._make(parts) if hasattr(kind, "_make") else kind(parts)
    if type(found) is not np.ndarray:
        return found
    for x, a in hosts:
        if found is a:
            return x
    x, _ = hosts[0]
    if root(type(x)) == "torch":
        return importlib.import_module("torch").from_numpy(found)
    return x.__array_namespace__().asarray(found) if hasattr(x, "__array_namespace__") else found


def accepts_foreign(function: Function, host: bool = True) -> Function:
    """Let a function take arrays of other libraries that are in CUDA memory, or on the `host` too, and return such."""
    names = [*inspect.signature(function).parameters]

    @functools.wraps(function)
    def call(*args, **keywords):
        if _calls.inside:
            return function(*args, **keywords)
        hosts = [] if host else None
        if not _plain.issuperset(map(type, args)) and len(args) <= len(names):  # others are refused
            args = [adopt(x, name, hosts) for x, name in zip(args, names, strict=False)]
        if not _plain.issuperset(map(type, keywords.values())):
            keywords = {name: adopt(x, name, hosts) for name, x in keywords.items()}
        _calls.inside = True  # as inner_calls does, which takes longer
        try:
            found = function(*args, **keywords)
        finally:
            _calls.inside = False
        found = hand_back(found)
        return as_given(found, hosts) if hosts else found

    return call  # type: ignore[return-value] # has that signature


def on_vectors(function: Callable, x: Any, name: str) -> Any:
    """The result of a function of one array, as an array of the library that the given one is of, where that lives."""
    if not root(type(x)):
        return function(x)
    if in_cuda(x):
        with inner_calls():
            found = function(adopt(x, name))
        return hand_back(found)
    a = of_host(x, name)
    return as_given(function(a), [(x, a)])


class _Within:
    """While this lasts, calls are those of the package, or of the user."""

    def __init__(self, inside):
        self.inside = inside

    def __enter__(self):
        self.before, _calls.inside = _calls.inside, self.inside

    def __exit__(self, *error):
        _calls.inside = self.before


def is_inner_call() -> bool:
    """Whether a function is called that sees no arrays of other libraries."""
    return _calls.inside


def inner_calls() -> _Within:
    """While this lasts, what is called sees no arrays of other libraries, and returns none."""
    return _Within(True)


def called_back(function: Callable, name: str) -> Callable:
    """A function of the user: it sees arrays of other libraries, may return such, and may call what takes them."""

    def call(*args):
        with _Within(False):
            return adopt(function(*map(hand_back, args)), name)

    return call
