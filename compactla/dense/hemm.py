"""hemm: products with Hermitian matrices."""

from compactla.dense.symm import check_sizes, row
from compactla.layout import Pack
from compactla.routine import views
from compactla.scalars import scalar
from compactla.types import Array, Events


def hemm(
    A: Array, B: Array, C: Array, side: str = "L", uplo: str = "L", alpha: Array = 1, beta: Array = 0, *,
    threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Products with Hermitian matrices C <- alpha A B + beta C, or C <- alpha B A + beta C, in place.

    Parameters
    ----------
    A : Pack, ndarray or pyopencl.array.Array
        nm Hermitian matrices, of m x m for side "L", of n x n for side "R". One triangle is read, and the real part
        of the diagonal.
    B, C : Pack, ndarray or pyopencl.array.Array
        nm matrices of m x n each, with A's dtype, vector length and device. Instead of A or B there may be a
        plain array, one matrix for the whole batch; or all are arrays (nm, m, n) of any strides, as for
        `compactla.gemm`.
    side : {"L", "R"}
        On which side of B A stands.
    uplo : {"L", "U"}
        Which triangle of A is read.
    alpha, beta : scalar
        Where `beta` is zero C is overwritten, whatever it held; where `alpha` is zero A and B are not read.
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
        If the operands do not fit together, C is read-only or shares memory with A or B, an option is unknown, or
        `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.symm, compactla.gemm, compactla.herk

    Notes
    -----
    BLAS ``?hemm``; for real matrices it is `compactla.symm`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tile([[2, np.nan], [1j, 3]], (100, 1, 1)), np.ones((100, 2, 1), complex)
    >>> C = cla.hemm(cla.pack(a), cla.pack(b), cla.Pack.zeros(100, 2, 1, complex))
    >>> C.unpack()[0]
    array([[2.-1.j],
           [3.+1.j]])
    """
    if type(A) is type(B) is type(C) is Pack and A.kind == B.kind == C.kind:
        a, b, c = A.view, B.view, C.view
    else:
        a, b, c = views(A=A, B=B, C=C)
    side, uplo = ROUTINE.chosen(side, uplo)
    check_sizes(a, b, c, side)
    scalars = scalar("alpha", alpha, c), scalar("beta", beta, c)
    a = a if uplo == "L" else a.T
    operands = (a, b, c) if side == "L" else (a, b.T, c.T)
    conj = None
    if c.dtype.kind == "c" and (side == "R") != (uplo == "U"):  # A^T is the matrix of conjugates
        conj = True, False, False
    ROUTINE.run(operands, scalars, conj, (), 0, None, threads, wait_for)
    return C


ROUTINE = row("hemm")
