"""Compact-layout batched linear algebra for thousands of small matrices, on CPUs and OpenCL devices."""

from importlib.metadata import version

from compactla.blas import gemm, trsm
from compactla.lapack import getrfnp
from compactla.layout import Pack, pack
from compactla.lines.blocktridiag import BlockTridiag
from compactla.lines.pivots import PivotError

__version__ = version("compactla")
__all__ = ["BlockTridiag", "LinePreconditioner", "LineRelaxation", "Pack", "PivotError"]
__all__ += ["find_lines", "gemm", "getrfnp", "pack", "trsm"]


def __dir__():
    return sorted({*globals(), *__all__})


def __getattr__(name):
    # These are about SciPy's matrices, and SciPy is not imported before it is needed.
    if name == "LinePreconditioner":
        from compactla.lines.precond import LinePreconditioner

        return LinePreconditioner
    if name == "LineRelaxation":
        from compactla.lines.relaxation import LineRelaxation

        return LineRelaxation
    if name == "find_lines":
        from compactla.lines.finding import find_lines

        return find_lines
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
