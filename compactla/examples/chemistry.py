"""Chemical mechanisms in NumPy, over many cells at once: rates and their Jacobians.

`HYDROGEN` is that of hydrogen and air with thermal NO: 11 species, 24 reactions. Gases are ideal, volumes constant and
closed to heat. Of a gas in a cell there are the concentrations of species in mol/m^3 and, last, its temperature in
1000 K, which makes them numbers of about one size.

References
----------
.. [1] Li et al., "An updated comprehensive kinetic model of hydrogen combustion", Int. J. Chem. Kinet. 36 (2004): rates
   of hydrogen. Where these fall off with pressure, their limits for low pressure stand for them.
.. [2] Smith et al., GRI-Mech 3.0: rates of nitrogen.
"""

import functools
import re

import numpy as np

R, CALORIE = 8.314462618, 4.184  # J/mol/K; J
STANDARD, ATMOSPHERE, KILO = 298.15, 101325.0, 1000.0  # K; Pa; K in a unit of temperature

# Enthalpy of formation in kJ/mol, entropy in J/mol/K, and heat capacity, as between 300 and 2500 K, in J/mol/K.
SPECIES = {
    "H2": (0, 130.7, 31.6),
    "O2": (0, 205.1, 35.6),
    "H": (218.0, 114.7, 20.8),
    "O": (249.2, 161.1, 21.0),
    "OH": (37.3, 183.7, 32.0),
    "H2O": (-241.8, 188.8, 43.5),
    "HO2": (12.3, 229.1, 50.0),
    "H2O2": (-135.9, 234.5, 62.0),
    "N2": (0, 191.6, 33.6),
    "N": (472.7, 153.3, 20.8),
    "NO": (91.3, 210.8, 34.5),
}
# A in mol, cm and s, b, and E in cal/mol, of the rates A T^b exp(-E / R T); "=>" is for one way.
REACTIONS = """
    H + O2 = O + OH           3.547e15  -0.406  16599
    O + H2 = H + OH           5.08e4     2.67    6290
    H2 + OH = H2O + H         2.16e8     1.51    3430
    O + H2O = OH + OH         2.97e6     2.02   13400
    H2 + M = H + H + M        4.577e19  -1.40  104380
    O + O + M = O2 + M        6.165e15  -0.50       0
    O + H + M = OH + M        4.714e18  -1.00       0
    H + OH + M = H2O + M      3.8e22    -2.00       0
    H + O2 + M = HO2 + M      6.366e20  -1.72   524.8
    HO2 + H = H2 + O2         1.66e13    0        823
    HO2 + H = OH + OH         7.079e13   0        295
    HO2 + O = O2 + OH         3.25e13    0          0
    HO2 + OH = H2O + O2       2.89e13    0       -497
    HO2 + HO2 = H2O2 + O2     4.2e14     0      11982
    HO2 + HO2 = H2O2 + O2     1.3e11     0    -1629.3
    H2O2 + M = OH + OH + M    1.202e17   0      45500
    H2O2 + H = H2O + OH       2.41e13    0       3970
    H2O2 + H = HO2 + H2       4.82e13    0       7950
    H2O2 + O = OH + HO2       9.55e6     2       3970
    H2O2 + OH = HO2 + H2O     1e12       0          0
    H2O2 + OH = HO2 + H2O     5.8e14     0       9557
    N + NO = N2 + O           2.7e13     0        355
    N + O2 = NO + O           9e9        1       6500
    N + OH = NO + H           3.36e13    0        385
"""
EFFICIENCIES = {"H2": 2.5, "H2O": 12.0}  # of third bodies M; 1 for all others


def in_parts(function, gases=500):
    """A method of gases (..., n), which is called for as many of them at a time as caches hold."""

    @functools.wraps(function)
    def call(self, y):
        if y.ndim == 1 or len(y) <= gases:
            return function(self, y)
        return np.concatenate([function(self, part) for part in np.split(y, range(gases, len(y), gases))])

    return call


