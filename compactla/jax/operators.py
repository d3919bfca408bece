"""What kernels compute, on stacks of matrices, and its derivatives, which are made of the same.

Forward mode: M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation,
2008; J. Townsend, Differentiating the singular value decomposition, 2016; G. Golub and V. Pereyra, The differentiation
of pseudo-inverses, 1973. It is linear in tangents by products and solutions alone, and reverse mode is its transpose.
"""

import functools

import jax
from jax import lax
from jax import numpy as jnp
from jax.interpreters import ad

from compactla.jax.primitives import Function, Zero, constant, derived, full, transposed
from compactla.jax.stacks import few


def turn(A, flag):
    return A.mT if flag else A


def each(function):
    """A function of matrices for those of stacks."""

    def call(*arrays):
        lead = jnp.broadcast_shapes(*(a.shape[:-2] for a in arrays))
        arrays = [jnp.broadcast_to(a, lead + a.shape[-2:]).reshape(-1, *a.shape[-2:]) for a in arrays]
        return jax.tree.map(lambda x: x.reshape(lead + x.shape[1:]), jax.vmap(function)(*arrays))

    return call


# Products


def product_by_jax(A, B, turned):
    return [jnp.matmul(turn(A, turned[0]), turn(B, turned[1]), precision="highest")]


_product = Function("matmul", product_by_jax, ("turned",), lambda *sizes: {})


def product(A, B, turnA=False, turnB=False):
    """A B, of transposes if so."""
    return _product(A, B, turned=(turnA, turnB))


@derived(_product)
def _(primals, tangents, turned):
    (A, B), (dA, dB) = primals, tangents
    terms = []
    if type(dA) is not Zero:
        terms.append(product(dA, B, *turned))
    if type(dB) is not Zero:
        terms.append(product(A, dB, *turned))
    return [product(A, B, *turned)], [sum(terms[1:], terms[0])]


@transposed(_product)
def _(c, A, B, turned):
    turnA, turnB = turned
    if ad.is_undefined_primal(A):
        return (product(B, c, turnB, True) if turnA else product(c, B, False, not turnB)), None
    return None, (product(c, A, True, turnA) if turnB else product(A, c, not turnA, False))


# Linear systems


def solve_by_jax(A, B, turned):
    return [jnp.linalg.solve(turn(A, turned[0]), B)]


_solve = Function("solve", solve_by_jax, ("turned",), lambda *sizes: {}, linear=True)


def solve(A, B, turnA=False):
    """X of A X = B, or of A^T X = B."""
    return _solve(A, B, turned=(turnA, False))


@derived(_solve)
def _(primals, tangents, turned):
    (A, B), (dA, dB) = primals, tangents
    X = solve(A, B, turned[0])
    change = full(dB) if type(dA) is Zero else full(dB) - product(dA, X, turned[0])
    return [X], [solve(A, change, turned[0])]


@transposed(_solve)
def _(c, A, B, turned):
    return None, solve(A, c, not turned[0])


def solve_triangular_by_jax(A, B, lower, trans, unit):
    lead = jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = (jnp.broadcast_to(x, lead + x.shape[-2:]) for x in (A, B))
    options = {"transpose_a": trans != "N", "conjugate_a": trans == "C", "unit_diagonal": unit}
    return [lax.linalg.triangular_solve(A, B, left_side=True, lower=lower, **options)]


_solve_triangular = Function(
    "solve_triangular",
    solve_triangular_by_jax,
    ("lower", "trans", "unit"),
    lambda *sizes, **options: options,
    linear=True,
)


def solve_triangular(A, B, lower=True, trans="N", unit=False):
    """X of op(A) X = B, for one triangle of A."""
    return _solve_triangular(A, B, lower=lower, trans=trans, unit=unit)


@derived(_solve_triangular)
def _(primals, tangents, lower, trans, unit):
    (A, B), (dA, dB) = primals, tangents
    X = solve_triangular(A, B, lower, trans, unit)
    change = full(dB)
    if type(dA) is not Zero:
        dA = (jnp.tril if lower else jnp.triu)(dA, (-1 if lower else 1) if unit else 0)
        change = change - product(dA.conj() if trans == "C" else dA, X, trans != "N")
    return [X], [solve_triangular(A, change, lower, trans, unit)]


@transposed(_solve_triangular)
def _(c, A, B, lower, trans, unit):
    if trans == "C":
        return None, solve_triangular(A.conj(), c, lower, "N", unit)
    return None, solve_triangular(A, c, lower, "T" if trans == "N" else "N", unit)


inv = Function("inv", lambda A: [jnp.linalg.inv(A)])


@derived(inv)
def _(primals, tangents):
    ((A,), (dA,)) = primals, tangents
    X = inv(A)
    return [X], [-product(product(X, dA), X)]


