"""gemm on ordinary arrays and sequences on OpenCL devices, with the kernels for CPUs and those for GPUs."""

import itertools

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import compactla as cla
from cases import random, same_bits
from compactla.gpu.arrays import download
from compactla.gpu.linalg import blocks, products
from compactla.gpu.tuning import choices as choices
from drivers import working_devices
from test_gemm_memory import PAIRS, applied, expected, laid, shapes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl"),
]


@pytest.fixture(params=["CPU", "GPU"])
def kernels(request, monkeypatch):
    """The kernels that are tried, whatever the device is."""
    monkeypatch.setattr(choices, "is_cpu", lambda device: request.param == "CPU")


@pytest.fixture
def gpus(monkeypatch, unoptimized):
    monkeypatch.setattr(choices, "is_cpu", lambda device: False)


def on(queue, x):
    """An array with the strides of a NumPy array, and with what is between its elements."""
    whole = x if x.base is None else x.base
    memory = cl.array.to_device(queue, whole.reshape(-1))
    start = x.ctypes.data - whole.ctypes.data
    return cl.array.Array(queue, x.shape, x.dtype, strides=x.strides, data=memory.base_data, offset=start)


def whole(x):
    """All numbers in the memory of an array."""
    found = np.empty(x.base_data.size, np.uint8)
    cl.enqueue_copy(x.queue, found, x.base_data, wait_for=x.events)
    return found


def check(queue, a, b, c, alpha=1, beta=0, transa="N", transb="N"):
    """Compare with NumPy; c is NaN if it must not be read, and what is between its elements stays."""
    before = c.copy()
    if not beta:
        c[...] = np.nan
    A, B, C = (on(queue, x) for x in (a, b, c))
    c[...] = before
    assert cla.gemm(A, B, C, alpha, beta, transa, transb) is C
    assert len(C.events) == 1
    memory = whole(C)
    found = np.ndarray(c.shape, c.dtype, memory, C.offset, c.strides)
    close(found, a, b, before, alpha, beta, transa, transb)
    found[...] = c
    assert same_bits(memory, whole(on(queue, c)))


def close(found, a, b, before, alpha, beta, transa="N", transb="N"):
    eps, k = np.finfo(found.dtype).eps, applied(a, transa).shape[-1]
    scale = abs(alpha) * (abs(applied(a, transa)) @ abs(applied(b, transb))) + abs(beta * before)
    assert (abs(found - expected(a, b, before, alpha, beta, transa, transb)) <= 4 * (k + 4) * eps * scale).all()


def slices(memory, arrays):
    """Parts of a device array, with the shapes of NumPy arrays that were concatenated for it."""
    ends = np.cumsum([x.size for x in arrays]).tolist()
    return [memory[end - x.size : end].reshape(x.shape) for x, end in zip(arrays, ends, strict=True)]


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_all_pairs_of_op_and_strides(queue, dtype, rng):
    hows = itertools.cycle(["", "columns", "reversed", "lanes", "rows", "gaps", "reversed"])
    for transa, transb in PAIRS:
        a, b = (laid(random(rng, (5, *s), dtype), next(hows)) for s in shapes(3, 5, 4, transa, transb))
        c = laid(random(rng, (5, 3, 4), dtype), next(hows))
        check(queue, a, b, c, 1, 0, transa, transb)
        check(queue, a, b, c, *((0.5, -2) if c.dtype.kind == "f" else (0.5 + 1j, 1 - 2j)), transa.lower(), transb)


SOME = [  # sizes, types, layouts and options that make different kernels
    ((3, 3, 3), "d", ("", "", ""), ("N", "N", 1, 0)),
    ((3, 5, 4), "f", ("reversed", "columns", "columns"), ("T", "N", 2, 1)),
    ((4, 8, 4), "f", ("", "rows", ""), ("N", "T", 1, 0)),
    ((8, 2, 8), "d", ("columns", "", ""), ("N", "N", -1, 2)),
    ((2, 3, 5), "F", ("", "", ""), ("C", "T", 1j, 1 - 1j)),
    ((4, 3, 2), "D", ("gaps", "reversed", "lanes"), ("T", "C", 1, 2)),
]


