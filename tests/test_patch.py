"""patch_numpy: what it reaches, what it leaves alone, and that nothing is left behind."""

import contextlib
import importlib
import inspect
import operator
import os
import pickle
import subprocess
import sys
import threading
import warnings
from typing import ClassVar

import numpy as np
import pytest
import scipy.linalg
from numba import njit
from numpy.linalg import *  # noqa: F403 - as programs do
from numpy.linalg import inv as imported_inv

import compactla
from cases import random
from compactla.patch.report import Report
from compactla.patch.targets import targets
from processes import ROOT, python

NM, N = 5, 3
MANY = 17  # matrices whose vectors SciPy's functions take from ours
TARGETS = {target.name: target for target in targets()}
CODES = {target.name: target.function.__code__ for target in targets()}


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    compactla.unpatch_numpy()
    for target in targets():
        assert target.function.__code__ is CODES[target.name]


@pytest.fixture
def kernels():
    """A function that tells how many calls ran kernels since it was asked last."""
    with Report() as report, compactla.patch_numpy():
        former = 0

        def since():
            nonlocal former
            now = sum(row.tally.kernels for row in report.rows())
            former, found = now, now - former
            return found

        yield since


def public(name):
    """A function by its name, as programs find it."""
    module, _, name = name.rpartition(".")
    return getattr(importlib.import_module(module), name)


def definite(a):
    return a @ a.conj().swapaxes(-1, -2) + N * np.eye(N, dtype=a.dtype)


def arguments(name, a, b, original):
    """Arguments for a function: of stacks a, or of such that are definite, and b."""
    main = 4 * np.eye(N, dtype=a.dtype)[1][:, None]  # added to the second of three diagonals
    return {
        "solve": (a, b),
        "matmul": (a, b),
        "matrix_power": (a, 5),
        "cholesky": (definite(a),),
        "eigh": (definite(a),),
        "eigvalsh": (definite(a),),
        "cho_factor": (definite(a),),
        "cho_solve": ((definite(a), False), b),
        "ldl": (a, True, False),
        "hessenberg": (a, True),
        "lu_solve": (lambda: (tuple(original("lu_factor")(a)), b)),
        "solve_triangular": (a, b),
        "fractional_matrix_power": (a, 0.3),
        "solve_sylvester": (a, a, a),
        "solve_continuous_lyapunov": (a, a),
        "solve_discrete_lyapunov": (a, a),
        "solve_banded": ((1, 1), a + main, b),
        "solveh_banded": ((a + main)[..., :2, :].real, b),
    }.get(name, (a,))


def invariant(name, found, given):
    """What does not depend on the signs of vectors, nor on a triangle that may have anything."""
    if name == "cho_factor":
        return np.triu(found[0])
    if name == "eigh":
        w, v = found
        return w, (v * w[..., None, :]) @ v.conj().swapaxes(-1, -2)
    if name == "eig":
        w, v = found
        return (v * w[..., None, :]) @ np.linalg.inv(v)
    if name == "eigvals":
        return [(found**k).sum(-1) for k in range(1, N + 1)]
    if name == "schur":
        t, z = found
        return z @ t @ z.conj().swapaxes(-1, -2)
    if name == "svd":
        u, s, vh = found
        return s, (u * s[..., None, :]) @ vh
    return found


def as_list(found):
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("name", TARGETS)
def test_results_are_of_the_same_kind(kernels, rng, name, dtype):
    short = name.rpartition(".")[2]
    count = 1000 if short in ("matmul", "matrix_power") else MANY
    a = random(rng, (2, count, N, N), dtype) + (2 * np.eye(N)).astype(dtype)
    b = random(rng, (2, count, N, 2 if short != "matmul" else N), dtype)
    given = arguments(short, a, b, lambda name: TARGETS[f"scipy.linalg.{name}"].theirs)
    given = given() if callable(given) else given
    expected = TARGETS[name].theirs(*given)
    kernels()  # what NumPy's function calls is patched
    found = public(name)(*given)
    assert kernels() == (dtype == np.float64 or name.startswith("numpy"))
    assert type(found) is type(expected)
    for x, y in zip(as_list(found), as_list(expected), strict=True):
        assert (type(x), x.dtype, x.shape) == (type(y), y.dtype, y.shape)
    tolerance = 5000 * np.finfo(dtype).eps  # of which SciPy's exponentials need most
    for x, y in zip(as_list(invariant(short, found, given)), as_list(invariant(short, expected, given)), strict=True):
        assert np.allclose(x, y, rtol=tolerance, atol=tolerance * abs(y).max())


