"""The functions that have kernels: which kernel, by name and options, and which matrices have no result."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from compactla.jax.handler import ALL, NONE, THOSE
from compactla.linalg.cholesky import CHOLESKY
from compactla.linalg.det import DET, SLOGDET
from compactla.linalg.eigh import EIGH
from compactla.linalg.inv import INV
from compactla.linalg.lstsq import LSTSQ, WIDE
from compactla.linalg.matmul import MATMUL
from compactla.linalg.pinv import PINV
from compactla.linalg.qr import QR
from compactla.linalg.solve import SOLVE
from compactla.linalg.solve_triangular import SOLVE_TRIANGULAR
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.linalg.svd import FULL, THIN, VALUES

FEW = 4  # right-hand sides of which the number is compiled in
LONGEST = 1 << 20  # numbers of a system that is computed in the cache


class Choice(NamedTuple):
    """A function on stacks, as a kernel computes it.

    Attributes
    ----------
    stacked : compactla.linalg.stacks.Stacked
        The function.
    options : tuple
        Values of its options.
    filled : int
        Which matrices have no result, as of `compactla.jax.handler`: `THOSE` where elimination failed, for results of
        nearly singular ones are as good as LAPACK's, and `ALL` for which an iteration did not end, or is not finite.
    """

    stacked: Stacked
    options: tuple = ()
    filled: int = THOSE


def solve_triangular(lower, trans, unit):
    return Choice(SOLVE_TRIANGULAR, ("L" if lower else "U", trans, "U" if unit else "N", False))


def cholesky(symmetrize):
    return Choice(FACTOR, ("L", "yes", False, symmetrize))


def eigh(lower, symmetrize):
    return Choice(EIGEN, ("L" if lower else "U", symmetrize), ALL)


def svd(full, vectors, wide):
    return Choice((FULL if full else THIN) if vectors else VALUES, (wide,), ALL)


def few(columns: int) -> int:
    """The number of right-hand sides, if that is compiled in, else 0."""
    return columns if columns <= FEW else 0


def tridiagonal_solve(columns):
    return Choice(TRIDIAGONAL, (columns,))


def block_tridiagonal_solve(block, columns, pivoting):
    return Choice(BLOCK_TRIDIAGONAL, (block, columns, pivoting))


FACTOR = replace(CHOLESKY, options=("uplo", "clean", "doubts", "symmetrize"))
EIGEN = replace(EIGH, options=("UPLO", "symmetrize"))
TRIDIAGONAL = Stacked(
    "tridiagonal_solve",
    inputs={"dl": "n1", "d": "n1", "du": "n1", "b": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, r, **_: n * (8 + 3 * r),
    numpy=NotImplemented,
    options=("columns",),
    limits=Limits(LONGEST, lambda n: 1, lambda n, r, **_: n * (4 + r)),
)
BLOCK_TRIDIAGONAL = Stacked(
    "block_tridiagonal_solve",
    inputs={"lower": "pc", "diag": "nc", "upper": "pc", "rhs": "nr"},
    outputs=(Result("nr"),),
    work=lambda n, c, r, **_: n * c * (2 * c + 3 * r),
    numpy=NotImplemented,
    options=("block", "columns", "pivoting"),
    limits=Limits(LONGEST, lambda n: 1, lambda n, c, r, **_: n * (c + r)),
)
CHOICES: dict[str, Callable[..., Choice]] = {
    "solve": lambda: Choice(SOLVE),
    "solve_triangular": solve_triangular,
    "inv": lambda: Choice(INV),
    "cholesky": cholesky,
    "eigh": eigh,
    "svd": svd,
    "qr": lambda mode: Choice(QR[mode], (mode,), NONE),
    "slogdet": lambda: Choice(SLOGDET, (), NONE),
    "det": lambda: Choice(DET, (), NONE),
    "lstsq": lambda wide: Choice(WIDE if wide else LSTSQ, (), ALL),
    "pinv": lambda wide: Choice(PINV, (wide,), ALL),
    "matmul": lambda: Choice(MATMUL, (), NONE),
    "tridiagonal_solve": tridiagonal_solve,
    "block_tridiagonal_solve": block_tridiagonal_solve,
}
