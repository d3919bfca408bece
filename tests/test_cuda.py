"""Arrays in CUDA memory: of the libraries that are there, or else of a stand-in for one on an OpenCL device."""

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import compactla as cla
from cases import ON_PACKS, slow
from compactla import foreign, linalg, search
from compactla.calls import notes
from compactla.cuda import arrays as cuda_arrays
from compactla.cuda import compile as compiler
from compactla.cuda import driver, program
from compactla.gpu import arrays as gpu_arrays
from compactla.gpu import lines as gpu_lines
from compactla.gpu import run
from compactla.gpu.tuning import choices
from cuda_libraries import LIBRARIES, available
from rows import MODELS, OTHER, ROUTINES, check, known, own

COMPILED = program.compiled  # which the stand-in replaces
pytestmark = pytest.mark.filterwarnings("default")  # of the libraries


@pytest.fixture(scope="module", params=available() or ["stand-in"], ids=lambda name: f"opencl-{name}")
def library(request):
    with pytest.MonkeyPatch.context() as patch:
        yield LIBRARIES[request.param](patch)


@pytest.fixture
def there(library):
    return library.array


def close(library, x, expected, tolerance=1e-10):
    """x is an array of the library, in the shape and type that NumPy's result has, and equal but for rounding."""
    assert isinstance(x, library.kind)
    found = library.numpy(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(abs(expected).max(initial=0), 1))


@pytest.fixture
def stacks(rng):
    return rng.standard_normal((40, 3, 3)) + 3 * np.eye(3), rng.standard_normal((40, 3, 2))


@pytest.mark.parametrize("name", [name if name in (*MODELS, "getrf", "geqrf") else slow(name) for name in ROUTINES])
def test_routines(library, name, rng):
    check(name, rng, known(cla.routine.named(name)), OTHER[own(name).char], queue=cla.pack(there_is(library)).queue)


def there_is(library):
    """A stack of one matrix, to say where others live."""
    return library.array(np.ones((1, 1, 1)))


def test_packs(library, there, stacks):
    a, b = stacks
    A, B = cla.pack(there(a)), cla.pack(there(b), vlen=32)
    assert (A.shape, A.vlen, A.dtype) == (a.shape, 32, np.float64) and "cuda" in repr(A)
    C = cla.Pack.zeros(40, 3, 2, queue=library.device)
    assert cla.gemm(A, B, C) is C
    close(library, C.unpack(), a @ b)
    close(library, A.T.unpack(), a.swapaxes(1, 2))
    close(library, A[1:, :2].unpack(), a[:, 1:, :2])
    np.testing.assert_array_equal(A.to("cpu").unpack(), a)
    np.testing.assert_array_equal([A[3], A.copy()[-1]], a[[3, -1]])
    close(library, (A @ B).unpack(), a @ b)
    close(library, (2 * A - A @ there(a[0])).unpack(), 2 * a - a @ a[0])
    close(library, cla.pack(a).to(A).unpack(), a)
    close(library, cla.pack(a, queue=library.device).unpack(), a)
    info = cla.getrfnp(A)
    assert isinstance(info, library.kind) and not library.numpy(info).any()
    close(library, cla.nrm2(B), np.linalg.norm(b, axis=1))
    if library.writes:
        again = cla.Pack(C.data, 40)
        close(library, again.unpack(), a @ b)
        cla.scal(2.0, again)
        close(library, C.unpack(), 2 * (a @ b))
        out = there(np.zeros((40, 3, 2)))
        assert C.unpack(out=out) is out
        close(library, out, 2 * (a @ b))
        close(library, cla.gemm(there(a[0]), B, C).unpack(), a[0] @ b)
        given = there(np.ones(40, np.int32))
        assert cla.getrfnp(cla.pack(there(a)), info=given) is given and not library.numpy(given).any()


def test_ordinary_products(library, there, stacks):
    a, b = stacks
    x, y = there(a), there(b)
    close(library, linalg.matmul(x, y), a @ b)
    if not library.writes:
        with pytest.raises(ValueError, match="C is read-only"):
            cla.gemm(x, y, there(np.zeros((40, 3, 2))))
        return
    c = there(np.ones((40, 3, 2)))
    assert cla.gemm(x, y, c, alpha=2, beta=1) is c
    close(library, c, 2 * (a @ b) + 1)
    several = [there(np.zeros((3, 2))) for _ in range(3)]
    assert cla.gemm([there(m) for m in a[:3]], [there(m) for m in b[:3]], several) is several
    for found, m, n in zip(several, a, b, strict=False):
        close(library, found, m @ n)
    with pytest.raises(ValueError, match="C shares memory with A"):
        cla.gemm(x, x, x)


