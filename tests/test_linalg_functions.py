"""Functions of matrices by Schur forms, and Sylvester's and Lyapunov's equations, beside SciPy's."""

import warnings

import numpy as np
import pytest
import scipy.linalg

from cases import exhaustive, random, same_bits, slow
from compactla import linalg

FUNCTIONS = {"sqrtm": (), "logm": (), "fractional_matrix_power": (0.4,)}


def ours(name, a, **keywords):
    return getattr(linalg, name)(a, *FUNCTIONS[name], **keywords)


def scipys(name, a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.stack([getattr(scipy.linalg, name)(matrix, *FUNCTIONS[name]) for matrix in a])


def error(x, y):
    """Relative distances."""
    size = np.abs(y).max((1, 2))
    return np.abs(x - y).max((1, 2)) / np.where(size == 0, 1, size)


def similar(rng, T):
    """A matrix with this Schur form, or one that is similar to this one, by a well-conditioned transformation."""
    n = len(T)
    V = random(rng, (n, n), np.float64) + 2 * np.eye(n)
    return V @ T @ np.linalg.inv(V)


def special(rng):
    """Matrices that are hard, and whose functions SciPy finds."""
    pair = np.array([[0.0, 1], [-1, 0]])
    block = scipy.linalg.block_diag
    yield similar(rng, np.diag([2.0, 2, 2, 2]) + np.eye(4, k=1))  # defective
    yield similar(rng, block(pair, 2 * pair))
    yield similar(rng, block(pair + np.eye(2), 3, 4))
    yield np.eye(4)
    yield np.eye(4) + 1e-6 * random(rng, (4, 4), np.float64)
    yield scipy.linalg.companion([1.0, -10, 35, -50, 24])
    yield np.triu(np.ones((4, 4))) + 100 * np.eye(4, k=1)
    yield np.linalg.qr(random(rng, (4, 4), np.float64))[0] @ block(pair, 1, 1)
    yield 1e-150 * similar(rng, np.diag([1.0, 2, 3, 4]))
    yield 1e150 * similar(rng, np.diag([1.0, 2, 3, 4]))
    yield (a := random(rng, (4, 4), np.float64)) @ a.T + np.eye(4)
    yield similar(rng, np.diag([1e-3, 1, 1e3, 1]))


@pytest.mark.filterwarnings("ignore:The logm input matrix", "ignore:logm result may be inaccurate:RuntimeWarning")
@pytest.mark.parametrize("name", [slow("sqrtm"), *(exhaustive(name) for name in FUNCTIONS if name != "sqrtm")])
def test_special_matrices(rng, name):
    for a in special(rng):
        a = a[None]
        x, y = ours(name, a), scipys(name, a)
        assert error(x, y).max() < 1e-8
        if name == "sqrtm":
            assert error(x @ x, a).max() < max(1e-13, 10 * error(y @ y, a).max())
    for a in (-np.eye(3), similar(rng, np.diag([-1.0, 2, 3])), np.diag([-4.0, 1, 2])):
        x, y = ours(name, a[None]), scipys(name, a[None])
        assert x.dtype == y.dtype == np.complex128 and error(x, y).max() < 1e-11


@pytest.mark.parametrize(
    ("n", "dtype"), [(5, "d"), slow(2, "F"), slow(9, "D"), *(exhaustive(*x) for x in ((20, "d"), (3, "f"), (35, "d")))]
)
@pytest.mark.parametrize("name", ["sqrtm", slow("logm"), exhaustive("fractional_matrix_power")])
def test_functions(rng, name, n, dtype):
    a = random(rng, (19, n, n), dtype)
    close = 1e-3 if dtype in "fF" else 1e-9
    positive = a @ a.conj().swapaxes(1, 2) + (n * np.eye(n)).astype(dtype)  # Hermitian
    mixed = positive + np.where(np.arange(19) % 2, 0.3, 0)[:, None, None].astype(dtype) * a
    for given in (positive, mixed, a):
        x, y = ours(name, given), scipys(name, given)
        assert x.dtype == y.dtype and x.shape == given.shape
        assert error(x, y).max() < close
    np.testing.assert_allclose(ours(name, a[3]), x[3], rtol=close)
    x, alone = ours(name, mixed), ours(name, np.repeat(mixed[3:4], 19, axis=0))
    if alone.dtype == x.dtype:
        assert same_bits(alone[0], x[3])
    x = ours(name, a)
    if n <= 32:  # else SciPy computes them
        assert same_bits(ours(name, a.reshape(1, 19, n, n))[0], x)


@pytest.mark.parametrize("name", ["sqrtm", slow("logm"), exhaustive("fractional_matrix_power")])
def test_singular_matrices_and_nan_stay_alone(rng, name):
    a = random(rng, (11, 5, 5), np.float64) + 4 * np.eye(5)
    good = ours(name, a)
    others = np.delete(np.arange(11), [2, 6])
    a[2] = np.diag([0.0, 1, 2, 3, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = ours(name, a)
        np.testing.assert_allclose(x[2], scipys(name, a[2:3])[0], rtol=1e-12, atol=1e-12)
        a[6, 1, 1] = np.nan
        if name != "sqrtm":
            with pytest.raises(ValueError, match="infs or NaNs: 1 of 11 matrices, at 6"):
                ours(name, a)
        x = ours(name, a, on_error="nan")
    assert np.isnan(x[6]).all() and same_bits(x[others], good[others])


@pytest.mark.slow
def test_powers(rng):
    a = random(rng, (3, 4, 4), np.float64) + 3 * np.eye(4)
    for t in (-2.3, 0.1, 3.7):
        expected = np.stack([scipy.linalg.fractional_matrix_power(matrix, t) for matrix in a])
        assert error(linalg.fractional_matrix_power(a, t), expected).max() < 1e-11
    np.testing.assert_array_equal(linalg.fractional_matrix_power(a, 2), np.linalg.matrix_power(a, 2))


def outcome(function, *args):
    try:
        x = function(*args)
        return x.shape, x.dtype
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_arguments(name):
    function = getattr(scipy.linalg, name)
    for given in (
        [[4, 0], [0, 4]],
        [[4.0]],
        np.ones(3),
        np.ones((2, 3)),
        np.float16([[4, 0], [0, 4]]),
        np.zeros((0, 0)),
    ):
        assert outcome(getattr(linalg, name), given, *FUNCTIONS[name]) == outcome(function, given, *FUNCTIONS[name])


EQUATIONS = {
    "solve_sylvester": lambda a, b, q, x: a @ x + x @ b - q,
    "solve_continuous_lyapunov": lambda a, q, x: a @ x + x @ a.conj().swapaxes(-1, -2) - q,
    "solve_discrete_lyapunov": lambda a, q, x: a @ x @ a.conj().swapaxes(-1, -2) - x + q,
}


def matrices(name, rng, n, dtype):
    m = n + 1 if name == "solve_sylvester" else n
    shapes = [(m, m), (n, n), (m, n)] if m != n else [(n, n), (n, n)]
    return [random(rng, (11, *shape), dtype) for shape in shapes]


@pytest.mark.parametrize(("n", "dtype"), [(3, "d"), slow(1, "D"), slow(9, "F"), slow(17, "d"), slow(34, "f")])
@pytest.mark.parametrize(
    "name", ["solve_continuous_lyapunov", slow("solve_sylvester"), slow("solve_discrete_lyapunov")]
)
def test_equations(name, n, dtype, rng):
    given = matrices(name, rng, n, dtype)
    x = getattr(linalg, name)(*given)
    expected = np.stack([getattr(scipy.linalg, name)(*some) for some in zip(*given, strict=True)])
    assert x.dtype == expected.dtype and x.shape == expected.shape
    eps = np.finfo(dtype).eps
    size = np.abs(x).max((1, 2)) * (1 + np.abs(given[0]).sum(-1).max(-1)) ** 2 + np.abs(given[-1]).max((1, 2))
    assert (np.abs(EQUATIONS[name](*given, x)).max((1, 2)) < 30 * n * eps * size).all()
    alone = getattr(linalg, name)(*(np.repeat(a[3:4], 11, axis=0) for a in given))
    assert same_bits(alone[0], x[3])


@pytest.mark.parametrize(
    "name", ["solve_continuous_lyapunov", slow("solve_sylvester"), slow("solve_discrete_lyapunov")]
)
def test_equations_that_fail(name, rng):
    given = matrices(name, rng, 3, "d")
    function, others = getattr(linalg, name), np.delete(np.arange(11), 4)
    good = function(*given)
    for i, array in enumerate(given):
        wrong = [a.copy() for a in given]
        wrong[i][4, 0, 0] = np.inf
        if name == "solve_sylvester" and array is given[-1]:  # which SciPy takes
            assert np.isnan(function(*wrong)[4]).all()
        else:
            with pytest.raises(ValueError, match="infs or NaNs: 1 of 11 matrices, at 4"):
                function(*wrong)
        x = function(*wrong, on_error="nan")
        assert np.isnan(x[4]).all() and same_bits(x[others], good[others])
    for a, shape in ((given[0][0], given[-1].shape), (given[0][:, :2], given[0].shape)):
        with pytest.raises(ValueError):
            function(a, *given[1:-1], np.ones((*shape[:-2], 7, 5)))


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning", "ignore:An ill-conditioned matrix")
def test_discrete_equations_without_a_solution():
    a = np.reshape([0.5, 1, 1e300], (3, 1, 1))
    with pytest.raises(linalg.LinAlgError, match="singular, or has no finite solution: 1 of 2 matrices, at 1"):
        linalg.solve_discrete_lyapunov(a[:2], np.eye(1))
    x = linalg.solve_discrete_lyapunov(a, np.eye(1), on_error="nan")
    assert abs(x[0, 0, 0] - 4 / 3) < 1e-15 and np.isnan(x[1, 0, 0]) and not x[2, 0, 0] > 0


def test_empty_stacks_and_options():
    empty = np.zeros((0, 3, 3))
    for name, others in FUNCTIONS.items():
        assert getattr(linalg, name)(empty, *others).shape == (0, 3, 3)
        for options in {"on_error": "no"}, {"compute": "no"}, {"threads": 0}:
            with pytest.raises(ValueError, match=next(iter(options))):
                getattr(linalg, name)(np.eye(3), *others, **options)
    for name in EQUATIONS:
        given = (empty,) * (3 if name == "solve_sylvester" else 2)
        assert getattr(linalg, name)(*given).shape == (0, 3, 3)
        with pytest.raises(ValueError, match="on_error"):
            getattr(linalg, name)(*given, on_error="no")


def test_functions_of_one_number_that_is_not_finite():
    a = np.array([[[4.0]], [[np.inf]]])
    for name, value in ("logm", np.log(4)), ("fractional_matrix_power", 4**0.4):
        with pytest.raises(ValueError, match="1 of 2 matrices, at 1"):
            ours(name, a)
        x = ours(name, a, on_error="nan")
        assert abs(x[0] - value) < 1e-15 and np.isnan(x[1]).all()


def test_powers_of_singular_matrices():
    a = np.array([[[1.0, 2], [2, 4]], [[4, 0], [0, 1]]])
    x = linalg.fractional_matrix_power(a, -0.5)
    assert np.isnan(x[0]).all() and np.allclose(x[1], np.diag([0.5, 1]))
    assert np.isnan(linalg.fractional_matrix_power(a, -1, on_error="nan")[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_matrices(rng, size):
    """As accurate as those that are near one."""
    a = random(rng, (9, 3, 3), np.float64) + 2 * np.eye(3)
    scale = 2.0 ** np.round(np.log2(size))
    x, y = linalg.logm(a * scale), linalg.logm(a) + np.log(scale) * np.eye(3)
    assert error(x, y).max() < 1e-12
    x = linalg.fractional_matrix_power(a * scale, 0.5) / np.sqrt(scale)
    assert error(x @ x, a).max() < 1e-12


def test_eigenvalues_whose_sum_is_zero():
    a = np.stack([np.diag([1.0, 2]), np.diag([1.0, -1]), np.diag([-1.0, -2])])
    with pytest.warns(RuntimeWarning, match="eigenvalue pair"):
        x = linalg.solve_continuous_lyapunov(a, np.eye(2))
    np.testing.assert_allclose(x[[0, 2]], [np.diag([0.5, 0.25]), -np.diag([0.5, 0.25])])
