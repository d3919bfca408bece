"""Tests of all functions of `compactla.linalg`: arguments as NumPy takes them, stacks, failures, threads."""

import functools
import inspect
import itertools
import sys
import threading
import warnings

import numpy as np
import pytest

from cases import slow
from compactla import linalg
from compactla.cpu.emit.matrices import native_width
from compactla.linalg import arguments
from compactla.linalg.stacks import Stacked

ROWS = {
    row.name: row
    for module in [*sys.modules.values()]
    if getattr(module, "__name__", "").startswith("compactla.linalg")
    for value in vars(module).values()
    for row in ([*value.values()] if isinstance(value, dict) else [value])
    if isinstance(row, Stacked)
}
MODELS = "solve", "cholesky", "svd"  # with --all all functions are tried


def cases(functions):
    return [name if name in MODELS else slow(name) for name in functions]


FUNCTIONS = sorted(name for name in ROWS if hasattr(linalg, name) and hasattr(np.linalg, name))
NAMES = cases(FUNCTIONS)
CAN_FAIL = [name for name in FUNCTIONS if "on_error" in inspect.signature(getattr(linalg, name)).parameters]
FAILING = cases(CAN_FAIL)
LARGER = cases([name for name in FUNCTIONS if ROWS[name].limits.largest > 48])
NM, N, R = 11, 3, 2
SIZES = {"n": N, "m": N, "r": R, "k": N, "1": 1}
EVERY = pytest.mark.exhaustive
EXTRA = {"lstsq": {"rcond": None}}


def ours(name, *arrays, **keywords):
    return ordered(name, listed(getattr(linalg, name)(*arrays, **EXTRA.get(name, {}), **keywords)))


def numpys(name, *arrays):
    """NumPy's results; one matrix after the other if it takes no stacks."""
    function = functools.partial(getattr(np.linalg, name), **EXTRA.get(name, {}))
    if name != "lstsq" or all(a.ndim == 2 for a in arrays):
        return ordered(name, listed(function(*arrays)))
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    arrays = [np.broadcast_to(a, lead + a.shape[-2:]) for a in arrays]
    found = [function(*(a[index] for a in arrays)) for index in np.ndindex(lead)]
    return [np.reshape(x, (*lead, *np.shape(x[0]))) for x in zip(*found, strict=True)]


def ordered(name, found):
    """Results, with eigenvalues that are in no order in ascending order."""
    if name not in ("eig", "eigvals"):
        return found
    order = np.argsort(found[0], -1)
    return [np.take_along_axis(x, order if x.ndim == order.ndim else order[..., None, :], -1) for x in found]


def listed(x):
    return [*x] if isinstance(x, tuple) else [x]


def inputs(name):
    """Sizes of the arrays that a function has to be given."""
    given = inspect.signature(getattr(np.linalg, name)).parameters.values()
    return [*ROWS[name].inputs.values()][: sum(p.default is p.empty for p in given)]


def operands(name, lead=(NM,), dtype="d", n=N, seed=0):
    """Positive definite matrices with well separated eigenvalues, and right-hand sides."""
    rng, arrays = np.random.default_rng(seed), []
    for letters in inputs(name):
        rows, columns = (SIZES[letter] if SIZES[letter] != N else n for letter in letters)
        a = rng.standard_normal((*lead, rows, columns))
        if np.dtype(dtype).kind == "c":
            a = a + 1j * rng.standard_normal(a.shape)
        if not arrays:
            a = a @ a.conj().swapaxes(-1, -2) / n + np.diag(np.arange(1.0, n + 1))
        arrays.append(a.astype(dtype))
    return arrays


def bits(found):
    return [(x.shape, x.dtype, x.tobytes()) for x in map(np.asarray, found)]


def assert_like(found, expected, close=None):
    """Types, shapes and kinds of arrays are the same, and numbers as well but for the signs of vectors."""
    for x, y in zip(found, expected, strict=True):
        assert type(x) is type(y)
        assert x.shape == y.shape and x.dtype == y.dtype
        if close:
            np.testing.assert_allclose(abs(np.asarray(x)), abs(np.asarray(y)), close, close)


