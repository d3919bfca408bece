"""hessenberg: reflections from both sides."""

from compactla.cpu.kernels.hessenberg import hessenberg as reduce
from compactla.cpu.kernels.hessenberg import make_last_real
from compactla.cpu.kernels.schur import unknown


def hessenberg(code, vector, A, *results):
    """H <- Q^H A Q, with zeros below the first subdiagonal, and Q, if there is a place for it."""
    H, *Q, status = results
    W = unknown(code.room(vector, A.n, A.n))
    V = unknown(code.room(vector, A.n, A.n)) if Q else None
    A.read(W)
    reduce(code, W, V)
    if vector.is_complex:
        make_last_real(code, W, V)
    H.write(W)
    for place in Q:
        place.write(V)
    status.check(W)
