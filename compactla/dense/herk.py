"""herk: products of matrices and their conjugate transposes."""

from dataclasses import replace

from compactla.dense.syrk import check_sizes, lower, row
from compactla.layout import Pack
from compactla.routine import plain_views
from compactla.scalars import real_scalar
from compactla.types import Array, Events


def herk(
    A: Array, C: Array, uplo: str = "L", trans: str = "N", alpha: Array = 1, beta: Array = 0, *,
    threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Products of matrices and their conjugate transposes C <- alpha op(A) op(A)^H + beta C, in place.

    Parameters
    ----------
    A : Pack, ndarray or pyopencl.array.Array
        nm matrices, op(A) of n x k.
    C : Pack, ndarray or pyopencl.array.Array
        nm Hermitian matrices of n x n, with A's dtype, vector length and device. One triangle is read and written,
        the other keeps its bits; imaginary parts on the diagonal are taken as 0 and become 0. Both may be arrays
        (nm, m, n) of any strides, as for `compactla.gemm`.
    uplo : {"L", "U"}
        Which triangle.
    trans : {"N", "T", "C"}
        op(A) is A or its conjugate transpose. "T" is "C" for real matrices, and an error for complex ones.
    alpha, beta : real scalar
        Where `beta` is zero the triangle of C is overwritten, whatever it held; where `alpha` is zero A is not read.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack, ndarray or pyopencl.array.Array
        C.

    Raises
    ------
    TypeError, ValueError
        If the operands do not fit together, C is read-only or shares memory with A, an option is unknown or not for
        complex matrices, `alpha` or `beta` is not real, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.syrk, compactla.hemm, compactla.gemm

    Notes
    -----
    BLAS ``?herk``; for real matrices it is `compactla.syrk`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.tile([[1, 2], [3j, 4]], (100, 1, 1))
    >>> C = cla.herk(cla.pack(a), cla.Pack.zeros(100, 2, 2, complex))
    >>> C.unpack()[0]
    array([[ 5.+0.j,  0.+0.j],
           [ 8.+3.j, 25.+0.j]])
    """
    if type(A) is type(C) is Pack and A.kind == C.kind:
        a, c = A.view, C.view
    else:
        a, c = plain_views(A=A, C=C)
    uplo, trans = ROUTINE.chosen(uplo, trans)
    if trans == "T" and c.dtype.kind == "c":
        ROUTINE.refuse("trans", trans)
    check_sizes(a, c, trans)
    alpha, beta = real_scalar("alpha", alpha, c), real_scalar("beta", beta, c)
    conj = None
    if c.dtype.kind == "c" and (trans == "C") != (uplo == "U"):  # C^T is the matrix of conjugates
        conj = True, False
    a, c = lower(a, c, uplo, trans)
    if a.n == 0:  # an empty sum is zero, whatever multiplies it
        alpha = type(alpha)(0)
    ROUTINE.run((a, c), (alpha, beta), conj, (), 0, None, threads, wait_for)
    return C


ROUTINE = replace(row("herk", "T"), real_scalars=True)