def outcome(function, *args):
    """The result of a call, or the type and text of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [(type(x), np.shape(x), np.asarray(x).dtype) for x in function(*args)]
    except Exception as error:
        return type(error), str(error)


KINDS = [("d", "double"), ("F", "same")]  # NumPy's own tests have the others too
KINDS += [pytest.param("f", "same", marks=EVERY)]
KINDS += [pytest.param(kind, "double", marks=EVERY) for kind in "fFD"]


@pytest.mark.parametrize(("dtype", "compute"), KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_results(name, dtype, compute):
    arrays = operands(name, dtype=dtype)
    close = 1e-4 if dtype in "fF" else 1e-10
    expected = numpys(name, *arrays)
    given = "compute" in inspect.signature(getattr(linalg, name)).parameters
    ours_of = functools.partial(ours, name, **({"compute": compute} if given else {}))
    assert_like(ours_of(*arrays), expected, close)
    assert_like(ours_of(*(a[0] for a in arrays)), numpys(name, *(a[0] for a in arrays)), close)


@pytest.mark.parametrize("name", NAMES)
def test_named_tuples(name):
    arrays = [a[0] for a in operands(name)]
    found = getattr(linalg, name)(*arrays, **EXTRA.get(name, {}))
    expected = getattr(np.linalg, name)(*arrays, **EXTRA.get(name, {}))
    assert type(found) is type(expected)


@pytest.mark.parametrize("name", NAMES)
def test_parameters(name):
    """NumPy's come first, with their names and defaults; all others are keywords, but SciPy's b of eigh."""
    theirs = [*inspect.signature(getattr(np.linalg, name)).parameters.values()]
    mine = [*inspect.signature(getattr(linalg, name)).parameters.values()]
    common, others = mine[: len(theirs)], mine[len(theirs) :]
    assert [p.name for p in common] == [p.name for p in theirs]
    assert all(p.kind is p.KEYWORD_ONLY or p.name == "b" for p in others)


def layouts(a):
    """Arrays of the same numbers in other layouts."""
    wide = np.zeros((*a.shape[:-2], 2 * a.shape[-2], 3 * a.shape[-1]), a.dtype)
    wide[..., ::2, ::3] = a
    yield "wide", wide[..., ::2, ::3]
    part = np.zeros((*a.shape[:-2], a.shape[-2] + 1, a.shape[-1] + 1), a.dtype)
    part[..., 1:, :-1] = a
    yield "part", part[..., 1:, :-1]
    yield "columns", a.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    yield "Fortran", np.asfortranarray(a)
    yield "element first", np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0)
    yield "backwards", a[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    yield "every other", np.repeat(a, 2, axis=0)[::2]
    memory = np.zeros(a.nbytes + 1, np.uint8)
    unaligned = memory[1:].view(a.dtype).reshape(a.shape)
    unaligned[...] = a
    yield "unaligned", unaligned
    yield "swapped", a.astype(a.dtype.newbyteorder())
    fixed = a.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed
    yield "list", a.tolist()


@pytest.mark.parametrize("few", [arguments.FEW, pytest.param(0, marks=EVERY)])
@pytest.mark.parametrize("name", NAMES)
def test_layouts(name, few, monkeypatch):
    """Results do not depend on them by a bit, and inputs are left alone; `few` as if there were many matrices."""
    monkeypatch.setattr(arguments, "FEW", few)
    arrays = operands(name)
    expected = bits(ours(name, *arrays))
    for given in zip(*map(layouts, arrays), strict=True):
        kinds, given = zip(*given, strict=True)
        assert bits(ours(name, *given)) == expected, kinds[0]
        assert bits(given) == bits(arrays) or "swapped" in kinds


@pytest.mark.parametrize("name", NAMES)
def test_results_are_new(name):
    arrays = operands(name)
    for x in ours(name, *arrays):
        assert x.flags.writeable
        assert not any(np.may_share_memory(x, a) for a in arrays)


@pytest.mark.parametrize("name", NAMES)
def test_broadcasting(name):
    leads = [(5, 1), (1, 7), ()]
    arrays = [operands(name, lead)[i] for i, lead in zip(range(len(inputs(name))), leads, strict=False)]
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    full = [np.ascontiguousarray(np.broadcast_to(a, lead + a.shape[-2:])) for a in arrays]
    expected = bits(ours(name, *full))
    assert bits(ours(name, *arrays)) == expected
    assert bits(ours(name, *(np.broadcast_to(a, lead + a.shape[-2:]) for a in arrays))) == expected
    assert_like(ours(name, *arrays), numpys(name, *arrays), 1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_one_size_after_the_other(name):
    """No matrix depends on others of its stack, whether they fill registers or not."""
    least = max(1, ROWS[name].limits.fewest(N))
    arrays = operands(name, (least + 2 * native_width(np.dtype("d")) + 1,))
    whole = ours(name, *arrays)
    for nm in range(least, len(arrays[0])):
        assert bits(ours(name, *(a[:nm] for a in arrays))) == bits([x[:nm] for x in whole])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["d", pytest.param("D", marks=EVERY)])
@pytest.mark.parametrize("name", NAMES)
def test_neighbours(name, dtype):
    """Neighbours of a matrix that has zeros, or a smaller rank, change none of its bits, nor signs of zeros."""
    arrays, keywords = operands(name, dtype=dtype), {"on_error": "nan"} if name in CAN_FAIL else {}
    a = arrays[0]
    a[1] *= -np.eye(N)
    a[2, 0, 1:] = a[2, 1:, 0] = 0
    a[3] = np.roll(a[3] * np.eye(N), 1, axis=0)
    a[4, :, 1] = a[4, :, 0]
    a[5] = -0.0
    a[6, 1] = np.nan
    whole = ours(name, *arrays, **keywords)
    for q in range(NM):
        found = ours(name, *(np.repeat(x[q : q + 1], NM, axis=0) for x in arrays), **keywords)
        kinds = [x.dtype for x in whole]  # real eigenvalues are complex numbers beside others
        assert bits([x[0].astype(kind) for x, kind in zip(found, kinds, strict=True)]) == bits([x[q] for x in whole]), q


@pytest.mark.parametrize("n", [1, pytest.param(2, marks=EVERY)])
@pytest.mark.parametrize("name", NAMES)
def test_tiny(name, n):
    arrays = operands(name, n=n)
    assert_like(ours(name, *arrays), numpys(name, *arrays), 1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_empty(name):
    """Stacks of no matrices, and matrices of no rows, columns or both."""
    for lead in (), (0,), (2, 0), (3,):
        for sizes in itertools.product((0, 2), (0, 2), (0, 2)):
            size = dict(zip(("n", "m", "r"), sizes, strict=True)) | {"k": min(sizes[:2]), "1": 1}
            arrays = [np.zeros((*lead, size[i], size[j])) + np.eye(size[i], size[j]) for i, j in inputs(name)]
            if not (name == "lstsq" and lead) and not all(a.size for a in arrays):
                assert outcome(ours, name, *arrays) == outcome(numpys, name, *arrays), (lead, sizes)


TYPES = ["?", "b", "H", "q", "e", "g", "G", "O", "S8", "M8[s]", ">f4"]


@pytest.mark.parametrize(("alone", "beside"), [(TYPES, "?fg"), pytest.param([">F", ">D"], "?qfdFDg", marks=EVERY)])
@pytest.mark.parametrize("name", NAMES)
def test_types(name, alone, beside):
    """Each type, alone and beside others, gives NumPy's result or NumPy's error."""
    arrays = operands(name)
    for kind in alone:
        given = [np.eye(*a.shape[1:], dtype="q").astype(kind) for a in arrays]
        assert outcome(ours, name, *given) == outcome(numpys, name, *given), kind
    for kinds in itertools.product(beside, repeat=len(arrays)):
        given = [np.eye(*a.shape[1:]).astype(kind) for a, kind in zip(arrays, kinds, strict=True)]
        assert outcome(ours, name, *given) == outcome(numpys, name, *given), kinds


@pytest.mark.parametrize("name", cases(name for name in FUNCTIONS if len(inputs(name)) > 1))
def test_mixed_types(name):
    for kinds in ("dF", "Fd"):
        arrays = operands(name, dtype="F")
        arrays = [a.real.astype("d") if kind == "d" else a for a, kind in zip(arrays, kinds, strict=True)]
        assert_like(ours(name, *arrays), numpys(name, *arrays), 1e-4)


WRONG = [(), (3,), (2, 3), (3, 2), (4, 4), (2, 3, 3), (3, 4, 4), (2, 3, 2), (1, 3, 1)]


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes(name):
    """Wrong shapes are refused in NumPy's words."""
    for shapes in itertools.product(WRONG, repeat=len(inputs(name))):
        arrays = [np.ones(shape) + np.eye(*shape[-2:]) if len(shape) > 1 else np.ones(shape) for shape in shapes]
        expected = outcome(numpys, name, *arrays)
        if isinstance(expected, tuple) and (name != "lstsq" or all(a.ndim < 3 for a in arrays)):
            assert outcome(ours, name, *arrays) == expected, shapes


