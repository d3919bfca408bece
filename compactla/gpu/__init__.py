"""OpenCL devices: the host side of the kernels in `opencl/`.

`build` compiles a user's own kernels, which may call the pack-level functions of those files. `override` chooses one of
the kernels by hand, for tests and measurements.
"""

__all__ = ["build", "override"]


def __getattr__(name):
    # pyopencl is not imported before it is needed.
    if name == "build":
        from compactla.gpu.program import build

        return build
    if name == "override":
        from compactla.gpu.forced import override

        return override
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
