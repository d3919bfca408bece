"""herk: products of matrices and their conjugate transposes."""

from dataclasses import replace

from compactla.dense.syrk import check_sizes, lower, row
from compactla.layout import Pack
from compactla.routine import check_packs
from compactla.scalars import real_scalar
from compactla.types import Array, Events


def herk(
    A: Pack, C: Pack, uplo: str = "L", trans: str = "N", alpha: Array = 1, beta: Array = 0, *,
    threads: int | None = None, wait_for: Events = None,
) -> Pack:  # fmt: skip
    """Products of matrices and their conjugate transposes C <- alpha op(A) op(A)^H + beta C, in place.

    Parameters
    ----------
    A : Pack
        nm matrices, op(A) of n x k.
    C : Pack
        nm Hermitian matrices of n x n, with A's dtype, vector length and device. One triangle is read and written,
        the other is not touched; imaginary parts on the diagonal are taken as 0 and become 0.
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
    Pack
        C.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, C is read-only or shares memory with A, an option is unknown or not for
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
    if not type(A) is type(C) is Pack or A.kind != C.kind:
        check_packs(A=A, C=C)
    uplo, trans = ROUTINE.chosen(uplo, trans)
    if trans == "T" and C.is_complex:
        ROUTINE.refuse("trans", trans)
    check_sizes(A, C, trans)
    alpha, beta = real_scalar("alpha", alpha, C), real_scalar("beta", beta, C)
    conj = None
    if C.is_complex and (trans == "C") != (uplo == "U"):  # C^T is the matrix of conjugates
        conj = True, False
    a, c = lower(A, C, uplo, trans)
    if a.n == 0:  # an empty sum is zero, whatever multiplies it
        alpha = type(alpha)(0)
    ROUTINE.run((a, c), (alpha, beta), conj, (), 0, None, threads, wait_for)
    return C


ROUTINE = replace(row("herk", "T"), real_scalars=True)
