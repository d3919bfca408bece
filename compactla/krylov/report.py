"""The report of a solve by a Krylov method."""

from typing import Any, NamedTuple

import numpy as np


class Report(NamedTuple):
    """Report of a solve: numbers for one large system, arrays with one number for each system of a batch.

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

    iterations: Any
    converged: Any
    residual: Any
    history: Any = None

    def __repr__(self) -> str:
        if np.ndim(self.converged) == 0:
            goal = "converged" if self.converged else "not converged"
            return f"Report({goal}, {self.iterations} iterations, residual {self.residual:.3g})"
        count, nm = np.count_nonzero(self.converged), np.size(self.converged)
        most, worst = np.max(self.iterations, initial=0), np.max(self.residual, initial=0)
        return f"Report({count} of {nm} systems converged, at most {most} iterations, residuals at most {worst:.3g})"