def holding():
    inverse = np.linalg.inv
    return lambda a: inverse(a)


def by_default(a, inverse=np.linalg.inv):
    return inverse(a)


class Model:
    inverse = staticmethod(np.linalg.inv)
    table: ClassVar = {"inv": np.linalg.inv}


@pytest.mark.parametrize(
    "call",
    [
        *[np.linalg.inv, imported_inv, inv, holding(), by_default, Model.inverse, Model().table["inv"]],  # noqa: F405
        *[pickle.loads(pickle.dumps(np.linalg.inv)), lambda a: operator.attrgetter("linalg.inv")(np)(a)],
        lambda a: next(map(np.linalg.inv, [a])),
    ],
)
def test_it_does_not_matter_how_a_function_was_imported(kernels, rng, call):
    a = random(rng, (NM, N, N), np.float64)
    assert np.allclose(call(a) @ a, np.eye(N))
    assert kernels() == 1


def test_factors_of_scipy(kernels, rng):
    a, b = definite(random(rng, (NM, N, N), np.float64)), random(rng, (NM, N, 1), np.float64)
    for factor, solve in (("lu_factor", "lu_solve"), ("cho_factor", "cho_solve")):
        x = getattr(scipy.linalg, solve)(getattr(scipy.linalg, factor)(a), b)
        assert kernels() == 2
        assert np.allclose(a @ x, b)


