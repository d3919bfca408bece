"""The functions of NumPy and SciPy that have counterparts here, and the calls in which those gain."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
import scipy.linalg
from numpy import ndarray

from compactla import linalg
from compactla.calls.plans import Plans
from compactla.linalg import _dispatched, _numpy, _scipy
from compactla.linalg.cho_factor import CHO_FACTOR
from compactla.linalg.cho_solve import CHO_SOLVE
from compactla.linalg.cholesky import CHOLESKY
from compactla.linalg.det import DET, SLOGDET
from compactla.linalg.eig import EIG, EIGVALS
from compactla.linalg.eigh import EIGH, EIGVALSH
from compactla.linalg.expm import EXPM
from compactla.linalg.fractional_matrix_power import POWER
from compactla.linalg.inv import INV
from compactla.linalg.ldl import LDL
from compactla.linalg.logm import LOGM
from compactla.linalg.lu import LU_FACTOR, LU_SOLVE
from compactla.linalg.matmul import gains as matmul_gains
from compactla.linalg.pinv import PINV
from compactla.linalg.qr import QR
from compactla.linalg.schur import HESSENBERG, SCHUR
from compactla.linalg.solve import SOLVE
from compactla.linalg.solve_banded import SOLVE_BANDED
from compactla.linalg.solve_triangular import SOLVE_TRIANGULAR
from compactla.linalg.solveh_banded import SOLVEH_BANDED
from compactla.linalg.sqrtm import SQRTM
from compactla.linalg.svd import FULL
from compactla.linalg.sylvester import CONTINUOUS, DISCRETE, SYLVESTER
from compactla.patch import scipys

# Letters of types that they compute with in double precision. SciPy has single precision too: in its tests, stacks have
# the bits of single matrices there.
NUMPYS, SCIPYS = frozenset("fdFD?bBhHiIlLqQ"), scipys.KNOWN


@dataclass(frozen=True)
class Target:
    """A function that has a counterpart.

    Attributes
    ----------
    name : str
        Its name, with that of the module.
    function : function
        The function in Python whose code is replaced.
    theirs : function
        The same, whatever code it has later.
    ours : function
        The counterpart, of the same arguments.
    condition : str
        When that is called, as of `compactla.patch.codes.choosing`.
    choose : function
        For the condition.
    """

    name: str
    function: FunctionType
    theirs: Callable
    ours: Callable
    condition: str
    choose: Callable


def columns(b: Any) -> tuple[int, ...]:
    """The shape of right-hand sides that are a vector if they have one axis."""
    return b.shape if b.ndim > 1 else (*b.shape, 1)


def power_gains(a: Any) -> bool:
    return a.shape[-1] == a.shape[-2] and matmul_gains(a, a)


# Of functions: which of their arguments are arrays, and whether there is a kernel for arrays of these shapes.
NUMPY: dict[str, tuple[str, Callable]] = {
    "cholesky": ("a", lambda a: CHOLESKY.gains(a.shape)),
    "det": ("a", lambda a: DET.gains(a.shape)),
    "eig": ("a", lambda a: EIG.gains(a.shape)),
    "eigh": ("a", lambda a: EIGH.gains(a.shape)),
    "eigvals": ("a", lambda a: EIGVALS.gains(a.shape)),
    "eigvalsh": ("a", lambda a: EIGVALSH.gains(a.shape)),
    "inv": ("a", lambda a: INV.gains(a.shape)),
    "matmul": ("x1 x2", matmul_gains),
    "matrix_power": ("a", power_gains),
    "pinv": ("a", lambda a: PINV.gains(a.shape, (1, 1))),
    "qr": ("a", lambda a: QR["reduced"].gains(a.shape)),
    "slogdet": ("a", lambda a: SLOGDET.gains(a.shape)),
    "solve": ("a b", lambda a, b: SOLVE.gains(a.shape, columns(b))),
    "svd": ("a", lambda a: FULL.gains(a.shape)),
}
# SciPy's likewise, and arguments with a stack of one matrix.
ONE, PIVOTS = np.ones((1, 1, 1)), np.zeros((1, 1), np.int32)
SCIPY: dict[str, tuple[str, Callable, tuple]] = {
    "cho_factor": ("a", lambda a: CHO_FACTOR.gains(a.shape), (ONE,)),
    "cho_solve": ("c_and_lower[0] b", lambda c, b: CHO_SOLVE.gains(c.shape, columns(b)), ((ONE, False), ONE)),
    "eig": ("a", lambda a: EIG.gains(a.shape), (ONE,)),
    "eigh": ("a", lambda a: EIGH.gains(a.shape), (ONE,)),
    "eigvals": ("a", lambda a: EIGVALS.gains(a.shape), (ONE,)),
    "eigvalsh": ("a", lambda a: EIGVALSH.gains(a.shape), (ONE,)),
    "expm": ("A", lambda a: a.shape[-1] > 1 and EXPM.gains(a.shape), (ONE,)),
    "ldl": ("A", lambda a: LDL[True].gains(a.shape), (ONE,)),
    "fractional_matrix_power": ("A", lambda a: a.shape[-1] > 1 and POWER[True].gains(a.shape, (1, 1)), (ONE, 0.5)),
    "logm": ("A", lambda a: a.shape[-1] > 1 and LOGM[True].gains(a.shape), (ONE,)),
    "hessenberg": ("a", lambda a: a.shape[-1] > 2 and HESSENBERG[True, True].gains(a.shape), (ONE, True)),
    "lu_factor": ("a", lambda a: LU_FACTOR[True].gains(a.shape), (ONE,)),
    "lu_solve": (
        "lu_and_piv[0] lu_and_piv[1] b",
        lambda lu, piv, b: LU_SOLVE[True].gains(lu.shape, (*piv.shape, 1), columns(b)),
        ((ONE, PIVOTS), ONE),
    ),
    "schur": ("a", lambda a: scipys.are_many(a) and SCHUR[True].gains(a.shape), (ONE,)),
    "solve": ("a b", lambda a, b: a.shape[-1] > 1 and SOLVE.gains(a.shape, columns(b)), (ONE, ONE)),
    "solve_banded": ("ab b", lambda ab, b: SOLVE_BANDED.kernel.gains(ab.shape, columns(b)), ((0, 0), ONE, ONE)),
    "solve_continuous_lyapunov": ("a q", lambda a, q: CONTINUOUS.gains(a.shape, q.shape), (ONE, ONE)),
    "solve_discrete_lyapunov": ("a q", lambda a, q: DISCRETE.gains(a.shape, q.shape), (0.5 * ONE, ONE)),
    "solve_sylvester": ("a b q", lambda a, b, q: SYLVESTER.gains(a.shape, b.shape, q.shape), (ONE, ONE, ONE)),
    "solve_triangular": ("a b", lambda a, b: SOLVE_TRIANGULAR.gains(a.shape, columns(b)), (ONE, ONE)),
    "solveh_banded": ("ab b", lambda ab, b: SOLVEH_BANDED.kernel.gains(ab.shape, columns(b)), (ONE, ONE)),
    "sqrtm": ("A", lambda a: a.shape[-1] > 1 and SQRTM[True].gains(a.shape), (ONE,)),
}
# What else must be true: pairs may be anything, and SciPy's factors of a stack have as many values of `lower`.
PAIR = "isinstance({0}, (tuple, list)) and len({0}) == 2"
LOWER = "(isinstance({0}, int) or type({0}) is ndarray and {0}.size and {0}.min() == {0}.max())"
ALSO = {
    "cho_solve": f"{PAIR.format('c_and_lower')} and {LOWER.format('c_and_lower[1]')}",
    "lu_solve": PAIR.format("lu_and_piv"),
}


@functools.cache
def targets() -> tuple[Target, ...]:
    """The functions that can be patched, of the versions of NumPy and SciPy that are here."""
    return *of_numpy(), *of_scipy()


def of_numpy() -> Iterator[Target]:
    for name, (arrays, gains) in NUMPY.items():
        function, ours = _numpy.implementation(getattr(_dispatched, name, None)), inspect.unwrap(getattr(linalg, name))
        if takes(ours, function):  # NumPy 1 lacks some
            condition, choose = condition_for(function, arrays), of_shapes(gains, NUMPYS)
            yield Target(f"numpy.linalg.{name}", function, getattr(_numpy, name), ours, condition, choose)


def of_scipy() -> Iterator[Target]:
    for name, (arrays, gains, one) in SCIPY.items():
        function = getattr(scipy.linalg, name)
        ours = getattr(scipys, name, None) or inspect.unwrap(getattr(linalg, name))
        theirs = getattr(_scipy, name)
        if takes(ours, function):
            try:
                example = theirs(*one)
            except ValueError:  # of versions that take no stacks
                continue
            condition = condition_for(function, arrays, ALSO.get(name, ""))
            yield Target(
                f"scipy.linalg.{name}", function, theirs, like(example, ours), condition, of_shapes(gains, SCIPYS)
            )


def condition_for(function: FunctionType, arrays: str, also: str = "") -> str:
    """When ours may be called: where all these arguments are NumPy's arrays, and one is of more than two axes."""
    given, terms = arrays.split(), [also] if also else []
    code = function.__code__
    if code.co_argcount:
        terms += [f"type({x}) is ndarray" for x in given]
    else:  # the function has any arguments, and passes them on
        places = [*inspect.signature(function).parameters]
        rest, options = code.co_varnames[code.co_kwonlyargcount :][:2]
        for x in given:
            i = places.index(x)
            terms.append(f"type(_{x} := {rest}[{i}] if len({rest}) > {i} else {options}.get({x!r})) is ndarray")
        given = [f"_{x}" for x in given]
    stack = " or ".join(f"{x}.ndim > 2" for x in given)
    return " and ".join([*terms, f"({stack})", f"choose({', '.join(given)})"])


