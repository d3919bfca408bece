"""numpy.linalg's functions that would gain nothing here, and are NumPy's own. NumPy 1 lacks some."""

import numpy as np

NAMES = (
    *("cond", "cross", "diagonal", "eig", "eigvals", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose"),
    *("multi_dot", "norm", "outer", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm"),
)
__all__ = [name for name in NAMES if hasattr(np.linalg, name)]
globals().update({name: getattr(np.linalg, name) for name in __all__})
