"""numpy.linalg's functions that would gain nothing here, and are NumPy's own. NumPy 1 lacks some."""

import numpy as np

NAMES = (
    *("cross", "diagonal", "matrix_transpose", "multi_dot", "outer", "tensordot", "tensorinv", "tensorsolve", "trace"),
    *("vecdot",),
)
__all__ = [name for name in NAMES if hasattr(np.linalg, name)]
globals().update({name: getattr(np.linalg, name) for name in __all__})
