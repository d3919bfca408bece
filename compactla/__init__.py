"""Compact-layout batched linear algebra for thousands of small matrices, on CPUs and OpenCL devices."""

from importlib.metadata import version

from compactla.blas import gemm, trsm
from compactla.blocktridiag import BlockTridiag
from compactla.lapack import getrfnp
from compactla.pack import Pack, pack
from compactla.pivots import PivotError

__version__ = version("compactla")
__all__ = ["BlockTridiag", "LinePreconditioner", "Pack", "PivotError", "gemm", "getrfnp", "pack", "trsm"]


def __getattr__(name):
    # LinePreconditioner is a SciPy LinearOperator, and SciPy is not imported before it is needed.
    if name == "LinePreconditioner":
        from compactla.precond import LinePreconditioner

        return LinePreconditioner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
