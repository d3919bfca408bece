"""Determinants, factors, eigenvalues and singular values."""

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from compactla.jax.operators.systems import inv, product, solve_triangular
from compactla.jax.primitives import Function, constant, derived

# Determinants


det = Function("det", lambda A: [jnp.linalg.det(A)])
_slogdet = Function("slogdet", lambda A: list(jnp.linalg.slogdet(A)))


def slogdet(A: Any) -> Any:
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


def cholesky(A: Any, symmetrize: bool = True) -> Any:
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


def eigh(A: Any, lower: bool = True, symmetrize: bool = True) -> Any:
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


def svd(A: Any, full: bool = False) -> Any:
    """U, singular values and V^H."""
    return _svd(A, full=full, vectors=True)


def svdvals(A: Any) -> Any:
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


def qr(A: Any, mode: str = "reduced") -> Any:
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
