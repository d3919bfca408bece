"""OpenCL devices: the host side of the kernels in `opencl/`.

`build` compiles a user's own kernels, which may call the pack-level functions of those files; `getrfnp` factors without
waiting for the device.
"""

from compactla.gpu.lapack import getrfnp
from compactla.gpu.program import build

__all__ = ["build", "getrfnp"]
