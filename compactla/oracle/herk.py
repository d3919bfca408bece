"""herk: C <- alpha op(A) op(A)^H + beta C, of which one triangle is touched."""

from compactla.oracle import syrk
from compactla.oracle.syrk import operands as operands
from compactla.oracle.syrk import repeatable as repeatable


def residual(before, after, **options):
    """The residual of syrk."""
    return syrk.residual(before, after, **options, adjoint="C")
