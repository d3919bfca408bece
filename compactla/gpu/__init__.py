"""OpenCL devices: the host side of the kernels in `opencl/`.

`build` compiles a user's own kernels, which may call the pack-level functions of those files.
"""

__all__ = ["build"]


def __getattr__(name):
    # pyopencl is not imported before it is needed.
    if name == "build":
        from compactla.gpu.program import build

        return build
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