@pytest.mark.parametrize(("size", "char", "hows", "options"), SOME)
def test_kernels_of_gpus(queue, gpus, size, char, hows, options, rng):
    transa, transb, alpha, beta = options
    pairs = *shapes(*size, transa, transb), (size[0], size[2])
    a, b, c = (laid(random(rng, (7, *s), np.dtype(char)), how) for s, how in zip(pairs, hows, strict=True))
    check(queue, a, b, c, alpha, beta, transa, transb)


@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("size", [(33, 9, 40), (5, 12, 16), (48, 64, 52), (16, 100, 3), (1, 70, 65), (72, 2, 130)])
def test_blocks(queue, gpus, size, char, monkeypatch, rng):
    monkeypatch.setattr(products, "suits_stacks", lambda *_: False)
    hows = itertools.cycle(["", "columns", "rows", "", "gaps", "columns", "reversed"])
    for (transa, transb), alpha, beta in zip(["NN", "TN", "NC", "CT"], (1, 2, -1, 2), (0, 1, 0, -3), strict=True):
        pairs = *shapes(*size, transa, transb), (size[0], size[2])
        a, b, c = (laid(random(rng, (3, *s), np.dtype(char)), next(hows)) for s in pairs)
        check(queue, a, b, c, alpha, beta, transa, transb)
    check(queue, a, b[0], c, 1, 0, transa, transb)
    check(queue, a[0], b, c, 1, 2, transa, transb)


@pytest.mark.parametrize("size", [(66, 70, 68), (130, 20, 40)])
def test_blocks_one_after_the_other(queue, gpus, size, monkeypatch, rng):
    """Of work-groups that last, which are as few as compute units here."""
    monkeypatch.setattr(blocks, "FILL", 1)
    a, b, c = (random(rng, (40, *s), np.dtype("f")) for s in (*shapes(*size, "N", "N"), (size[0], size[2])))
    check(queue, a, b, c, 2, 0)
    check(queue, a, b, c, 1, -3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [1, 4, 7, 8, 32])
def test_all_kernels_of_gpus(queue, gpus, n, rng):
    for char, how, (transa, transb) in itertools.product("fdFD", ["", "columns", "rows", "gaps"], ["NN", "TN", "CC"]):
        sizes = (n, n + 1, max(n - 1, 1)) if how == "gaps" else (n, n, n)
        a, b = (laid(random(rng, (5, *s), np.dtype(char)), how) for s in shapes(*sizes, transa, transb))
        c = laid(random(rng, (5, sizes[0], sizes[2]), np.dtype(char)), "" if transa == "C" else how)
        check(queue, a, b, c, 2, len(how) % 2, transa, transb)


@pytest.mark.parametrize("size", [(33, 9, 40), (1, 70, 1), (2, 0, 3)])
def test_larger_and_empty_matrices(queue, size, rng):
    a, b = (random(rng, (3, *s), np.float64) for s in shapes(*size, "T", "N"))
    check(queue, a, b, laid(random(rng, (3, size[0], size[2]), np.float64), "columns"), 2, -1, "T", "N")
    check(queue, a, b[0], random(rng, (3, size[0], size[2]), np.float64), 1, 0, "T", "N")


def test_one_matrix_for_all(queue, kernels, rng):
    a, b, c = (random(rng, (6, 3, 3), np.float64) for _ in range(3))
    check(queue, a, b[0], c.copy(), 2, 1)
    check(queue, a[0].T.copy().T, b, c.copy())
    check(queue, a, np.broadcast_to(b[0], a.shape), c.copy(), 2, 1)
    check(queue, a[:1].copy(), b[:1].copy(), c[:1].copy())
    empty = cl.array.empty(queue, (0, 3, 3), np.float64)
    assert cla.gemm(empty, on(queue, b[0]), empty) is empty