def test_routines_on_ordinary_arrays(library, there, stacks):
    a, b = stacks
    L, x = np.tril(a) + 9 * np.eye(3), there(b)
    if not library.writes:
        with pytest.raises(ValueError, match="B is read-only"):
            cla.trsm(there(L), x)
        return
    assert cla.trsm(there(L), x) is x
    close(library, x, np.linalg.solve(L, b))
    assert cla.trmm(there(L[0]), x, alpha=2) is x
    close(library, x, 2 * L[0] @ np.linalg.solve(L, b))
    c = there(np.zeros((40, 3, 3)))
    assert cla.syrk(there(b), c, uplo="U") is c
    close(library, c, np.triu(b @ b.swapaxes(1, 2)))
    with pytest.raises(ValueError, match="B shares memory with A"):
        cla.trsm(c, c)
    with pytest.raises(TypeError, match="A is a ndarray, must be an array on the device"):
        cla.trsm(a, c)


SPECTRAL = {"svd", "lstsq", "pinv"}  # by kernels that take longest to compile
FUNCTIONS = "solve", "inv", "det", "cholesky", "eigh", "svd", "qr", "lstsq", "pinv", "slogdet"


@pytest.mark.parametrize("name", [slow(name) if name in SPECTRAL else name for name in FUNCTIONS])
def test_linalg(library, there, stacks, name):
    a, b = stacks
    function, expected = getattr(linalg, name), getattr(np.linalg, name)
    if name in ("solve", "lstsq"):
        found = function(there(a), there(b))
        found = found[0] if name == "lstsq" else found
        return close(library, found, np.linalg.solve(a, b))
    a = a @ a.swapaxes(1, 2) if name in ("cholesky", "eigh") else a
    found = function(there(a))
    if name == "qr":
        return close(library, linalg.matmul(*found), a)
    parts = {"eigh": 1, "svd": 1, "slogdet": 2}.get(name)
    if parts is None:
        return close(library, found, expected(a))
    which = slice(1, 2) if name == "svd" else slice(0, parts)
    for x, y in zip(found[which], expected(a)[which], strict=True):
        close(library, x, y)
    return None


# Functions, and NumPy's results of the same arrays: square matrices and right-hand sides.
CALLS = {
    "solve": (linalg.solve, np.linalg.solve),
    "solve, nan": (functools.partial(linalg.solve, on_error="nan"), np.linalg.solve),
    "vector": (lambda a, b: linalg.solve(a, b[0, :, 0]), lambda a, b: np.linalg.solve(a, b[0, :, :1])[..., 0]),
    "transposed": (lambda a, b: linalg.inv(a[::2]), lambda a, b: np.linalg.inv(a[::2])),
    "one": (lambda a, b: linalg.det(a[3]), lambda a, b: np.linalg.det(a[3])),
    "slogdet": (lambda a, b: tuple(linalg.slogdet(a)), lambda a, b: tuple(np.linalg.slogdet(a))),
    "eigvalsh": (lambda a, b: linalg.eigvalsh(a), lambda a, b: np.linalg.eigvalsh(a)),
    "cholesky": (lambda a, b: linalg.cholesky(a, upper=True), lambda a, b: np.linalg.cholesky(a).swapaxes(1, 2)),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], np.linalg.solve),
    "pinv": (lambda a, b: linalg.pinv(b, rcond=1e-3), lambda a, b: np.linalg.pinv(b)),
    "svd": (lambda a, b: linalg.svd(b).S, lambda a, b: np.linalg.svd(b)[1]),
    "solve_triangular": (linalg.solve_triangular, lambda a, b: np.linalg.solve(np.triu(a), b)),
    "matmul": (linalg.matmul, np.matmul),
    "twice": (lambda a, b: linalg.matmul(a, a), lambda a, b: a @ a),
    "kron": (lambda a, b: cla.kron_apply((a[0], b[0]), a[:, :, :2]), lambda a, b: a[0] @ a[:, :, :2] @ b[0].T),
    "kron, out": (lambda a, b: cla.kron_apply((a[0], a[1]), a, b_like(a)), lambda a, b: a[0] @ a @ a[1].T),
    "gemm": (lambda a, b: cla.gemm(a, b, b * 1, alpha=2.0, beta=-1), lambda a, b: 2 * a @ b - b),
}


def b_like(a):
    """A new array like another."""
    return a * 0


@pytest.fixture
def live(library, collect):
    """Tells how many arrays there are, of the stand-in."""

    def count():
        collect()
        return library.machine.live if library.name == "stand-in" else 0

    return count


