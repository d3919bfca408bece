"""SciPy's own functions, also where ours are computed in their places: see `compactla.patch`."""

import functools
import math

import numpy as np
import scipy
from scipy import linalg
from scipy.linalg import LinAlgWarning  # noqa: F401 - SciPy's name, as it is

from compactla.linalg._numpy import copied
from compactla.linalg.arguments import common_lead

cho_factor, cho_solve = copied(linalg.cho_factor), copied(linalg.cho_solve)
expm, schur, hessenberg = copied(linalg.expm), copied(linalg.schur), copied(linalg.hessenberg)
sqrtm, logm = copied(linalg.sqrtm), copied(linalg.logm)
fractional_matrix_power, solve_sylvester = copied(linalg.fractional_matrix_power), copied(linalg.solve_sylvester)
solve_continuous_lyapunov = copied(linalg.solve_continuous_lyapunov)
solve_discrete_lyapunov = copied(linalg.solve_discrete_lyapunov)
ldl = copied(linalg.ldl)
eig, eigvals, eigh, eigvalsh = (copied(f) for f in (linalg.eig, linalg.eigvals, linalg.eigh, linalg.eigvalsh))
lu_factor, lu_solve = copied(linalg.lu_factor), copied(linalg.lu_solve)
solve = copied(linalg.solve)
solve_banded, solveh_banded = copied(linalg.solve_banded), copied(linalg.solveh_banded)
solve_triangular = copied(linalg.solve_triangular)


NEW = np.lib.NumpyVersion(scipy.__version__) >= "1.17.0"


def on_stacks(function, regular=lambda m, n, **_: np.eye(m, n), takes_stacks=False):
    """A function of SciPy on stacks of matrices, one after the other: not every version takes stacks, or empty ones.

    `regular` is a first matrix for which there are results, as of `compactla.linalg.failures.Failure`. A function that
    `takes_stacks` in new versions, of which it looks at the arguments once, is called once there.
    """

    @functools.wraps(function)
    def apply(*arrays, **options):
        lead = common_lead(arrays)
        if not lead:
            return function(*arrays, **options)
        if math.prod(lead):
            if takes_stacks and NEW:
                return function(*arrays, **options)
            stacks = [np.broadcast_to(a, lead + a.shape[-2:]).reshape(math.prod(lead), *a.shape[-2:]) for a in arrays]
            found = [function(*matrices, **options) for matrices in zip(*stacks, strict=True)]
            if isinstance(found[0], tuple):
                return tuple(np.stack(x).reshape(lead + np.shape(x[0])) for x in zip(*found, strict=True))
            return np.stack(found).reshape(lead + found[0].shape)
        first, *others = (np.zeros(a.shape[-2:], a.dtype) for a in arrays)
        first[...] = regular(*first.shape, **options)
        found = function(first, *others, **options)
        if isinstance(found, tuple):
            return tuple(np.empty(lead + np.shape(x), np.asarray(x).dtype) for x in found)
        return np.empty(lead + found.shape, found.dtype)

    return apply
