"""Least squares."""

import functools

import jax
from jax import numpy as jnp

from compactla.jax.operators.factors import svdvals
from compactla.jax.operators.systems import each, product
from compactla.jax.primitives import Function, Zero, constant, derived, full


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
    if type(dA) is Zero:
        return [P], [constant(P)]
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
