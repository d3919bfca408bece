"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg.lstsq import lstsq
from compactla.linalg.qr import QRResult, qr
from compactla.linalg.solve import solve

__all__ = ["LinAlgError", "QRResult", "lstsq", "qr", "solve"]
