"""Systems with positive definite band matrices."""

from compactla.band_form import Form
from compactla.bands.systems import Systems, check_diagonals, check_flag
from compactla.foreign import accepts_foreign
from compactla.types import Array, Queue


class BandedSPD(Systems):
    """Hermitian positive definite band matrices, and systems with them.

    Parameters
    ----------
    ab : (nsys, u + 1, n) array_like or pyopencl.array.Array
        Diagonals of one triangle as of `scipy.linalg.solveh_banded`: ``ab[:, u + i - j, j]`` is element (i, j) of the
        upper one, ``ab[:, i - j, j]`` of the lower one. Elements outside of the matrices, in a corner, and the
        imaginary part of the main diagonal are not read. float32, float64, complex64 or complex128. Without the first
        axis all systems share one matrix.
    lower : bool, optional
        Which triangle it is.
    queue : pyopencl.CommandQueue, optional
        Device that the matrices are copied to and factored on; default: where they live.

    Raises
    ------
    TypeError, ValueError
        If shapes or dtypes do not fit together.

    Notes
    -----
    Factors are those of LAPACK's pttrf, L D L^H, for any number of diagonals. Results do not depend on the number of
    threads or the position of a system.

    See Also
    --------
    compactla.Tridiag, compactla.Banded, compactla.linalg.solveh_banded

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> S = cla.BandedSPD(np.array([[[0.0, 1, 1], [2, 2, 2]]]))
    >>> S.factor()
    array([0])
    >>> S.solve(np.array([[3.0, 4, 3]]))
    array([[1., 1., 1.]])
    """

    @accepts_foreign
    def __init__(self, ab: Array, lower: bool = False, *, queue: Queue = None) -> None:
        given = check_diagonals({"ab": ab}, queue)
        ab = given["ab"]
        if ab.ndim not in (2, 3) or 0 in ab.shape[-2:]:
            raise ValueError(f"ab has shape {ab.shape}, must be (nsys, u + 1, n), n >= 1")
        ku = ab.shape[-2] - 1
        self._adopt(Form("spd", ku, ku, lower=check_flag(lower, "lower")), given, [ab])
