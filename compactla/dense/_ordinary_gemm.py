"""gemm on ordinary memory: stacks of matrices, or sequences of them. One matrix may stand for all of A, or of B.

Arrays are those of NumPy, or pyopencl's. Whether these share memory is seen from NumPy arrays in their places.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy import ndarray

from compactla.backends import device_module
from compactla.calls.launch import NOW, Launch
from compactla.calls.plans import Plans
from compactla.calls.recording import repeats
from compactla.checks import check_dtype, check_kind, check_launch, is_writeable
from compactla.cpu.linalg import products as cpu
from compactla.cpu.linalg.products import SEQUENCE, STACK
from compactla.dtypes import REAL
from compactla.foreign import adopt
from compactla.ordinary import check_place, check_same, check_stacks, is_stack, queue_of
from compactla.overlap import address, clash, has_repeats, shadows, share_memory
from compactla.routine import is_matrix, named
from compactla.scalars import scalar
from compactla.strides import Place

LARGEST = 64  # extent of matrices that are multiplied here; larger ones are NumPy's
TOGETHER = 1 << 20  # bytes of products that NumPy computes before they are added
ALIGNED = 16  # bytes that kernels on devices move at once, where matrices begin at multiples of them


@dataclass(frozen=True, eq=False)
class ProductPlan:
    """A plan for products of arrays of these types, shapes and strides.

    Attributes
    ----------
    nm : int
        Number of matrices; 0 if there is nothing to do.
    run, scale : function or None
        What computes the products, and what does where alpha is zero, of `nm`, addresses, scalars and a launch; None
        if NumPy has to.
    spans : list of (int, int)
        Bytes from the beginning of A, of B and of C to where their memory begins and to where it ends.
    near : list of (int, int)
        The memory of A, and of B, meets that of C if the bytes from C to it are between these.
    odd : int
        Bits of an address: if one of them is set numbers are not where the processor wants them.
    """

    nm: int
    run: Callable | None
    scale: Callable | None
    spans: list[tuple[int, int]]
    odd: int

    @functools.cached_property
    def near(self):
        *read, (start, end) = self.spans
        return [(start - last, end - first) for first, last in read]


plans = Plans()


def is_ordinary(C) -> bool:
    """Whether C is no pack, but ordinary matrices."""
    return isinstance(C, list | tuple) or is_stack(C)


def gemm(row, A, B, C, alpha, beta, transa, transb, threads=None, wait_for=None):
    """C <- alpha op(A) op(B) + beta C, as `compactla.gemm` says; `row` is its row."""
    # arrays of a device, or sequences of matrices
    if type(C) is not ndarray and not isinstance(C, ndarray):
        if not isinstance(C, list | tuple):
            return on_device(C, A, B, alpha, beta, transa, transb, threads, wait_for)
        a, b, c = (adopt(x, name) for x, name in ((A, "A"), (B, "B"), (C, "C")))
        in_sequences(row, a, b, c, alpha, beta, transa, transb, threads, wait_for)
        return C
    launch = NOW
    if threads is not None or wait_for is not None:
        launch = check_launch(threads, wait_for, None, recorded=True)
    if not (type(A) is type(B) is type(C) is ndarray):
        for name, x in (("A", A), ("B", B), ("C", C)):
            check_kind(x, None, name)
    # the plan has all that follows from types, shapes and strides
    key = transa, transb, A.dtype, A.shape, A.strides, B.dtype, B.shape, B.strides, C.dtype, C.shape, C.strides
    plan = plans.known.get(key)
    if plan is None:
        plan = plans.add(key, planned(row, A, B, C, transa, transb))
    # scalars and memory differ from call to call
    alpha, beta = scalar("alpha", alpha, C), scalar("beta", beta, C)
    if not C.flags.writeable:
        raise ValueError("C is read-only, must be writeable")
    a, b, c = address(A), address(B), address(C)
    (low, high), (lowest, highest) = plan.near
    if low < a - c < high or lowest < b - c < highest:
        for name, x in (("A", A), ("B", B)):
            if share_memory(C, x):
                raise ValueError(f"C shares memory with {name}, must not: it is written while {name} is read")
    # copies for numbers that are not aligned, NumPy for types without a kernel
    if plan.nm:
        if (a | b | c) & plan.odd:
            launch.do(through_copies, row, A, B, C, alpha, beta, transa, transb)
        elif plan.run is None or plan.scale is None:
            launch.run(through_numpy, A, B, C, alpha, beta, transa, transb)
        else:
            if launch.recorded:
                launch.keep(plan)
            (plan.run if alpha else plan.scale)(plan.nm, a, b, c, alpha, beta, launch)
    return C


def planned(row, A, B, C, transa, transb):
    """The plan for arrays of three axes, or of two for one matrix; errors are raised that do not depend on more."""
    dtype = check_stacks(A=A, B=B, C=C)
    return plan_for(row, len(C), dtype, *map(place, (A, B, C)), transa, transb, STACK)


@repeats("C")
def on_device(C, A, B, alpha, beta, transa, transb, threads, wait_for):
    """Multiply pyopencl Arrays."""
    queue, row = queue_of(C, "C"), named("gemm")
    launch = check_launch(threads, wait_for, queue, recorded=True)
    for name, X in (("A", A), ("B", B)):
        check_place(X, queue, name)
    alpha, beta = scalar("alpha", alpha, C), scalar("beta", beta, C)
    kept = device_module("launch").plans(queue)
    where = [x for X in (A, B, C) for x in (X.dtype, X.shape, X.strides, X.offset % ALIGNED)]
    key = "products", transa, transb, bool(alpha), bool(beta), *where
    plan = kept.known.get(key)
    if plan is None:
        dtype, c = check_stacks(A=A, B=B, C=C), place(C)
        a, b, conj = factors(row, *map(place, (A, B)), c, transa, transb, dtype)
        device = device_module("linalg.products")
        units = [device.common_bytes([X.offset]) for X in (A, B, C)]
        plan = kept.add(key, device.planned(len(C), queue, dtype, [a, b, c], units, conj, bool(alpha), bool(beta)))
    for name, X in (("A", A), ("B", B)):
        if share_memory(C, X):
            raise ValueError(f"C shares memory with {name}, must not: it is written while {name} is read")
    if not is_writeable(C):
        raise ValueError("C is read-only, must be writeable")
    arrays = A, B, C
    plan.start(arrays, [X.offset for X in arrays], alpha, beta, launch)
    return C


def place(X):
    """The place of an array's matrices in memory."""
    *step, rs, cs = X.strides
    return Place(*X.shape[-2:], *(step or [0]), rs, cs)


