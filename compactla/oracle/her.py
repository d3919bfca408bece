"""her: A <- alpha x x^H + A, of which one triangle is touched."""

from compactla.oracle import syr
from compactla.oracle.syr import repeatable as repeatable


def operands(draw, n, **options):
    """What alpha may have of an imaginary part is not read."""
    return syr.operands(draw, n)


def residual(before, after, uplo="L"):
    """The residual of syr."""
    return syr.residual((before[0].real.astype(before[0].dtype), *before[1:]), after, uplo, "C")
