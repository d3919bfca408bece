"""trsv: x <- inv(op(A)) x."""

from compactla.oracle import trsm
from compactla.oracle.trsm import repeatable as repeatable
from compactla.oracle.trsm import spoil as spoil


def operands(draw, n, **options):
    return trsm.operands(draw, n, 1)


def residual(before, after, **options):
    """The residual of trsm."""
    return trsm.residual(before, after, **options)
