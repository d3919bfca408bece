"""Objects that hold factors, for processes that get them from others."""

import numpy as np

import compactla as cla
import reference
from cases import BATCH, dominant, random
from compactla.oracle import THRESHOLD
from solvers import make, matrices, ratio, sides

NAMES = "BlockTridiag", "rings in parts", "refined", "Tridiag", "LinePreconditioner", "BatchLU"


def problems(rng):
    """By names: what holds factors, right-hand sides, and the matrices."""
    a = dominant(rng, BATCH, 3, 3, np.float64)
    A = cla.pack(a)
    found = {"getrs": ((A, cla.getrf(A)[0]), random(rng, (BATCH, 3, 1), np.float64), a)}
    for name in NAMES:
        a = matrices(name, rng, np.float64)
        found[name] = make(name, a)[0], sides(name, rng, np.float64), a
    return found


def check(name, solver, rhs, a):
    """Solve, and see that residuals are as small as those of LAPACK's tests."""
    if name == "getrs":
        A, ipiv = solver
        x = cla.getrs(A, ipiv, cla.pack(rhs, A.vlen)).unpack()
        assert reference.solve_ratio(a, x, rhs) < THRESHOLD
    else:
        assert ratio(name, a, solver.solve(rhs), rhs) < THRESHOLD, name
