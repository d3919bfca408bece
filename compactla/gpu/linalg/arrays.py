"""Ordinary arrays of matrices on a device: into packs and back, and all else that `stacks.cl` does."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compactla.calls.launch import NOW
from compactla.dtypes import REAL
from compactla.gpu import arrays as device
from compactla.gpu.arrays import constant, empty, reused, upload
from compactla.gpu.launch import enqueue, flatten, launch_lanes
from compactla.gpu.program import kernel
from compactla.integers import Integers
from compactla.layout import Pack
from compactla.strides import in_stack
from compactla.types import Array

AXES = 8  # of arrays with any strides
FILE = "stacks.cl"
FLOAT = np.dtype(np.float32)  # for kernels that have nothing to do with such numbers
GROUP = 256  # work-items of a work-group, where each does an element
# Numbers in OpenCL C, by the letters and bytes that NumPy has for their kinds.
C_NAMES = {"b": "uchar", "f4": "float", "f8": "double"}
C_NAMES |= {
    sign + str(2**k): prefix + name
    for sign, prefix in (("i", ""), ("u", "u"))
    for k, name in enumerate(("char", "short", "int", "long"))
}


def c_name(kind):
    """The name in OpenCL C of the numbers of a type; a TypeError if there is none."""
    name = kind.kind if kind.kind == "b" else kind.str[1:]
    if name not in C_NAMES:
        raise TypeError(f"an array is of {kind}, must be of a type that devices compute with")
    return C_NAMES[name]


def pack(a: Array, lead: Sequence[int], dtype: np.dtype) -> Pack:
    """The matrices of an array as packs of a type, for a stack of shape `lead`."""
    queue, (m, n), nm = a.queue, a.shape[-2:], math.prod(lead)
    strides, step = in_stack(a, lead)
    if step is None or a.dtype != dtype:
        single = math.prod(a.shape[:-2]) == 1
        shape = (1,) * single * len(lead) + (m, n) if single else (*lead, m, n)
        a = spread(a, shape, strides, dtype)
        strides, step = a.strides, 0 if single else m * n * dtype.itemsize
    source = device.seen_as(a, (nm, m, n), (step, *strides[-2:]))
    V = device.default_vlen(dtype, queue)
    shape = (-(-nm // V), m, n, *((2,) if dtype.kind == "c" else ()), V)
    A = Pack(empty(shape, REAL[dtype.char], queue, reused(a)), nm)
    device.pack(source, A.view, nm, max(m, 1), 1)
    return A


def ordinary(x: Any, shape: Sequence[int], dtype: np.dtype, allocator: Any) -> Array:
    """Results as an array of a shape and a type."""
    if isinstance(x, Integers):
        npack, k, _, V = x.data.shape
        item = x.data.dtype.itemsize
        return spread(x.data, shape, (k * V * item, item, V * item), dtype, sizes=(npack, V, k))
    if isinstance(x, Pack):
        x = unpack(x, allocator)
    if x.dtype != dtype:
        x = spread(x, x.shape, x.strides, dtype)
    return x.reshape(shape)


def unpack(P: Pack, allocator: Any = None) -> Array:
    """The matrices of packs as an array."""
    a = empty(P.shape, P.dtype, P.queue, allocator)
    device.unpack(P.view, P.nm, a)
    return a


def spread(
    a: Array, shape: Sequence[int], strides: Sequence[int], dtype: Any, sizes: Sequence[int] | None = None
) -> Array:
    """A contiguous array of a shape and a type, of elements that have these strides; `sizes` may exceed the shape."""
    queue = a.queue
    target = empty(shape, dtype, queue, a.allocator)
    axes: list[tuple[int, int]] = []
    for size, stride in zip(shape if sizes is None else sizes, strides, strict=True):
        if axes and axes[-1][1] == size * stride:
            axes[-1] = axes[-1][0] * size, stride
        elif size > 1:
            axes.append((size, stride))
    axes = axes or [(1, 0)]
    if len(axes) > AXES:
        raise ValueError(f"an array has {len(axes)} axes that are not contiguous, must have at most {AXES}")
    numbers: dict[str, Any] = {}
    for name, kind in (("SOURCE", np.dtype(a.dtype)), ("TARGET", np.dtype(dtype))):
        real = REAL.get(kind.char, kind)
        numbers |= {name: c_name(real)}
        numbers |= {f"{name}_PARTS": kind.itemsize // real.itemsize}
    rest = [1] * (AXES - len(axes)), [0] * (AXES - len(axes))
    columns = [[*column, *more] for column, more in zip(zip(*axes, strict=True), rest, strict=True)]
    values = target.size, a.base_data, a.offset, *itertools.chain(*columns), target.data
    computed = np.dtype("d" if "double" in numbers.values() else "f")
    code = kernel(queue, FILE, "spread", computed, 1, values, SPREAD=1, AXES=len(axes), **numbers)
    enqueue(queue, NOW, code, (-(-target.size // GROUP) * GROUP, 1), (GROUP, 1), [a, target], values)
    return target


def each(name, target, count, *args, **macros):
    """Run a kernel of `stacks.cl` with a work-item for each element or matrix of an array."""
    arrays, values = flatten((count, *args, target))
    dtype = target.dtype if target.dtype.kind in "fc" else FLOAT
    code = kernel(target.queue, FILE, name, dtype, 1, values, **{name.upper(): 1}, **macros)
    enqueue(target.queue, NOW, code, (-(-count // GROUP) * GROUP, 1), (GROUP, 1), arrays, values)


def fill(a: Array, failed: Array) -> None:
    """Matrices whose flag is not 0 <- NaN, or 0 if they are of integers, in a contiguous array."""
    real = REAL.get(a.dtype.char, a.dtype)
    count = a.size * a.dtype.itemsize // real.itemsize
    if count:
        each("fill", a, count, count // failed.size, failed, TARGET=c_name(real), INTEGERS=int(real.kind != "f"))


def tell(failed: Array, flag: Array) -> None:
    """A flag <- 1 if one of some integers is not 0."""
    each("tell", flag, failed.size, failed)


def squares(norms: Array, rank: Array, n: int) -> Array:
    """Squares of numbers (nm, r), but NaN for matrices whose rank is not n."""
    target = empty(norms.shape, norms.dtype, norms.queue, reused(norms))
    if target.size:
        each("squares", target, target.size, norms.shape[1], n, norms, rank)
    return target


def blank(x: Array, flags: np.ndarray) -> None:
    """Matrices whose flags, of NumPy, are set <- NaN, or 0 if they are of integers."""
    fill(x, upload(flags.astype(np.int32), x.queue))


def triangle(P: Pack, uplo: str) -> Array:
    """An array of the matrices of which one triangle counts, with zeros in the other."""
    a = unpack(P)
    each("clear", a, a.size, int(uplo == "L"), M=P.m, N=P.n)
    return a


def cut(s: Array, rcond: float | np.ndarray, C: Pack) -> Array:
    """Divide row k of C by s[k], or make it 0 if that is at most rcond times the first; how many are not.

    `rcond` is one number, or an array of one for each matrix.
    """
    rank = empty((C.nm,), np.int32, C.queue, reused(s))
    common, each = (rcond, None) if isinstance(rcond, float) else (0.0, constant(rcond, C.queue))
    args = C.nm, *C.shape[1:], s, common, each, C.view, rank
    launch_lanes(C.queue, NOW, FILE, "cut", C.dtype, C.vlen, (C.nm, 1), *args, CUT=1)
    return rank


def zeros_on_diagonal(A: Pack) -> Array:
    """How many zeros there are on the diagonals, as an array."""
    count = empty((A.nm,), np.int32, A.queue, reused(A.view.buffer))
    args = A.nm, A.n, A.view, count
    launch_lanes(A.queue, NOW, FILE, "zeros", A.dtype, A.vlen, (A.nm, 1), *args, ZEROS=1)
    return count


def determinants(A: Pack, ipiv: Any, logarithm: bool = False) -> list[Array]:
    """Determinants, or their signs and the logarithms of their sizes, from the factors of `getrf`."""
    value, size = (empty((A.nm,), dtype, A.queue) for dtype in (A.dtype, REAL[A.dtype.char]))
    args = A.nm, A.n, A.view, ipiv.data, value, size
    macros = {"DETERMINANT": 1, "LOGARITHM": int(logarithm)}
    launch_lanes(A.queue, NOW, FILE, "determinant", A.dtype, A.vlen, (A.nm, 1), *args, **macros)
    return [value, size]


def ldl_factors(A: Pack, ipiv: Integers, uplo: str, hermitian: bool) -> list:
    """L or U with all interchanges, in place, the blocks of D, and the order of rows, from what `sytrf` leaves."""
    D, perm = A.beside(A.n, A.n), Integers.beside(A, A.n)
    args = A.nm, A.n, int(hermitian), int(uplo == "U"), A.view, ipiv.view, D.view, perm.view
    launch_lanes(A.queue, NOW, "ldl.cl", "ldl_factors", A.dtype, A.vlen, (A.nm, 1), *args, LDL_FACTORS=1)
    return [A, D, perm]
