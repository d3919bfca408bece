"""Tests of what users of PyOpenCL are used to: queues of any kind, events, memory of their own."""

import functools
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from pyopencl.tools import ImmediateAllocator, MemoryPool
from scipy.sparse import bsr_array

import compactla as cla
import reference
from cases import dominant, lines, random, same_bits
from compactla.cli.files import read_system
from compactla.examples import bicgstab_opencl
from compactla.gpu.devices import new_queue
from compactla.oracle import THRESHOLD
from drivers import working_devices
from rows import residual

on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


def system(dtype=np.float64):
    """Block rows 0 to 5, on lines 0 to 3 and 4 to 5."""
    rng = np.random.default_rng(5)
    dense = (rng.random((12, 12)) + 12 * np.eye(12)).astype(dtype)
    dense[:8, :8] *= np.kron(abs(np.subtract.outer(range(4), range(4))) < 2, np.ones((2, 2)))  # no chords
    return bsr_array(dense, blocksize=(2, 2)), [[0, 1, 2, 3], [4, 5]]


@on_devices
def test_events(queue, rng):
    a = dominant(rng, 9, 3, 3, np.float64)
    A, C = cla.pack(a, queue=queue), cla.Pack.zeros(9, 3, 3, queue=queue)
    (first,) = cla.gemm(A, A, C).data.events
    (second,) = cla.trsm(A, C).data.events
    assert first != second and A.data.events == [second]
    target = pyopencl.array.empty(queue, (9, 3, 3), np.float64)
    C.unpack(out=target)
    target.events[-1].wait()
    assert target.events[-1].command_execution_status == cl.command_execution_status.COMPLETE


def calls(queue, rng):
    """Every public call that begins work on a device, by name, and what it writes to."""
    a = dominant(rng, 9, 3, 3, np.float64)
    A, B, C = (cla.pack(a, queue=queue) for _ in range(3))
    source = pyopencl.array.to_device(queue, a)
    info = pyopencl.array.zeros(queue, (9,), np.int32)
    T = cla.BlockTridiag(*lines(rng, 5, 4, 3, np.float64), queue=queue)
    T.factor()
    x = pyopencl.array.zeros(queue, (5, 4, 3), np.float64) + 1
    M, where = system()
    P, S = (make(M, where, queue=queue) for make in (cla.LinePreconditioner, cla.LineRelaxation))
    r = pyopencl.array.zeros(queue, (12,), np.float64) + 1
    queue.finish()
    return {
        "gemm": lambda **how: cla.gemm(A, B, C, **how),
        "trsm": lambda **how: cla.trsm(A, C, **how),
        "pack": lambda **how: cla.pack(source, out=B, **how),
        "unpack": lambda **how: A.unpack(out=source, **how),
        "getrfnp to an array": lambda **how: cla.getrfnp(B, info=info, **how),
        "BlockTridiag.solve": lambda **how: T.solve(x, **how),
        "solve_rows": lambda **how: T.solve_rows(x.reshape(20, 3, 1), x.reshape(20, 3, 1), **how),
        "LinePreconditioner.solve": lambda **how: P.solve(r, **how),
        "LineRelaxation.solve": lambda **how: S.solve(r, **how),
    }, {  # these return NumPy arrays
        "getrfnp": lambda **how: cla.getrfnp(A, **how),
        "factor": lambda **how: T.refactor(**how),
        "update": lambda **how: P.update(M, **how),
        "LineRelaxation.update": lambda **how: S.update(M, **how),
        "unpack to NumPy": lambda **how: A.unpack(**how),
    }


@on_devices
def test_wait_for(queue, rng):
    begin, wait = calls(queue, rng)
    for name, call in begin.items():
        call()
        queue.finish()
        user = cl.UserEvent(queue.context)
        call(wait_for=[user])
        marker = cl.enqueue_marker(queue)
        assert marker.command_execution_status != cl.command_execution_status.COMPLETE, name
        user.set_status(cl.command_execution_status.COMPLETE)
        marker.wait()
    context = cl.Context([queue.device])
    done, other = cl.enqueue_marker(queue), cl.UserEvent(context)
    other.set_status(cl.command_execution_status.COMPLETE)  # some drivers wait for it when its context ends
    for call in (begin | wait).values():
        call(wait_for=[done])
        call(wait_for=())
        for bad in (done, [None], "ab", [cl.Event], [SimpleNamespace(command_execution_status=0)]):
            with pytest.raises(TypeError, match=r"wait_for is .*, must be a list of pyopencl Events"):
                call(wait_for=bad)
        with pytest.raises(ValueError, match="wait_for has events of another OpenCL context"):
            call(wait_for=[done, other])
    with pytest.raises(ValueError, match=r"wait_for is .*, must be None for data on the CPU"):
        cla.getrfnp(cla.Pack.identity(3, 3), wait_for=[done])