# Determinants


det = Function("det", lambda A: [jnp.linalg.det(A)])
_slogdet = Function("slogdet", lambda A: list(jnp.linalg.slogdet(A)))


def slogdet(A):
    return _slogdet(A)


@jax.custom_jvp
def cofactors(A):
    """The derivatives of determinants by elements, of singular matrices too."""

    def of_singular():
        U, s, Vh = svd(A)
        others = [jnp.prod(jnp.delete(s, i, axis=-1), axis=-1) for i in range(s.shape[-1])]
        turned = (det(U) * det(Vh))[..., None, None]
        return turned * product(U * jnp.stack(others, -1)[..., None, :].astype(U.dtype), Vh).conj()

    d = det(A)[..., None, None]
    regular = d * inv(A).mT
    return lax.cond(jnp.any(d == 0), lambda: jnp.where(d == 0, of_singular(), regular), lambda: regular)


@cofactors.defjvp
def _(primals, tangents):
    ((A,), (dA,)) = primals, tangents
    C, X = cofactors(A), inv(A)
    inner = product(X, product(dA, X))
    change = (C * dA).sum((-2, -1), keepdims=True) * X - det(A)[..., None, None] * inner
    return C, change.mT


@derived(det)
def _(primals, tangents):
    ((A,), (dA,)) = primals, tangents
    return [det(A)], [(cofactors(A) * dA).sum((-2, -1))]


@derived(_slogdet)
def _(primals, tangents):
    ((A,), (dA,)) = primals, tangents
    sign, logarithm = slogdet(A)
    change = (inv(A).mT * dA).sum((-2, -1))
    if not jnp.iscomplexobj(A):
        return [sign, logarithm], [constant(sign), change]
    return [sign, logarithm], [sign * (1j * change.imag).astype(sign.dtype), change.real]


# Cholesky factors, eigenvalues and singular values


_cholesky = Function(
    "cholesky",
    lambda A, symmetrize: [lax.linalg.cholesky(A, symmetrize_input=symmetrize)],
    ("symmetrize",),
    lambda *sizes, **options: options,
)


def cholesky(A, symmetrize=True):
    """L of A = L L^H."""
    return _cholesky(A, symmetrize=symmetrize)


def hermitian(A):
    return (A + A.mT.conj()) / 2


@derived(_cholesky)
def _(primals, tangents, symmetrize):
    ((A,), (dA,)) = primals, tangents
    L = cholesky(A, symmetrize)
    left = solve_triangular(L, hermitian(dA) if symmetrize else dA)
    inner = jnp.tril(solve_triangular(L, left.mT.conj()).mT.conj())
    half = inner - inner * jnp.eye(L.shape[-1], dtype=L.dtype) / 2
    return [L], [jnp.tril(product(L, half))]


def eigh_by_jax(A, lower, symmetrize):
    V, w = lax.linalg.eigh(A, lower=lower, symmetrize_input=symmetrize)
    return [w, V]


_eigh = Function("eigh", eigh_by_jax, ("lower", "symmetrize"), lambda *sizes, **options: options)


def eigh(A, lower=True, symmetrize=True):
    """Eigenvalues, and eigenvectors."""
    return _eigh(A, lower=lower, symmetrize=symmetrize)


@derived(_eigh)
def _(primals, tangents, lower, symmetrize):
    ((A,), (dA,)) = primals, tangents
    w, V = eigh(A, lower, symmetrize)
    change = product(V.conj(), product(hermitian(dA) if symmetrize else dA, V), True)
    eye = jnp.eye(w.shape[-1], dtype=w.dtype)
    inverse = 1 / (w[..., None, :] - w[..., :, None] + eye) - eye
    return [w, V], [diagonal(change).real, product(V, inverse.astype(V.dtype) * change)]


def diagonal(A):
    return jnp.diagonal(A, axis1=-2, axis2=-1)


def svd_by_jax(A, full, vectors):
    found = jnp.linalg.svd(A, full_matrices=full, compute_uv=vectors)
    return list(found) if vectors else [found]


_svd = Function(
    "svd", svd_by_jax, ("full", "vectors"), lambda size, full, vectors: {
        "full": full, "vectors": vectors, "wide": size[0] < size[1]
    },
)  # fmt: skip


def svd(A, full=False):
    """U, singular values and V^H."""
    return _svd(A, full=full, vectors=True)


def svdvals(A):
    return _svd(A, full=False, vectors=False)