@pytest.mark.parametrize(
    "name", [name if name in ("solve", "one", "kron, out", "gemm") else slow(name) for name in CALLS]
)
def test_calls_that_are_made_again(library, there, rng, monkeypatch, live, name):
    """From the third call on, with arrays elsewhere, only kernels are launched."""
    call, expected = CALLS[name]
    if library.name == "jax" and name in ("gemm", "kron, out"):  # which write
        return
    kept, before = [], live()
    for number in range(5):
        x = rng.standard_normal((40, 3, 3))
        a, b = x @ x.swapaxes(1, 2) + np.eye(3), rng.standard_normal((40, 3, 2))
        given = there(a), there(b)
        with monkeypatch.context() as patch:
            if number > 1 and library.name != "jax":  # with which all calls are ordinary ones
                patch.setattr(foreign, "adopt", None)
            found = call(*given)
        kept += *given, found  # so that others come elsewhere
        found, result = (x if isinstance(x, tuple) else (x,) for x in (found, expected(a, b)))
        for x, y in zip(found, result, strict=True):
            close(library, x, y, 1e-8)
    del kept, given, found, x, y
    constants = 1 if name in ("lstsq", "pinv") and library.name == "stand-in" else 0  # limits of singular values
    assert live() == before + constants


@pytest.mark.parametrize("name", [name if name in ("geqrf", "copy") else slow(name) for name in ON_PACKS])
def test_calls_with_packs_that_are_made_again(library, there, rng, monkeypatch, name, live):
    """Results of packs elsewhere in memory are those of packs on the CPU, without another look at the routine."""
    call, kept, before = ON_PACKS[name], [], live()
    for number in range(4):
        x = rng.standard_normal((40, 3, 3))
        a, b = x @ x.swapaxes(1, 2) + np.eye(3), rng.standard_normal((40, 3, 2))
        A, B = cla.pack(there(a)), cla.pack(there(b))
        with monkeypatch.context() as patch:
            if number > 1 and library.name != "jax":
                patch.setattr(run, "start", None)
                patch.setattr(gpu_arrays, "move", None)
            found = call(A, B)
        kept += A, B, found
        for x, y in zip(found, call(cla.pack(a), cla.pack(b)), strict=True):
            if isinstance(x, cla.Pack):
                close(library, x.unpack(), y.unpack())
            else:
                x = np.asarray(x) if type(x).__name__ == "Integers" else library.numpy(x)
                np.testing.assert_allclose(x, y, 1e-10, 1e-10)
    del kept, A, B, found, x, y
    assert live() == before


