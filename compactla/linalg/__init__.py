"""numpy.linalg for stacks of small matrices."""

from numpy.linalg import LinAlgError

from compactla.linalg.solve import solve

__all__ = ["LinAlgError", "solve"]