@pytest.mark.parametrize("lower", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_pairs_of_scipy(kernels, rng, dtype, lower):
    a, b = (definite(random(rng, (MANY, N, N), dtype)) for _ in range(2))
    for pair in ((a, b), (a, b[0]), (a[:1].real, b)):
        w, v = scipy.linalg.eigh(*pair, lower=lower)
        assert kernels() == 1
        expected = TARGETS["scipy.linalg.eigh"].theirs(*pair, lower=lower)
        assert (w.dtype, v.dtype) == tuple(x.dtype for x in expected)
        assert np.allclose(w, expected[0], rtol=1e-11)
        assert np.allclose(v.conj().swapaxes(1, 2) @ pair[1] @ v, np.eye(N), atol=1e-11)
        assert np.allclose(scipy.linalg.eigvalsh(*pair, lower=lower), w)
        assert np.allclose(scipy.linalg.eigh(*pair, lower=lower, eigvals_only=True), w)
        kernels()
    for options in ({"type": 2}, {"driver": "gvx"}, {"subset_by_index": [0, 1]}):
        scipy.linalg.eigh(a, b, lower=lower, **options)
        assert kernels() == 0


@pytest.mark.parametrize("word", [None, "gen", "sym", "pos", "symmetric"])
def test_solutions_of_scipy(kernels, rng, word):
    a = definite(random(rng, (2, NM, N, N), np.float64))
    options = {} if word is None else {"assume_a": word}
    for b in (random(rng, (NM, N, 2), np.float64), random(rng, N, np.complex128)):
        x = scipy.linalg.solve(a, b, **options)
        assert kernels() == 1
        expected = TARGETS["scipy.linalg.solve"].theirs(a, b, **options)
        assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
        assert np.allclose(x, expected, rtol=1e-11)
    upper = np.triu(a)
    if word in ("sym", "pos"):
        assert np.allclose(scipy.linalg.solve(upper, b, **options), x)
    for word in ("upper triangular", "diagonal"):
        scipy.linalg.solve(upper, b, assume_a=word)


@pytest.mark.parametrize("size", [0.0, 2.0**-52, 1e-13])
def test_warnings_of_scipy(rng, size):
    """Matrices that are singular, nearly so, and not quite."""
    a = np.tile(np.eye(N), (NM, 1, 1))
    a[2, 1:, 1:] = [[1, 1], [1, 1 + size]]
    b, found = random(rng, (NM, N, 1), np.float64), []
    for patched in (False, True):
        with (
            compactla.patch_numpy() if patched else contextlib.nullcontext(),
            warnings.catch_warnings(record=True) as w,
        ):
            warnings.simplefilter("always")
            try:
                scipy.linalg.solve(a, b)
                found.append([(x.category, str(x.message)) for x in w])
            except np.linalg.LinAlgError as error:
                found.append(str(error))
    assert found[0] == found[1]
    assert bool(found[0]) == (size < 1e-13)


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_eigenvalues_of_scipy_are_complex(kernels, rng, name):
    a = random(rng, (MANY, N, N), np.float64)
    theirs = TARGETS[f"scipy.linalg.{name}"].theirs
    for x in (a, a + a.swapaxes(1, 2), a.astype(np.complex128)):
        expected = as_list(theirs(x))
        kernels()  # SciPy's eigvals calls eig
        found = as_list(public(f"scipy.linalg.{name}")(x))
        assert kernels() == 1
        assert [y.dtype for y in found] == [y.dtype for y in expected]
        assert np.allclose(*(invariant("eigvals", y[0], ()) for y in (found, expected)))
    theirs_too = public(f"scipy.linalg.{name}")(a, np.tile(np.eye(N), (MANY, 1, 1)))
    assert kernels() == 0 and len(as_list(theirs_too)) == len(found)


@pytest.mark.parametrize("name", ["eig", "eigh", "schur"])
def test_vectors_of_few_matrices_have_scipys_signs(kernels, rng, name):
    a = definite(random(rng, (2, NM, N, N), np.float64))
    found, expected = public(f"scipy.linalg.{name}")(a), TARGETS[f"scipy.linalg.{name}"].theirs(a)
    assert kernels() == 0
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


def test_functions_that_call_them_have_them_too(kernels, rng):
    a = random(rng, (NM, N, N), np.float64)
    for call in (np.linalg.matrix_rank, lambda a: np.linalg.norm(a, 2, axis=(1, 2))):
        call(a)
        assert kernels() == 1


class Own:
    """An array of a library that has functions in the place of NumPy's."""

    def __array_function__(self, function, types, args, kwargs):
        return function, args, kwargs


class Subclass(np.ndarray):
    pass


class Passing(np.ndarray):
    def __array_function__(self, function, types, args, kwargs):
        return super().__array_function__(function, types, args, kwargs)


@pytest.mark.parametrize("function", [np.linalg.inv, np.linalg.solve, np.linalg.svd, np.linalg.matmul])
def test_arrays_of_others_are_left_to_them(kernels, rng, function):
    a = random(rng, (NM, N, N), np.float64)
    two = function in (np.linalg.solve, np.linalg.matmul)
    (asked, *_), own = function(*[Own()] * (1 + two)), Own()
    assert asked is function
    if two:
        assert function(a, own)[1] == (a, own)
    for kind in (Subclass, Passing, np.ma.MaskedArray):
        x = np.ma.array(a) if kind is np.ma.MaskedArray else a.view(kind)
        expected = TARGETS[f"numpy.linalg.{function.__name__}"].theirs(*[x] * (1 + two))
        found = function(*[x] * (1 + two))
        for y, z in zip(as_list(found), as_list(expected), strict=True):
            assert type(y) is type(z)
            assert np.array_equal(y, z)
    assert not kernels()


def test_calls_that_do_not_gain_are_numpys(kernels, rng):
    large = random(rng, (2, 40, 40), np.float64)
    for a in (large[0], large, large[0, :3, :3], large[0, :3, :3].tolist(), large[:, :3, :3].tolist()):
        for name in ("inv", "svd", "qr", "det", "eigvalsh"):
            found, expected = public(f"numpy.linalg.{name}")(a), TARGETS[f"numpy.linalg.{name}"].theirs(a)
            assert all(np.array_equal(x, y) for x, y in zip(as_list(found), as_list(expected), strict=True))
    assert not kernels()


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.linalg.inv(np.zeros((4, 3, 3))),
        lambda: np.linalg.inv(np.ones((4, 3, 2))),
        lambda: np.linalg.inv(np.ones((4, 3, 3), object)),
        lambda: np.linalg.inv(np.ones((4, 3, 3), np.longdouble)),
        lambda: np.linalg.inv(np.ones((4, 3, 3), np.half)),
        lambda: np.linalg.inv(np.ones(3)),
        lambda: np.linalg.inv(),
        lambda: np.linalg.inv(np.ones((4, 3, 3)), on_error="nan"),
        lambda: np.linalg.cholesky(-np.ones((4, 3, 3))),
        lambda: np.linalg.solve(np.ones((4, 3, 3)), np.ones((5, 3, 1))),
        lambda: np.linalg.solve(np.ones((4, 3, 3)), np.ones(2)),
        lambda: np.linalg.lstsq(np.ones((4, 3, 3)), np.ones((4, 3))),
        lambda: np.linalg.eigh(np.ones((4, 3, 3)), "x"),
        lambda: np.linalg.qr(np.ones((4, 3, 3)), "x"),
        lambda: np.linalg.svd(np.full((4, 3, 3), np.nan)),
        lambda: np.linalg.matrix_power(np.ones((4, 3, 3)), 1.5),
        lambda: np.linalg.pinv(np.ones((4, 3, 3)), 1e-3, rtol=1e-3),
        lambda: scipy.linalg.lu_solve(3, np.ones((4, 3, 3))),
        lambda: scipy.linalg.lu_factor(np.full((4, 3, 3), np.nan)),
        lambda: scipy.linalg.cho_factor(-np.ones((4, 3, 3))),
        lambda: scipy.linalg.solve_triangular(np.zeros((4, 3, 3)), np.ones(3)),
        lambda: scipy.linalg.expm(np.ones((4, 3, 2))),
        lambda: scipy.linalg.lu_factor(np.ones((0, 3, 3))),
    ],
)
def test_errors_are_of_the_same_type(call):
    types = []
    for patched in (False, True):
        if patched:
            compactla.patch_numpy()
        with pytest.raises(Exception) as found:
            call()
        types.append(found.type)
    assert types[0] is types[1]


