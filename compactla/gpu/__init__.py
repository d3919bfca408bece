"""OpenCL devices: the host side of the kernels in `opencl/`.

`build` compiles a user's own kernels, which may call the pack-level functions of those files.
"""

from compactla.gpu.program import build

__all__ = ["build"]