@derived(_svd)
def _(primals, tangents, full, vectors):
    ((A,), (dA,)) = primals, tangents
    m, n = A.shape[-2:]
    if full and vectors and m != n:
        raise NotImplementedError("svd has no derivatives with full_matrices=True unless matrices are square")
    U, s, Vh = found = svd(A)
    right = product(dA, Vh.conj(), turnB=True)  # dA V
    inner = product(U.conj(), right, True)
    if not vectors:
        return [svdvals(A)], [diagonal(inner).real]
    S, eye = s[..., None, :].astype(A.dtype), jnp.eye(s.shape[-1], dtype=s.dtype)
    square = (s[..., None, :] - s[..., :, None]) * (s[..., None, :] + s[..., :, None])
    F = (1 / (square + eye) - eye).astype(A.dtype)
    adjoint = inner.mT.conj()
    dU = product(U, F * (inner * S + S.mT * adjoint))
    dV = product(Vh.conj(), F * (S.mT * inner + adjoint * S), True)
    if jnp.iscomplexobj(A):  # phases are those for which V has none
        phases = (inner - adjoint) / 2 * eye / S
        dU = dU + product(U, phases)
    if m > n:
        dU = dU + (right - product(U, inner)) / S
    if n > m:
        left = product(dA.conj(), U, True)  # dA^H U
        dV = dV + (left - product(Vh.conj(), adjoint, True)) / S
    return found, [dU, diagonal(inner).real, dV.mT.conj()]


# Factors Q R


def qr_by_jax(A, mode):
    found = jnp.linalg.qr(A, mode)
    return list(found) if mode != "r" else [found]


_qr = Function("qr", qr_by_jax, ("mode",), lambda size, mode: {"mode": mode})


def qr(A, mode="reduced"):
    """Q and R, or R alone."""
    return _qr(A, mode=mode)


@derived(_qr)
def _(primals, tangents, mode):
    ((A,), (dA,)) = primals, tangents
    m, n = A.shape[-2:]
    if mode == "complete" and m > n:
        raise NotImplementedError("qr has no derivatives with mode='complete' of matrices with more rows than columns")
    Q, R = qr(A)
    k = min(m, n)
    change = solve_triangular(R[..., :k], dA[..., :k].mT, lower=False, trans="T").mT  # dA inv(R)
    inner = product(Q.conj(), change, True)
    lower = jnp.tril(inner, -1)
    turned = lower - lower.mT.conj()
    if jnp.iscomplexobj(A):
        turned = turned + (1j * diagonal(inner).imag[..., None] * jnp.eye(k)).astype(A.dtype)
    dQ = product(Q, turned - inner) + change
    dR = jnp.triu(product(inner - turned, R[..., :k]))
    if n > k:
        rest = product(dQ.conj(), A[..., k:], True) + product(Q.conj(), dA[..., k:], True)
        dR = jnp.concatenate([dR, rest], -1)
    if mode == "r":
        return [R], [dR]
    return [Q, R], [dQ, dR]


# Least squares


def wide(size, *others):
    return {"wide": size[0] < size[1]}


def pinv_by_jax(A, rcond):
    return [jnp.linalg.pinv(A, rtol=rcond[..., 0, 0])]


def lstsq_by_jax(A, B, rcond):
    solved = functools.partial(jnp.linalg.lstsq, rcond=rcond.reshape(-1)[0])
    X, residuals, rank, s = each(solved)(A, B)
    return [X, residuals, rank.astype(jnp.int32), s]


pinv = Function("pinv", pinv_by_jax, options=wide)
lstsq = Function("lstsq", lstsq_by_jax, options=wide)


@derived(pinv)
def _(primals, tangents):
    (A, rcond), (dA, _) = primals, tangents
    P = pinv(A, rcond)
    m, n = A.shape[-2:]
    H = dA.mT.conj()
    change = -product(P, product(dA, P))
    if m > n:  # others have full rows
        change = change + product(product(P, P.conj(), turnB=True), H - product(H, product(A, P)))
    if n > m:
        change = change + product(H - product(P, product(A, H)), product(P.conj(), P, True))
    if m == n:
        change = change + product(product(P, P.conj(), turnB=True), H - product(H, product(A, P)))
        change = change + product(H - product(P, product(A, H)), product(P.conj(), P, True))
    return [P], [change]


@derived(lstsq)
def _(primals, tangents):
    (A, B, rcond), (dA, dB, _) = primals, tangents
    X, residuals, rank, s = lstsq(A, B, rcond)
    P = pinv(A, rcond)
    r = B - product(A, X)
    change = full(dB)
    values = jnp.zeros_like(s)
    others = 0
    if type(dA) is not Zero:
        H = dA.mT.conj()
        change = change - product(dA, X)
        others = product(P, product(P.conj(), product(H, r), True))
        kernel = product(H, product(P.conj(), X, True))
        others = others + kernel - product(P, product(A, kernel))
        values = jax.jvp(svdvals, (A,), (dA,))[1]
    changed = change - product(A, product(P, change))
    return [X, residuals, rank, s], [
        product(P, change) + others,
        2 * (r.conj() * changed).real.sum(-2),
        constant(rank),
        values,
    ]


