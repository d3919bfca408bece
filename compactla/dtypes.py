"""The types of numbers: their letters, and which real type belongs to which complex one."""

from typing import Any

import numpy as np

# The types of matrices, by the letters that BLAS has for them.
DTYPES: dict[str, np.dtype] = {letter: np.dtype(char) for letter, char in zip("sdcz", "fdFD", strict=True)}
INTEGERS = np.dtype(np.int64), np.dtype(np.int32)  # beside matrices on the CPU, and on devices
REAL: dict[str, np.dtype] = {dtype.char: np.dtype(dtype.char.lower()) for dtype in DTYPES.values()}
REAL |= {dtype.char: dtype for dtype in INTEGERS}
COMPLEX: dict[np.dtype, np.dtype] = {np.dtype(char): np.dtype(char.upper()) for char in "fd"}


def packed_dtype(data: Any) -> np.dtype:
    """The dtype of compact data: (.., .., .., V) of a real type is that, (.., .., .., 2, V) its complex twin."""
    real = np.dtype(data.dtype)
    return real if data.ndim == 4 else COMPLEX[real]
