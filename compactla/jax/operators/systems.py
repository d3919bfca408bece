"""Products, and linear systems."""

import math
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.interpreters import ad

from compactla.jax.primitives import Function, Zero, derived, full, transposed


def turn(A, flag):
    return A.mT if flag else A


def each(function):
    """A function of matrices for those of stacks."""

    def call(*arrays):
        lead = jnp.broadcast_shapes(*(a.shape[:-2] for a in arrays))
        arrays = [jnp.broadcast_to(a, lead + a.shape[-2:]).reshape(math.prod(lead), *a.shape[-2:]) for a in arrays]
        return jax.tree.map(lambda x: x.reshape(lead + x.shape[1:]), jax.vmap(function)(*arrays))

    return call


# Products


def product_by_jax(A, B, turned):
    return [jnp.matmul(turn(A, turned[0]), turn(B, turned[1]), precision="highest")]


_product = Function("matmul", product_by_jax, ("turned",), lambda *sizes: {})


def product(A: Any, B: Any, turnA: bool = False, turnB: bool = False) -> Any:
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


def solve(A: Any, B: Any, turnA: bool = False) -> Any:
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


def solve_triangular(A: Any, B: Any, lower: bool = True, trans: str = "N", unit: bool = False) -> Any:
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
