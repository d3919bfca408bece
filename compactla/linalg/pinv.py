"""pinv: pseudo-inverses."""

from typing import Any

import numpy as np

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import DOUBLE, as_arrays, common_type, told
from compactla.linalg.failures import Failure
from compactla.linalg.stacks import Limits, Result, Stacked, precision
from compactla.linalg.svd import svd, where_it_ends, wide
from compactla.types import Array

NOT_GIVEN = np._NoValue


@repeats()
def pinv(
    a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NOT_GIVEN, on_error: str = "raise",
    compute: str | None = None, threads: int | None = None,
) -> Array:  # fmt: skip
    """Pseudo-inverses of matrices, after Moore and Penrose, for stacks of them.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices.
    rcond : (...) array_like of float, optional
        Singular values up to this, times the largest, count as zero; default: 1e-15, or where single precision is
        computed in it, ``max(m, n)`` times its machine epsilon.
    hermitian : bool, optional
        Whether matrices are symmetric or Hermitian, of which only the lower triangle is read then.
    rtol : (...) array_like of float, optional
        Another name of `rcond`, but for None: ``max(m, n)`` times the machine epsilon.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices whose singular values do not converge, as those with NaN: "raise" raises an error that
        names them, "nan" fills their results with NaN and leaves all others as they are.
    compute : {"double", "same"}, optional
        Computation dtype of single precision: "double", or the "same", which is faster. Default: the same for arrays in
        CUDA memory, as in their libraries, and double for all others, as in NumPy.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, m) ndarray
        Pseudo-inverses.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the iteration does not converge for a matrix, which the message names.
    TypeError, ValueError
        If the type of an argument is not supported, both `rcond` and `rtol` are given, or an option is none of the
        above.

    See Also
    --------
    numpy.linalg.pinv : The same, one matrix after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.pinv(np.array([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [4.0, 0.0]]])).round(12)
    array([[[0.5 , 0.  ],
            [0.  , 0.  ]],
    <BLANKLINE>
           [[0.  , 0.25],
            [1.  , 0.  ]]])
    """
    given = as_arrays(a, devices=() if hermitian else ("a",))
    both = rcond is not None and rtol is not NOT_GIVEN
    if given is None or both or is_numpys(given[0][0]):
        numpys = _dispatched.pinv if given is None else _numpy.pinv
        return numpys(a, **told(pinv, rcond=rcond, hermitian=hermitian, rtol=rtol))
    (a,), wrap = given
    real = np.dtype(a.dtype.char.lower()) if a.dtype.kind in "fc" else DOUBLE
    if rcond is None:
        single = (compute or precision(a)) == "same" and a.dtype.char in "fF"
        rcond = rtol if rtol is not NOT_GIVEN else None if single else 1e-15
    limit = np.asarray(max(a.shape[-2:]) * np.finfo(a.dtype).eps if rcond is None else rcond)
    if hermitian or limit.ndim > a.ndim - 2 or limit.dtype.kind not in "iuf":
        x = product(a, limit, hermitian, on_error=on_error, compute=compute, threads=threads)
    else:
        (x,) = PINV((a, limit.astype(real)[..., None, None]), (wide(a),), on_error, compute, threads)
    return wrap(x) if wrap else x


def is_numpys(a):
    """Whether NumPy alone has to do with an array: one that is empty, or of other types, or that it refuses."""
    return type(a) is np.ndarray and (a.ndim < 2 or not a.size or common_type(a.dtype) is None)


def product(a, limit, hermitian, **settings):
    """Pseudo-inverses from singular values and vectors, step by step."""
    u, s, vh = svd(a, False, hermitian=hermitian, **settings)
    counts = s > limit[..., None] * s.max(-1, keepdims=True)
    inverse = np.divide(1, s, where=counts, out=np.where(np.isnan(s), s, 0))
    return np.conj(vh.swapaxes(-1, -2)) @ (inverse[..., None] * np.conj(u.swapaxes(-1, -2)))


def with_numpy(a, limit=None, wide=False):
    limit = limit if limit is None else limit[..., 0, 0]
    return where_it_ends(lambda a: _numpy.pinv(a, limit), a)


PINV = Stacked(
    "pinv",
    inputs={"a": "mn", "rcond": "11"},
    outputs=(Result("nm"),),
    work=lambda m, n, **_: 10 * m * n * min(m, n) + 200 * min(m, n) ** 2,
    numpy=with_numpy,
    failure=Failure("SVD did not converge"),
    options=("wide",),
    paired=16,
    limits=Limits(64, lambda n: 1 if n <= 24 else 2 if n <= 32 else 4),
)