class Mechanism:
    """A mechanism of reactions with one or two species on either side, and maybe a third body.

    Parameters
    ----------
    thermo : (species, 3) array_like
        Enthalpies of formation in J/mol, entropies and heat capacities in J/mol/K, which are constant.
    sides : (2, reactions, 2) array_like of int
        Species on the left and on the right; their number, which is none of them, in place of a second one.
    rates : (reactions, 3) array_like
        ln A in mol, m and s, b, and E in J/mol.
    third, both : (reactions,) array_like of bool
        Whether there is a third body; whether a reaction goes back too, as its equilibrium demands.
    efficiency : (species,) array_like
        Efficiencies of third bodies.
    """

    def __init__(self, thermo, sides, rates, third, both, efficiency):
        self.enthalpy, self.entropy, self.heat = np.asarray(thermo, float).T
        self.left, self.right = np.asarray(sides)
        self.rates, self.third, self.both = np.asarray(rates, float).T, np.asarray(third), np.asarray(both)
        self.efficiency = self.third[:, None] * np.asarray(efficiency, float)
        self.species, self.n = len(self.heat), len(self.heat) + 1
        count = np.eye(self.n)[:, :-1]  # a row for each species, and one for none
        self.net = (count[self.right] - count[self.left]).sum(axis=1)

    @classmethod
    def parse(cls, species, reactions, efficiencies):
        """A mechanism that is written down as above."""
        number = {name: k for k, name in enumerate(species)}
        sides, rates, third, both = [], [], [], []
        for line in reactions.strip().splitlines():
            equation, A, b, E = line.rsplit(maxsplit=3)
            names = [re.findall(r"\w+", side) for side in equation.split("=")]
            third.append("M" in names[0])
            both.append("=>" not in equation)
            rates.append((np.log(float(A) * 1e-6 ** (len(names[0]) - 1)), float(b), float(E) * CALORIE))
            found = [[number[name] for name in side if name != "M"] for side in names]
            sides.append([(*side, len(species))[:2] for side in found])
        thermo = [(KILO * enthalpy, entropy, heat) for enthalpy, entropy, heat in species.values()]
        efficiency = [efficiencies.get(name, 1.0) for name in species]
        return cls(thermo, np.swapaxes(sides, 0, 1), rates, third, both, efficiency)

    @in_parts
    def __call__(self, y):
        """The rates of change of gases y, (..., n), per second: (..., n)."""
        c, T, energy, _ = self._state(y)
        rates = self._net_rates(c, T)[0] @ self.net
        return np.concatenate([rates, self._heating(c, energy, rates)[0]], axis=-1)

    @in_parts
    def jacobian(self, y):
        """The derivatives of that by y: (..., n, n)."""
        c, T, energy, enthalpy = self._state(y)
        q, (forward, back), bodies = self._net_rates(c, T)
        rates = q @ self.net
        _, b, E = self.rates
        steeper = b / T + E / (R * T**2)
        backward = steeper - (enthalpy @ self.net.T) / (R * T**2) + self.net.sum(axis=1) / T
        c = np.append(c, np.ones_like(T), axis=-1)
        every = np.arange(len(self.third))
        slope = np.zeros((*q.shape, self.n))  # of the rates of reactions; what is by none goes where those by T come
        slope[..., :-1] = self.efficiency * (forward[1] - back[1])[..., None]
        for side, k in ((self.left, bodies * forward[0]), (self.right, -bodies * back[0])):
            for one, other in (side.T, side.T[::-1]):
                slope[..., every, one] += k * c[..., other]
        slope[..., -1] = KILO * bodies * (steeper * forward[1] - backward * back[1])
        J = np.empty((*rates.shape[:-1], self.n, self.n))
        J[..., :-1, :] = self.net.T @ slope
        heating, capacity = self._heating(c[..., :-1], energy, rates)
        cv = self.heat - R
        J[..., -1, :] = -(energy[..., None, :] @ J[..., :-1, :])[..., 0, :] / KILO
        J[..., -1, :-1] -= heating * cv
        J[..., -1, -1] -= rates @ cv
        J[..., -1, :] /= capacity
        return J

    def pattern(self):
        """(n, n) of bool: where the Jacobian is not zero, whatever a gas is; and the diagonal."""
        gas = np.append(np.random.default_rng(0).random(self.species), 1.0)
        return (self.jacobian(gas) != 0) | np.eye(self.n, dtype=bool)

    def _state(self, y):
        c, T = y[..., :-1], KILO * y[..., -1:]
        enthalpy = self.enthalpy + self.heat * (T - STANDARD)
        return c, T, enthalpy - R * T, enthalpy

    def _net_rates(self, c, T):
        """Rates of reactions; constants and products of concentrations, forth and back; third bodies."""
        lnA, b, E = self.rates
        lnT = np.log(T)
        lnk = lnA + b * lnT - E / (R * T)
        gibbs = (self.enthalpy + self.heat * (T - STANDARD)) / (R * T)
        gibbs = gibbs - (self.entropy + self.heat * (lnT - np.log(STANDARD))) / R
        lnK = self.net.sum(axis=1) * np.log(ATMOSPHERE / (R * T)) - gibbs @ self.net.T
        forward, back = np.exp(lnk), self.both * np.exp(lnk - lnK)
        bodies = c @ self.efficiency.T + ~self.third
        c = np.append(c, np.ones_like(T), axis=-1)
        forth, reverse = (k * c[..., a] * c[..., b] for k, (a, b) in ((forward, self.left.T), (back, self.right.T)))
        return bodies * (forth - reverse), ((forward, forth), (back, reverse)), bodies

    def _heating(self, c, energy, rates):
        """The rise of the temperature per second, and the heat capacity, at constant volume."""
        capacity = (c @ (self.heat - R))[..., None]
        return -(energy * rates).sum(axis=-1, keepdims=True) / (KILO * capacity), capacity


HYDROGEN = Mechanism.parse(SPECIES, REACTIONS, EFFICIENCIES)


def made_up(species=53, reactions=300, third=20, seed=0):
    """A mechanism by chance, of the size and density of GRI-Mech 3.0: A + B = C + D, and A + M = B + M."""
    rng = np.random.default_rng(seed)
    names = rng.permuted(np.tile(np.arange(species), (reactions, 1)), axis=1)[:, :4]
    sides = names.reshape(reactions, 2, 2).swapaxes(0, 1).copy()
    bodies = np.arange(reactions) < third
    sides[:, bodies, 1] = species
    thermo = np.stack([rng.uniform(-1e5, 1e5, species), np.full(species, 200.0), rng.uniform(30, 60, species)], axis=1)
    rates = rng.uniform([np.log(10), 0, 2e4], [np.log(1e6), 0.5, 1.5e5], (reactions, 3))
    return Mechanism(thermo, sides, rates, bodies, np.ones(reactions, bool), np.ones(species))


def stoichiometric(temperature, fuel=1.0):
    """Hydrogen and air at one atmosphere, so many times as much hydrogen as oxygen burns: (..., 12)."""
    T = np.asarray(temperature, float)[..., None]
    moles = np.zeros((*np.broadcast_shapes(T.shape[:-1], np.shape(fuel)), HYDROGEN.n))
    moles[..., :2], moles[..., [*SPECIES].index("N2")] = 1.0, 3.76
    moles[..., 0] = 2 * np.asarray(fuel)
    y = moles / moles.sum(axis=-1, keepdims=True) * ATMOSPHERE / (R * T)
    y[..., -1:] = T / KILO
    return y