class Own(np.ndarray):
    pass


class Wraps:
    """Something that becomes an array, and wraps what is computed of it."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype)

    def __array_wrap__(self, a, context=None, return_scalar=False):
        return a.view(Own)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_other_arrays(name, tmp_path):
    arrays = [a[0] for a in operands(name)]

    def mapped(a):
        a.tofile(path := tmp_path / str(a.shape))
        return np.memmap(path, a.dtype, "r", shape=a.shape)

    kinds = [np.matrix, lambda a: a.view(Own), mapped, np.ma.array, Wraps, np.ndarray.tolist]
    for makers in itertools.product(kinds, repeat=len(arrays)):
        given = [make(a) for make, a in zip(makers, arrays, strict=True)]
        expected = ordered(name, listed(getattr(np.linalg, name)(*given, **EXTRA.get(name, {}))))
        found = ours(name, *given)
        assert [type(x) for x in found] == [type(x) for x in expected]
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(abs(np.asarray(x)), abs(np.asarray(y)), 1e-10, 1e-10)


class Duck:
    """Replaces NumPy's functions, and tells which, and what it was given."""

    def __array_function__(self, function, types, args, kwargs):
        return function.__name__, len(args), kwargs


OTHERS = [name for name in ("cond", "matrix_rank", "norm", "vector_norm") if hasattr(np.linalg, name)]