def test_functions_look_as_before():
    def looks():
        return [
            (f := public(name), inspect.signature(f), f.__doc__, f.__name__, f.__module__, inspect.getsource(f))
            for name in TARGETS
        ]

    before = looks()
    with compactla.patch_numpy():
        assert looks() == before
        assert all(pickle.loads(pickle.dumps(f)) is f for f, *_ in before)


def is_patched():
    states = {target.function.__code__ is not CODES[target.name] for target in targets()}
    assert len(states) == 1
    return states.pop()


def test_blocks():
    with pytest.raises(ZeroDivisionError), compactla.patch_numpy():
        with compactla.patch_numpy():
            assert is_patched()
        assert is_patched()
        compactla.unpatch_numpy()  # is not for blocks
        assert is_patched()
        raise ZeroDivisionError
    assert not is_patched()
    patch = compactla.patch_numpy()
    assert is_patched()
    compactla.patch_numpy()
    with patch, patch:
        assert is_patched()
    assert is_patched()
    compactla.unpatch_numpy()
    assert not is_patched()
    compactla.unpatch_numpy()
    with patch:
        assert is_patched()
    assert not is_patched()


def test_blocks_of_generators():
    def generate():
        with compactla.patch_numpy():
            yield 1
            yield 2

    first, second = generate(), generate()
    next(first), next(second)
    first.close()
    assert is_patched()
    next(second)
    del second
    assert not is_patched()


