"""gbtrs at the register level (`forward`, `backward`) and at the pack level: solves with the factors of gbtrf."""

from collections.abc import Callable
from typing import Any

from compactla.cpu.emit.code import Code, routine
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.laswp import exchange

COLUMNS = 4  # right-hand sides at a time


def forward(
    code: Code, L: Elements, B: Elements, swapped: Callable | None = None, begin: Callable | None = None
) -> None:
    """B <- inv(L) B; ``swapped(k)`` are flags of the rows below row k, where lanes swapped it with one of them.

    ``begin(k)`` comes before step k, which needs row k + kl + 1 of B.
    """
    kl, n = L.m, L.n
    last, columns = n - 1, range(B.n)
    window = code.registers(B.vector, kl + 1, B.n)
    for i in range(kl + 1):
        for c in columns:
            window[i, c] = B[code.min(i, last), c]
    with code.loop(n) as k:
        if begin:
            begin(k)
        flags = swapped(k) if swapped else None
        for c in columns:
            x = [window[i, c] for i in range(kl + 1)]
            top, *rest = exchange(x, flags) if swapped else x
            B[k, c] = top
            for i, y in enumerate(rest):
                window[i, c] = (-L[i, k]).fma(top, y)
            window[kl, c] = B[code.min(k + (kl + 1), last), c]


def backward(code: Code, U: Elements, B: Elements, reach: int, unit: bool = False, end: Callable | None = None) -> None:
    """B <- inv(U) B, for a U whose rows reach so far; or inv(L^H) inv(D) B, where the factors are those of pbtrf.

    ``end(k)`` comes after step k, which leaves row k of B as it is to be.
    """
    n, columns = U.n, range(B.n)
    window = code.registers(B.vector, max(reach, 1), B.n)
    for t in range(reach):
        for c in columns:
            window[t, c] = code.zero(B.vector)
    with code.loop(n) as step:
        k = n - 1 - step
        for c in columns:
            x = B[k, c] * U[0, k] if unit else B[k, c]
            for t in reversed(range(reach)):
                factor = U[t + 1, k].conjugate() if unit else U[t + 1, k]
                x = (-factor).fma(window[t, c], x)
            x = x if unit else x * U[0, k]
            B[k, c] = x
            for t in reversed(range(1, reach)):
                window[t, c] = window[t - 1, c]
            if reach:
                window[0, c] = x
        if end:
            end(k)


@routine
def gbtrs(code: Code, U: Elements, L: Elements, ipiv: Any, B: Elements, pivoting: bool = True, ahead: Any = ()) -> None:
    """B <- inv(A) B for the V matrices of a pack, with the factors of `gbtrf`, in a Numba function.

    Parameters
    ----------
    U, L, ipiv : matrix
        Results of `gbtrf`.
    B : matrix
        n x r, from `matrix`.
    pivoting : bool
        A constant: whether rows were swapped.
    ahead : tuple of matrices
        Nothing is fetched ahead.
    """

    def swapped(k):
        row = ipiv[k, 0]
        return [row == code.broadcast(k + i, row.vector) for i in range(1, L.m + 1)]

    for j, r in code.tiles(B.n, COLUMNS):
        some = B.block(0, j, B.m, r)
        forward(code, L, some, swapped if pivoting else None)
        backward(code, U, some, U.m - 1 if pivoting else U.m - 1 - L.m)
