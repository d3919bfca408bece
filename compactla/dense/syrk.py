"""syrk: products of matrices and their transposes."""

import math
from collections.abc import Iterator
from itertools import chain

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, plain_views
from compactla.scalars import scalar
from compactla.search import (
    ITEM,
    LANES,
    OF_A_MEMBER,
    SECTOR,
    WARP,
    Choice,
    Kernel,
    Search,
    items,
    registers,
    squares,
    team,
    teams,
)
from compactla.types import Array, Events


def syrk(
    A: Array, C: Array, uplo: str = "L", trans: str = "N", alpha: Array = 1, beta: Array = 0, *,
    threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Products of matrices and their transposes C <- alpha op(A) op(A)^T + beta C, in place.

    Parameters
    ----------
    A : Pack, ndarray or pyopencl.array.Array
        nm matrices, op(A) of n x k.
    C : Pack, ndarray or pyopencl.array.Array
        nm symmetric matrices of n x n, with A's dtype, vector length and device. One triangle is read and written,
        the other keeps its bits. Both may be arrays (nm, m, n) of any strides, as for `compactla.gemm`.
    uplo : {"L", "U"}
        Which triangle.
    trans : {"N", "T", "C"}
        op(A) is A or its transpose. "C" is "T" for real matrices, and an error for complex ones.
    alpha, beta : scalar
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
        complex matrices, or `threads` or `wait_for` is invalid, see `compactla.gemm`.

    See Also
    --------
    compactla.herk, compactla.gemm, compactla.symm

    Notes
    -----
    BLAS ``?syrk``. There is a transpose in the product for complex matrices too, not a conjugate one as in `herk`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a = np.tile([[1.0, 2.0], [3.0, 4.0]], (100, 1, 1))
    >>> C = cla.syrk(cla.pack(a), cla.Pack.zeros(100, 2, 2))
    >>> C.unpack()[0]
    array([[ 5.,  0.],
           [11., 25.]])
    """
    if type(A) is type(C) is Pack and A.kind == C.kind:
        a, c = A.view, C.view
    else:
        a, c = plain_views(A=A, C=C)
    uplo, trans = ROUTINE.chosen(uplo, trans)
    if trans == "C" and c.dtype.kind == "c":
        ROUTINE.refuse("trans", trans)
    check_sizes(a, c, trans)
    alpha, beta = scalar("alpha", alpha, c), scalar("beta", beta, c)
    a, c = lower(a, c, uplo, trans)
    if a.n == 0:  # an empty sum is zero, whatever multiplies it
        alpha = type(alpha)(0)
    ROUTINE.run((a, c), (alpha, beta), None, (), 0, None, threads, wait_for)
    return C


def check_sizes(A, C, trans) -> None:
    """Refuse sizes that do not fit together."""
    if C.m != C.n:
        raise ValueError(f"C is {C.m} x {C.n}, must be square")
    n, axis = (A.m, "rows") if trans == "N" else (A.n, "columns")
    if n != C.m:
        raise ValueError(f"A is {A.m} x {A.n}, must have {C.m} {axis}: C is {C.m} x {C.m} and trans is {trans!r}")


def lower(A, C, uplo, trans):
    """Views of which the lower triangle is wanted, and nothing is transposed."""
    return A if trans == "N" else A.T, C if uplo == "L" else C.T


def tiles(kernel, n, dtype, lanes) -> Iterator[Choice]:
    """Choices of the kernel of which work-items compute squares."""
    for Q in sorted((2, 4, 8), key=lambda Q: abs(math.log(-(-n // Q) / 6))):
        held = registers((-(-n // Q) + 4) * -(-n // Q) // 2, dtype)
        for some in sorted(lanes, key=lambda some: abs(math.log(some * Q * Q / 64))):
            if some * dtype.itemsize >= SECTOR and WARP <= some * Q * Q <= 512 and held <= OF_A_MEMBER:
                yield {"kernel": kernel, "LANES": some, "Q": Q}


def row(name, real) -> Routine:
    """The row of syrk, or of herk; `real` is the letter of `trans` that is for real matrices, as in BLAS."""

    def candidates(size, dtype, lanes):
        n, k = size
        if registers(n * k + n, dtype) <= 160:
            yield from items(f"{name}_item")
        found = tiles(f"{name}_tiles", n, dtype, lanes), teams(f"{name}_team", k, n, dtype, lanes)
        yield from chain(*(found if n > 16 else found[::-1]))  # teams compute the other triangle too

    def local(choice, size):
        return size[0] * size[1] * choice["LANES"]

    kernels = {
        f"{name}_item": ITEM,
        f"{name}_team": team({}, local, columns=0),
        f"{name}_tiles": Kernel(
            {"LANES": LANES, "Q": range(1, 17)}, lambda choice, size: choice["LANES"] * choice["Q"] ** 2, local
        ),
    }
    return Routine(
        name,
        operands=(Matrix("A", "nk"), Matrix("C", "nn", written=True, half=True, scaled_by="beta")),
        madds=lambda n, k: n * (n + 1) / 2 * max(k, 1),
        options={"uplo": "LU", "trans": "NTC"},
        real={"trans": real},
        scalars={"alpha": 1, "beta": 0},
        fixed=frozenset({(1, 0), (1, 1), (-1, 1)}),
        search=Search(name, f"{name}.cl", kernels, candidates, squares(2)),
    )


ROUTINE = row("syrk", "C")
