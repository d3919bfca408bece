"""Solutions that are written to arrays of the caller's: `out=` of lines, preconditioners and sweeps."""

import inspect
import tracemalloc

import numpy as np
import pyopencl.array
import pytest

import compactla as cla
from cases import lines, random, same_bits
from compactla.gpu.devices import new_queue
from conftest import DEVICES
from systems import scattered

LENGTHS = [5, 1, 8, 3]
MADE = {
    "P": (cla.LinePreconditioner, {}),
    "parts": (cla.LinePreconditioner, {"parts": 3}),
    "refine": (cla.LinePreconditioner, {"refine": 1}),
    "jacobi": (cla.LineRelaxation, {"sweeps": 2}),
    "gauss-seidel": (cla.LineRelaxation, {"scheme": "gauss-seidel", "sweeps": 2}),
}


def put(a, queue):
    return a.copy() if queue is None else pyopencl.array.to_device(queue, a)


def get(a):
    return a if isinstance(a, np.ndarray) else a.get()


def wrong_outs(right, rhs, queue):
    """Arrays that the solution for `rhs`, of the kind of `right`, cannot be written to: error, message, array."""
    host = queue is None or isinstance(right, np.ndarray)
    shape, dtype = right.shape, right.dtype
    apart = np.zeros(shape, dtype) if host else pyopencl.array.zeros(queue, shape, dtype)
    other = np.dtype({"d": "f", "D": "F"}[dtype.char])
    yield TypeError, f"out: dtype is {other}, must be {dtype}", apart.astype(other)
    yield ValueError, "out has shape", apart.reshape(-1)[1:]
    doubled = np.empty(2 * apart.size, dtype)
    if host:
        frozen = apart.copy()
        frozen.flags.writeable = False
        yield ValueError, "out is read-only, must be writeable", frozen
        yield ValueError, "out has strides .*, must be C-contiguous", doubled[::2].reshape(shape)
        yield ValueError, "out has strides .*, must be C-contiguous", np.broadcast_to(dtype.type(0), shape)
        yield TypeError, "out is a list, must be a NumPy array", apart.tolist()
        yield TypeError, "out is a MaskedArray", np.ma.zeros(shape, dtype)
        for device in DEVICES[:1]:
            yield TypeError, "out is a.* Array", pyopencl.array.empty(new_queue(device), shape, dtype)
    else:
        foreign = new_queue(queue.device)
        yield ValueError, "another OpenCL context", pyopencl.array.empty(foreign, shape, dtype)
        yield TypeError, "out is a ndarray, must be an array on the device as rhs", np.empty(shape, dtype)


def refuses(solve, right, rhs, queue):
    kept = get(rhs).copy()
    for error, message, out in wrong_outs(right, rhs, queue):
        with pytest.raises(error, match=message):
            solve(rhs, out=out)
    size = right.size
    long = put(np.zeros(size + 1, right.dtype), None if isinstance(right, np.ndarray) else queue)
    inside, beside = long[:size].reshape(right.shape), long[1:].reshape(right.shape)
    with pytest.raises(ValueError, match="out shares memory with rhs, must be the same or apart from it"):
        solve(inside, out=beside)
    assert same_bits(get(rhs), kept) and not get(long).any()


@pytest.mark.parametrize("options", [{}, {"parts": 3}, {"refine": 1}], ids=str)
def test_lines(queue, rng, options):
    T = cla.BlockTridiag(*lines(rng, 9, 7, 3, np.float64), queue=queue, **options)
    T.factor()
    for rhs in (random(rng, (9, 7, 3), np.float64), random(rng, (9, 7, 3, 2), np.float64)):
        x = T.solve(rhs)
        for where in {None, queue}:
            given = put(rhs, where)
            out = put(0 * rhs, where)
            assert T.solve(given, out=out) is out and same_bits(get(out), x) and same_bits(get(given), rhs)
            assert T.solve(given, out=given) is given and same_bits(get(given), x)
            refuses(T.solve, out, put(rhs, where), queue)
        assert same_bits(get(T.solve(rhs.astype(np.float32), out=0 * rhs)), T.solve(rhs.astype(np.float32)))
    if queue is None and not options:
        T = cla.BlockTridiag(*lines(rng, 1, 3, 3, np.float64), vlen=1)
        T.factor()
        with pytest.raises(ValueError, match="out shares memory with diag of the lines, must not"):
            T.solve(np.ones((1, 3, 3)), out=T.diag.reshape(-1)[:9].reshape(1, 3, 3))


