"""What is told of a solve by a Krylov method."""

from typing import NamedTuple

import numpy as np


class Report(NamedTuple):
    """How a solve went: of one large system, numbers; of a batch, arrays with one for each system.

    Attributes
    ----------
    iterations : int, or (nm,) ndarray of int64
        Steps: of `gmres` those of Arnoldi; a half step of `bicgstab` counts as one.
    converged : bool, or (nm,) ndarray of bool
        Whether `residual` is at most ``max(rtol ||b||, atol)``.
    residual : float, or (nm,) ndarray
        ||b - A x||, the 2-norm, computed from x.
    history : (steps + 1,) or (nm, steps + 1) ndarray, or None
        The norm before the first step and after each, as the method knows it, and `residual` in the end, which is
        repeated for systems with fewer `iterations` than others; only where it was asked for.
    """

    iterations: int | np.ndarray
    converged: bool | np.ndarray
    residual: float | np.ndarray
    history: np.ndarray | None = None