def plan_for(row, nm, dtype, A, B, C, transa, transb, source):
    """The plan for so many matrices."""
    a, b, conj = factors(row, A, B, C, transa, transb, dtype)
    spans = [span(X, nm, dtype.itemsize, source) for X in (A, B, C)]
    real = REAL[dtype.char].itemsize
    if not nm * C.m * C.n:
        return ProductPlan(0, None, None, spans, 0)
    if any(stride % real for X in (A, B, C) for stride in X.strides):
        return ProductPlan(nm, None, None, spans, -1)
    scale = cpu.products(dtype, Place(C.m, 0, 0, 0, 0), Place(0, C.n, 0, 0, 0), C, (False, False), source).run
    if not a.n:
        return ProductPlan(nm, scale, scale, spans, real - 1)
    if max(C.m, C.n, a.n) > LARGEST:
        return ProductPlan(nm, None, None, spans, real - 1)
    return ProductPlan(nm, cpu.products(dtype, a, b, C, conj, source).run, scale, spans, real - 1)


def factors(row, A, B, C, transa, transb, dtype):
    """The places of op(A) and op(B), which must fit C, and whether they are conjugated."""
    a, b = A if transa == "N" else A.T, B if transb == "N" else B.T
    row.sizes((a, b, C))
    complex_ = dtype.kind == "c"
    return a, b, (complex_ and transa == "C", complex_ and transb == "C")


