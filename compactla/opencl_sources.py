"""The OpenCL C sources: where they are, and the macros that a program is compiled with."""

from typing import Any

import numpy as np

from compactla.digests import PACKAGE
from compactla.dtypes import REAL

# a wheel carries the sources inside the package, a checkout beside it
SOURCES = next(folder for folder in (PACKAGE / "opencl", PACKAGE.parent / "opencl") if folder.is_dir())
C_NAMES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


def definitions(dtype: np.dtype, vlen: int, defines: dict[str, Any]) -> list[str]:
    """All macros, as options of a compiler."""
    macros = {"CLA_REAL": C_NAMES[REAL[dtype.char]], "CLA_COMPLEX": int(dtype.kind == "c"), "CLA_VLEN": vlen}
    return [f"-D{name}={value}" for name, value in (macros | defines).items()]
