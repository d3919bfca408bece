"""Hessenberg form, Q^H A Q with zeros below the first subdiagonal, by reflections; LAPACK's gehd2 and orghr."""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.kernels.householder import identity, reflect, reflector


def hessenberg(code: Code, A: Elements, Q: Elements | None = None) -> None:
    """A <- Q^H A Q, with zeros below the first subdiagonal; Q <- the product of the reflections, if it is given."""
    n = code.unknown(A.n)
    scales = code.room(A.vector, A.n)
    with code.loop(n - 2) as k:
        top, rest = k + 1, k + 2
        v = A.block(rest, k, n - rest, 1)
        A[top, k], scales[k, 0] = reflector(code, A[top, k], v)
        scale = scales[k, 0].conjugate()
        for B, first in (A, top), (A.H, 0):  # rows from there on of the columns behind, then of the adjoint
            reflect_rows(code, v, scale, B, top, first)
    if Q:
        identity(code, Q)
        with code.loop(n - 2) as t:
            k = n - 3 - t
            reflect_rows(code, A.block(k + 2, k, n - k - 2, 1), scales[k, 0], Q, k + 1, k + 1)
    with code.loop(n - 2) as k, code.loop(n - 2 - k) as i:
        A[k + 2 + i, k] = code.zero(A.vector)


def make_last_real(code: Code, H: Elements, Q: Elements | None = None) -> None:
    """Make the last element below the diagonal of H real, as the others are, and change Q with it."""
    last = H.n - 1
    beta, tau = reflector(code, H[last, last - 1], H.block(last, last - 1, 0, 1))
    turn = tau.constant(1) - tau
    for i in code.each(last):
        H[i, last] = H[i, last] * turn
        H[last, i] = H[last, i] * turn.conjugate()
    H[last, last - 1] = beta
    if Q:
        for i in code.each(H.n):
            Q[i, last] = Q[i, last] * turn


def reflect_rows(code, v, scale, B, top, first):
    """Reflect the rows of B from `top` on, in the columns from `first` on."""
    rest = top + 1
    reflect(code, v, scale, B.block(top, first, 1, B.n - first), B.block(rest, first, B.m - rest, B.n - first))
