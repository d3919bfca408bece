"""What functions of matrices have in common, that are complex where SciPy's would be for any of a stack."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from compactla.linalg import _scipy
from compactla.linalg.arguments import common_type
from compactla.linalg.eigh import eigh
from compactla.linalg.failures import Failure, which
from compactla.linalg.stacks import Limits, Result, Stacked

# Defaults of arguments that new versions of SciPy have no more.
DISP, BLOCKSIZE = (
    p.default if (p := inspect.signature(_scipy.sqrtm).parameters.get(name)) else None for name in ("disp", "blocksize")
)
DEFINITE = 1e-12  # how much larger than zero eigenvalues are, relative to the largest: all others are not sure to be
FAR = 32  # logarithms of sizes, from which on powers and logarithms lose digits
NOT_FINITE = "array must not contain infs or NaNs"  # SciPy's words


def rows(name: str, scipy: Callable, work: Callable, **fields: Any) -> dict[bool, Stacked]:
    """Functions on stacks: of real matrices, with a flag of those whose results are complex, and of complex ones."""

    def guarded(a, *others):
        try:
            found = scipy(a, *others)
        except Exception as error:  # SciPy raises some that have no class of their own
            raise LinAlgError(str(error)) from error
        return found.astype(np.result_type(a, np.complex64)), np.float64(np.iscomplexobj(found))

    def with_scipy(a, *others, **_):
        return guarded(a, *others)

    def of_complex_with_scipy(a, *others, **_):
        return guarded(a, *others)[0]

    fields.setdefault("inputs", {"A": "nn"})
    whole, flag = Result("nn", "complex"), Result("", "real")
    functions = (True, (whole, flag), with_scipy), (False, (whole,), of_complex_with_scipy)
    return {
        is_real: Stacked(
            name,
            outputs=outputs,
            work=work,
            numpy=_scipy.on_stacks(function),
            failure=Failure(),
            limits=Limits(32),
            **fields,
        )
        for is_real, outputs, function in functions
    }


def function_of(
    functions: dict[bool, Stacked], scalar: Callable, arrays: Sequence, options: tuple, on_error: str,
    compute: str | None, threads: int | None,
) -> np.ndarray:  # fmt: skip
    """The results of such functions, which are complex if one of them is.

    Hermitian positive definite matrices have results by their eigenvalues: those of `scalar`, a function of these and
    of the arrays behind the first.
    """
    a = arrays[0]
    lead = a.shape[:-2]
    stack = [np.broadcast_to(x, (*lead, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in arrays]
    done, found = of_hermitian(scalar, stack, threads)
    if not done.all():
        rest = [x[~done] for x in stack] if done.any() else stack
        x = general(functions, rest, options, on_error, compute, threads)
        if not done.any():
            return x.reshape(a.shape)
        whole = np.empty(stack[0].shape, x.dtype)
        whole[done], whole[~done] = found, x
        found = whole
    return found.reshape(a.shape)


def general(functions, arrays, options, *how):
    """Results by Schur forms."""
    if arrays[0].dtype.kind == "c":
        (x,) = functions[False](arrays, options, *how)
        return x
    x, flags = functions[True](arrays, options, *how)
    return x if (flags > 0).any() else x.real.copy()


def of_hermitian(scalar, arrays, threads):
    """Flags of the matrices that are Hermitian positive definite, by far, and the results of these."""
    a, *others = arrays
    done = (a == a.conj().swapaxes(-1, -2)).all((-2, -1))
    if not done.any():
        return done, None
    w, v = eigh(a[done].astype(np.result_type(a, "d")), on_error="nan", threads=threads)
    sure = w[:, 0] > DEFINITE * w[:, -1]
    done[done] = sure
    w, v = w[sure], v[sure]
    with np.errstate(all="ignore"):
        x = (v * scalar(w, *(x[done] for x in others))[:, None, :]) @ v.conj().swapaxes(-1, -2)
    return done, x.astype(a.dtype)


def finite(arrays: dict[str, Any], on_error: str) -> tuple[list, np.ndarray | None]:
    """Arrays of matrices, and flags of those of the stack that hold infinities or NaN, or None.

    These are refused by a ValueError unless `on_error` is "nan". They become half the identity.
    """
    found, bad = [], None
    for name, a in arrays.items():
        good = np.isfinite(a).all((-2, -1))
        if not good.all():
            if on_error != "nan":
                raise ValueError(f"{name}: {NOT_FINITE}{which(~good)}")
            half = (np.eye(*a.shape[-2:]) / 2).astype(a.dtype)  # regular, also in the discrete Lyapunov equation
            a = np.where(good[..., None, None], a, half)
            bad = ~good if bad is None else bad | ~good
        found.append(a)
    return found, bad


def scaled(a: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Matrices in double, divided by powers of two if they are far from one, and the exponents of these, or None."""
    size = np.maximum(abs(a.real), abs(a.imag)).max((-2, -1))
    exponent = np.asarray(np.frexp(size)[1])
    exponent = np.where(abs(exponent) > FAR, exponent, 0)
    if not exponent.any():
        return a, None
    half = exponent // 2
    for part in half, exponent - half:  # the whole power may be out of range
        a = a * np.ldexp(1.0, -part)[..., None, None]
    return a, exponent


def by_scipy(function: Callable, a: np.ndarray, on_error: str, **options: Any) -> np.ndarray:
    """SciPy's results for what `is_left`: it takes no empty stacks, and may never end where there are infinities."""
    if not are_square(a):
        return function(a, **options)
    (a,), bad = finite({"A": a}, on_error)
    x = _scipy.on_stacks(function)(a, **options)
    if bad is not None:
        x[bad] = np.nan
    return x


def are_square(a: np.ndarray) -> bool:
    """Whether an array has square matrices of numbers."""
    return a.ndim > 1 and a.shape[-1] == a.shape[-2] and a.dtype.kind in "biufc"


def is_left(a: np.ndarray) -> bool:
    """Whether what is asked for of an array is left to SciPy: an error, or nothing that takes time."""
    square = a.ndim > 1 and a.shape[-1] == a.shape[-2] > 1
    return not square or not a.size or common_type(a.dtype) is None
