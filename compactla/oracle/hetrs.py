"""hetrs: B <- inv(A) B with the factors that hetrf leaves, and the swaps."""

from compactla.oracle import sytrs
from compactla.oracle.sytrs import operands as operands
from compactla.oracle.sytrs import repeatable as repeatable
from compactla.oracle.sytrs import spoil as spoil


def residual(before, after, **options):
    """The residual of sytrs."""
    return sytrs.residual(before, after, **options, trans="C")
