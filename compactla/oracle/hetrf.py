"""hetrf: A <- L and D with A = L D L^H, or U and D with A = U D U^H, in blocks of one and of two rows."""

from compactla.oracle import sytrf
from compactla.oracle.sytrf import repeatable as repeatable
from compactla.oracle.sytrf import spoil as spoil


def operands(draw, n, **options):
    """Hermitian matrices."""
    return sytrf.operands(draw, n, "C")


def residual(before, after, **options):
    """The residual of sytrf."""
    return sytrf.residual(before, after, **options, trans="C")
