"""fractional_matrix_power: real powers of matrices."""

import numpy as np

from compactla.linalg import _scipy
from compactla.linalg._functions import are_square, by_scipy, finite, function_of, is_left, rows, scaled
from compactla.linalg.arguments import as_arrays
from compactla.linalg.matmul import matmul
from compactla.linalg.matrix_power import matrix_power
from compactla.linalg.stacks import check_options
from compactla.linalg.svd import svdvals
from compactla.types import Array


def fractional_matrix_power(
    A: Array, t: float, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Real powers of matrices, for stacks of them.

    Parameters
    ----------
    A : (..., n, n) array_like
        Matrices.
    t : float
        Exponent.
    on_error : {"raise", "nan"}, optional
        Treatment of matrices with infinities or NaN, and of singular ones if `t` is a negative integer: "raise" raises
        an error that names them, "nan" fills their results with NaN and leaves all others as they are. With other
        negative exponents singular ones get NaN, as from SciPy.
    compute : {"double", "same"}, optional
        Without effect: all is computed in double precision, which SciPy's results have.
    threads : int, optional
        Maximum number of CPU threads; default: all that NUMBA_NUM_THREADS allows.

    Returns
    -------
    (..., n, n) ndarray
        Powers, in double precision. They are complex if a matrix has an eigenvalue that is not a positive number.
        Powers with an integer are those of `compactla.linalg.matrix_power`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If `t` is a negative integer and a matrix is singular, which the message names.
    TypeError, ValueError
        If matrices are not square, or not finite, the type of an argument is not supported, or an option is none of the
        above.

    See Also
    --------
    scipy.linalg.fractional_matrix_power : The same, one matrix after the other.

    Notes
    -----
    The Schur-Pade algorithm [1]_ with Pade's approximant of degree 7 for a fraction between -1 and 1, of which the
    condition number chooses the sign, and products for the rest. Singular matrices are left to SciPy.

    References
    ----------
    .. [1] Nicholas J. Higham and Lijing Lin, "An Improved Schur-Pade Algorithm for Fractional Powers of a Matrix and
       their Frechet Derivatives", SIAM J. Matrix Anal. Appl. 34(3):1341-1360, 2013, https://doi.org/10.1137/130906118

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.fractional_matrix_power(np.array([[[4.0, 1.0], [0.0, 4.0]], [[9.0, 0.0], [0.0, 1.0]]]), 0.5).round(12)
    array([[[2.  , 0.25],
            [0.  , 2.  ]],
    <BLANKLINE>
           [[3.  , 0.  ],
            [0.  , 1.  ]]])
    """
    given = as_arrays(A)
    if given is None or np.ndim(t) or isinstance(t, complex | np.complexfloating):
        return _scipy.fractional_matrix_power(A, t)
    (a,) = given[0]
    check_options(on_error, compute, threads)
    if are_square(a) and t == int(t):
        return matrix_power(a, int(t), on_error=on_error, threads=threads)
    if is_left(a):
        return by_scipy(_scipy.fractional_matrix_power, a, on_error, t=t)
    (a,), bad = finite({"A": a}, on_error)
    a = a.astype(np.result_type(a, "d"), copy=False)
    # What is left of the exponent, between -1 and 1, is where the power is less sensitive.
    s = svdvals(a, threads=threads)
    below, above = np.floor(t), np.ceil(t)
    with np.errstate(all="ignore"):
        condition = s[..., 0] / s[..., -1]
        down = (t - below) * condition ** (1 - (t - below)) <= (above - t) * condition
    down |= s[..., -1] == 0
    rest = np.where(down, t - below, t - above)[..., None, None]
    near, exponent = scaled(a)
    x = function_of(POWER, lambda w, t: w ** t[..., 0], [near, rest], (), "raise", None, threads)
    if exponent is not None:
        x = x * power_of_two(exponent[..., None, None], rest)
    for flags, whole in (down, int(below)), (~down, int(above)):
        some = flags & (s[..., -1] != 0)
        if whole and some.any():
            powers = matrix_power(a[some], whole, on_error="nan", threads=threads)  # SciPy's are NaN, too
            x[some] = matmul(powers, x[some], threads=threads)
    singular = s[..., -1] == 0
    if singular.any():
        found = _scipy.on_stacks(_scipy.fractional_matrix_power)(a[singular], t=t)
        x = x.astype(found.dtype if singular.all() else np.result_type(x, found), copy=False)  # NaN in single precision
        x[singular] = found
    if bad is not None:
        x[bad] = np.nan
    return x


def power_of_two(exponent, t):
    """2^(exponent t), to the last digit: exponents have few."""
    high = t.astype("f").astype("d")
    whole = np.rint(exponent * high)
    return np.ldexp(np.exp2((exponent * high - whole) + exponent * (t - high)), whole.astype(int))


def rest_with_scipy(a, t):
    """A power of one matrix, with an exponent in an array; NaN if SciPy finds none."""
    try:
        return _scipy.fractional_matrix_power(a, float(t.item()))
    except Exception:  # SciPy raises some that have no class of their own
        return np.full_like(a, np.nan)


POWER = rows(
    "fractional_matrix_power",
    rest_with_scipy,
    lambda n, **_: 150 * n**3 + 400 * n * n,
    inputs={"A": "nn", "t": "11"},
    static=False,
)
