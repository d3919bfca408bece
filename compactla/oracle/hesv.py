"""hesv: B <- inv(A) B, and A <- the factors of hetrf."""

from compactla.oracle import sysv
from compactla.oracle.sysv import free as free
from compactla.oracle.sysv import repeatable as repeatable
from compactla.oracle.sysv import spoil as spoil


def operands(draw, n, r, **options):
    """Hermitian matrices."""
    return sysv.operands(draw, n, r, "C")


def residual(before, after, **options):
    """The residual of sysv."""
    return sysv.residual(before, after, **options, trans="C")