def test_what_is_multiplied_by_zero_is_not_read(queue, kernels, rng):
    c = random(rng, (4, 3, 3), np.float64)
    c[0, 0, 0] = -0.0
    nothing, target = on(queue, np.full(c.shape, np.nan)), on(queue, c)
    assert same_bits(cla.gemm(nothing, nothing, target, 0, 1).get(), c)
    assert not cla.gemm(nothing, nothing, target, 0, 0).get().any()


def test_neither_neighbours_nor_kernels_change_a_bit(queue, gpus, rng):
    a, b, c = (random(rng, (50, 3, 3), np.float64) for _ in range(3))
    given = [on(queue, x) for x in (a, b, c)]
    together = cla.gemm(*given, 3, 0.7).get()
    apart = [on(queue, x[7:8].copy()) for x in (a, b, c)]
    assert same_bits(cla.gemm(*apart, 3, 0.7).get(), together[7:8])
    a[3] = np.nan
    others = cla.gemm(on(queue, a), given[1], on(queue, c), 3, 0.7).get()
    assert same_bits(np.delete(others, 3, 0), np.delete(together, 3, 0))


def test_sequences(queue, kernels, rng):
    sizes = [(3, 4, 2), (3, 4, 2), (1, 1, 1), (3, 4, 2), (40, 2, 3), (2, 0, 2)]
    a, b = ([random(rng, s[i : i + 2], np.float64) for s in sizes] for i in range(2))
    c = [random(rng, (m, n), np.float64) for m, _, n in sizes]
    A, B, C = (slices(on(queue, np.concatenate([x.ravel() for x in X])), X) for X in (a, b, c))
    assert cla.gemm(A, tuple(B), C, 2, -1) is C
    for given in zip(C, a, b, c, strict=True):
        close(download(given[0]), *given[1:], 2, -1)
    own = [on(queue, x) for x in c[:2]]
    cla.gemm([on(queue, x) for x in a[:2]], on(queue, b[0]), own)
    for x, y in zip(own, a, strict=False):
        close(x.get(), y, b[0], c[0], 1, 0)


def test_what_is_refused(queue, elsewhere, rng):
    a = random(rng, (4, 3, 3), np.float64)
    A, B, C = on(queue, a), on(queue, a), on(queue, np.zeros((4, 6, 6)))
    part = C[:, :3, :3]
    refused = [
        (TypeError, "A is a ndarray, must be an array on the device", (a, B, part), {}),
        (ValueError, "B lives in another OpenCL context", (A, on(elsewhere, a), part), {}),
        (TypeError, "A is of float32, must be of float64 as C", (on(queue, a.astype("f")), B, part), {}),
        (ValueError, "C shares memory with A", (part, B, C[:, 2:5, 2:5]), {}),
        (ValueError, "threads is 2, must be None", (A, B, part), {"threads": 2}),
        (ValueError, r"op\(B\) is 2 x 3, must have 3 rows", (A, B[:, :2], part), {}),
        (TypeError, r"A\[1\] is a ndarray, must be an array", ([A[0], a[0]], [A[0]] * 2, [B[0], B[1]]), {}),
        (ValueError, r"B\[0\] lives in another OpenCL context", ([A[0]], [on(elsewhere, a[0])], [B[0]]), {}),
        (ValueError, r"C\[1\] shares memory with A\[0\]", ([A[0]] * 2, [A[2]] * 2, [B[0], A[0]]), {}),
    ]
    for error, message, given, options in refused:
        with pytest.raises(error, match=message):
            cla.gemm(*given, **options)
    assert not download(C).any()
    cla.gemm(A, B, part)
    cla.gemm(part, B, C[:, :3, 3:], wait_for=[])
    np.testing.assert_allclose(download(C[:, :3, 3:]), a @ a @ a, rtol=1e-12)
