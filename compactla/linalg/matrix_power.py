"""matrix_power: powers of matrices."""

import operator

import numpy as np

from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays
from compactla.linalg.inv import inv
from compactla.linalg.matmul import matmul
from compactla.types import Array


def matrix_power(
    a: Array, n: int, *, on_error: str = "raise", compute: str | None = None, threads: int | None = None
) -> Array:
    """Raise square matrices to an integer power, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, m) array_like
        Matrices.
    n : int
        Exponent; inverses are raised to -n if it is negative, and 0 makes identities.
    on_error, compute, threads
        See `inv`, which negative exponents need.

    Returns
    -------
    (..., m, m) ndarray
        Powers, of the type that `numpy.linalg.matrix_power` returns.

    Raises
    ------
    numpy.linalg.LinAlgError
        If matrices are not square, or have to be inverted and one is singular, which the message names.
    TypeError
        If the exponent is no integer, or the type of the matrices is not supported.

    See Also
    --------
    numpy.linalg.matrix_power : The same.

    Notes
    -----
    Matrices are squared repeatedly.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> linalg.matrix_power(np.array([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]]), -2)
    array([[[ 0.25,  0.  ],
            [ 0.  ,  1.  ]],
    <BLANKLINE>
           [[ 1.  , -2.  ],
            [ 0.  ,  1.  ]]])
    """
    power = integer(n)
    if as_arrays(a) is None:
        return _dispatched.matrix_power(a, n)
    if power is None:
        return _numpy.matrix_power(a, n)
    a = np.asanyarray(a)
    if a.dtype == object:
        return _numpy.matrix_power(a, power)
    if power < 0:
        a, power = inv(a, on_error=on_error, compute=compute, threads=threads), -power
    if power < 2 or type(a) is not np.ndarray or a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        return _numpy.matrix_power(a, power)
    result = None
    while True:
        power, odd = divmod(power, 2)
        if odd:
            result = a if result is None else matmul(result, a, threads=threads)
        if not power:
            return result
        a = matmul(a, a, threads=threads)


def integer(n):
    """An exponent as an integer; None if it is none, which NumPy refuses."""
    try:
        return operator.index(n)
    except TypeError:
        return None
