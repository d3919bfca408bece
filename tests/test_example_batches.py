"""Batches that solvers are tried on are what they say: chemistry, grids, and a plate that conducts heat."""

import re

import numpy as np
import pytest
import scipy.linalg

import compactla as cla
from compactla.examples import batches, chemistry, heat


@pytest.fixture
def gas(rng):
    """Hydrogen and air at several temperatures, with some of every other species."""
    y = chemistry.stoichiometric(np.array([900.0, 1400.0, 2800.0]), fuel=[0.5, 1.0, 2.0])
    y[:, :-1] += rng.random((3, chemistry.HYDROGEN.species))
    return y


def test_reactions_keep_atoms(gas):
    atoms = np.array([[count(name, atom) for name in chemistry.SPECIES] for atom in "HON"])
    assert not (chemistry.HYDROGEN.net @ atoms.T).any()


def count(name, atom):
    """The number of an atom in a species."""
    return sum(int(number or 1) for letter, number in re.findall(r"([A-Z])(\d?)", name) if letter == atom)


def test_reactions_keep_energy(gas):
    """The internal energy of a closed volume."""
    mechanism, change = chemistry.HYDROGEN, chemistry.HYDROGEN(gas)
    T = chemistry.KILO * gas[:, -1:]
    energy = mechanism.enthalpy + mechanism.heat * (T - chemistry.STANDARD) - chemistry.R * T
    heating = chemistry.KILO * change[:, -1] * (gas[:, :-1] @ (mechanism.heat - chemistry.R))
    np.testing.assert_allclose(heating, -(energy * change[:, :-1]).sum(axis=1), rtol=1e-12)


def test_gases_come_to_rest():
    y = batches.moments(chemistry.HYDROGEN, chemistry.stoichiometric(1200.0), 50, seconds=1.0)
    assert 2900 < chemistry.KILO * y[-1, -1] < 3200
    fastest = abs(chemistry.HYDROGEN(y))[:, -1]
    assert fastest[-1] < 1e-6 * fastest.max()


def test_one_way(gas):
    """A one-way reaction is the part of the two-way reaction that is left without products."""
    both, one = (chemistry.Mechanism.parse(chemistry.SPECIES, f"H + O2 {arrow} O + OH 1e14 0 9000", {})
                 for arrow in ("=", "=>"))  # fmt: skip
    assert (both(gas) != one(gas)).any()
    gas[:, [*chemistry.SPECIES].index("OH")] = 0
    np.testing.assert_array_equal(both(gas), one(gas))


@pytest.mark.parametrize("mechanism", [chemistry.HYDROGEN, chemistry.made_up(20, 60)], ids=["hydrogen", "made-up"])
def test_jacobian(mechanism, rng):
    """The Jacobian is the derivative by complex steps, and has nothing outside of the pattern."""
    y = np.append(rng.random((5, mechanism.species)), rng.uniform(1, 3, (5, 1)), axis=1)
    expected = np.stack([mechanism(y + 1e-30j * unit).imag / 1e-30 for unit in np.eye(mechanism.n)], axis=-1)
    J = mechanism.jacobian(y)
    np.testing.assert_allclose(J, expected, rtol=1e-9, atol=1e-13 * abs(expected).max())
    assert np.array_equal(mechanism.pattern(), (J != 0).any(axis=0) | np.eye(mechanism.n, dtype=bool))


@pytest.mark.parametrize("make", [batches.hydrogen, batches.larger])
def test_chemistry(make):
    data, indices, indptr = make(40)
    A = cla.BatchCSR((data, indices, indptr))
    assert A.shape == ((12, 12) if make is batches.hydrogen else (54, 54)) and A.nm == 40
    assert np.array_equal(data, make(40)[0]) and not np.array_equal(data, make(40, seed=1)[0])
    assert np.isfinite(data).all() and np.linalg.cond(A.toarray()).max() < 1e9


@pytest.mark.parametrize("make", [batches.five_point, batches.nine_point])
def test_grids(make):
    """Symmetric and positive definite without convection; with it still M-matrices, with sums of rows at the edges."""
    a = cla.BatchCSR(make(3, 5, 4)).toarray()
    np.testing.assert_array_equal(a, a.swapaxes(1, 2))
    assert np.linalg.eigvalsh(a).min() > 0
    data, indices, indptr = make(3, 5, 4, convection=2.0)
    a = cla.BatchCSR((data, indices, indptr)).toarray()
    assert (a != a.swapaxes(1, 2)).any() and (a[:, ~np.eye(20, dtype=bool)] <= 0).all()
    sums = a.sum(axis=2).reshape(3, 5, 4)
    np.testing.assert_allclose(sums[:, 1:-1, 1:-1], 0, atol=1e-12 * a.max())
    edge = np.ones((5, 4), bool)
    edge[1:-1, 1:-1] = False
    assert (sums[:, edge] > 0).all()
    assert np.diff(indptr).max() == (5 if make is batches.five_point else 9) and len(indices) == data.shape[1]


def test_heat(rng):
    """Steps of a plate are those with dense matrices, and keep the heat."""
    conductivity, u = rng.uniform(0.1, 1, (4, 5)), rng.random((4, 5))
    dense, columns = [], np.eye(20).reshape(20, 4, 5)
    for axis, (k, *_) in enumerate(heat.half_steps(conductivity, 2)):
        turned = columns.swapaxes(1, 2) if axis else columns
        spread = np.array([e - heat.explicit(k, e) for e in turned])
        dense.append((spread.swapaxes(1, 2) if axis else spread).reshape(20, 20).T)
    errors = []
    for steps in (20, 40):
        parts, x = [*heat.half_steps(conductivity, 1 / steps)], u
        for _ in range(steps):
            x = heat.step(x, parts)
        assert abs(x.sum() - u.sum()) < 1e-12
        errors.append(abs(x.ravel() - scipy.linalg.expm(-sum(dense)) @ u.ravel()).max())
    assert 3.5 < errors[0] / errors[1] < 4.5  # of second order


@pytest.mark.slow
def test_program(capsys, tmp_path):
    heat.main(["--cells", "20", "30", "--steps", "3", "--plot", str(tmp_path / "heat.png")])
    out = capsys.readouterr().out
    assert max(map(float, re.findall(r"(\S+) apart", out))) < 1e-12
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")
