"""Calls with NumPy arrays like those of an earlier call, of which only the differences are checked."""

import functools

import numpy as np
from numpy import ndarray

from compactla.calls.launch import NOW
from compactla.calls.plans import Plans, signature
from compactla.checks import check_launch
from compactla.cpu.kron import apply as cpu
from compactla.kron.problem import KronProblem
from compactla.overlap import address, reach
from compactla.scalars import scalar

SEQUENCES = tuple, list
RECENT = 8  # addresses of arrays that a plan remembers


class KronPlan:
    """A plan for Kronecker products of arrays of these types, shapes and strides.

    Parameters
    ----------
    name : {"kron", "sum"}
        The product.
    problem : compactla.kron.problem.KronProblem
        A problem with such arrays, which was solved.
    arrays : sequence of ndarray
        The factors and X, as they were passed.
    out : ndarray
        Y.
    """

    def __init__(self, name, problem, arrays, out):
        self.name, self.sizes = name, (problem.d, problem.e)
        self.nm, self.shape, self.dtype = problem.nm, out.shape, out.dtype
        self.layouts = tuple(map(cpu.placed, (*problem.operands, problem.X, out)))
        self.signs = tuple(problem.signs)
        start, end = reach(out)
        self.near = [(start - last, end - first) for first, last in map(reach, arrays)]
        self.found = functools.lru_cache(RECENT)(self._found)

    def _found(self, adds, *starts):
        """What computes for arrays at these addresses, Y as the last one; None if Y shares memory with another.

        Also what has to live as long.
        """
        *others, y = starts
        for x, (low, high) in zip(others, self.near, strict=True):
            if low < x - y < high:
                return None
        found = cpu.chosen(self.name, self.dtype, *self.sizes, self.layouts, self.signs, adds, self.nm)
        arguments = found.arguments_at(self.nm, starts)
        return cpu.again(found, arguments, self.nm, self.dtype), arguments

    def run(self, arrays, out, alpha, beta, launch):
        """Y, or None if something is not as it mostly is, and has to be looked at."""
        alpha, beta = scalar("alpha", alpha, self), scalar("beta", beta, self)
        if alpha == 0 or (beta != 0 if out is None else not out.flags.writeable):
            return None
        if out is None:
            out = np.empty(self.shape, self.dtype)
        found = self.found(beta != 0, *map(address, arrays), address(out))
        if found is None:
            return None
        compute, _ = found
        compute((alpha, beta), launch)
        return out


plans = Plans()


def apply(name, factors, X, out, alpha, beta, trans, transx, work, threads, wait_for):
    """Y of `kron_apply`, or of `kron_sum_apply`, by name."""
    key, arrays = None, ()
    if work is wait_for is None and type(factors) in SEQUENCES and type(trans) is type(transx) is str:
        arrays = (*factors, X)
        for a in arrays:
            if type(a) is not ndarray:
                break
        else:
            if out is None:
                key = name, trans, transx, False, signature(arrays)
            elif type(out) is ndarray:
                key = name, trans, transx, True, signature((*arrays, out))
    plan = plans.known.get(key)
    if plan is not None:
        launch = NOW if threads is None else check_launch(threads, None, None)
        result = plan.run(arrays, out, alpha, beta, launch)
        if result is not None:
            return result
    problem = KronProblem(factors, X, trans, transx)
    if name == "sum":
        problem.check_square("factors")
    result = problem.run(name, out, alpha, beta, work, threads, wait_for)
    if key is not None and plan is None and problem.is_planned(arrays):
        plans.add(key, KronPlan(name, problem, arrays, result))
    return result
