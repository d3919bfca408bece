"""hemm: C <- alpha A B + beta C, or C <- alpha B A + beta C, of a Hermitian A."""

from compactla.oracle import symm
from compactla.oracle.symm import operands as operands
from compactla.oracle.symm import repeatable as repeatable


def residual(before, after, **options):
    """The residual of symm."""
    return symm.residual(before, after, **options, trans="C")
