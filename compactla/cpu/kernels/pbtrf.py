"""pbtrf at the register level (`eliminate`) and at the pack level (`pbtrf`): positive definite band matrices."""

from collections.abc import Callable, Sequence
from typing import Any

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import IntOrIndex
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Lanes
from compactla.cpu.kernels.gbtrf import guarded


class HermitianBand:
    """A triangle of a Hermitian band matrix, whose diagonals are ordered as SciPy does.

    Element (i, j) is ``A[i - j, j]`` of the lower one, or ``A[ku + i - j, j]`` of the upper one.
    """

    def __init__(self, code: Code, A: Elements, lower: bool) -> None:
        self.code, self.A, self.lower, self.ku, self.n, self.vector = code, A, lower, A.m - 1, A.n, A.vector

    def row(self, i: IntOrIndex, whole: bool) -> list[Lanes]:
        """Row i from column i - ku to i, whose imaginary part is left out; zeros behind the last row."""
        lanes = []
        for t in range(self.ku + 1):
            row, column = (self.ku - t, i + (t - self.ku)) if self.lower else (t, i)
            x = guarded(self.code, self.A, row, column, i, whole)
            lanes.append(x if self.lower else x.conjugate())
        real = lanes[-1].real
        lanes[-1] = lanes[-1]._new(*real.parts, *lanes[-1].constant(0).parts[1:])
        return lanes


def eliminate(
    code: Code, bands: Sequence[HermitianBand], n: IntOrIndex, info: Sequence, keep: Callable,
    begin: Callable | None = None,
) -> None:  # fmt: skip
    """L D L^H of Hermitian band matrices side by side; ``keep(w, k, inverse, multiples)`` is told of each step.

    ``begin(k)`` comes before step k, which needs row k + ku + 1.
    """
    windows = [code.registers(band.vector, band.ku + 1, band.ku + 1) for band in bands]
    ku = bands[0].ku
    for window, band in zip(windows, bands, strict=True):
        for i in range(ku + 1):
            for t, x in enumerate(band.row(i, False)[ku - i :]):
                window[i, t] = x

    def step(k, whole):
        if begin:
            begin(k)
        for w, (window, band) in enumerate(zip(windows, bands, strict=True)):
            pivot = window[0, 0].real
            inverse = pivot.reciprocal()
            column = [window[i, 0] for i in range(1, ku + 1)]
            multiples = [x * inverse for x in column]
            for i, multiple in enumerate(multiples, 1):
                for j in range(1, i + 1):
                    window[i - 1, j - 1] = (-multiple).fma(column[j - 1].conjugate(), window[i, j])
            row = k + (ku + 1)
            for t, x in enumerate(band.row(row, whole)):
                window[ku, t] = x
            keep(w, k, inverse, multiples)
            report(code, [~(pivot > 0)], info[w], k + 1)

    whole = code.max(n - (ku + 1), 0)
    with code.loop(whole) as k:
        step(k, True)
    with code.loop(n - whole) as t:
        step(whole + t, False)


@routine
def pbtrf(code: Code, A: Elements, F: Elements, info: Any, lower: bool = False, ahead: Any = ()) -> None:
    """The factors L D L^H of the V Hermitian positive definite band matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        (ku + 1) x n, from `matrix`: element (i, j) is ``A[ku + i - j, j]``, or ``A[i - j, j]`` of the lower triangle.
        It is read only, its corners and the imaginary parts of its diagonal are not.
    F : matrix
        (ku + 1) x n, which gets ``F[0, k]``, the reciprocal of element k of D, and ``F[t, k]``, element (k + t, k)
        of L.
    info : array of V int64
        Set to ``k + 1`` for a matrix whose pivot k is the first that is not positive; otherwise left alone.
    lower : bool
        A constant: which triangle A holds.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """
    eliminate(code, [HermitianBand(code, A, bool(lower))], A.n, [info], keep_columns(F))


def keep_columns(F: Elements) -> Callable:
    """Function that keeps the factors of a matrix in F."""

    def keep(w, k, inverse, multiples):
        F[0, k] = inverse
        for t, multiple in enumerate(multiples, 1):
            F[t, k] = multiple

    return keep
