"""geev at the pack level: eigenvalues and right eigenvectors of general matrices."""

import math

from compactla.cpu.emit import check_fit, routine
from compactla.cpu.emit.failures import report
from compactla.cpu.emit.index import is_known
from compactla.cpu.kernels.schur import eigen, unknown


@routine
def geev(code, A, w, V, Z, info, compute_v=True, ahead=()):
    """A V = V diag(w) for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    A : matrix
        n x n, from `matrix`; it is overwritten.
    w, V : matrix
        n x 1 and n x n, complex: eigenvalues, and eigenvectors of length 1. Without `compute_v`, V is left alone.
    Z : matrix
        n x n, of the type of A: room to work in; without `compute_v` it is left alone.
    info : array of V int64
        Set to n for matrices with NaN or infinities, and those whose iteration did not end, whose results are NaN;
        otherwise left alone.
    compute_v : bool
        A constant: whether eigenvectors are wanted.
    ahead : tuple of matrices
        Not fetched: there is little to load for so much arithmetic.
    """
    n = A.n
    for name, X, sizes in (("A", A, (n, n)), ("w", w, (n, 1)), ("V", V, (n, n)), ("Z", Z, (n, n))):
        check_fit(name, (X.m, X.n), sizes)
    if is_known(n, 0):
        return
    A, V, Z = map(unknown, (A, V, Z))
    failed = eigen(code, A, w, *((V, Z) if compute_v else ()))
    zero = code.zero(A.vector)
    with code.loop(A.n) as i, code.loop(A.n) as j:  # what is left does not tell of other lanes
        A[i, j] = A[i, j] + zero if compute_v else zero
    with code.when(failed.any()):
        nothing = code.zero(w.vector) + code.zero(w.vector.reals).constant(math.nan)
        with code.loop(A.n) as i:
            w[i, 0] = failed.select(nothing, w[i, 0])
            if compute_v:
                with code.loop(A.n) as j:
                    V[i, j] = failed.select(nothing, V[i, j])
    report(code, [failed], info, n)