@pytest.mark.parametrize("name", FUNCTIONS + OTHERS)
def test_types_that_replace_functions(name):
    """Such types are asked, as by NumPy, with the options of the caller and no others, which they may lack."""
    ours, parameters = getattr(linalg, name), inspect.signature(getattr(np.linalg, name)).parameters.values()
    count = sum(p.default is p.empty for p in parameters)
    for place in range(count):
        arrays = [np.eye(3)] * count
        arrays[place] = Duck()
        assert ours(*arrays) == (name, count, {})
        for p in [*parameters][count:]:
            value = object()
            assert ours(*arrays, **{p.name: value}) == (name, count, {p.name: value})


def bad_matrix(name, n=N):
    """A matrix that NumPy refuses, and its message."""
    rest = [a[0] for a in operands(name, n=n)[1:]]
    for bad in np.zeros((n, n)), -np.eye(n), np.full((n, n), np.nan):
        try:
            numpys(name, bad, *rest)
        except linalg.LinAlgError as error:
            return bad, str(error)
    assert n > N, "NumPy refuses no small matrix"
    pytest.skip("LAPACK's eigenvalues of a large matrix with NaN are NaN: nothing fails")


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=EVERY)])
@pytest.mark.parametrize("name", FAILING)
def test_failures(name, large):
    """Failures are named, or become NaN; all other results keep their bits."""
    n = ROWS[name].limits.largest + 1 if large else N
    bad, message = bad_matrix(name, n)
    arrays = operands(name, n=n)
    expected = ours(name, *arrays)
    arrays[0][[2, 9]] = bad
    with pytest.raises(linalg.LinAlgError) as raised:
        ours(name, *arrays)
    assert str(raised.value) == f"{message}: 2 of {NM} matrices, at 2, 9"
    with pytest.raises(linalg.LinAlgError) as raised:
        ours(name, *(a[2] for a in arrays))
    assert str(raised.value) == message
    found = ours(name, *arrays, on_error="nan")
    good = np.delete(np.arange(NM), [2, 9])
    assert bits([x[good] for x in found]) == bits([x[good] for x in expected])
    assert bits([x[good] for x in found]) == bits(ours(name, *(a[good] for a in arrays)))
    assert all(np.isnan(x[[2, 9]]).all() for x in found if x.dtype.kind in "fc")
    assert all(np.isnan(x).all() for x in ours(name, *(a[2] for a in arrays), on_error="nan") if x.dtype.kind in "fc")


