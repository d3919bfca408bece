"""Python's and NumPy's protocols for packs: operators, items, length, copies, and `repr`."""

import functools
import importlib
from collections.abc import Callable, Iterator
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from compactla.view import View, backend, place

if TYPE_CHECKING:
    from compactla.layout import Pack


@functools.cache
def routine(name):
    return getattr(importlib.import_module(f"compactla.dense.{name}"), name)


def matmul(X, Y, out):
    """Products of two packs, or of a pack and one matrix for all, as a new pack."""
    if out is not None or not all(isinstance(a, Arithmetic) or getattr(a, "ndim", 0) == 2 for a in (X, Y)):
        return None
    pack = X if isinstance(X, Arithmetic) else Y
    return routine("gemm")(X, Y, pack.beside(X.shape[-2], Y.shape[-1]))


def add(X, Y, out, factor=1):
    """X + factor Y, of two packs."""
    if not (isinstance(X, Arithmetic) and isinstance(Y, Arithmetic)) or (out is not None and out is not X):
        return None
    return routine("axpy")(factor, Y, X.copy() if out is None else X)


def subtract(X, Y, out):
    return add(X, Y, out, -1)


def multiply(X, Y, out):
    """Multiples, by a number on either side."""
    if isinstance(X, Number):
        X, Y = Y, X
    if not isinstance(Y, Number) or (out is not None and out is not X):
        return None
    return routine("scal")(Y, X.copy() if out is None else X)


def divide(X, number, out):
    """Multiples, by the reciprocal of a number."""
    return multiply(X, 1 / number, out) if isinstance(number, Number) else None


def negative(X, out):
    return multiply(X, -1, out)


def positive(X, out):
    return X.copy() if out is None else None


# The functions of NumPy that make packs; each returns None for operands of other kinds.
OF_PACKS: dict[np.ufunc, Callable[..., Any]] = {
    np.matmul: matmul, np.add: add, np.subtract: subtract, np.multiply: multiply, np.true_divide: divide,
    np.negative: negative, np.positive: positive,
}  # fmt: skip


class Arithmetic(np.lib.mixins.NDArrayOperatorsMixin):
    """Operators of a `Pack`.

    ``A @ B``, ``A + B``, ``A - B``, ``-A``, and multiples such as ``2 * A`` and ``A / 2``, are new packs, made by
    `compactla.gemm`, `axpy` and `scal`; ``A += B``, ``A -= B`` and ``A *= 2`` work in place. All other operators and
    functions of NumPy, such as ``A * B``, ``A == B`` and ``abs(A)``, go element by element through ``np.asarray(A)``
    and return ordinary arrays, for packs on the CPU.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    _hidden = frozenset({"beside", "is_complex", "kind", "view"})  # from tab completion: the package's own

    nm: int
    m: int
    n: int
    vlen: int
    dtype: np.dtype
    queue: Any
    view: View
    beside: Callable[..., "Pack"]
    unpack: Callable[..., Any]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        (out,) = options.pop("out", ()) if len(options.get("out", ())) == 1 else (None,)
        if method == "__call__" and ufunc in OF_PACKS and not options:
            found = OF_PACKS[ufunc](*inputs, out)
            if found is not None:
                return found
        arrays = [np.asarray(a) if isinstance(a, Arithmetic) else a for a in inputs]
        if not isinstance(out, Arithmetic):
            given = {} if out is None else {"out": out}
            return getattr(ufunc, method)(*arrays, **given, **options)
        whole = np.asarray(out)
        getattr(ufunc, method)(*arrays, out=whole, **options)
        return importlib.import_module("compactla.layout").pack(whole, out=out)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """An unpacked copy, for NumPy's functions. A batch on a device is refused: use `unpack`."""
        if self.queue is not None:
            raise TypeError(f"the pack lives on {place(self.queue)}, must live on the CPU: see Pack.unpack")
        if copy is False:
            raise ValueError("copy is False, must be None or True: a pack has to be unpacked")
        a = self.unpack()
        return a if dtype is None else a.astype(dtype, copy=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(nm, m, n)"""
        return self.nm, self.m, self.n

    def __repr__(self) -> str:
        return f"Pack({self.nm} x {self.m} x {self.n}, {self.dtype}, vlen={self.vlen}, device={place(self.queue)})"

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
        if isinstance(index, int | np.integer):
            return self._matrix(int(index))
        if not (isinstance(index, tuple) and len(index) == 2 and all(isinstance(s, slice) for s in index)):
            raise TypeError(f"index is {index!r}, must be an integer, A[q], or two slices, A[i0:i1, j0:j1]")
        ranges = [range(size)[s] for size, s in zip((self.m, self.n), index, strict=True)]
        if any(r.step < 0 for r in ranges):
            raise ValueError(f"index is {index!r}, must have positive steps")
        # Only plain slices: pyopencl takes others for what they are not.
        rows, columns = (slice(r.start, max(r.start, r.stop), r.step) if r else slice(0, 0) for r in ranges)
        return type(self)(self.view.buffer[:, rows, columns], self.nm)  # type: ignore[call-arg]

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

    def copy(self) -> "Pack":
        """A copy of the batch where it lives, in memory without gaps."""
        return copied(self, self.beside(self.m, self.n))


def copied(X, Y, unit=1):
    """Y, a pack whose memory has no gaps, <- X. Unused lanes on a device get `unit` on the diagonal."""
    if X.queue is None:
        Y.view.buffer[...] = X.view.buffer
    else:
        run = backend(X.queue)
        ordinary = run.empty(X.shape, X.dtype, X.queue)
        run.unpack(X.view, X.nm, ordinary)
        run.pack(ordinary, Y.view, X.nm, max(X.m, 1), unit)
    return Y
