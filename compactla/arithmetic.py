"""Python's and NumPy's protocols for packs: operators, items, length, copies, and `repr`."""

import functools
import importlib
import operator
from collections.abc import Callable, Iterator
from typing import Any, Self, cast

import numpy as np

from compactla.backends import backend, device_module, device_name
from compactla.calls.recording import repeats
from compactla.checks import check_written
from compactla.overlap import meet, share_memory
from compactla.view import View


@functools.cache
def late(module, name):
    """What a module has that imports this one."""
    return getattr(importlib.import_module(f"compactla.{module}"), name)


def routine(name):
    return late(f"dense.{name}", name)


def matmul(X, Y, out):
    """Products of two packs, or of a pack and one matrix for all, as a new pack."""
    if out is not None or not all(isinstance(a, Arithmetic) or getattr(a, "ndim", 0) == 2 for a in (X, Y)):
        return None
    pack = X if isinstance(X, Arithmetic) else Y
    return routine("gemm")(X, Y, pack.beside(X.shape[-2], Y.shape[-1]))


def add(X, Y, out, sign=1):
    """X + Y or, for a sign of -1, X - Y, of two packs; parts of complex numbers do not mix, as they do in products."""
    if not (isinstance(X, Arithmetic) and isinstance(Y, Arithmetic)) or (out is not None and out is not X):
        return None
    axpy = routine("axpy")
    if X.kind != Y.kind or X.m != Y.m or X.n != Y.n:
        return axpy(sign, Y, X)  # which is refused
    if out is None:
        if X.queue is None:
            return applied(np.add if sign == 1 else np.subtract, X, Y.view)
        out = X.copy()
    elif meet(X.view.span, Y.view.span) and share_memory(X.view.buffer, Y.view.buffer):
        Y = Y.copy()
    axpy(sign, Y.parts, out.parts)
    return out


def subtract(X, Y, out):
    return add(X, Y, out, -1)


def applied(function, X, *others):
    """A new pack, of a function of NumPy's for each real number."""
    Z = X.beside(X.m, X.n)
    late("cpu.arrays", "apply")(function, X.nm, Z.view, X.view, *others)
    return Z


def multiply(X, Y, out):
    """Multiples, by a number on either side."""
    X, Y = (X, Y) if isinstance(X, Arithmetic) else (Y, X)
    number = factor(X, Y, out)
    return None if number is None else routine("scal")(number, X.copy() if out is None else X)


def divide(X, Y, out):
    """Quotients by a number."""
    number = factor(X, Y, out)
    if number is None:
        return None
    number = X.dtype.type(late("scalars", "scalar")("divisor", number, X))
    if out is not None:
        check_written("out", X.view.buffer, {})
    if X.queue is not None and number == 0:
        np.true_divide(X.dtype.type(1), number)  # for NumPy's warning, or its error
    Z = X.beside(X.m, X.n) if out is None else X
    backend(X.queue).divide(X.nm, Z.view, X.view, number)
    return Z


def factor(X, number, out):
    """A number, if multiples of X by it are of X's type, and go to a new pack or to X itself; otherwise None.

    Integers that no float holds are an OverflowError, as for NumPy.
    """
    if not isinstance(X, Arithmetic) or (out is not None and out is not X):
        return None
    if type(number) is float:
        return number
    if X.dtype.kind == "f" and isinstance(number, complex | np.complexfloating):
        return None
    if isinstance(number, int):
        return float(number)
    return number if isinstance(number, float | complex | np.number) else None


def negative(X, out):
    if out is not None and out is not X:
        return None
    if out is None and X.queue is None:
        return applied(np.negative, X)
    Z = X.copy() if out is None else X
    routine("scal")(-1, Z.parts)
    return Z


def positive(X, out):
    return X.copy() if out is None else None


# The functions of NumPy that make packs; each returns None for operands of other kinds.
OF_PACKS: dict[np.ufunc, Callable[..., Any]] = {
    np.matmul: matmul, np.add: add, np.subtract: subtract, np.multiply: multiply, np.true_divide: divide,
    np.negative: negative, np.positive: positive,
}  # fmt: skip