def takes(ours: Callable, function: Any) -> bool:
    """Whether a function is one in Python all of whose parameters ours has."""
    known = inspect.signature(ours).parameters
    return hasattr(function, "__code__") and known.keys() >= inspect.signature(function).parameters.keys()


def of_shapes(gains: Callable, types: frozenset) -> Callable:
    """A function of arrays that tells whether they are of some types, and `gains` of them, which depends on shapes."""
    plans = Plans()
    known = plans.known

    def one(a):
        found = known.get(a.shape)
        if found is None:
            found = plans.add(a.shape, gains(a))
        return found and a.dtype.char in types

    def several(*arrays):
        key = tuple([a.shape for a in arrays])
        found = known.get(key)
        if found is None:
            found = plans.add(key, gains(*arrays))
        return found and types.issuperset([a.dtype.char for a in arrays])

    return one if len(inspect.signature(gains).parameters) == 1 else several


def like(example: Any, function: Callable) -> Callable:
    """A function whose results are made like an example: a list, if that is one, and of arrays only, if that is."""
    if not isinstance(example, list | tuple):
        return function
    kind, whole = type(example), all(isinstance(x, ndarray) for x in example)

    @functools.wraps(function)
    def call(*args, **options):
        found = function(*args, **options)
        if not isinstance(found, tuple):
            return found
        first, *others = found
        if whole:
            others = [x if isinstance(x, ndarray) else np.full(first.shape[:-2], x) for x in others]
        return kind((first, *others))

    return call