def test_threads(rng):
    """Calls are right while the patch comes and goes, and it is in force until the last block ends."""
    a, stop, wrong = random(rng, (NM, N, N), np.float64) + 2 * np.eye(N), threading.Event(), []
    expected = np.linalg.inv(a)

    def work():
        while not stop.is_set():
            if not np.allclose(imported_inv(a), expected):
                wrong.append(1)

    def switch():
        for _ in range(50):
            with compactla.patch_numpy():
                if not is_patched():
                    wrong.append(2)

    workers = [threading.Thread(target=work) for _ in range(2)]
    switches = [threading.Thread(target=switch) for _ in range(3)]
    for thread in workers + switches:
        thread.start()
    for thread in switches:
        thread.join()
    stop.set()
    for thread in workers:
        thread.join()
    assert not wrong
    assert not is_patched()


def test_reload(kernels, rng):
    import numpy.linalg

    importlib.reload(numpy.linalg)
    a = random(rng, (NM, N, N), np.float64)
    numpy.linalg.inv(a)
    assert kernels() == 1


def test_numba_compiles_programs(rng):
    with compactla.patch_numpy():

        @njit
        def solve(a, b):
            return np.linalg.solve(a, b)

        a, b = random(rng, (N, N), np.float64), random(rng, (N,), np.float64)
        assert np.allclose(a @ solve(a, b), b)


FORK = """
import os, sys
import numpy as np, compactla
a = np.random.default_rng(0).random((2000, 3, 3)) + np.eye(3)
with compactla.patch_numpy():
    expected = np.linalg.inv(a)
    if not os.fork():
        good = np.array_equal(np.linalg.inv(a), expected)  # the same kernel
        compactla.patch_numpy()
        compactla.unpatch_numpy()
        os._exit(not good)
    assert os.wait()[1] == 0
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forked_processes():
    assert python(FORK) == "done\n"


def test_importing_patches_nothing():
    program = """
import sys, compactla, numpy as np
code = np.linalg.inv._implementation.__code__
assert "compactla.patch.patching" not in sys.modules and "compactla.linalg" not in sys.modules
compactla.patch_numpy
assert np.linalg.inv._implementation.__code__ is code
"""
    python(program)


PROGRAM = """
import atexit, sys
import numpy as np
from numpy.linalg import solve
class Here: pass
import pickle; pickle.loads(pickle.dumps(Here()))
a = np.random.default_rng(0).random((50, 3, 3)) + np.eye(3)
for _ in range(4): solve(a, a)
solve(a[0], a[0])
print(*sys.argv[1:], __name__, __file__)
atexit.register(print, "last")
if "fail" in sys.argv: np.linalg.inv(np.zeros((50, 3, 3)))
if "exit" in sys.argv: sys.exit(7)
"""


def run(*words, cwd):
    command = [sys.executable, "-m", "compactla", "run", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    return found.returncode, found.stdout, found.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_run(folder):
    words = ["program.py", "one", "--report", "-m"]
    expected = f"one --report -m __main__ {folder / 'program.py'}\nlast\n"
    assert run(*words, cwd=folder) == (0, expected, "")


def test_run_a_module(folder):
    code, out, err = run("--report", "-m", "program", "exit", cwd=folder)
    assert (code, out) == (7, f"exit __main__ {folder / 'program.py'}\nlast\n")
    lines = {tuple(line.split()[:1] + line.split()[-3:-1]) for line in err.splitlines() if line}
    assert {("numpy.linalg.solve", "4", "4"), ("numpy.linalg.solve", "1", "0"), ("all", "5", "4")} <= lines
    assert "(50, 3, 3), (50, 3, 3)" in err


def test_run_a_program_that_fails(folder):
    code, out, err = run("program.py", "fail", cwd=folder)
    assert (code, out) == (1, f"fail __main__ {folder / 'program.py'}\nlast\n")
    assert err.startswith(f'Traceback (most recent call last):\n  File "{folder / "program.py"}", line ')
    assert err.endswith("LinAlgError: Singular matrix: 50 of 50 matrices, at 0, 1, 2, 3, 4, ...\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "SCRIPT or -m MODULE must be given"),
        (["nowhere.py"], "No such file or directory"),
        (["-m", "nowhere"], "No module named nowhere"),
    ],
)
def test_run_nothing(tmp_path, words, message):
    code, out, err = run(*words, cwd=tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
