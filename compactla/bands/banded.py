"""Systems with general band matrices."""

from compactla.band_form import Form
from compactla.bands.systems import Systems, check_diagonals, check_flag
from compactla.checks import check_size
from compactla.foreign import accepts_foreign
from compactla.types import Array, Queue


class Banded(Systems):
    """Band matrices, and systems with them.

    Parameters
    ----------
    l_and_u : tuple of int
        Number of diagonals below the main one, and above it.
    ab : (nsys, l + u + 1, n) array_like or pyopencl.array.Array
        Diagonals as of `scipy.linalg.solve_banded`: ``ab[:, u + i - j, j]`` is element (i, j). Elements outside of the
        matrices, in the corners, are not read. float32, float64, complex64 or complex128. Without the first axis all
        systems share one matrix.
    pivoting : bool, optional
        Whether rows are swapped, as LAPACK's gbtrf does. It is not needed for matrices that are diagonally dominant.
    queue : pyopencl.CommandQueue, optional
        Device that the matrices are copied to and factored on; default: where they live.

    Raises
    ------
    TypeError, ValueError
        If shapes or dtypes do not fit together.

    Notes
    -----
    Results do not depend on the number of threads or the position of a system.

    See Also
    --------
    compactla.Tridiag, compactla.BandedSPD, compactla.linalg.solve_banded

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> ab = np.array([[[0.0, 1, 1], [2, 2, 2], [1, 1, 0]]])
    >>> B = cla.Banded((1, 1), ab)
    >>> B.factor()
    array([0])
    >>> B.solve(np.array([[3.0, 4, 3]]))
    array([[1., 1., 1.]])
    """

    @accepts_foreign
    def __init__(self, l_and_u: tuple[int, int], ab: Array, pivoting: bool = True, *, queue: Queue = None) -> None:
        try:
            lower, upper = l_and_u
        except (TypeError, ValueError):
            raise TypeError(f"l_and_u is {l_and_u!r}, must be two integers") from None
        kl, ku = check_size(lower, "l_and_u[0]"), check_size(upper, "l_and_u[1]")
        given = check_diagonals({"ab": ab}, queue)
        ab = given["ab"]
        if ab.ndim not in (2, 3) or ab.shape[-2] != kl + ku + 1 or ab.shape[-1] < 1:
            raise ValueError(f"ab has shape {ab.shape}, must be (nsys, {kl + ku + 1}, n), n >= 1, to fit l_and_u")
        form = Form("banded", kl, ku, check_flag(pivoting, "pivoting") and kl > 0)
        self._adopt(form, given, [ab])
