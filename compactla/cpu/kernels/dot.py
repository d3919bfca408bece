"""dot at the pack level, and sums down a column (`total`)."""

from compactla.cpu.emit.code import Code, check_fit, routine

SUMS = 4  # under way at a time: one after the other would wait for the multiply-adds


def total(code: Code, vector, count, add):
    """The sum over i from 0 to count - 1, where ``add(i, sum)`` adds what belongs to i."""
    sums = code.registers(vector, SUMS)
    for s in range(SUMS):
        sums[s, 0] = code.zero(vector)
    if isinstance(count, int):
        full = count // SUMS
    else:
        full = count // SUMS
    for p in code.rounds(full):
        for s in range(SUMS):
            sums[s, 0] = add(p * SUMS + s, sums[s, 0])
    done = full * SUMS
    for p in code.rounds(count - done):
        sums[0, 0] = add(done + p, sums[0, 0])
    return (sums[0, 0] + sums[1, 0]) + (sums[2, 0] + sums[3, 0])


@routine
def dot(code, X, Y, d, conj=False, ahead=()):
    """d <- the inner products of the columns of X and Y, for the V matrices of a pack, in a Numba function.

    Parameters
    ----------
    X, Y, d : matrix
        m x n, m x n and 1 x n, from `matrix`.
    conj : bool
        A constant: whether X is conjugated.
    ahead : tuple of matrices
        Of one known size, and contiguous: they are fetched into the cache meanwhile.
    """
    check_fit("X", (X.m, X.n), (Y.m, Y.n))
    check_fit("d", (d.n,), (Y.n,))
    X = X._replace(conj=X.conj != conj)
    if ahead:
        code.fetch_ahead(ahead, rounds(Y))
    for j in code.each(Y.n):
        d[0, j] = total(code, Y.vector, Y.m, lambda i, sums, j=j: X[i, j].fma(Y[i, j], sums))


def rounds(X):
    """Number of rounds in the innermost loops of sums down all columns."""
    return X.n * sum(divmod(X.m, SUMS))
