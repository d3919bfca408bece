"""cond, matrix_rank, norm, matrix_norm and vector_norm: functions of singular values, and other norms."""

from typing import Any

import numpy as np

from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays, common_type, told
from compactla.linalg.svd import svd, svdvals
from compactla.types import Array

# Norms of matrices that are made of their singular values.
SPECTRAL = {2: np.max, -2: np.min, "nuc": np.sum}


def cond(x: Array, p: Array = None, *, compute: str | None = None, threads: int | None = None) -> Array:
    """Condition numbers of matrices, for stacks of them.

    Parameters
    ----------
    x : (..., m, n) array_like
        Matrices.
    p : {None, 2, -2, 1, -1, inf, -inf, "fro"}, optional
        The norm, of `numpy.linalg.norm`; None is 2. All but 2 and -2 are left to NumPy, for square matrices.
    compute, threads
        See `compactla.linalg.svd`.

    Returns
    -------
    (...) ndarray or float
        Condition numbers; infinity for singular matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are empty, or singular values do not converge.

    See Also
    --------
    numpy.linalg.cond : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.cond(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]]))
    array([ 2., inf])
    """
    given = as_arrays(x)
    if given is None:
        return _dispatched.cond(x, **told(cond, p=p))
    if p not in (None, 2, -2):
        return _numpy.cond(x, p)
    ((x,), _) = given
    if x.ndim < 2 or not x.size:
        return _numpy.cond(x, p)
    s = svdvals(x, compute=compute, threads=threads)
    first, last = (-1, 0) if p == -2 else (0, -1)
    with np.errstate(all="ignore"):
        ratio = s[..., first] / s[..., last]
    undefined = np.isnan(ratio)
    if undefined.any():
        ratio = np.where(undefined & ~np.isnan(x).any((-2, -1)), ratio.dtype.type(np.inf), ratio)[()]
    return ratio


def matrix_rank(
    A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None, compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Ranks of matrices: numbers of singular values that are not negligible; for stacks of them.

    Parameters
    ----------
    A : (..., m, n) array_like
        Matrices; the rank of a vector is 1, unless all is zero.
    tol : (...) array_like, optional
        Singular values up to this are negligible; default: `rtol` times the largest.
    hermitian : bool, optional
        Whether matrices are symmetric or Hermitian, of which only the lower triangle is read then.
    rtol : (...) array_like, optional
        As `tol`, relative to the largest; default: ``max(m, n)`` times the machine epsilon.
    compute, threads
        See `compactla.linalg.svd`.

    Returns
    -------
    (...) ndarray of int, or int
        Ranks.

    Raises
    ------
    numpy.linalg.LinAlgError
        If singular values do not converge.
    ValueError
        If both `tol` and `rtol` are given.

    See Also
    --------
    numpy.linalg.matrix_rank : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.matrix_rank(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]]))
    array([2, 1])
    """
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    given = as_arrays(A)
    if given is None or given[0][0].ndim < 2:
        numpys = _dispatched.matrix_rank if given is None else _numpy.matrix_rank
        return numpys(A, **told(matrix_rank, tol=tol, hermitian=hermitian, rtol=rtol))
    ((A,), _) = given
    s = svd(A, compute_uv=False, hermitian=hermitian, compute=compute, threads=threads)
    if tol is not None:
        limit = np.asarray(tol)[..., None]
    else:
        rtol = max(A.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else np.asarray(rtol)[..., None]
        limit = s.max(axis=-1, keepdims=True, initial=0) * rtol
    return np.count_nonzero(s > limit, axis=-1)


def norm(
    x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False, *, compute: str | None = None,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Norms of vectors and matrices.

    Parameters
    ----------
    x, ord, axis, keepdims
        See `numpy.linalg.norm`, which computes all but norms of matrices that need singular values: of order 2, -2
        and "nuc".
    compute, threads
        See `compactla.linalg.svd`.

    Returns
    -------
    float or ndarray
        Norms.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        See `numpy.linalg.norm`.

    See Also
    --------
    numpy.linalg.norm : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.norm(np.array([[[2.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [2.0, 0.0]]]), "nuc", axis=(1, 2))
    array([3., 4.])
    """
    of: Any = SPECTRAL.get(ord) if isinstance(ord, int | float | str) else None
    given = as_arrays(x) if of else None
    if given is None and type(x) is np.ndarray:
        return _numpy.norm(x, ord, axis, keepdims)
    if given is None:
        return _dispatched.norm(x, **told(norm, ord=ord, axis=axis, keepdims=keepdims))
    ((x,), _) = given
    axes = tuple(range(x.ndim)) if axis is None else axis
    if not x.size or common_type(x.dtype) is None or not is_pair(axes, x.ndim):
        return _numpy.norm(x, ord, axis, keepdims)
    found = of(svdvals(np.moveaxis(x, axes, (-2, -1)), compute=compute, threads=threads), axis=-1)
    return np.expand_dims(found, axes) if keepdims else found


def is_pair(axes, ndim):
    """Whether these are two axes of so many."""
    if not isinstance(axes, tuple) or len(axes) != 2:
        return False
    return all(isinstance(i, int) and -ndim <= i < ndim for i in axes) and (axes[0] - axes[1]) % ndim != 0


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: str = "fro", compute: str | None = None, threads: int | None = None
) -> Array:
    """Norms of matrices, for stacks of them.

    Parameters
    ----------
    x : (..., m, n) array_like
        Matrices.
    keepdims, ord, compute, threads
        See `compactla.linalg.norm`.

    Returns
    -------
    float or (...) ndarray
        Norms.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError, ValueError
        See `numpy.linalg.norm`.

    See Also
    --------
    numpy.linalg.matrix_norm : The same, one matrix after the other.
    compactla.linalg.norm : Norms along any axes.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.matrix_norm(np.array([[[2.0, 0.0], [0.0, 1.0]], [[0.0, 3.0], [2.0, 0.0]]]), ord=2)
    array([2., 3.])
    """
    return norm(x, ord, (-2, -1), keepdims, compute=compute, threads=threads)


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Norms of vectors.

    Parameters
    ----------
    x : array_like
        Numbers.
    axis, keepdims, ord
        See `numpy.linalg.vector_norm`, which computes them.

    Returns
    -------
    float or ndarray
        Norms.

    Raises
    ------
    TypeError, ValueError
        See `numpy.linalg.vector_norm`.

    See Also
    --------
    compactla.linalg.norm : Norms of vectors and matrices.

    Examples
    --------
    >>> from compactla import linalg
    >>> float(linalg.vector_norm([3.0, 4.0]))
    5.0
    """
    if type(x) is np.ndarray:
        return _numpy.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    return _dispatched.vector_norm(x, **told(vector_norm, axis=axis, keepdims=keepdims, ord=ord))