@on_devices
def test_queues_out_of_order(queue, rng):
    """Two queues of one context, each free to reorder: events alone keep the calls in order."""
    queues = [cl.CommandQueue(queue.context, properties=OUT_OF_ORDER) for _ in range(2)]
    a, b = dominant(rng, 600, 5, 5, np.float64), random(rng, (600, 5, 5), np.float64)
    A, B = cla.pack(a, queue=queues[0]), cla.pack(b, queue=queues[1])
    C = cla.Pack.zeros(600, 5, 5, queue=queues[1])
    info = pyopencl.array.zeros(queues[0], (600,), np.int32)
    for _ in range(3):
        cla.gemm(A, B, C)
        cla.gemm(C, A, B, alpha=0.01)
    cla.getrfnp(A, info=info)
    cla.trsm(A, B, diag="U")
    cla.trsm(A, B, uplo="U")
    c = b
    for _ in range(3):
        c = 0.01 * (a @ c) @ a
    assert np.allclose(a @ B.unpack(), c, rtol=1e-9, atol=1e-9 * abs(c).max())
    T = cla.BlockTridiag(*(blocks := lines(rng, 70, 6, 3, np.float64)), queue=queues[0])
    T.factor()
    rhs = random(rng, (70, 6, 3), np.float64)
    x = T.solve(T.solve(pyopencl.array.to_device(queues[1], rhs)))
    dense = reference.block_tridiagonal(*blocks)
    expected = np.linalg.solve(dense, np.linalg.solve(dense, rhs.reshape(70, 18, 1)))
    assert np.allclose(x.get().reshape(70, 18, 1), expected, rtol=1e-9)


@on_devices
def test_memory_of_pools(queue, rng):
    pool = MemoryPool(ImmediateAllocator(queue))
    a = dominant(rng, 21, 4, 4, np.float64)
    source = pyopencl.array.to_device(queue, a, allocator=pool)
    A = cla.Pack(pyopencl.array.zeros(queue, (3, 4, 4, 8), np.float64, allocator=pool), 21)
    cla.pack(source, out=A)
    target = pyopencl.array.zeros_like(source)
    assert same_bits(A.unpack(out=target).get(), a) and same_bits(A.unpack(), a)
    M, where = system()
    P = cla.LinePreconditioner(M, where, queue=queue)
    r = rng.random(12)
    on_device = pyopencl.array.to_device(queue, r, allocator=pool)
    x = P.solve(on_device)
    assert same_bits(x.get(), P.solve(r)) and x.allocator is pool


@on_devices
def test_parts_of_buffers(queue, rng):
    """Packs in sub-buffers, at offsets, and in strided arrays of the user's."""
    a, b = dominant(rng, 16, 3, 3, np.float64), random(rng, (16, 3, 3), np.float64)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 1 << 16)
    region = buffer.get_sub_region(1 << 14, 1 << 14)
    shape = (2, 3, 3, 8)
    A = cla.Pack(pyopencl.array.Array(queue, shape, np.float64, data=region))
    B = cla.Pack(pyopencl.array.Array(queue, shape, np.float64, data=buffer, offset=40))
    C = cla.Pack(
        pyopencl.array.Array(queue, shape, np.float64, data=buffer, offset=1 << 15, strides=(4096, 1024, 192, 8))
    )
    assert A.data.base_data is region and B.data.base_data is buffer
    cla.pack(a, out=A), cla.pack(b, out=B)
    cla.gemm(A, B, C, transb="T")
    assert residual("gemm", (a, b, b), (a, b, C.unpack()), transb="T") < THRESHOLD
    cla.getrfnp(A), cla.trsm(A, C, diag="U"), cla.trsm(A, C, uplo="U")
    assert reference.solve_ratio(a, C.unpack(), a @ b.swapaxes(1, 2)) < THRESHOLD
    assert same_bits(B.unpack(), b)
    M, where = system()
    P = cla.LinePreconditioner(M, where, queue=queue)
    long = pyopencl.array.to_device(queue, rng.random(40))
    assert same_bits(P.solve(long[5:17]).get(), P.solve(long.get()[5:17]))