def span(X, nm, size, source):
    """Bytes from the first element to where the memory of matrices begins and ends; of a sequence, that of one."""
    if not nm * X.m * X.n:
        return 0, 0
    ends = [(X.m - 1) * X.rs, (X.n - 1) * X.cs, (nm - 1) * X.step if source == STACK else 0]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + size


def applied(X, op):
    """op of all matrices."""
    if op == "N":
        return X
    return X.swapaxes(-1, -2).conj() if op == "C" else X.swapaxes(-1, -2)


def through_copies(row, A, B, C, alpha, beta, transa, transb, launch):
    """Multiply copies of arrays whose numbers are not aligned as the processor wants them."""
    copy = C.copy()
    gemm(row, A.copy(), B.copy(), copy, alpha, beta, transa, transb, launch.threads)
    C[...] = copy


def through_numpy(A, B, C, alpha, beta, transa, transb):
    """Multiply by NumPy, some matrices at a time."""
    A, B = applied(A, transa), applied(B, transb)
    together = max(TOGETHER // max(C[0].size * C.itemsize, 1), 1)
    for first in range(0, len(C), together):
        some = slice(first, first + together)
        c = C[some]
        with np.errstate(all="ignore"):
            if not alpha:
                c[...] = 0 if not beta else beta * c
                continue
            product = np.matmul(*(regular(X[some] if X.ndim == 3 else X) for X in (A, B)))
            product = product if alpha == 1 else alpha * product
            c[...] = product if not beta else product + beta * c


def regular(X):
    """Matrices that BLAS takes."""
    return X if X.itemsize in X.strides[-2:] else np.ascontiguousarray(X)


def in_sequences(row, A, B, C, alpha, beta, transa, transb, threads, wait_for):
    """Multiply sequences of matrices, with one launch for all that have the same sizes and strides.

    On a device they have to be in the same memory as well.
    """
    queue = queue_of(C[0], "C[0]") if C else None
    launch = check_launch(threads, wait_for, queue)
    lists = [sequence(X, name, len(C), queue) for X, name in ((A, "A"), (B, "B"), (C, "C"))]
    if not C:
        return C
    target = C[0]
    dtype = check_dtype(target.dtype, "C[0]")
    alpha, beta = scalar("alpha", alpha, target), scalar("beta", beta, target)
    # checks of memory need addresses on a device, too
    given = lists
    if queue is not None:
        flat = shadows([x for X in lists for x in X])
        lists = [flat[i * len(C) : (i + 1) * len(C)] for i in range(3)]
    # groups of equal types, shapes and strides share a plan
    groups: dict[tuple, list] = {}
    for q, (a, b, c) in enumerate(zip(*lists, strict=True)):
        groups.setdefault(
            (a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides, c.dtype, c.shape, c.strides), []
        ).append(q)
        if not c.flags.writeable:
            raise ValueError(f"C[{q}] is read-only, must be writeable")
    found = {
        key: planned_group(row, *(X[some[0]] for X in lists), some[0], dtype, transa, transb)
        for key, some in groups.items()
    }
    # no matrix of C may share memory with another that is read or written
    places = [np.fromiter(map(address, X), np.int64, len(C)) for X in lists]
    spans = np.empty((3, 2, len(C)), np.int64)
    for key, some in groups.items():
        spans[..., some] = np.array(found[key].spans)[..., None]
    spans += np.array(places)[:, None]
    check_apart(lists, spans, dtype.itemsize)
    # one launch for each group
    for key, some in groups.items():
        plan = found[key]
        if not plan.nm:
            continue
        if queue is not None:
            group_on_device(row, given, some, transa, transb, alpha, beta, launch)
            continue
        chosen = [X[some] for X in places]
        if plan.run is None or np.bitwise_or.reduce(chosen, axis=None) & plan.odd:
            for q in some:
                gemm(row, lists[0][q], lists[1][q], lists[2][q][None], alpha, beta, transa, transb, threads)
        else:
            (plan.run if alpha else plan.scale)(len(some), *map(address, chosen), alpha, beta, launch)
    return C


def group_on_device(row, lists, some, transa, transb, alpha, beta, launch):
    """Multiply some matrices of sequences of pyopencl Arrays, which have the same sizes and strides."""
    together: dict[tuple, list] = {}
    for q in some:
        together.setdefault(tuple(X[q].base_data for X in lists), []).append(q)
    for each in together.values():
        A, B, C = (X[each[0]] for X in lists)
        device = device_module("linalg.products")
        a, b, conj = factors(row, *map(place, (A, B, C)), transa, transb, C.dtype)
        starts = np.array([[X[q].offset for q in each] for X in lists], np.int64)
        steps = np.unique(np.diff(starts), axis=1)
        even = [int(step) for step in steps[:, 0]] if steps.shape[1] == 1 else [0] * 3
        places = [replace(at, step=step) for at, step in zip((a, b, place(C)), even, strict=True)]
        first = [X.offset for X in (A, B, C)]
        arrays = [X[q] for X in lists for q in each]
        before = {event.int_ptr: event for event in itertools.chain(launch.events, *(x.events for x in arrays))}
        scattered = starts if steps.shape[1] > 1 else None
        after = Launch(events=list(before.values()))
        device.multiply(len(each), (A, B, C), first, places, conj, alpha, beta, after, scattered)
        for x in arrays:
            x.events[:] = C.events


def sequence(X, name, nm, queue):
    """A sequence of arrays of two axes, or one of these for all, as a list."""
    if name != "C" and is_matrix(X):
        check_place(X, queue, name)
        return [X] * nm
    if not isinstance(X, list | tuple):
        raise TypeError(f"{name} is a {type(X).__name__}, must be a list or tuple of arrays as C, or one of two axes")
    if len(X) != nm:
        raise ValueError(f"{name} has {len(X)} matrices, must have {nm} as C")
    for q, x in enumerate(X):
        if type(x) is not ndarray or queue is not None:
            check_place(x, queue, f"{name}[{q}]")
        if x.ndim != 2:
            raise ValueError(f"{name}[{q}] has shape {x.shape}, must have two axes")
    return X


def planned_group(row, a, b, c, q, dtype, transa, transb):
    """The plan for matrices like these, of which the first is number q."""
    for name, x in (("A", a), ("B", b), ("C", c)):
        check_same(x, f"{name}[{q}]", dtype, "C[0]")
    if has_repeats(c):
        raise ValueError(f"C[{q}] has strides {c.strides}, must have memory of its own for every element")
    try:
        return group_plan(row, dtype, *map(place, (a, b, c)), transa, transb)
    except ValueError as error:
        raise ValueError(f"number {q} of the sequences: {error}") from None


@functools.lru_cache(4096)
def group_plan(row, dtype, A, B, C, transa, transb):
    return plan_for(row, 1, dtype, A, B, C, transa, transb, SEQUENCE)


def check_apart(lists, spans, size):
    """Refuse matrices that are written and share memory with another of all sequences."""
    found = clash(lists[2], [*lists[0], *lists[1]], spans[2], np.concatenate([spans[0], spans[1]], axis=1), size)
    if found is None:
        return
    written, other, kind = found
    name, n = "C", len(lists[2])
    if kind == "read":
        name, other = ("A", other) if other < n else ("B", other - n)
    raise ValueError(f"C[{written}] shares memory with {name}[{other}], must not: C is written")