# Band matrices


def tridiagonal_by_jax(dl, d, du, B):
    solved = each(lambda dl, d, du, B: lax.linalg.tridiagonal_solve(dl[:, 0], d[:, 0], du[:, 0], B))
    return [solved(dl, d, du, B)]


tridiagonal_solve = Function(
    "tridiagonal_solve", tridiagonal_by_jax, options=lambda *sizes: {"columns": few(sizes[-1][1])}, linear=True
)


def along(dl, d, du, X):
    """The product of tridiagonal matrices and X."""
    Y = d * X
    Y = Y.at[..., 1:, :].add(dl[..., 1:, :] * X[..., :-1, :])
    return Y.at[..., :-1, :].add(du[..., :-1, :] * X[..., 1:, :])


@derived(tridiagonal_solve)
def _(primals, tangents):
    *diagonals, B = primals
    *changes, dB = tangents
    X = tridiagonal_solve(*diagonals, B)
    change = full(dB)
    if any(type(x) is not Zero for x in changes):
        change = change - along(*map(full, changes), X)
    return [X], [tridiagonal_solve(*diagonals, change)]


@transposed(tridiagonal_solve)
def _(c, dl, d, du, B):
    return None, None, None, tridiagonal_solve(jnp.roll(du, 1, -2), d, jnp.roll(dl, -1, -2), c)


def block_tridiagonal_by_jax(lower, diag, upper, B, pivoting):
    def solved(lower, diag, upper, B):
        b = diag.shape[-1]
        K = len(diag) // b
        lower, diag, upper = (x.reshape(-1, b, b) for x in (lower, diag, upper))
        B = B.reshape(K, b, -1)
        none = jnp.zeros_like(diag[:1])

        def down(before, blocks):
            L, D, U, rhs = blocks
            Y, z = before
            found = jnp.linalg.solve(D - L @ Y, jnp.concatenate([U, rhs - L @ z], -1))
            step = found[:, :b], found[:, b:]
            return step, step

        _, (Y, z) = lax.scan(
            down,
            (none[0], jnp.zeros_like(B[0])),
            (jnp.concatenate([none, lower]), diag, jnp.concatenate([upper, none]), B),
        )

        def up(following, blocks):
            Y, z = blocks
            x = z - Y @ following
            return x, x

        return lax.scan(up, jnp.zeros_like(B[0]), (Y, z), reverse=True)[1].reshape(K * b, -1)

    return [each(solved)(lower, diag, upper, B)]


_block_tridiagonal_solve = Function(
    "block_tridiagonal_solve",
    block_tridiagonal_by_jax,
    ("pivoting",),
    lambda lower, diag, upper, rhs, pivoting: {"block": diag[1], "columns": few(rhs[1]), "pivoting": pivoting},
    linear=True,
)


def block_tridiagonal_solve(lower, diag, upper, B, pivoting=False):
    """X of block tridiagonal systems; blocks are below each other, the K b rows of matrices with b columns."""
    return _block_tridiagonal_solve(lower, diag, upper, B, pivoting=pivoting)


def blocks_of(x):
    """Blocks that are below each other as a stack."""
    b = x.shape[-1]
    return x.reshape(*x.shape[:-2], x.shape[-2] // b, b, b)


def below(blocks):
    """A stack of blocks below each other."""
    *lead, K, b, r = blocks.shape
    return blocks.reshape(*lead, K * b, r)


@derived(_block_tridiagonal_solve)
def _(primals, tangents, pivoting):
    *matrix, B = primals
    *changes, dB = tangents
    X = block_tridiagonal_solve(*matrix, B, pivoting)
    change = full(dB)
    b, r = matrix[1].shape[-1], B.shape[-1]
    if any(type(x) is not Zero for x in changes):
        lower, diag, upper = (blocks_of(full(x)) for x in changes)
        x = X.reshape(*X.shape[:-2], -1, b, r)
        zero = jnp.zeros_like(x[..., :1, :, :])
        product_of = product(diag, x)
        product_of = product_of + jnp.concatenate([zero, product(lower, x[..., :-1, :, :])], -3)
        product_of = product_of + jnp.concatenate([product(upper, x[..., 1:, :, :]), zero], -3)
        change = change - below(product_of)
    return [X], [block_tridiagonal_solve(*matrix, change, pivoting)]


@transposed(_block_tridiagonal_solve)
def _(c, lower, diag, upper, B, pivoting):
    lower, diag, upper = (below(blocks_of(x).mT) for x in (lower, diag, upper))
    return None, None, None, block_tridiagonal_solve(upper, diag, lower, c, pivoting)
