"""How a device applies Kronecker products: `kron_team.cl`, in one pass where an item fits into local memory.

Else, and on CPUs, where work-items pay for every barrier, one axis after the other through memory.
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from compactla.calls.launch import NOW, Launch
from compactla.calls.plans import UNKNOWN
from compactla.dtypes import REAL
from compactla.gpu.arrays import empty, reused, upload
from compactla.gpu.kron_team import Team, seen, team
from compactla.gpu.launch import enqueue, plans
from compactla.gpu.linalg.arrays import spread
from compactla.gpu.program import kernel
from compactla.layout import Pack
from compactla.types import Array, Queue

FILE = "kron.cl"
GROUP = 64  # work-items of a work-group


class ItemPlace(NamedTuple):
    """Where items or matrices are: V side by side, then `step` further the next. All counts real numbers.

    Attributes
    ----------
    array : pyopencl.array.Array
    start : int
    V, step : int
        1 and 0 for one matrix for all items.
    strides : tuple of int
        Of the axes.
    """

    array: Any
    start: int
    V: int
    step: int
    strides: tuple[int, ...]

    @property
    def where(self):
        """The first arguments of kernels."""
        return self.array.base_data, self.start, self.V, self.step


def items(A, sizes) -> ItemPlace:
    """Items of some axes: of an array, or of a pack, whose columns are all axes but the first."""
    if isinstance(A, Pack):
        view = A.view
        inner = (view.cs * math.prod(sizes[k + 1 :]) for k in range(1, len(sizes)))
        return ItemPlace(A.data, view.address, A.vlen, view.ps, (view.rs, *inner))
    step, *strides = counted(A)
    return ItemPlace(A, A.offset // REAL[A.dtype.char].itemsize, 1, step, tuple(strides))


def matrices(A) -> ItemPlace:
    """An operand: a pack, matrices, or one for all."""
    if isinstance(A, Pack):
        return ItemPlace(A.data, A.view.address, A.vlen, A.view.ps, (A.view.rs, A.view.cs))
    step, *strides = counted(A) if A.ndim == 3 else (0, *counted(A))
    return ItemPlace(A, A.offset // REAL[A.dtype.char].itemsize, 1, step, tuple(strides))


def counted(a):
    """Strides in real numbers."""
    return [stride // REAL[a.dtype.char].itemsize for stride in a.strides]


class KronScratch:
    """Memory for what factors make of items, which lies as X does: neighbours are items, or numbers of an item."""

    def __init__(self, work, nm, dtype, along):
        self.work, self.nm, self.dtype, self.along, self.used = work, nm, dtype, along, 0

    def take(self, sizes, nm=None) -> ItemPlace:
        """Room for so many items, behind all that was taken before."""
        nm, numbers = self.nm if nm is None else nm, 2 if self.dtype.kind == "c" else 1
        start = self.work.offset // REAL[self.dtype.char].itemsize + self.used
        self.used += nm * math.prod(sizes) * numbers
        V, count = (nm, 0) if self.along else (1, math.prod(sizes) * numbers)
        return ItemPlace(self.work, start, V, count, contiguous(sizes, V * numbers))


def contiguous(sizes, apart):
    return tuple(itertools.accumulate(reversed(sizes[1:]), int.__mul__, initial=apart))[::-1]


def is_along(x: ItemPlace, nm) -> bool:
    """Whether neighbours in memory are items."""
    return x.V > 1 or (nm > 1 and abs(x.step) < min(map(abs, x.strides)))


def run(
    name: str, factors: Any, signs: Any, X: Any, Y: Any, d: Any, e: Any, scalars: Any, work: Any = None,
    launch: Launch = NOW,
) -> None:  # fmt: skip
    """Compute Y from X, both arrays (nm, ...) or packs, as `compactla.cpu.kron.run`."""
    nm = X.nm if isinstance(X, Pack) else X.shape[0]
    x, y, given = items(X, d), items(Y, e), [*map(matrices, factors)]
    along = is_along(x, nm)
    one = chosen(name, given, signs, x, y, d, e, nm, scalars, along, X.dtype)
    if one is not None:
        one.run(nm, scalars, x, y, given, launch)
        return
    size = nm * elements(name, d, e)
    if size and (work is None or work.size < size):
        work = empty((size,), X.dtype, x.array.queue, reused(x.array))
    room = KronScratch(work, nm, X.dtype, along)
    if name == "solve":
        solve(room, given, signs, x, y, d, scalars, launch)
    elif name == "sum":
        add(room, given, signs, x, y, d, scalars, launch)
    else:
        multiply(room, given, signs, x, y, d, e, scalars, launch)


def chosen(name, given, signs, x, y, d, e, nm, scalars, along, dtype) -> Team | None:
    """The kernel that does all in one pass, if there is one; it is chosen once."""
    places = tuple((place.V, place.step, place.strides, place.start % 4) for place in (*given, x, y))
    key = "kron", name, dtype.char, d, e, places, tuple(signs), nm > 1, scalars[1] != 0
    kept = plans(x.array.queue)
    found = kept.known.get(key, UNKNOWN)
    if found is UNKNOWN:
        found = kept.add(key, team(name, given, signs, x, y, d, e, scalars[1] != 0, along, dtype))
    return found


def needed(name: str, factors: Any, X: Any, Y: Any, d: Any, e: Any, launch: Launch = NOW) -> Any:
    """Elements of a work array, twice: all of them are needed, and none for one pass."""
    nm = X.nm if isinstance(X, Pack) else X.shape[0]
    x, y, given = items(X, d), items(Y, e), [*map(matrices, factors)]
    case, *_ = seen(name, given, x, y, d, e, is_along(x, nm), X.dtype)
    return [0 if case.choice(x.array.queue.device) else nm * elements(name, d, e)] * 2


def elements(name, d, e) -> int:
    """Elements of work space for an item, if axes are taken one after the other."""
    if name == "sum":
        return 0
    between = [math.prod((*e[: k + 1], *d[k + 1 :])) for k in range(len(d) - 1)]
    product = sum(max(between[k::2], default=0) for k in range(2))
    return product if name == "kron" else product + 2 * math.prod(d)


def multiply(room, factors, signs, x, y, d, e, scalars, launch):
    """Y <- alpha (A x B x ...) X + beta Y"""
    between = [(*e[: k + 1], *d[k + 1 :]) for k in range(len(d) - 1)]
    starts = [room.used, room.used + max((math.prod(s) for s in between[::2]), default=0) * room.nm * parts(room.dtype)]
    for k, (F, sign) in enumerate(zip(factors, signs, strict=True)):
        last = k == len(d) - 1
        room.used = starts[k % 2]
        target = y if last else room.take(between[k])
        apply(room, k, F, sign, x, target, (*e[:k], *d[k:]), e[k], scalars if last else (1, 0), launch)
        x, launch = target, NOW


def parts(dtype):
    return 2 if dtype.kind == "c" else 1


def add(room, factors, signs, x, y, d, scalars, launch):
    """Y <- alpha (A x I x ... + I x B x ... + ...) X + beta Y"""
    alpha, beta = scalars
    for k, (F, sign) in enumerate(zip(factors, signs, strict=True)):
        apply(room, k, F, sign, x, y, d, d[k], (alpha, beta if k == 0 else 1), launch)
        launch = NOW


def solve(room, operands, signs, x, y, d, scalars, launch):
    """Y <- alpha (A x B x ...) D (A^-1 x B^-1 x ...) X + beta Y, where D are reciprocals of sums of eigenvalues."""
    n, queue = len(d), x.array.queue
    inverses, vectors, values = operands[:n], operands[n : 2 * n], operands[2 * n :]
    own = any(place.step or place.V > 1 for place in values)
    W, D = room.take(d), room.take(d, room.nm if own else 1)
    used = room.used
    multiply(room, inverses, signs[:n], x, W, d, d, (1, 0), launch)
    one = upload(np.ones(1, room.dtype), queue)
    alone = KronScratch(None, room.nm if own else 1, room.dtype, room.along)
    for k, place in enumerate(values):
        apply(alone, k, place, 1, ItemPlace(one, 0, 1, 0, (0,) * n), D, (*d[:k], 1, *d[k + 1 :]), d[k], (1, k > 0), NOW)
    if not own:
        D = D._replace(step=0)
    count, real = math.prod(d), parts(room.dtype)
    args = room.nm, count, int(room.along), *W.where, W.V * real, *D.where, D.V * real
    code = kernel(queue, FILE, "kron_divide", room.dtype, 1, args, KRON_DIVIDE=1)
    enqueue(queue, NOW, code, (rounded(room.nm * count), 1), (GROUP, 1), [W.array], args)
    room.used = used
    multiply(room, vectors, signs[n : 2 * n], W, y, d, d, scalars, NOW)


def rounded(count):
    return -(-count // GROUP) * GROUP


def apply(room, k, F, sign, x, y, sizes, m, scalars, launch):
    """Y <- alpha F X + beta Y along axis k of items of some sizes, which becomes m; without a factor, Y <- beta Y."""
    others = [(size, x.strides[j], y.strides[j]) for j, size in enumerate(sizes) if j != k and size > 1]
    axes = merged(sorted(others, key=lambda axis: abs(axis[1])))
    pencils = room.nm * math.prod(size for size, *_ in others)
    numbers = [part for scalar in scalars for part in (float(scalar.real), float(scalar.imag))]
    n = sizes[k] if F is not None else 0
    factor = (*F.where, *F.strides) if F is not None else (*x.where, 0, 0)
    args = pencils, room.nm, int(room.along), m, n, *numbers, *factor, int(sign < 0)
    args = *args, *x.where, x.strides[k], *y.where, y.strides[k], *itertools.chain(*axes)
    queue = x.array.queue
    code = kernel(queue, FILE, "kron_axis", room.dtype, 1, args, KRON_AXIS=1, AXES=len(axes))
    arrays = [x.array, y.array, *([F.array] if F is not None else [])]
    enqueue(queue, launch, code, (rounded(pencils), 1), (GROUP, 1), arrays, args)


def merged(axes):
    """Axes (size, stride of X, of Y), the fastest first, as few of them as there can be."""
    found: list[tuple[int, int, int]] = []
    for size, *strides in axes:
        if found and strides == [found[-1][0] * stride for stride in found[-1][1:]]:
            found[-1] = found[-1][0] * size, *found[-1][1:]
        else:
            found.append((size, *strides))
    return found


def scale(Y: Any, e: Any, beta: Any, launch: Launch = NOW) -> None:
    """Y <- beta Y, without a look at Y if beta is zero."""
    y = items(Y, e)
    nm = Y.nm if isinstance(Y, Pack) else Y.shape[0]
    room = KronScratch(None, nm, Y.dtype, is_along(y, nm))
    apply(room, 0, None, 1, y, y, e, e[0], (0, beta), launch)


def values(x: Array, dtype: np.dtype, shift: Any, queue: Queue) -> Array:
    """Eigenvalues, an array (m,) or (nm, m), as matrices of one column on the device."""
    if isinstance(x, np.ndarray):
        return upload((x.astype(dtype) + dtype.type(shift))[..., None], queue)
    x = spread(x, (*x.shape, 1), (*x.strides, x.dtype.itemsize), dtype)
    return x + dtype.type(shift) if shift else x
