"""Tridiagonal systems, open or closed to rings."""

from typing import Any

from compactla.band_form import Form
from compactla.bands.systems import Systems, along, check_axis, check_diagonals, check_flag
from compactla.foreign import accepts_foreign
from compactla.types import Array, Queue


class Tridiag(Systems):
    """Tridiagonal matrices, and systems with them.

    Parameters
    ----------
    lower : (nsys, n - 1) array_like or pyopencl.array.Array
        ``lower[:, k]`` couples row k + 1 to unknown k. With `periodic` (nsys, n): ``lower[:, n - 1]`` couples row 0 to
        unknown n - 1.
    diag : (nsys, n) array_like or pyopencl.array.Array
        Main diagonals; float32, float64, complex64 or complex128.
    upper : (nsys, n - 1) array_like or pyopencl.array.Array
        ``upper[:, k]`` couples row k to unknown k + 1. With `periodic` (nsys, n): ``upper[:, n - 1]`` couples row n - 1
        to unknown 0.
    periodic : bool, optional
        Whether systems are closed to rings. Couplings of the same two unknowns, or of one to itself, add up.
    pivoting : bool, optional
        Whether rows are swapped, as LAPACK's gttrf does. It is not needed for matrices that are diagonally dominant or
        positive definite.
    axis : int, optional
        The axis along which matrices are in arrays of any dimension, whose other axes number the systems; also that of
        `solve` then. Default: the last of two, or the only one of a matrix that all systems share.
    queue : pyopencl.CommandQueue, optional
        Device that the matrices are copied to and factored on; default: where they live.

    Raises
    ------
    TypeError, ValueError
        If shapes or dtypes do not fit together.

    Notes
    -----
    Rings are folded: with unknowns in the order 0, n - 1, 1, n - 2, ... they are band matrices with two diagonals on
    either side, which are factored with row interchanges. This is as stable as for open systems, also where a matrix
    without the couplings that close the ring is singular.

    Results do not depend on the number of threads or the position of a system.

    See Also
    --------
    compactla.Banded, compactla.BandedSPD, compactla.BlockTridiag

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> T = cla.Tridiag(np.ones((2, 3)), np.full((2, 4), 4.0), np.ones((2, 3)))
    >>> T.factor()
    array([0, 0])
    >>> T.solve(np.array([[5.0, 6, 6, 5], [10, 12, 12, 10]]))
    array([[1., 1., 1., 1.],
           [2., 2., 2., 2.]])
    """

    @accepts_foreign
    def __init__(
        self, lower: Array, diag: Array, upper: Array, periodic: Any = False, pivoting: bool = True, *,
        axis: Any = None, queue: Queue = None,
    ) -> None:  # fmt: skip
        given = check_diagonals({"diag": diag, "lower": lower, "upper": upper}, queue)
        periodic, pivoting = check_flag(periodic, "periodic"), check_flag(pivoting, "pivoting")
        diag = given["diag"]
        if axis is None and diag.ndim not in (1, 2):
            raise ValueError(f"diag has shape {diag.shape}, must be (nsys, n), or (n,) of all systems")
        place = check_axis(diag.ndim - 1 if axis is None else axis, diag, "diag")
        n = diag.shape[place]
        if n < 1:
            raise ValueError(f"diag has shape {diag.shape}, must have at least one unknown")
        must = (*diag.shape[:place], n if periodic else n - 1, *diag.shape[place + 1 :])
        for name in "lower", "upper":
            if given[name].shape != must:
                raise ValueError(f"{name} has shape {given[name].shape}, must be {must} to fit diag and periodic")
        lower, diag, upper = (along(given[name], place) for name in ("lower", "diag", "upper"))
        if periodic and n == 1:
            lower, diag, upper, periodic = lower[..., :0], diag + lower + upper, upper[..., :0], False
        reach = 2 if periodic else 1
        form = Form("ring" if periodic else "tridiag", reach, reach, pivoting)
        self._adopt(form, given, [lower, diag, upper], None if axis is None else place)
