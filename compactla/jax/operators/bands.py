"""Linear systems of band matrices."""

from functools import partial
from typing import Any

from jax import lax
from jax import numpy as jnp

from compactla.jax.operators.systems import each, product
from compactla.jax.primitives import Function, Zero, derived, full, transposed
from compactla.jax.stacks import few


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
    times = partial(jnp.matmul, precision="highest")  # GPUs would multiply in TF32

    def solved(lower, diag, upper, B):
        b = diag.shape[-1]
        K = len(diag) // b
        lower, diag, upper = (x.reshape(-1, b, b) for x in (lower, diag, upper))
        B = B.reshape(K, b, -1)
        none = jnp.zeros_like(diag[:1])

        def down(before, blocks):
            L, D, U, rhs = blocks
            Y, z = before
            found = jnp.linalg.solve(D - times(L, Y), jnp.concatenate([U, rhs - times(L, z)], -1))
            step = found[:, :b], found[:, b:]
            return step, step

        _, (Y, z) = lax.scan(
            down,
            (none[0], jnp.zeros_like(B[0])),
            (jnp.concatenate([none, lower]), diag, jnp.concatenate([upper, none]), B),
        )

        def up(following, blocks):
            Y, z = blocks
            x = z - times(Y, following)
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


def block_tridiagonal_solve(lower: Any, diag: Any, upper: Any, B: Any, pivoting: bool = False) -> Any:
    """X of block tridiagonal systems; blocks are below each other, the K b rows of matrices with b columns."""
    return _block_tridiagonal_solve(lower, diag, upper, B, pivoting=pivoting)


def blocks_of(x):
    """Blocks that are below each other as a stack."""
    b = x.shape[-1]
    return x.reshape(*x.shape[:-2], x.shape[-2] // b, b, b)


def below(blocks: Any) -> Any:
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
