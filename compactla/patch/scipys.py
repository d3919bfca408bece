"""Functions of `compactla.linalg` with the arguments of those of SciPy that have others, and their warnings.

What they do not know is SciPy's own, and so is all that it raises errors for, or warns of. So are vectors of few
matrices that are unique but for signs and phases: programs, such as SciPy's tests, compare them with those of single
ones.
"""

import inspect
import math
from typing import Any

import numpy as np
import scipy.linalg

from compactla import linalg
from compactla.linalg import _scipy
from compactla.linalg.solve import WORDS, whole

KNOWN = frozenset("dDiIlLqQ")
MANY = 16  # matrices in a stack whose vectors may have other signs


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: str | None = None, transposed: bool = False,
) -> Any:  # fmt: skip
    """`scipy.linalg.solve`; where a matrix is nearly singular, SciPy's own."""
    word = "gen" if assume_a is None else WORDS.get(assume_a) if isinstance(assume_a, str) else None
    if word is not None and not transposed and are_matrices(a) and fit(a, b):
        x = linalg.solve(a, b, assume_a=word, lower=lower, on_error="nan")
        if np.isfinite(x).all() and are_regular(a if word == "gen" else whole(a, word, "L" if lower else "U")):
            return x
    given = {} if assume_a is None else {"assume_a": assume_a}
    return _scipy.solve(a, b, lower, overwrite_a, overwrite_b, check_finite, transposed=transposed, **given)


def are_regular(a: Any) -> bool:
    """Whether SciPy warns of none of these matrices.

    It does where an estimate of the reciprocal condition is below eps; that is never below the condition itself.
    """
    inverse = linalg.inv(a, on_error="nan")
    norms = [abs(x).sum(-2).max(-1) for x in (a, inverse)]
    with np.errstate(all="ignore"):
        return bool((norms[0] * norms[1] < 0.5 / np.finfo(inverse.dtype).eps).all())


def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, type: int = 1, check_finite: bool = True, subset_by_index: Any = None,
    subset_by_value: Any = None, driver: Any = None,
) -> Any:  # fmt: skip
    """`scipy.linalg.eigh`, with all eigenvalues of its first problem."""
    options = subset_by_index, subset_by_value, driver
    known = type == 1 and options == (None,) * 3 and are_matrices(a) and (b is None or is_pair(a, b))
    if known and (eigvals_only or are_many(a) or (b is not None and are_many(b))):
        function = linalg.eigvalsh if eigvals_only else linalg.eigh
        found: Any = function(a, "L" if lower else "U", b, on_error="nan")
        if not np.isnan(found if eigvals_only else found[0]).any():
            return found if eigvals_only else tuple(found)
    return _scipy.eigh(
        a, b, lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, overwrite_b=overwrite_b, type=type,
        check_finite=check_finite, subset_by_index=subset_by_index, subset_by_value=subset_by_value, driver=driver,
    )  # fmt: skip


def eigvalsh(
    a: Any, b: Any = None, *, lower: bool = True, overwrite_a: bool = False, overwrite_b: bool = False,
    type: int = 1, check_finite: bool = True, subset_by_index: Any = None, subset_by_value: Any = None,
    driver: Any = None,
) -> Any:  # fmt: skip
    """`scipy.linalg.eigvalsh`."""
    return eigh(
        a, b, lower=lower, eigvals_only=True, overwrite_a=overwrite_a, overwrite_b=overwrite_b, type=type,
        check_finite=check_finite, subset_by_index=subset_by_index, subset_by_value=subset_by_value, driver=driver,
    )  # fmt: skip


def eig(
    a: Any, b: Any = None, left: bool = False, right: bool = True, overwrite_a: bool = False,
    overwrite_b: bool = False, check_finite: bool = True, homogeneous_eigvals: bool = False,
) -> Any:  # fmt: skip
    """`scipy.linalg.eig`, without the left eigenvectors: eigenvalues are complex numbers."""
    if b is None and not left and not homogeneous_eigvals and are_matrices(a) and (not right or are_many(a)):
        found: Any = linalg.eig(a, on_error="nan") if right else (linalg.eigvals(a, on_error="nan"),)
        if not np.isnan(found[0]).any():
            w = found[0].astype(np.complex128, copy=False)
            return (w, *found[1:]) if right else w
    return _scipy.eig(a, b, left, right, overwrite_a, overwrite_b, check_finite, homogeneous_eigvals)


def eigvals(a: Any, b: Any = None, *options: Any, **named: Any) -> Any:
    """`scipy.linalg.eigvals`, whose options depend on its version: `overwrite_b` is among them since SciPy 1.18."""
    return eig(a, b, False, False, **dict(zip(OF_EIGVALS, options, strict=False)), **named)


eigvals.__signature__ = inspect.signature(scipy.linalg.eigvals)  # type: ignore[attr-defined]
OF_EIGVALS = [*inspect.signature(scipy.linalg.eigvals).parameters][2:]


def are_matrices(a: Any) -> bool:
    """Whether these are square matrices, of more than one row: SciPy takes one number for a scalar."""
    return a.ndim > 1 and a.shape[-1] == a.shape[-2] > 1


def are_many(a: Any) -> bool:
    """Whether there are so many matrices that vectors of other signs are worth their time."""
    return math.prod(a.shape[:-2]) >= MANY


def is_pair(a: Any, b: Any) -> bool:
    """Whether `b` has a matrix for each of those of `a`."""
    return is_known(b) and b.shape[-2:] == a.shape[-2:] and are_stacks(a, b)


def fit(a: Any, b: Any) -> bool:
    """Whether `b` has right-hand sides for the matrices `a`."""
    if not is_known(b) or not b.ndim or not b.size:
        return False
    return b.shape == a.shape[-1:] or (b.ndim > 1 and b.shape[-2] == a.shape[-1] and are_stacks(a, b))


def is_known(b: Any) -> bool:
    return isinstance(b, np.ndarray) and b.dtype.char in KNOWN


def are_stacks(a: Any, b: Any) -> bool:
    """Whether the axes before the last two can be broadcast to each other."""
    pairs = zip(a.shape[-3::-1], b.shape[-3::-1], strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)