@pytest.mark.parametrize(("make", "options"), MADE.values(), ids=MADE)
def test_preconditioners(queue, rng, make, options):
    M, along = scattered(rng, LENGTHS, 3, np.float64)
    P, n = make(M, along, queue=queue, **options), M.shape[0]
    for rhs in (random(rng, (n,), np.float64), random(rng, (n, 2), np.float64), random(rng, (n,), np.complex128)):
        x = P.solve(rhs)
        for where in {None, queue}:
            given, out = put(rhs, where), put(0 * rhs, where)
            assert P.solve(given, out=out) is out and same_bits(get(out), x) and same_bits(get(given), rhs)
            assert P.solve(given, out=given) is given and same_bits(get(given), x)
            refuses(P.solve, out, put(rhs, where), queue)
    single = rhs.astype(np.complex64)  # of which the solution is of another type
    out = np.zeros(n, np.complex128)
    assert P.solve(single, out=out) is out and same_bits(out, P.solve(single))
    with pytest.raises(TypeError, match="out: dtype is complex64, must be complex128"):
        P.solve(single, out=single)


@pytest.mark.parametrize("scheme", ["jacobi", "gauss-seidel"])
def test_starts(queue, rng, scheme):
    M, along = scattered(rng, LENGTHS, 3, np.float64)
    S = cla.LineRelaxation(M, along, queue=queue, scheme=scheme, sweeps=2)
    rhs, x0 = random(rng, (2, M.shape[0]), np.float64)
    x = S.solve(rhs, x0)
    for where in {None, queue}:
        r, start, out = (put(a, where) for a in (rhs, x0, x0))
        assert S.solve(r, start, out=out) is out and same_bits(get(out), x)
        assert same_bits(get(r), rhs) and same_bits(get(start), x0)
        assert S.solve(r, start, out=start) is start and same_bits(get(start), x)
        start = put(x0, where)
        assert S.solve(r, start, out=r) is r and same_bits(get(r), x) and same_bits(get(start), x0)
        long = put(np.zeros(len(rhs) + 1), where)
        with pytest.raises(ValueError, match="out shares memory with x0, must be the same or apart from it"):
            S.solve(put(rhs, where), long[1:], out=long[:-1])
        assert not get(long).any()


@pytest.mark.parametrize(("make", "options"), MADE.values(), ids=MADE)
def test_nothing_is_allocated(rng, make, options):
    """Calls allocate nothing but views: work arrays are there from the call before."""
    M, along = scattered(rng, [150] * 4, 3, np.float64)
    P, r = make(M, along, **options), random(rng, (M.shape[0],), np.float64)
    out = P.solve(r)
    tracemalloc.start()
    P.solve(r, out=out)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < r.nbytes / 2


@pytest.mark.parametrize("function", [
    cla.BlockTridiag.__init__, cla.BlockTridiag.from_packed, cla.BlockTridiag.factor, cla.BlockTridiag.refactor,
    cla.BlockTridiag.solve, cla.BlockTridiag.solve_rows, cla.LinePreconditioner.__init__, cla.LinePreconditioner.solve,
    cla.LinePreconditioner.update, cla.LineRelaxation.__init__, cla.LineRelaxation.solve, cla.LineRelaxation.update,
])  # fmt: skip
def test_arguments_by_keyword(function):
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("threads", "wait_for", "queue", "out", "parts", "periodic", "storage"):
            assert parameter.kind is parameter.KEYWORD_ONLY, name