def test_transposed_packs_that_are_made_again(library, there, rng):
    for _ in range(4):
        a = rng.standard_normal((40, 3, 2))
        U, s, Vh, _ = cla.gesvd(cla.pack(there(a)))
        u, w, vh = map(library.numpy, (U.unpack(), s, Vh.unpack()))
        np.testing.assert_allclose(u * w[:, None] @ vh, a, atol=1e-12)
        assert U.data.shape == (-(-40 // U.vlen), 3, 2, U.vlen)
        np.testing.assert_array_equal(np.moveaxis(library.numpy(U.data), 3, 1).reshape(-1, 3, 2)[:40], u)


def test_what_differs_between_calls(library, there, stacks):
    """Arrays may begin anywhere, be the same ones, or come with other options; failures are told of as ever."""
    a, b = stacks
    for shift in 0, 1, 2, 3, 1, 1:
        x = there(np.concatenate([a, a], axis=2))[:, :, shift : shift + 3]
        close(library, linalg.matmul(x, x), library.numpy(x) @ library.numpy(x))
        close(library, linalg.matmul(x, there(b)), library.numpy(x) @ b)
    singular = a.copy()
    singular[7] = 0
    for given in a, a, a, singular, a:
        if given is singular:
            with pytest.raises(np.linalg.LinAlgError, match="1 of 40 matrices, at 7"):
                linalg.solve(there(given), there(b))
            x = library.numpy(linalg.solve(there(given), there(b), on_error="nan"))
            assert np.isnan(x[7]).all() and np.isfinite(np.delete(x, 7, axis=0)).all()
        else:
            close(library, linalg.solve(there(given), there(b)), np.linalg.solve(a, b))
            close(library, linalg.solve(there(given), there(b), on_error="nan"), np.linalg.solve(a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in singular, singular, a, a, a, singular, a:  # of which warnings tell
            lu = library.numpy(linalg.lu_factor(there(given))[0])
            for q in (3, 7):
                np.testing.assert_allclose(lu[q], scipy.linalg.lu_factor(given[q])[0], 1e-10, 1e-10)
    not_converged = a + a.swapaxes(1, 2)
    not_converged[[3, 5], 0, 0] = np.nan
    for on_error in "raise", "nan", "nan", "nan":
        if on_error == "raise":
            with pytest.raises(np.linalg.LinAlgError, match="2 of 40 matrices, at 3, 5"):
                linalg.eigh(there(not_converged))
        else:
            w, v = map(library.numpy, linalg.eigh(there(not_converged), on_error=on_error))
            failed = np.isnan(w).all(1) & np.isnan(v).all((1, 2))
            assert [*np.flatnonzero(failed)] == [3, 5] and np.isfinite(w[~failed]).all()


def test_errors_are_those_of_the_first_call(library, there, stacks):
    a, b = stacks
    for _ in range(4):
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            linalg.inv(there(b))
        with pytest.raises(TypeError, match="is of int32, must be of float64"):
            cla.kron_apply((there(a[0].astype(np.int32)), there(a[0])), there(a))
        assert notes.state.notes is None
        close(library, linalg.inv(there(a)), np.linalg.inv(a))


def test_single_precision(library, there, stacks):
    """Stacks of single precision are computed in it, as libraries do, unless double is asked for."""
    a, b = (x.astype(np.float32) for x in stacks)
    for _ in range(3):
        x, same, double = (linalg.solve(there(a), there(b), **options) for options in SETTINGS)
        x, same, double = map(library.numpy, (x, same, double))
        np.testing.assert_array_equal(x, same)
        assert (x != double).any() and x.dtype == double.dtype == np.float32
        np.testing.assert_allclose(double, np.linalg.solve(a, b), 1e-5)


@pytest.mark.slow
def test_ranks_in_single_precision(library, there, stacks):
    """Singular values count as zero by the rounding of single precision."""
    a = stacks[0].astype(np.float32) @ np.diag(np.float32([1, 1, 0]))
    for _ in range(3):
        X = library.numpy(linalg.pinv(there(a)))
        np.testing.assert_allclose(X, np.linalg.pinv(a.astype("d"), 1e-6), 1e-2, 1e-2)


SETTINGS = {}, {"compute": "same"}, {"compute": "double"}


def test_errors_of_matrices(library, there, stacks):
    a, b = stacks
    a[7] = 0
    with pytest.raises(np.linalg.LinAlgError, match="1 of 40 matrices, at 7"):
        linalg.solve(there(a), there(b))
    x = linalg.solve(there(a), there(b), on_error="nan")
    good = np.arange(40) != 7
    found = library.numpy(x)
    assert np.isnan(found[7]).all()
    np.testing.assert_allclose(found[good], np.linalg.solve(a[good], b[good]), 1e-9)


def test_arguments(library, there, stacks):
    a, b = stacks
    A = cla.pack(there(a))
    with pytest.raises(TypeError, match="B is a"):
        cla.gemm(A, b, A)
    with pytest.raises(ValueError, match="wait_for"):
        cla.gemm(A, A, cla.Pack.zeros(40, 3, 3, queue=A.queue), wait_for=[])
    with pytest.raises(ValueError, match="threads"):
        cla.pack(there(a), threads=2)
    with pytest.raises(TypeError, match="b is a"):
        linalg.solve(there(a), b)
    with pytest.raises(TypeError, match="a: dtype"):
        cla.pack(there(a.astype(np.int32)))


def test_errors_of_allocators(library, monkeypatch):
    """Errors that do not mention memory are not taken for a lack of it."""
    queue = cla.pack(there_is(library)).queue
    for error, kind in (
        (RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB"), MemoryError),
        (RuntimeError("RESOURCE_EXHAUSTED: Failed to allocate"), MemoryError),
        (MemoryError("there is no more"), MemoryError),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), RuntimeError),
    ):
        monkeypatch.setattr(queue.library, "empty", functools.partial(fail, error))
        with pytest.raises(kind, match=str(error)) as caught:
            queue.empty((3,), np.float64)
        assert (caught.type, caught.value is error) == (kind, kind is RuntimeError)


def fail(error, *_):
    raise error


def lines(rng):
    diag = rng.random((5, 8, 3, 3)) + 5 * np.eye(3)
    return rng.random((5, 7, 3, 3)), diag, rng.random((5, 7, 3, 3)), rng.random((5, 8, 3))


def test_block_tridiagonal_lines(library, there, rng):
    *blocks, rhs = lines(rng)
    host, T = cla.BlockTridiag(*blocks), cla.BlockTridiag(*map(there, blocks))
    host.factor()
    info = T.factor()
    assert not library.numpy(info).any() and T.report.info.shape == (5,) and isinstance(T.info, library.kind)
    close(library, T.solve(there(rhs)), host.solve(rhs))
    assert isinstance(T.solve(rhs), np.ndarray)
    if library.writes:
        x = there(rhs)
        assert T.solve(x, out=x) is x
        close(library, x, host.solve(rhs))
    R = cla.BlockTridiag(*map(there, blocks), parts=2)
    assert not np.asarray(R.factor()).any()
    close(library, R.solve(there(rhs)), host.solve(rhs))


def test_lines_in_more_local_memory(library, there, rng, monkeypatch):
    """Large blocks are in shorter packs, and launches provide the local memory that a compiler does not."""
    rooms, start = [], driver.launch
    monkeypatch.setattr(gpu_lines, "WIDE", 2)
    monkeypatch.setattr(search, "LOCAL_BYTES", 1024)
    monkeypatch.setattr(driver, "launch", lambda *args: (rooms.append(args[-1]), start(*args)))
    *blocks, rhs = lines(rng)
    device = cla.pack(there_is(library)).queue.device
    choice = {"kernel": "factor_team", "LANES": 16, "COLUMNS": 2, "TEAM": 2, "AHEAD": 6}
    monkeypatch.setitem(choices.overrides, (device, "factor"), choice)
    monkeypatch.setitem(choices.overrides, (device, "factor_few"), choice)
    host, T = cla.BlockTridiag(*blocks), cla.BlockTridiag(*map(there, blocks))
    assert T.vlen == 16 and not library.numpy(T.factor()).any()
    host.factor()
    assert (2 * 2 + 6 * 3) * 3 * 16 * 8 + 16 in rooms
    close(library, T.solve(there(rhs)), host.solve(rhs))


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("b", [3, *range(7, 17)])
def test_many_lines(library, there, rng, b, char):
    """More than few, in packs of which the last is not full, one line of them singular."""
    if library.name == "stand-in" and b > 3:  # compilers for CPUs take long for what is made for GPUs
        return
    nlines, K, bad = 40 if library.name == "stand-in" else 1300, 4, 7
    E, D, F = (rng.standard_normal((nlines, k, b, b)).astype(char) / b for k in (K - 1, K, K - 1))
    D += 3 * np.eye(b, dtype=char)
    D[bad, 2] = E[bad, 1] = 0
    rhs = rng.standard_normal((nlines, K, b)).astype(char)
    T = cla.BlockTridiag(*map(there, (E, D, F)))
    info = library.numpy(T.factor())
    assert info[bad] == 2 * b + 1 and not np.delete(info, bad).any()
    x = library.numpy(T.solve(there(rhs)))[..., None]
    residual = D @ x - rhs[..., None]
    residual[:, 1:] += E @ x[:, :-1]
    residual[:, :-1] += F @ x[:, 1:]
    assert np.abs(np.delete(residual, bad, axis=0)).max() < 100 * np.finfo(char).eps * np.abs(rhs).max()


@pytest.mark.parametrize("relaxed", [False, True])
def test_preconditioners(library, there, rng, relaxed):
    M, lines = heat(rng), np.arange(12).reshape(3, 4)
    kind = cla.LineRelaxation if relaxed else cla.LinePreconditioner
    host, P = kind(M, lines), kind(M, lines, queue=library.device)
    r = rng.random(24)
    close(library, P @ there(r), host @ r)
    close(library, P.solve(there(r)), host.solve(r))
    np.testing.assert_allclose(P.solve(r), host.solve(r), 1e-12)
    N = M * 2.0
    host.update(N)
    P.update(there(N.data))
    close(library, P @ there(r), host @ r)


def test_devices_that_share_lines(library, there, rng):
    M, lines = heat(rng), np.arange(12).reshape(3, 4)
    one, P = (cla.LinePreconditioner(M, lines, queue=queue) for queue in (library.device, [library.device] * 2))
    r = rng.random(M.shape[0])
    assert (P @ r).tobytes() == (one @ r).tobytes()
    assert not P.update(M).any()
    with pytest.raises(TypeError, match="P lives on several devices"):
        P.solve(there(r))


def heat(rng):
    """A matrix of 2 x 2 blocks on a grid of 3 x 4."""
    band = scipy.sparse.diags_array([-1.0, 2.5, -1.0], offsets=[-1, 0, 1], shape=(12, 12))
    far = scipy.sparse.diags_array([-0.1, -0.1], offsets=[-4, 4], shape=(12, 12))
    return scipy.sparse.kron(band + far, np.eye(2) + 0.1 * rng.random((2, 2)), format="bsr")


@pytest.mark.parametrize("pivoting", [slow(False), slow(True)])
def test_bands(library, there, rng, pivoting):
    lower, diag, upper = rng.random((9, 19)), rng.random((9, 20)) + 3, rng.random((9, 19))
    rhs = rng.random((9, 20))
    host, T = (cla.Tridiag(*map(f, (lower, diag, upper)), pivoting=pivoting) for f in (np.asarray, there))
    close(library, T.solve(there(rhs)), host.solve(rhs))
    assert not library.numpy(T.factor()).any()
    close(library, T.solve(there(rhs)), host.solve(rhs))
    ab = np.stack([np.zeros((9, 20)) + 0.3, np.zeros((9, 20)) + 4], axis=1)
    close(library, cla.BandedSPD(there(ab)).solve(there(rhs)), cla.BandedSPD(ab).solve(rhs))


@pytest.mark.parametrize("rows", [4, 200])
def test_kronecker_products(library, there, rng, rows):
    A, B, X = rng.random((rows, 3)), rng.random((2, 3)), rng.random((7, 3, 3))
    close(library, cla.kron_apply((there(A), there(B)), there(X)), np.einsum("ij,kl,pjl->pik", A, B, X))
    if library.writes:
        out = there(np.ones((7, rows, 2)))
        assert cla.kron_apply((there(A), there(B)), there(X), out=out) is out
        close(library, out, np.einsum("ij,kl,pjl->pik", A, B, X))


def test_sparse_batches(library, there, rng):
    pattern = scipy.sparse.csr_array(heat(rng).tocsr())
    data, b = pattern.data * (1 + rng.random((6, 1))), rng.random((6, 24))
    host = cla.BatchCSR((data, pattern.indices, pattern.indptr))
    A = cla.BatchCSR((there(data), pattern.indices, pattern.indptr))
    close(library, A @ there(b), host @ b)
    F = cla.BatchLU(A)
    F.factor()
    close(library, F.solve(there(b)), cla.krylov.gmres(host, b, rtol=1e-13)[0], 1e-9)
    x, report = cla.krylov.bicgstab(A, there(b), rtol=1e-12, M=cla.krylov.ILU0(A))
    close(library, x, cla.krylov.gmres(host, b, rtol=1e-13)[0], 1e-9)
    assert np.asarray(report.converged).all()


@pytest.mark.parametrize("shape", [(0, 3, 3), (1, 1, 1), (33, 5, 5), (2, 3, 0), (7, 0, 0)])
def test_odd_shapes(library, there, rng, shape):
    a = rng.random(shape) + np.eye(*shape[1:])
    A = cla.pack(there(a))
    close(library, A.unpack(), a)
    B = cla.pack(there(a))
    if shape[1] == shape[2]:
        C = cla.Pack.zeros(*shape, queue=A.queue)
        close(library, cla.gemm(A, B, C).unpack(), a @ a)
        assert library.numpy(cla.getrfnp(A)).shape == shape[:1]
        if a.size:
            close(library, linalg.inv(there(a)), np.linalg.inv(a), 1e-8)


def test_strides(library, there, stacks):
    if library.name == "jax":  # which has no strides
        return
    a, b = stacks
    x = there(np.concatenate([a, a], axis=2))[:, :, :3]
    close(library, cla.pack(x).unpack(), a)
    close(library, linalg.solve(x, there(b)), np.linalg.solve(a, b))
    close(library, linalg.inv(x[::2]), np.linalg.inv(a[::2]))


def test_threads(library, there, stacks):
    a, b = stacks
    x, y, failed = there(a), there(b), []
    expected = np.linalg.solve(a, b)

    def work():
        try:
            for _ in range(5):
                close(library, linalg.solve(x, y), expected)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def captured(library, function):
    """A function that replays the CUDA graph of a call."""
    if library.name == "torch":
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        return graph.replay
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        function()
        graph = stream.end_capture()
    return lambda: (graph.launch(stream), stream.synchronize())


def test_graphs(library, there, stacks, rng):
    a, b = stacks
    *blocks, rhs = lines(rng)
    M, r = heat(rng), rng.random(24)
    A, B, C = cla.pack(there(a)), cla.pack(there(b)), cla.pack(there(np.zeros((40, 3, 2))))
    x, y, z = (there(np.zeros_like(v)) for v in (rhs, r, b)) if library.writes else (None,) * 3
    T, P = cla.BlockTridiag(*map(there, blocks)), cla.LinePreconditioner(M, [range(12)], queue=library.device)
    T.factor()
    given = there(rhs), there(r), there(a), there(b)

    def everything():
        cla.gemm(A, B, C)
        T.solve(given[0], out=x)
        P.solve(given[1], out=y)
        cla.gemm(given[2], given[3], z)

    if library.name == "stand-in":
        everything()
        library.machine.is_capturing = True
        try:
            everything()  # uploads nothing
            with pytest.raises(RuntimeError, match="CUDA graph"):
                cla.pack(a, queue=library.device)
        finally:
            library.machine.is_capturing = False
    elif library.writes:
        everything()
        replay = captured(library, everything)
        for found in (x, y, z, C.data):
            found[...] = 0
        replay()
    else:
        return
    host, H = cla.BlockTridiag(*blocks), cla.LinePreconditioner(M, [range(12)])
    host.factor()
    close(library, C.unpack(), a @ b)
    close(library, x, host.solve(rhs))
    close(library, y, H @ r)
    close(library, z, a @ b)


def test_streams(library, there, stacks):
    if library.name == "stand-in":
        A = cla.pack(there(stacks[0]))
        library.machine.current = 11
        cla.getrfnp(A)
        assert library.machine.launched[-1][-1] == 11
        library.machine.current = 7
    elif library.name == "torch":
        import torch

        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.ones(100_000, 3, 3, device="cuda", dtype=torch.float64).cumsum(0) + torch.eye(3, device="cuda")
            found = linalg.inv(x)
            expected = torch.linalg.inv(x)
        stream.synchronize()
        torch.testing.assert_close(found, expected)
    elif library.name == "cupy":
        import cupy

        with cupy.cuda.Stream(non_blocking=True) as stream:
            x = cupy.cumsum(cupy.ones((100_000, 3, 3)), axis=0) + cupy.eye(3)
            found = cla.pack(x).unpack()
        stream.synchronize()
        assert bool((found == x).all())
    else:
        import jax.numpy as jnp

        for _ in range(20):  # memory goes from one to the next
            x = jnp.cumsum(jnp.ones((100_000, 3, 3)), axis=0) + jnp.eye(3)
            x = linalg.inv(linalg.inv(x)) * 1.0
        assert float(abs(x - jnp.cumsum(jnp.ones((100_000, 3, 3)), axis=0) - jnp.eye(3)).max()) < 1e-3


def test_copies_and_pickles(library, there, stacks, rng):
    a, _ = stacks
    close(library, pickle.loads(pickle.dumps(cla.pack(there(a)))).unpack(), a)
    *blocks, b = map(there, lines(rng))
    T = cla.BlockTridiag(*blocks)
    T.factor()
    P = cla.LinePreconditioner(scipy.sparse.eye_array(6, format="bsr"), [[0, 1, 2], [3, 4, 5]], queue=T.queue)
    for copied in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        U, Q = copied(T), copied(P)
        assert U.queue is T.queue and Q.queue is P.queue
        close(library, U.solve(b), library.numpy(T.solve(b)))
        np.testing.assert_array_equal(Q @ np.ones(6), np.ones(6))


def test_nothing_is_seen_of_our_own(library, there, stacks, rng):
    a, b = stacks
    ipiv, info = cla.getrf(cla.pack(there(a)))
    w, _ = cla.syev(cla.pack(there(a)))
    T = cla.BlockTridiag(*map(there, lines(rng)[:3]))
    seen = [ipiv.data, info, w, T.lower, T.diag, T.factor(), T.info, cla.dot(*[cla.pack(there(b))] * 2)]
    assert not any(isinstance(x, cuda_arrays.Array) for x in seen)
    assert np.asarray(ipiv).shape == (40, 3)


def test_functions_of_users(library, there, rng):
    """Operators, preconditioners and callbacks see the library's arrays, and may call anything with them."""
    A = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(24, 24)).tocsr()
    b, dense = rng.random((24, 2)), there(rng.random((3, 3)) + 3 * np.eye(3))
    expected, seen = np.linalg.solve(A.toarray(), b[:, 0]), []

    def look(x, y):
        seen.extend([x, linalg.inv(dense)])
        return y

    def solve(method, *args, **keywords):
        x, report = method(*args, rtol=1e-12, **keywords)
        close(library, x, expected, 1e-9)
        assert report.converged

    solve(cla.krylov.cg, A, there(b)[:, 0], M=lambda x: look(x, x * 0.25), callback=lambda norm: look(dense, None))
    solve(cla.krylov.gmres, there(A.toarray()), there(b[:, 0]))
    solve(cla.krylov.cg, lambda x: there(np.stack([A @ library.numpy(x)] * 2, 1))[:, 0], there(b[:, 0]))  # strided
    assert len(seen) > 2 and all(isinstance(x, library.kind) for x in seen)
    with pytest.raises(KeyError):
        cla.krylov.cg(lambda x: {}[1], there(b[:, 0]))
    with pytest.raises(TypeError, match="A has made a ndarray"):
        cla.krylov.cg(lambda x: b[:, 0], there(b[:, 0]))
    assert isinstance(linalg.inv(dense), library.kind)


def test_functions_of_users_for_batches(library, there, rng):
    b, seen = rng.random((6, 24)), []

    def twice(X):
        seen.append(X.data)
        return cla.scal(2.0, cla.pack(X.unpack(), vlen=X.vlen))

    x, _ = cla.krylov.cg(twice, cla.pack(there(b[:, :, None])))
    close(library, x.unpack(), b[:, :, None] / 2)
    assert all(isinstance(data, library.kind) for data in seen)
    A = cla.BatchCSR((there(rng.random((6, 4))), [0, 1, 2, 3], [0, 1, 2, 3, 4]))
    assert isinstance(A @ b[:, :4], np.ndarray) and isinstance(A.toarray(), np.ndarray)


def test_what_is_read_only(library, there, stacks, rng):
    a, b = stacks

    def read_only(values):
        x = there(values)
        if library.name == "stand-in":
            x.is_writeable = False
        return x

    if library.name not in ("stand-in", "jax"):
        return
    A, T = cla.pack(there(a)), cla.Tridiag(*map(there, (b[:, 1:, 0], b[:, :, 0] + 5, b[:, 1:, 1])))
    *blocks, rhs = lines(rng)
    L = cla.BlockTridiag(*map(there, blocks))
    L.factor()
    calls = {
        "info": lambda: cla.getrfnp(A, info=read_only(np.zeros(40, np.int32))),
        "x": lambda: L.solve_rows(there(rhs.reshape(40, 3, 1)), read_only(rhs.reshape(40, 3, 1))),
        "out": lambda: L.solve(there(rhs), out=read_only(rhs)),
        "out of packs": lambda: A.unpack(out=read_only(a)),
        "out of bands": lambda: T.solve(there(b[:, :, 0]), out=read_only(b[:, :, 0])),
        "out of products": lambda: cla.kron_apply((there(a[0]),), there(b[:, :, 0]), out=read_only(b[:, :, 0])),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"{name.split()[0]} is read-only"):
            call()


def test_half_precision(library, there, stacks):
    a, b = (x.astype(np.float16) for x in stacks)
    for call in (lambda: cla.pack(there(a)), lambda: linalg.solve(there(a), there(b)), lambda: linalg.inv(there(a))):
        with pytest.raises(TypeError, match="float16"):
            call()


def test_decorated_functions(library, there, stacks):
    assert [*inspect.signature(cla.pack).parameters][:2] == ["a", "vlen"] and cla.pack.__doc__.startswith("Pack a")
    assert pickle.loads(pickle.dumps(cla.kron_apply)) is cla.kron_apply
    with pytest.raises(TypeError, match="positional arguments"):
        cla.pack(*[there(stacks[0])] * 9)


def test_warnings_name_the_caller(rng):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        cla.LinePreconditioner(heat(rng), [[*range(0, 12, 2), *range(1, 12, 2)]])
    assert [w.filename for w in found] == [__file__]


def test_streams_share_no_work_space(library, there, rng):
    if library.name != "stand-in":
        return
    *blocks, rhs = lines(rng)
    T = cla.BlockTridiag(*map(there, blocks))
    T.factor()
    spare, machine = T._lines._spare, library.machine
    try:
        for stream in (7, 11, 7):
            machine.current = stream
            T.solve(there(rhs))
        assert sorted(stream for stream, _ in spare._kept) == [7, 11]
        machine.current, machine.is_capturing = 12, True
        works = [work for _, work in spare._kept]
        assert spare.take() in works  # a graph cannot allocate
    finally:
        machine.current, machine.is_capturing = 7, False


@pytest.fixture
def cache(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(program, "folder", lambda: tmp_path / "cuda")
    monkeypatch.setattr(compiler, "version", lambda: (13, 5))
    monkeypatch.setattr(compiler, "compile", lambda text, _: made.append(text) or b"code of " + text.encode())
    return made, tmp_path / "cuda"


def test_code_on_disk(cache, monkeypatch):
    made, folder = cache
    get = COMPILED
    assert get("a", ["-O"]) == get("a", ["-O"]) == b"code of a" and made == ["a"]
    get("a", ["-G"])
    get('#include "lane.h"', ["-O"])
    monkeypatch.setattr(compiler, "version", lambda: (13, 6))
    get("a", ["-O"])
    assert len(made) == len([*folder.iterdir()]) == 4
    for damage in (b"", b"some", None):
        for file in folder.iterdir():
            content = file.read_bytes()
            file.write_bytes(content[:-1] + b"?" if damage is None else damage)
        made.clear()
        assert get("a", ["-O"]) == b"code of a" == get("a", ["-O"]) and made == ["a"]


def test_no_room_on_disk(cache, monkeypatch):
    made, folder = cache
    folder.write_text("a file where a folder should be")
    assert COMPILED("a", []) == COMPILED("a", []) == b"code of a" and made == ["a", "a"]


def test_no_compiler(monkeypatch):
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

    def missing():
        raise RuntimeError("libnvrtc.so is not there")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", missing)
    with pytest.raises(ImportError, match="pip install cuda-bindings nvidia-cuda-nvrtc"):
        compiler.compile("", [])


def test_version_of_the_compiler(monkeypatch):
    """Its package's, without loading it, or else its own."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    monkeypatch.setattr(nvrtc, "nvrtcVersion", lambda: (0, 13, 5))
    version = compiler.version.__wrapped__
    monkeypatch.setattr(compiler.metadata, "version", lambda name: f"13.5 of {name}")
    assert version() == ("nvidia-cuda-nvrtc", "13.5 of nvidia-cuda-nvrtc")
    monkeypatch.delattr(compiler.metadata, "version")
    assert version() == (13, 5)


CPU_TENSORS = """
import sys
import numpy as np

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "cuda" or name == "compactla.cuda.driver":
            raise ImportError(name)

class Tensor:
    is_cuda, shape, ndim, dtype = False, (5, 3, 3), 3, np.dtype(float)
    def __array__(self, dtype=None, copy=None):
        return np.ones(self.shape)
    def __dlpack_device__(self):
        return 1, 0

Tensor.__module__ = "torch"
sys.meta_path.insert(0, Without())
import compactla as cla
assert cla.pack(Tensor()).queue is None
"""


def test_tensors_in_memory_of_the_cpu_need_nothing():
    subprocess.run([sys.executable, "-c", CPU_TENSORS], check=True, timeout=100)