@pytest.mark.parametrize("name", FAILING)
def test_failures_in_stacks_of_several_axes(name):
    bad, message = bad_matrix(name)
    arrays = operands(name, (3, 4))
    arrays[0][1, 2] = bad
    with pytest.raises(linalg.LinAlgError) as raised:
        ours(name, *arrays)
    assert str(raised.value) == f"{message}: 1 of 12 matrices, at (1, 2)"
    arrays[0][:2] = bad
    with pytest.raises(linalg.LinAlgError, match=r"8 of 12 matrices, at \(0, 0\), .*\(1, 0\), \.\.\.$"):
        ours(name, *arrays)
    if len(arrays) > 1:  # indices are those of the first one, which is broadcast
        with pytest.raises(linalg.LinAlgError, match=r": 2 of 3 matrices, at \(0, 0\), \(1, 0\)$"):
            ours(name, arrays[0][:, :1], arrays[1])
        found = ours(name, arrays[0][:, :1], arrays[1], on_error="nan")
        assert all(np.isnan(x[:2]).all() and not np.isnan(x[2]).any() for x in found if x.dtype.kind in "fc")


@pytest.mark.parametrize("n", [48, pytest.param(33, marks=EVERY), pytest.param(64, marks=EVERY)])
@pytest.mark.parametrize("name", LARGER)
def test_more_rows_than_are_compiled_in(name, n):
    """Results are NumPy's, and depend neither on threads nor on other matrices."""
    keywords = {"on_error": "nan"} if name in CAN_FAIL else {}
    arrays = operands(name, n=n)
    numbers = [(1, 1)] * (len(ROWS[name].inputs) - len(arrays))  # tolerances
    assert ROWS[name].gains(*(a.shape for a in arrays), *numbers)
    expected = ours(name, *arrays, threads=1)
    assert_like(expected, numpys(name, *arrays), 1e-9)
    assert bits(ours(name, *(a[::-1] for a in arrays), threads=2)) == bits([x[::-1] for x in expected])
    arrays[0][4] = np.nan
    with np.errstate(invalid="ignore"):
        found = ours(name, *arrays, **keywords)
    good = np.delete(np.arange(NM), 4)
    assert bits([x[good] for x in found]) == bits([x[good] for x in expected])


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_where_it_is(name):
    """A matrix of NaN or infinity changes no other by a bit."""
    keywords = {"on_error": "nan"} if name in CAN_FAIL else {}
    arrays = operands(name)
    expected = ours(name, *arrays)
    for bad in np.nan, np.inf, 1e300:
        arrays[0][4] = bad
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = ours(name, *arrays, **keywords)
        except linalg.LinAlgError:
            assert not keywords
            continue
        others = np.arange(NM) != 4
        assert bits([x[others] for x in found]) == bits([x[others] for x in expected])


@pytest.mark.parametrize("name", NAMES)
def test_options(name):
    arrays = operands(name)
    parameters = inspect.signature(getattr(linalg, name)).parameters
    wrong = {"on_error": ["ignore", None, 1], "compute": ["single", 1, []], "threads": [0, -1, 1.5, "2"]}
    for option in wrong.keys() & parameters:
        for value in wrong[option]:
            with pytest.raises((ValueError, TypeError), match=option):
                ours(name, *arrays, **{option: value})


@pytest.mark.parametrize("name", NAMES)
def test_threads(name):
    """Neither theirs nor ours change a bit."""
    arrays = operands(name, (20_000 if ROWS[name].work(**SIZES) < 200 else 2000,))
    expected = bits(ours(name, *arrays, threads=1))
    assert bits(ours(name, *arrays)) == expected
    small, found = operands(name), []
    wanted = bits(ours(name, *small))

    def several():
        found.extend(bits(ours(name, *small)) == wanted for _ in range(50))
        found.append(bits(ours(name, *arrays)) == expected)

    together = [threading.Thread(target=several) for _ in range(3)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert len(found) == 153 and all(found)
