"""Functions on stacks of larger matrices in CUDA memory, by PyTorch and JAX: on the CPU, under a stand-in for CUDA."""

import functools

import numpy as np
import pytest

from cases import exhaustive, slow
from compactla import foreign, linalg
from compactla.calls import notes
from compactla.cuda import functions
from compactla.cuda.functions import SMALLEST
from compactla.cuda.queues import Queue
from compactla.gpu.linalg import products, stacks
from cuda_libraries import StandIn

NM, N, R = 3, 35, 2  # so few that NumPy computes on the CPU


def of_torch():
    return pytest.importorskip("torch").from_numpy


def of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray


def of_numpy():
    """What CuPy's functions have in common with NumPy's."""
    return functions.Functions("numpy", "scipy.linalg")


@pytest.fixture(
    params=[(of_torch, functions.OfTorch), slow((of_jax, functions.OfJAX)), slow((lambda: np.asarray, of_numpy))],
    ids=["torch", "jax", "numpy"],
)
def library(request, monkeypatch):
    """The stand-in, whose larger matrices become those of a library on the CPU; `called` is what that computes."""
    find, kind = request.param
    make, standin = find(), StandIn(monkeypatch)
    compute, standin.called = functions.Borrowed.found, []

    def found(self, given, wait):
        standin.called.append(self.compute.__name__)
        with monkeypatch.context() as patch:
            patch.setattr(notes.state, "notes", None)  # to which copies are nothing
            made, failed = compute(self, [make(x.numpy()) for x in given], wait)
        return [standin.array(on_host(x)) for x in made], None if failed is None else standin.array(on_host(failed))

    monkeypatch.setattr(functions.Borrowed, "found", found)
    monkeypatch.setitem(functions.KINDS, "others", kind)
    monkeypatch.setattr(functions, "_made", {})
    monkeypatch.setattr(stacks, "fused", lambda *_: None)  # which has kernels for larger matrices than these
    return standin


def on_host(x):
    return np.asarray(x.resolve_conj() if hasattr(x, "resolve_conj") else x)


UNIQUE = {
    "solve": linalg.solve,
    "solve, one": lambda a, b: linalg.solve(a[0], b),
    "solve, vector": lambda a, b: linalg.solve(a, b[0, :, 0]),
    "inv": lambda a, b: linalg.inv(a),
    "det": lambda a, b: linalg.det(a),
    "slogdet": lambda a, b: linalg.slogdet(a),
    "lu_factor": lambda a, b: linalg.lu_factor(a),
    "svdvals": lambda a, b: linalg.svdvals(a),
    "pinv": lambda a, b: linalg.pinv(a, rcond=0.1),
    "lstsq": lambda a, b: linalg.lstsq(a[:, :, :-1], b),
    "lstsq, rank": lambda a, b: linalg.lstsq(a, b, rcond=0.1),
    "lstsq, wide": lambda a, b: linalg.lstsq(a[:, :-1], b[:, :-1]),
}
UNIQUE |= {f"lu_solve, {k}": lambda a, b, k=k: linalg.lu_solve(linalg.lu_factor(a), b, k) for k in (0, 1, 2)}
UP_TO_SIGNS = {
    "qr": lambda a, b: linalg.qr(a),
    "qr, complete": lambda a, b: linalg.qr(a[:, :, :-1], "complete"),
    "qr, r": lambda a, b: linalg.qr(a, "r"),
    "svd": lambda a, b: linalg.svd(a[:, :, :-1], full_matrices=False),
    "svd, full": lambda a, b: linalg.svd(a),
}
for uplo in "LU":
    options = {"lower": uplo == "L"}
    UP_TO_SIGNS[f"eigh, {uplo}"] = lambda a, b, k=uplo: linalg.eigh(a, k)
    UNIQUE |= {
        f"eigvalsh, {uplo}": lambda a, b, k=uplo: linalg.eigvalsh(a, k),
        f"solve, sym, {uplo}": functools.partial(linalg.solve, assume_a="sym", **options),
        f"solve, her, {uplo}": functools.partial(linalg.solve, assume_a="her", **options),
    }
    for trans in "NTC":
        call = functools.partial(linalg.solve_triangular, trans=trans, **options)
        UNIQUE[f"solve_triangular, {uplo}, {trans}"] = call
        UNIQUE[f"solve_triangular, {uplo}, {trans}, unit"] = functools.partial(call, unit_diagonal=True)
DEFINITE = {
    "cholesky": lambda a, b: linalg.cholesky(a),
    "cholesky, upper": lambda a, b: linalg.cholesky(a, upper=True),
    "cho_solve": lambda a, b: linalg.cho_solve(linalg.cho_factor(a, lower=True), b),
    "cho_solve, upper": lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b),
    "solve, pos": functools.partial(linalg.solve, assume_a="pos"),
    "solve, pos, lower": functools.partial(linalg.solve, assume_a="pos", lower=True),
}


def operands(rng, char, definite=False):
    """Well-conditioned matrices, and right-hand sides."""
    a, b = rng.standard_normal((2, NM, N, N)), rng.standard_normal((2, NM, N, R))
    a, b = (x[0] + 1j * x[1] if char in "FD" else x[0] for x in (a, b))
    a = a @ a.conj().swapaxes(1, 2) / N if definite else a / np.sqrt(N)
    return (a + np.diag(np.linspace(2, 3, N))).astype(char), b.astype(char)


def listed(found):
    return found if isinstance(found, tuple) else (found,)


NAMES = [*UNIQUE, *UP_TO_SIGNS, *DEFINITE]
CASES = [(name, char) for k, name in enumerate(NAMES) for char in np.roll(list("fdFD"), k)]


