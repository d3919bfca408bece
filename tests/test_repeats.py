"""Calls with pyopencl Arrays, and with packs of them, that are made again by their launches."""

import numpy as np
import pyopencl.array as device_arrays
import pytest
from pyopencl.tools import ImmediateAllocator, MemoryPool

import compactla as cla
from cases import ON_PACKS, slow
from compactla import gemm, kron_apply, linalg
from compactla.gpu import launch
from compactla.gpu.program import built
from drivers import working_devices

pytestmark = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")


AGAIN = {
    "solve": lambda a, b: linalg.solve(a, b),
    "inv": lambda a, b: linalg.inv(a, on_error="nan"),
    "eigh": lambda a, b: tuple(linalg.eigh(a)),
    "lstsq": lambda a, b: linalg.lstsq(a, b),
    "kron": lambda a, b: kron_apply((a[0], b[0]), a[:, :, :2]),
    "kron, out": lambda a, b: kron_apply((a[0], a[1]), a, device_arrays.empty_like(a)),
    "gemm": lambda a, b: gemm(a, b, b.copy(), beta=2.0),
}


@pytest.mark.parametrize("name", [slow(name) for name in AGAIN])
def test_calls_that_are_made_again(queue, rng, monkeypatch, name, collect):
    """From the third call on there are only launches, with the same bits, events and errors; no array is kept."""
    call, pool, kept = AGAIN[name], MemoryPool(ImmediateAllocator(queue)), []
    launch.plans(queue).known.clear()
    for number in range(5):
        x = rng.standard_normal((40, 3, 3))
        given = x @ x.swapaxes(1, 2) + np.eye(3), rng.standard_normal((40, 3, 2))
        a, b = (device_arrays.to_device(queue, x, allocator=pool) for x in given)
        with monkeypatch.context() as patch:
            if number > 1:
                patch.setattr(launch, "enqueue_after", None)
            found = call(a, b)
        launch.plans(queue).calls.known, known = {}, launch.plans(queue).calls.known
        expected = call(a, b)
        launch.plans(queue).calls.known = known
        for x, y in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
            assert (x.shape, x.dtype, x.strides) == (y.shape, y.dtype, y.strides) and x.events
            np.testing.assert_array_equal(x.get(), y.get())
            assert x.allocator is pool or not name.startswith(("kron", "gemm"))
        kept += a, b, found
    assert any(callable(again) for again in known.values())
    if name == "solve":
        a[3] = 0
        with pytest.raises(linalg.LinAlgError, match="1 of 40 matrices, at 3"):
            call(a, b)
    del kept, a, b, found, expected, x, y, known
    if name not in ("solve", "inv", "gemm"):  # which need no work space
        launch.plans(queue).known.clear()
        assert not launch.repeated_calls(queue).known
    collect()
    assert not pool.active_bytes


TELLING = {"getrf", "getrfnp", "potrf", "gesv", "syev", "gesvd", "gels, part", "getri"}  # they wait for what they tell


@pytest.mark.parametrize("name", [name if name in ("geqrf", "copy") else slow(name) for name in ON_PACKS])
def test_calls_with_packs_that_are_made_again(queue, rng, monkeypatch, name):
    """From the third call on there are only launches, but where integers are told of; the bits are the same."""
    call, kept = ON_PACKS[name], []
    launch.plans(queue).known.clear()
    for number in range(4):
        x = rng.standard_normal((40, 3, 3))
        a, b = x @ x.swapaxes(1, 2) + np.eye(3), rng.standard_normal((40, 3, 2))
        A, B = (cla.pack(device_arrays.to_device(queue, x)) for x in (a, b))
        if number == 1:  # kernels that are made while a call is recorded
            built(queue).of_thread.__dict__.pop("kernels", None)
        with monkeypatch.context() as patch:
            if number > 1 and name not in TELLING | {"copy"}:  # which unpacks to the host
                patch.setattr(launch, "enqueue_after", None)
            found = call(A, B)
        kept += A, B, found
        launch.plans(queue).calls.known, known = {}, launch.plans(queue).calls.known
        expected = call(*(cla.pack(device_arrays.to_device(queue, x)) for x in (a, b)))
        launch.plans(queue).calls.known = known
        for x, y in zip(found, expected, strict=True):
            if isinstance(x, cla.Pack):
                assert (x.vlen, x.queue) == (y.vlen, y.queue)
                x, y = x.unpack(), y.unpack()
            np.testing.assert_array_equal(*(v.get() if hasattr(v, "get") else np.asarray(v) for v in (x, y)))


def test_packs_of_arrays_that_are_made_again(queue, rng):
    """Each call makes a pack of its own."""
    stacks = rng.standard_normal((4, 40, 3, 3))
    packs = [cla.pack(device_arrays.to_device(queue, a)) for a in stacks]
    for A, a in zip(packs, stacks, strict=True):
        np.testing.assert_array_equal(A.unpack(), a)
        np.testing.assert_array_equal(A.T.copy().unpack(), a.swapaxes(1, 2))
    assert len({A.data.base_data.int_ptr for A in packs}) == 4


def test_arguments_by_name(queue, rng):
    """Packs and arrays in one call, in any order."""
    for a in rng.standard_normal((4, 40, 3, 3)):
        A, target = cla.pack(device_arrays.to_device(queue, a)), device_arrays.zeros(queue, (40, 3, 3), a.dtype)
        assert A.unpack(out=target) is target
        np.testing.assert_array_equal(target.get(), a)
        assert cla.pack(out=A, a=2 * target) is A
        np.testing.assert_array_equal(A.unpack(), 2 * a)