class Arithmetic(np.lib.mixins.NDArrayOperatorsMixin):
    """Operators of a `Pack`.

    ``A @ B``, ``A + B``, ``A - B``, ``-A``, and multiples and quotients such as ``2 * A`` and ``A / 2``, are new packs
    of the type of A, to which numbers are rounded; ``A += B``, ``A -= B``, ``A *= 2`` and ``A /= 2`` work in place, as
    if what stands on the right were copied first. All other operators and functions of NumPy, such as ``A * B``,
    ``A == B`` and ``abs(A)``, go element by element through ``np.asarray(A)`` and return ordinary arrays, for packs on
    the CPU.

    Sums and quotients are NumPy's to the bit; on a device quotients of complex numbers may differ in rounding. Where A
    is divided by zero NumPy warns, as `numpy.errstate` says; of its other warnings not all come.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    _hidden = frozenset({"beside", "is_complex", "kind", "parts", "view"})  # from tab completion: the package's own

    nm: int
    m: int
    n: int
    vlen: int
    dtype: np.dtype
    queue: Any
    view: View
    beside: Callable[..., Any]
    unpack: Callable[..., Any]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "at" and isinstance(inputs[0], Arithmetic):
            how = f"a = A.unpack(), np.{ufunc.__name__}.at(a, ...), compactla.pack(a, out=A)"
            raise TypeError(f"{ufunc.__name__}.at cannot write to a pack: use {how}")
        outs = options.pop("out", ())
        if method == "__call__" and ufunc in OF_PACKS and not options and len(outs) < 2:
            found = OF_PACKS[ufunc](*inputs, *(outs or (None,)))
            if found is not None:
                return found
        arrays = [np.asarray(a) if isinstance(a, Arithmetic) else a for a in inputs]
        if not any(isinstance(out, Arithmetic) for out in outs):
            return getattr(ufunc, method)(*arrays, **({"out": outs} if outs else {}), **options)
        for out in outs:
            if isinstance(out, Arithmetic):
                check_written("out", out.view.buffer, {})
        wholes = tuple([np.asarray(out) if isinstance(out, Arithmetic) else out for out in outs])
        found = getattr(ufunc, method)(*arrays, out=wholes, **options)
        found = found if isinstance(found, tuple) else (found,)
        results = [
            late("layout", "pack")(whole, out=out) if isinstance(out, Arithmetic) else result
            for out, whole, result in zip(outs, wholes, found, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """An unpacked copy, for NumPy's functions. A batch on a device is refused: use `unpack`."""
        if self.queue is not None:
            raise TypeError(f"the pack lives on {device_name(self.queue)}, must live on the CPU: see Pack.unpack")
        if copy is False:
            raise ValueError("copy is False, must be None or True: a pack has to be unpacked")
        a = self.unpack()
        return a if dtype is None else a.astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(nm, m, n)"""
        return self.nm, self.m, self.n

    def __repr__(self) -> str:
        return (
            f"Pack({self.nm} x {self.m} x {self.n}, {self.dtype}, vlen={self.vlen}, device={device_name(self.queue)})"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__()} - self._hidden)

    def __len__(self) -> int:
        return self.nm

    def __bool__(self) -> bool:
        raise ValueError("the truth value of a pack is ambiguous: use len(A), or A.unpack().any() or .all()")

    def __iter__(self) -> Iterator[np.ndarray]:
        """The matrices, one after the other, as NumPy arrays (m, n)."""
        return map(self._matrix, range(self.nm))

    def __getitem__(self, index: Any) -> Any:
        """``A[q]``: a copy of matrix q as a NumPy array; ``A[i0:i1, j0:j1]``: the same block of all, as a view."""
        number = integer(index)
        if number is not None:
            return self._matrix(number)
        if not (isinstance(index, tuple) and len(index) == 2 and all(isinstance(s, slice) for s in index)):
            raise TypeError(f"index is {index!r}, must be an integer, A[q], or two slices, A[i0:i1, j0:j1]")
        ranges = [range(size)[s] for size, s in zip((self.m, self.n), index, strict=True)]
        if any(r.step < 0 for r in ranges):
            raise ValueError(f"index is {index!r}, must have positive steps")
        # Only plain slices: pyopencl takes others for what they are not.
        rows, columns = (slice(r.start, max(r.start, r.stop), r.step) if r else slice(0, 0) for r in ranges)
        return type(self)(self.view.buffer[:, rows, columns], self.nm)  # type: ignore[call-arg] # of Pack

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("items of a pack cannot be assigned: use compactla.pack(a, out=A), or A.data")

    def _matrix(self, q: int) -> np.ndarray:
        """A copy of matrix q as a NumPy array (m, n), also of a batch on a device."""
        if not -self.nm <= q < self.nm:
            raise IndexError(f"index is {q}, must be from {-self.nm} to {self.nm - 1}")
        p, lane = divmod(q % self.nm, self.vlen)
        data = self.view.buffer[p : p + 1]
        numbers = (data if self.queue is None else backend(self.queue).download(data))[0, ..., lane]
        return np.array(numbers, order="C").view(self.dtype).reshape(self.m, self.n)

    @repeats()
    def copy(self) -> Self:
        """A copy of the batch where it lives, in memory without gaps."""
        if self.queue is None or self.nm % self.vlen:
            return copied(self, self.beside(self.m, self.n))
        a, kind = self.view.buffer, cast(Any, type(self))
        return kind(device_module("linalg.arrays").spread(a, a.shape, a.strides, a.dtype), self.nm)


def integer(index) -> int | None:
    """An index as NumPy sees it, if it is an integer."""
    try:
        return None if isinstance(index, bool | np.bool_) else operator.index(index)
    except TypeError:
        return None


def copied(X: Any, Y: Any, unit: Any = 1) -> Any:
    """Y, a pack whose memory has no gaps, <- X. Unused lanes on a device get `unit` on the diagonal."""
    if X.queue is None:
        Y.view.buffer[...] = X.view.buffer
    else:
        run = backend(X.queue)
        ordinary = run.empty(X.shape, X.dtype, X.queue)
        run.unpack(X.view, X.nm, ordinary)
        run.pack(ordinary, Y.view, X.nm, max(X.m, 1), unit)
    return Y