@pytest.mark.parametrize(("name", "char"), [case if k % 4 == 0 else exhaustive(*case) for k, case in enumerate(CASES)])
def test_results(library, rng, name, char):
    """They are those of NumPy and SciPy."""
    call = next(calls[name] for calls in (UNIQUE, UP_TO_SIGNS, DEFINITE) if name in calls)
    a, b = operands(rng, char, name in DEFINITE)
    expected = listed(call(a, b))
    found = listed(call(library.array(a), library.array(b)))
    assert library.called
    tolerance = 2e-3 if char in "fF" else 1e-10
    for x, y in zip(found, expected, strict=True):
        x, y = (abs(z) if name in UP_TO_SIGNS else z for z in (library.numpy(x), np.asarray(y)))
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, tolerance, tolerance * max(1, abs(y[np.isfinite(y)]).max(initial=0)))


FAILING = {
    "solve": lambda a, b, k: linalg.solve(a, b, on_error=k),
    "solve, pos": lambda a, b, k: linalg.solve(a, b, assume_a="pos", on_error=k),
    "solve, sym": lambda a, b, k: linalg.solve(a, b, assume_a="sym", on_error=k),
    "inv": lambda a, b, k: linalg.inv(a, on_error=k),
    "cholesky": lambda a, b, k: linalg.cholesky(a, on_error=k),
    "solve_triangular": lambda a, b, k: linalg.solve_triangular(a, b, on_error=k),
    "eigh": lambda a, b, k: linalg.eigh(a, on_error=k)[0],
    "svd": lambda a, b, k: linalg.svd(a, on_error=k)[0],
    "pinv": lambda a, b, k: linalg.pinv(a, on_error=k),
}


@pytest.mark.parametrize("name", FAILING)
def test_failures(library, rng, name):
    """The matrix is named, and others have their results."""
    call = FAILING[name]
    a, b = operands(rng, "d", definite=True)
    a[1] = np.nan if name in ("eigh", "svd", "pinv") else 0
    x = library.numpy(call(library.array(a), library.array(b), "nan"))
    assert np.isnan(x[1]).all() and np.isfinite(x[::2]).all()
    with pytest.raises(np.linalg.LinAlgError, match="1 of 3 matrices, at 1"):
        call(library.array(a), library.array(b), "raise")


AGAIN = "solve", "solve, vector", "solve, one", "lu_solve, 1", "pinv", "svd, full", "slogdet"


@pytest.mark.parametrize("name", [name if name in ("solve, vector", "pinv") else slow(name) for name in AGAIN])
def test_calls_that_are_made_again(library, rng, monkeypatch, name):
    """From the third call on nothing but the library's function is called; a matrix that fails is told of."""
    call = (UNIQUE | UP_TO_SIGNS)[name]
    for number in range(4):
        a, b = operands(rng, "d")
        given = library.array(a), library.array(b)
        with monkeypatch.context() as patch:
            if number > 1 and "lu" not in name:  # of which there are two
                patch.setattr(foreign, "adopt", None)
            found = listed(call(*given))
        for x, y in zip(found, listed(call(a, b)), strict=True):
            np.testing.assert_allclose(library.numpy(x), y, 1e-9, 1e-9)
    if name == "solve":
        a[1] = 0
        with pytest.raises(np.linalg.LinAlgError, match="1 of 3 matrices, at 1"):
            call(library.array(a), library.array(b))


@pytest.mark.filterwarnings("default")  # SciPy's
def test_determinants_and_factors_of_singular_matrices(library, rng):
    a, _ = operands(rng, "d")
    a[1, :, 3] = 0
    det, (sign, size) = linalg.det(library.array(a)), linalg.slogdet(library.array(a))
    assert library.numpy(det)[1] == library.numpy(sign)[1] == 0 and library.numpy(size)[1] == -np.inf
    with pytest.warns(RuntimeWarning, match="Diagonal number 4 is exactly zero. Singular matrix: 1 of 3"):
        linalg.lu_factor(library.array(a))


@pytest.mark.parametrize("name", ["given", slow("one"), slow("strided")])
def test_larger_products(library, rng, monkeypatch, name):
    monkeypatch.setattr(products, "LARGEST", SMALLEST)
    monkeypatch.setattr(Queue, "multiplies", True)
    a, b = rng.standard_normal((2, NM, N, N)), rng.standard_normal((NM, N, N + 1))
    pick = {"given": lambda a: a[0], "one": lambda a: a[0, 0], "strided": lambda a: a[:, :2]}[name]
    b = b[:2] if name == "strided" else b
    for _ in range(3):
        x = library.numpy(linalg.matmul(pick(library.array(a)), library.array(b)))
        np.testing.assert_allclose(x, pick(a) @ b, 1e-9, 1e-9)
    assert library.called == ["matmul"] * 3


def test_pivots_that_are_no_rows(library, rng):
    a, b = operands(rng, "d")
    piv = np.tile(np.arange(N, dtype=np.int32), (NM, 1))
    piv[1, 2] = N
    with pytest.raises(ValueError, match="rows"):
        linalg.lu_solve((library.array(a), library.array(piv)), library.array(b))


def test_types_and_strides(library, rng):
    a, b = operands(rng, "f")
    x = linalg.solve(library.array(a)[::2], library.array(b)[::2], compute="double")
    assert library.numpy(x).dtype == np.float32
    np.testing.assert_allclose(library.numpy(x), np.linalg.solve(a[::2].astype("d"), b[::2].astype("d")), 1e-7)
    integers = np.round(a).astype(np.int64)
    assert library.numpy(linalg.inv(library.array(integers))).dtype == np.float64
