"""Functions of compactla.linalg on tensors on a GPU, and those of PyTorch, CuPy and JAX that do the same.

A case makes its operands of random matrices, and knows the residual that a result of any of the libraries has to have.
Single precision is computed in single precision by all of them.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from compactla import linalg
from compactla.linalg.cho_solve import CHO_SOLVE
from compactla.linalg.cholesky import CHOLESKY
from compactla.linalg.det import DET, SLOGDET
from compactla.linalg.eigh import EIGH, EIGVALSH
from compactla.linalg.inv import INV
from compactla.linalg.lstsq import LSTSQ
from compactla.linalg.lu import LU_FACTOR, LU_SOLVE
from compactla.linalg.matmul import MATMUL
from compactla.linalg.pinv import PINV
from compactla.linalg.qr import QR
from compactla.linalg.solve import SOLVE
from compactla.linalg.solve_triangular import SOLVE_TRIANGULAR
from compactla.linalg.svd import THIN, VALUES

try:
    import cupy
    import torch
except ImportError:  # asv imports all files here
    cupy = torch = None
try:
    import jax
    import jax.numpy as jnp
    import jax.scipy.linalg as jsl
except ImportError:
    jax = jnp = jsl = None

COLUMNS = 4  # of right-hand sides that are no vectors


class Case(NamedTuple):
    """A function on n x n matrices.

    Attributes
    ----------
    row : compactla.linalg.stacks.Stacked
        The function's inputs and outputs by their sizes, and its multiply-adds.
    make : function
        Operands, of general matrices and right-hand sides with so many columns.
    error : function
        Largest error of a result, in units of the numbers that should be there, of the operands and results.
    calls : dict
        Functions of the operands, by library.
    columns : int
        Columns of the right-hand sides.
    read : float
        The part of the first operand that has to be read: half of it, if one triangle is.
    """

    row: Any
    make: Callable
    error: Callable
    calls: dict[str, Callable]
    columns: int = 1
    read: float = 1

    def sizes(self, n):
        """Sizes by their letters."""
        number = dict.fromkeys("mnkpq", n) | {"r": min(self.columns, n), "1": 1}
        return number | ({"k": n, "n": self.columns} if self.row is MATMUL and self.columns < n else {})

    def numbers(self, n):
        """Numbers of a matrix that have to be read and written."""
        number = self.sizes(n)
        inputs = [number[letters[0]] * number[letters[1]] for letters in self.row.inputs.values() if letters != "11"]
        outputs = [np.prod([number[letter] for letter in x.sizes]) for x in self.row.outputs]
        return sum(inputs) - (1 - self.read) * inputs[0] + sum(outputs)

    def flops(self, n):
        """Operations for a matrix."""
        return 2 * self.row.work(**self.sizes(n))


def ours(function, **options):
    return lambda *arrays: function(*arrays, **options)


def general(a, b):
    return (a,)


def with_columns(a, b):
    return a, b


def definite(a):
    return a @ a.mT / a.shape[-1] + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def scaled(difference, *factors):
    """The largest error of a matrix, by the product of the largest elements of others and their order."""
    size = difference.shape[-2] if difference.ndim > 2 else difference.shape[-1]
    scale = functools.reduce(lambda x, y: x * y, (largest(x) for x in factors), float(size))
    return float((largest(difference) / scale).max())


def largest(x):
    return x.abs().flatten(1).amax(1).clamp(min=1e-300)


def identity(a):
    return torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a)


def of_solution(a, b, x):
    return scaled(a @ x - b, a, x)


def of_factor(a, lower):
    return scaled(lower @ lower.mT - a, a)


def of_lu(a, lu, piv):
    """Rows are swapped one after the other, counted from 0 or, as PyTorch does, from 1."""
    unit, upper = torch.tril(lu, -1) + identity(lu), torch.triu(lu)
    piv = piv.long() - int(piv[:, -1].min() >= a.shape[-1])
    order = torch.arange(a.shape[-1], device=a.device).expand(len(a), -1).clone()
    for k in range(a.shape[-1]):
        there = order.gather(1, piv[:, k : k + 1])
        order.scatter_(1, piv[:, k : k + 1], order[:, k : k + 1].clone())
        order[:, k : k + 1] = there
    return scaled(unit @ upper - a.gather(1, order[..., None].expand_as(a)), a)


def of_eigenvectors(a, w, v):
    return max(scaled(a @ v - v * w[:, None], a), scaled(v.mT @ v - identity(a)))


def of_singular_vectors(a, u, s, vh):
    return max(scaled(u * s[:, None] @ vh - a, a), scaled(u.mT @ u - identity(a)), scaled(vh @ vh.mT - identity(a)))


def of_values(expected):
    return lambda a, w: scaled(w - expected(a), expected(a))


def tempered(a, b):
    """Matrices whose determinants do not overflow."""
    return (a / a.shape[-1] ** 0.5,)


def of_logarithm(a, sign, logarithm):
    """The usual error: some matrices are nearly singular."""
    expected, size = torch.linalg.slogdet(a)
    return float((sign * (logarithm - size).exp() - expected).abs().median()) / a.shape[-1]


def of_qr(a, q, r):
    return max(scaled(q @ r - a, a), scaled(q.mT @ q - identity(a)))


def lu_operands(a, b):
    lu, piv = torch.linalg.lu_factor(a)
    return lu, piv - 1, b


def of_lu_solution(lu, piv, b, x):
    unit, upper = torch.tril(lu, -1) + identity(lu), torch.triu(lu)
    permutation, _, _ = torch.lu_unpack(lu, piv.int() + 1)
    return scaled(permutation @ unit @ (upper @ x) - b, upper, x)


def of_library(name, module, **options):
    """A function of a library by its name; None if it has none."""
    function = getattr(module, name, None) if module else None
    return function and functools.partial(function, **options)


def calls(name, mine, theirs=None, torchs=None, jaxs=None, **options):
    """A function by library: one of its own, or that of the same name with these options."""
    theirs = options if theirs is None else theirs
    return {
        "compactla": mine,
        "torch": torchs or of_library(name, torch and torch.linalg, **theirs),
        "cupy": of_library(name, cupy and cupy.linalg, **theirs),
        "jax": jaxs or of_library(name, jnp and jnp.linalg, **theirs),
    }


def each(function, **options):
    """A function of JAX on one matrix as one on stacks."""
    return jax and jax.vmap(functools.partial(function, **options))


def cases():
    """All cases, by name."""
    nan = {"on_error": "nan", "compute": "same"}
    same = {"compute": "same"}
    solve = calls("solve", ours(linalg.solve, **nan))
    product = calls("matmul", ours(linalg.matmul), torchs=torch and torch.matmul, jaxs=jnp and jnp.matmul)
    product["cupy"] = cupy and cupy.matmul
    triangular = calls(
        "solve_triangular",
        ours(linalg.solve_triangular, lower=True, **nan),
        torchs=lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        jaxs=jax and each(jsl.solve_triangular, lower=True),
    )
    factors = calls("lu_factor", ours(linalg.lu_factor, **same), jaxs=jax and each(jsl.lu_factor))
    with_factors = calls(
        "lu_solve",
        lambda lu, piv, b: linalg.lu_solve((lu, piv), b, compute="same"),
        torchs=lambda lu, piv, b: torch.linalg.lu_solve(lu, piv + 1, b),
        jaxs=jax and each(lambda lu, piv, b: jsl.lu_solve((lu, piv), b)),
    )
    definite_solve = calls(
        "cho_solve",
        lambda c, b: linalg.cho_solve((c, True), b, compute="same"),
        torchs=lambda c, b: torch.cholesky_solve(b, c),
        jaxs=jax and each(lambda c, b: jsl.cho_solve((c, True), b)),
    )
    least = calls("lstsq", ours(linalg.lstsq, **same), torchs=lambda a, b: torch.linalg.lstsq(a, b)[:1], jaxs=None)
    least["jax"] = least["cupy"] = None
    thin = {"full_matrices": False}
    return {
        "solve, 1 column": Case(SOLVE, with_columns, of_solution, solve),
        f"solve, {COLUMNS} columns": Case(SOLVE, with_columns, of_solution, solve, COLUMNS),
        "inv": Case(
            INV, general, lambda a, x: scaled(a @ x - identity(a), a, x), calls("inv", ours(linalg.inv, **nan))
        ),
        "det": Case(
            DET,
            tempered,
            lambda a, d: of_logarithm(a, d.sign(), d.abs().log()),
            calls("det", ours(linalg.det, **same)),
        ),
        "slogdet": Case(SLOGDET, tempered, of_logarithm, calls("slogdet", ours(linalg.slogdet, **same))),
        "lu_factor": Case(LU_FACTOR[False], general, of_lu, factors),
        "lu_solve": Case(LU_SOLVE[False], lu_operands, of_lu_solution, with_factors),
        "cholesky": Case(
            CHOLESKY, lambda a, b: (definite(a),), of_factor, calls("cholesky", ours(linalg.cholesky, **nan)), read=0.5
        ),
        "cho_solve": Case(
            CHO_SOLVE,
            lambda a, b: (torch.linalg.cholesky(definite(a)), b),
            lambda c, b, x: scaled(c @ (c.mT @ x) - b, c, c, x),
            definite_solve,
            read=0.5,
        ),
        "solve_triangular": Case(
            SOLVE_TRIANGULAR,
            lambda a, b: (torch.linalg.cholesky(definite(a)), b),
            of_solution,
            triangular,
            COLUMNS,
            read=0.5,
        ),
        "qr": Case(QR["reduced"], general, of_qr, calls("qr", ours(linalg.qr, **same))),
        "eigh": Case(
            EIGH, lambda a, b: (a + a.mT,), of_eigenvectors, calls("eigh", ours(linalg.eigh, **nan)), read=0.5
        ),
        "eigvalsh": Case(
            EIGVALSH,
            lambda a, b: (a + a.mT,),
            of_values(lambda a: torch.from_numpy(np.linalg.eigvalsh(a.cpu().numpy())).to(a.device)),
            calls("eigvalsh", ours(linalg.eigvalsh, **nan)),
            read=0.5,
        ),
        "svd": Case(THIN, general, of_singular_vectors, calls("svd", ours(linalg.svd, **nan, **thin), theirs=thin)),
        "svdvals": Case(
            VALUES,
            general,
            of_values(lambda a: torch.from_numpy(np.linalg.svd(a.cpu().numpy(), compute_uv=False)).to(a.device)),
            calls(
                "svdvals",
                ours(linalg.svdvals, **nan),
                jaxs=jax and functools.partial(jnp.linalg.svd, compute_uv=False),
            )
            | {"cupy": cupy and functools.partial(cupy.linalg.svd, compute_uv=False)},
        ),
        "pinv": Case(
            PINV, general, lambda a, x: scaled(a @ x @ a - a, a, a, x), calls("pinv", ours(linalg.pinv, **nan))
        ),
        "lstsq": Case(LSTSQ, with_columns, lambda a, b, x, *_: of_solution(a, b, x), least),
        "matmul": Case(
            MATMUL, lambda a, b: (a, a.mT.contiguous()), lambda a, b, c: scaled(a @ b - c, a, b), product, 129
        ),
        f"matmul, {COLUMNS} columns": Case(
            MATMUL, with_columns, lambda a, b, c: scaled(a @ b - c, a, b), product, COLUMNS
        ),
    }


CASES = cases()