@on_devices
def test_elements_between_those_of_a_buffer(queue, rng):
    """Arrays whose elements are not where those of the buffer are, and, where kernels take none, at offsets."""
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 1 << 14)

    def array(shape, offset, dtype=np.float64, strides=None):
        return pyopencl.array.Array(queue, shape, dtype, data=buffer, offset=offset, strides=strides)

    A = cla.Pack.zeros(8, 3, 3, vlen=8, queue=queue)
    T = cla.BlockTridiag(*lines(rng, 2, 2, 3, np.float64), queue=queue)
    T.factor()
    M, where = system()
    P, S = (make(M, where, queue=queue) for make in (cla.LinePreconditioner, cla.LineRelaxation))
    shapes = (2, 1, 3, 3), (2, 2, 3, 3), (2, 1, 3, 3)
    packed = (1, 3, 3, 8), (2, 3, 3, 8), (1, 3, 3, 8)
    rows = np.arange(16).reshape(2, 8)
    calls = {
        "data": lambda at: cla.Pack(array((1, 3, 3, 8), at)),
        "a": lambda at: cla.pack(array((8, 3, 3), at)),
        "out": lambda at: A.unpack(out=array((8, 3, 3), at)),
        "lower": lambda at: cla.BlockTridiag(*(array(shape, at) for shape in shapes)),
        "rhs": lambda at: T.solve(array((2, 2, 3), at)),
        "x": lambda at: T.solve_rows(array((4, 3, 1), 4096), array((4, 3, 1), at)),
        "s": lambda at: P.solve(array((12,), at)),  # of rhs
        "x0": lambda at: S.solve(array((12,), 0), array((12,), at)),
    }
    whole = {
        "lower": lambda at: cla.BlockTridiag.from_packed(*(array(s, at) for s in packed), [0, 2], rows, 8, queue=queue),
        "M": lambda at: P.update(array(M.data.shape, at)),
        "info": lambda at: cla.getrfnp(A, info=array((8,), at, np.int32)),
    }
    for name, call in (*calls.items(), *whole.items()):
        for offset in (2, 2050):
            with pytest.raises(ValueError, match=f"{name} has offset {offset}, must have a multiple of the"):
                call(offset)
    for call in calls.values():
        call(16)
    for name, call in whole.items():
        with pytest.raises(ValueError, match=f"{name} has offset 16, must begin where its buffer does"):
            call(16)
    with pytest.raises(ValueError, match="a has offset 8, must have a multiple of the 16 bytes"):
        cla.pack(array((8, 3, 3), 8, np.complex128))
    uneven = array((8, 3, 3), 0, strides=(100, 24, 8))
    for name, call in (("a", lambda: cla.pack(uneven)), ("out", lambda: A.unpack(out=uneven))):
        with pytest.raises(ValueError, match=rf"{name} has strides \(100, 24, 8\), must have multiples of the 8 bytes"):
            call()


@on_devices
def test_contexts_of_one_device(queue):
    A, B = (cla.Pack.identity(3, 3, queue=q) for q in (queue, new_queue(queue.device)))
    with pytest.raises(ValueError, match="A lives in another OpenCL context than B"):
        cla.trsm(A, B)


@on_devices
def test_contexts_of_queues(queue, rng):
    """Queues keep theirs from the first call on, those that are made here from the beginning."""
    assert new_queue(queue.device).context.devices == [queue.device]
    context = cl.Context([queue.device])
    other = cl.CommandQueue(context)
    cla.pack(rng.random((3, 2, 2)), queue=other)
    del context
    assert other.context.devices == [queue.device]


class Left(cl.CommandQueue):
    """A queue as some drivers have them, whose context is gone."""

    @property
    def context(self):
        raise cl.LogicError("INVALID_CONTEXT")


Left.__module__ = cl.CommandQueue.__module__


@on_devices
def test_queues_that_lost_their_context(queue):
    with pytest.raises(ValueError, match="queue has no context any more, must be of a Context that is kept as long"):
        cla.Pack.zeros(8, 3, 3, queue=Left(queue.context))


class Refusing:
    """Buffers, but not the one of this number."""

    def __init__(self, number):
        self.number, self.make = number, cl.Buffer

    def __call__(self, *args, **options):
        self.number -= 1
        if self.number == 0:
            raise cl.MemoryError("there is no more")
        return self.make(*args, **options)


UPDATED = {
    "plain": (cla.LinePreconditioner, {}),
    "parts": (cla.LinePreconditioner, {"parts": 2}),
    "refine": (cla.LinePreconditioner, {"refine": 1}),
    "perturb": (cla.LinePreconditioner, {"pivots": "perturb"}),
    "storage": (cla.LinePreconditioner, {"storage": "float32"}),
    "sweeps": (cla.LineRelaxation, {"scheme": "symmetric", "tol": 1e-8}),
}


