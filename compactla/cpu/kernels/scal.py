"""scal at the pack level, and what it shares with axpy."""

from compactla.cpu.emit.code import routine
from compactla.cpu.emit.matrices import Elements


@routine
def scal(code, alpha, X, ahead=()):
    """X <- alpha X for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    alpha : number, or matrix of 1 x 1
        One for all of the V matrices, or one for each.
    X : matrix
        m x n, from `matrix`.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    alpha = factor(code, alpha, X.vector)
    (X,) = along(code, X)
    if ahead:
        code.fetch_ahead(ahead, X.m * X.n)
    for i in code.each(X.m):
        for j in code.rounds(X.n):
            X[i, j] = alpha * X[i, j]


def factor(code, alpha, vector):
    """alpha in all lanes, or those that a matrix of 1 x 1 has."""
    return alpha[0, 0] if isinstance(alpha, Elements) else code.broadcast(alpha, vector)


def along(code, *matrices):
    """Matrices of one size with the longer axis last: all transposed, or none."""
    A = matrices[-1]
    if isinstance(A.m, int) and isinstance(A.n, int):
        return [X.T for X in matrices] if A.m > A.n else matrices
    taller = code.unknown(A.m) > A.n

    def turned(X):
        fields = {"m": (X.n, X.m), "n": (X.m, X.n), "rs": (X.cs, X.rs), "cs": (X.rs, X.cs)}
        return X._replace(**{name: taller.select(x, y) for name, (x, y) in fields.items()})

    return [turned(X) for X in matrices]
