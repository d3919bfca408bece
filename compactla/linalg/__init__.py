"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg import unchanged
from compactla.linalg.lstsq import lstsq
from compactla.linalg.matmul import matmul
from compactla.linalg.qr import qr
from compactla.linalg.solve import solve
from compactla.linalg.unchanged import *  # noqa: F403

__all__ = ["LinAlgError", "lstsq", "matmul", "qr", "solve"]
__all__ += unchanged.__all__