@on_devices
@pytest.mark.parametrize(("make", "options"), UPDATED.values(), ids=UPDATED)
def test_updates_without_memory(queue, rng, monkeypatch, make, options):
    """Whichever array there is no room for, what is left is what was before, or is not solved with."""
    M, where = system()
    N = bsr_array((M.data * rng.uniform(1, 2, M.data.shape), M.indices, M.indptr))
    P, r, refused = make(M, where, queue=queue, **options), rng.random(12), 0
    before, after = P.solve(r), make(N, where, queue=queue, **options).solve(r)
    for number in range(1, 99):
        P.update(M)
        with monkeypatch.context() as patch:
            patch.setattr(cl, "Buffer", Refusing(number))
            try:
                P.update(N)
                break
            except MemoryError as error:
                assert type(error) is MemoryError and "does not fit in the memory of" in str(error)
        refused += 1
        if P.info is None:
            for call in (P.solve, P.rmatvec):
                with pytest.raises(RuntimeError, match="update must be called again"):
                    call(r)
            assert P.report is None
        else:
            assert same_bits(P.solve(r), before)
    assert refused and same_bits(P.solve(r), after)


@on_devices
def test_far_apart(queue, rng):
    """Packs as far apart as memory allows: up to and past 2**31 bytes, and 2**31 elements where there is as much."""
    most = min(queue.device.max_mem_alloc_size, 2**33 + 2**20) // 4096 * 4096
    nm, a, b = 7, dominant(rng, 7, 3, 3, np.float32), random(rng, (7, 3, 3), np.float32)

    def apart(values):
        buffer, strides = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, most), (most - 4096, 48, 16, 4)
        data = pyopencl.array.Array(queue, (2, 3, 3, 4), np.float32, data=buffer, offset=1024, strides=strides)
        return cla.pack(values, out=cla.Pack(data, nm))

    A, B, C = apart(a), apart(b), apart(0 * b)
    cla.gemm(A, B, C)
    assert residual("gemm", (a, b, 0 * b), (a, b, C.unpack())) < THRESHOLD
    assert not cla.getrfnp(A).any()
    cla.trsm(A, B, diag="U"), cla.trsm(A, B, uplo="U")
    assert reference.solve_ratio(a, B.unpack(), b) < THRESHOLD


@on_devices
@pytest.mark.parametrize(
    ("make", "options"),
    [(cla.LinePreconditioner, {}), (cla.LineRelaxation, {"scheme": "gauss-seidel", "tol": 1e-3})],
    ids=["P", "S"],
)
def test_new_values_from_the_device(queue, dtype, rng, make, options):
    for matrix in (lambda M: M, lambda M: M.tocsr()):
        M, where = system(dtype)
        M = matrix(M)
        make = functools.partial(make, block_size=2, **options)
        P = make(M, where, queue=queue)
        M.data = M.data * rng.uniform(1, 2, M.data.shape).astype(dtype)
        r = random(rng, (12,), dtype)
        P.update(pyopencl.array.to_device(queue, M.data))
        fresh = make(M, where, queue=queue)
        assert same_bits(P.solve(r), fresh.solve(r)) and same_bits(P.rmatvec(r), fresh.rmatvec(r))
        before = P.solve(r)
        other = new_queue(queue.device)
        for error, message, bad in (
            (ValueError, r"must be \(.*, as data at first", pyopencl.array.to_device(queue, M.data[1:].copy())),
            (TypeError, "must be .* as at first", pyopencl.array.zeros(queue, M.data.shape, np.float16)),
            (ValueError, "another OpenCL context", pyopencl.array.to_device(other, M.data)),
        ):
            with pytest.raises(error, match=message):
                P.update(bad)
        with pytest.raises(TypeError, match=r"must be a scipy\.sparse matrix as P lives on the CPU"):
            make(M, where).update(pyopencl.array.to_device(queue, M.data))
        assert same_bits(P.solve(r), before)


@on_devices
def test_example_of_a_solver_on_the_device(queue):
    given = read_system(bicgstab_opencl.files("compactla") / "data" / "sherman5_b3.npz")
    M, rhs = given.M, given.rhs
    steps = []
    for t, x, report in bicgstab_opencl.pseudo_time(queue, M, given.lines, rhs):
        shifted = bsr_array((M.data + t * bicgstab_opencl.only_diagonal(M), M.indices, M.indptr))
        assert np.linalg.norm(rhs - shifted @ x.get()) < 2e-8 * np.linalg.norm(rhs)
        steps.append(report.iterations)
    assert sorted(steps) == steps and steps[-1] < 100
