"""syr: updates of symmetric matrices by products of vectors."""

from compactla.layout import Pack
from compactla.routine import Matrix, Routine, check_packs
from compactla.scalars import factors
from compactla.search import ITEM, Search, items, registers, squares
from compactla.types import Array, Events


def syr(
    alpha: Array, x: Pack, A: Pack, uplo: str = "L", *, threads: int | None = None, wait_for: Events = None
) -> Pack:
    """Rank-one updates of symmetric matrices A <- alpha x x^T + A, in place.

    Parameters
    ----------
    alpha : scalar, or (nm,) array_like or pyopencl.array.Array, or Pack
        One for all matrices, or one for each: an array, where the packs live, or a pack of 1 x 1. Where
        it is zero, x is not used, and A stays as it is.
    x : Pack
        nm vectors of n x 1.
    A : Pack
        nm symmetric matrices of n x n, with x's dtype, vector length and device. One triangle is read and written,
        the other is not touched.
    uplo : {"L", "U"}
        Which triangle.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    Pack
        A. On a device this does not wait until the work is done: ``A.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, A is read-only or shares memory with x, `alpha` has another length, is complex
        for real packs or out of the range of their dtype, `uplo` is unknown, or `threads` or `wait_for` is invalid, see
        `compactla.gemm`.

    See Also
    --------
    compactla.her, compactla.syrk, compactla.ger

    Notes
    -----
    BLAS ``?syr``, and LAPACK's ``csyr`` and ``zsyr``: there is a transpose in the product for complex matrices too, not
    a conjugate one as in `her`.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> x = np.tile([[1.0], [2.0]], (100, 1, 1))
    >>> A = cla.syr(3, cla.pack(x), cla.Pack.zeros(100, 2, 2))
    >>> A.unpack()[0]
    array([[ 3.,  0.],
           [ 6., 12.]])
    """
    if not type(x) is type(A) is Pack or x.kind != A.kind:
        check_packs(x=x, A=A)
    (uplo,) = ROUTINE.chosen(uplo)
    views = factors("alpha", alpha, A), x.view, A.view if uplo == "L" else A.view.T
    ROUTINE.run(views, (), None, (), 0, None, threads, wait_for)
    return A


def row(name) -> Routine:
    """The row of syr, or of her."""

    def candidates(size, dtype, lanes):
        (n,) = size
        if registers(2 * n, dtype) <= 160 and n <= 12:  # which are written out
            yield from items(f"{name}_item")

    return Routine(
        name,
        operands=(Matrix("alpha", "11"), Matrix("x", "n1"), Matrix("A", "nn", written=True, half=True)),
        madds=lambda n: n * (n + 1) / 2,
        options={"uplo": "LU"},
        search=Search(name, f"{name}.cl", {f"{name}_item": ITEM}, candidates, squares(1)),
    )


ROUTINE = row("syr")
