"""Routines of NumPy and SciPy, prepared to do the work of this package's on ordinary arrays: see `peers.Peers`."""

import functools

import numpy as np
import scipy.linalg
from scipy.linalg import get_lapack_funcs, lu_factor, lu_solve

from compactla import oracle
from compactla.oracle import (
    getrf,
    getri,
    getrinp,
    inverse_ratio,
    norm1,
    op,
    ratio,
    solve_ratio,
    symmetric,
    triangle,
    widen,
)
from compactla.oracle.sytrf import factors


def matmul(a, b, c, transa, transb, beta):
    a, b, c, product = op(a, transa), op(b, transb), c.copy(), np.empty_like(c)

    def call():
        np.matmul(a, b, out=product)
        return np.add(c, product, out=c) if beta else product

    return call


def triangular_matmul(a, b, side, uplo, trans, diag):
    T = op(triangle(a, uplo, diag), trans)
    return lambda: T @ b if side == "L" else b @ T


def symmetric_matmul(a, b, c, side, uplo, beta, trans="T"):
    S = symmetric(a, uplo, trans)
    return matmul(*((S, b) if side == "L" else (b, S)), c, "N", "N", beta)


def matmul_with_transpose(a, c, uplo, trans, beta, adjoint="T"):
    a = op(a, trans)
    return matmul(a, a, symmetric(c, uplo, adjoint), "N", adjoint, beta)


def rank_one(alpha, x, a, uplo, adjoint="T"):
    a, alpha = symmetric(a, uplo, adjoint), alpha if adjoint == "T" else alpha.real
    return lambda: a + alpha * (x @ op(x, adjoint))


def solve(a, b, **options):
    T, b, result = on_the_left(a, b, **options)
    return lambda: result(np.linalg.solve(T, b))


def solve_triangular(a, b, **options):
    T, b, result = on_the_left(a, b, **options)
    kind = "upper triangular" if np.triu(T, 1).any() else "lower triangular"
    return lambda: result(scipy.linalg.solve(T, b, assume_a=kind, check_finite=False))


def on_the_left(a, b, side, uplo, trans, diag):
    """A solve of trsm as T X = B, and what makes its result of X."""
    T = op(triangle(a, uplo, diag), trans)
    if side == "L":
        return np.ascontiguousarray(T), b, lambda x: x
    return np.ascontiguousarray(T.swapaxes(1, 2)), np.ascontiguousarray(b.swapaxes(1, 2)), lambda x: x.swapaxes(1, 2)


def inner_products(x, y, conj):
    x = x.conj() if conj else x
    return lambda: np.einsum("qij,qij->qj", x, y)


def of_columns(name):
    """The residual of one number for each column."""
    residual = oracle.named(name).residual
    return lambda before, after, **options: residual(before, [*before, after[-1][:, None]], **options)


def whole(a, b, uplo, trans="C"):
    both = symmetric(a, uplo, trans)
    return lambda: np.linalg.solve(both, b)


def solution_residual(before, after, uplo, trans="C"):
    a, x, b = widen(symmetric(before[0], uplo, trans), after[1], before[1])
    return solve_ratio(a, x, b, np.finfo(after[1].dtype).eps)


def ldl(a, uplo, trans="T"):
    """L or U, with rows interchanged, and D, of SciPy, one matrix after the other."""
    found = functools.partial(scipy.linalg.ldl, lower=uplo == "L", hermitian=trans == "C", check_finite=False)
    a = symmetric(a, uplo, trans)
    return lambda: tuple(np.stack(x) for x in zip(*(found(x)[:2] for x in a), strict=True))


def ldl_residual(before, after, uplo, trans="T"):
    """||A - L D L^T|| / (n eps ||A||) in the 1-norm."""
    a, lu, d = widen(symmetric(before[0], uplo, trans), *after)
    return ratio(norm1(a - lu @ d @ op(lu, trans)), a.shape[1] * np.finfo(after[0].dtype).eps * norm1(a))


def solve_indefinite(lu, ipiv, b, uplo, trans="T"):
    L, D = factors(lu, ipiv[:, :, 0], uplo, trans)
    a = L @ D @ op(L, trans)
    return lambda: np.linalg.solve(a, b)


def updated(a, x, uplo, downdate):
    L = triangle(a, uplo) if uplo == "L" else op(triangle(a, uplo), "C")
    sign = -1 if downdate else 1

    def call():
        factor = np.linalg.cholesky(L @ op(L, "C") + sign * (x @ op(x, "C")))
        return factor if uplo == "L" else op(factor, "C"), x

    return call


def swapped_residual(before, after):
    """The residual of factors, with the swaps that SciPy makes."""
    return getrf.residual(before, [*after, lu_factor(before[0])[1][:, :, None]])


def lu_solved_swapped(lu, ipiv, b, trans):
    return lambda: lu_solve((lu, ipiv[:, :, 0]), b, "NTC".index(trans), check_finite=False)


def inverse_swapped(lu, ipiv):
    a = getri.product(lu, ipiv).astype(lu.dtype)
    return lambda: np.linalg.inv(a)


def lu_solved(lu, b, trans):
    unswapped = np.broadcast_to(np.arange(lu.shape[1], dtype=np.int32), lu.shape[:2])
    return lambda: lu_solve((lu, unswapped), b, "NTC".index(trans), check_finite=False)


def inverse(lu):
    a = getrinp.product(lu).astype(lu.dtype)
    return lambda: np.linalg.inv(a)


def svd(a, compute_uv):
    """All operands of gesvd after a call."""

    def call():
        if not compute_uv:
            return a, None, np.linalg.svd(a, compute_uv=False)[:, :, None], None
        U, s, Vh = np.linalg.svd(a, full_matrices=False)
        return a, U, s[:, :, None], Vh

    return call


def eig(a, compute_v):
    """All operands of geev after a call."""

    def call():
        w, V = np.linalg.eig(a) if compute_v else (np.linalg.eigvals(a), None)
        kind = np.result_type(w, np.complex64)
        return a, w[:, :, None].astype(kind), V if V is None else V.astype(kind), None

    return call


def inverse_residual(before, after):
    """The residual of A X = I."""
    return inverse_ratio(*widen(*before, *after), np.finfo(after[0].dtype).eps)


def eigh(a, uplo, jobz):
    if jobz == "N":
        return lambda: np.linalg.eigvalsh(a, uplo)
    return lambda: np.linalg.eigh(a, uplo)[1]


def eigen_residual(before, after, uplo, jobz):
    """The residual of the oracle; eigenvalues follow from the eigenvectors, where these are returned."""
    (a,), (found,) = before, after
    V = found if jobz == "V" else a
    w = np.einsum("qij,qik,qkj->qj", V.conj(), symmetric(a, uplo, "C"), V).real if jobz == "V" else found
    return oracle.named("syev").residual((a,), (V, w[:, :, None]), uplo, jobz)


def eigh_of_pairs(a, b, uplo, jobz):
    """A of sygv after a call of SciPy, one pair after the other."""
    a, b = (symmetric(x, uplo, "C") for x in (a, b))
    found = functools.partial(scipy.linalg.eigh, eigvals_only=jobz == "N")

    def call():
        results = [found(x, y) for x, y in zip(a, b, strict=True)]
        return (np.stack(results if jobz == "N" else [v for _, v in results]),)

    return call


def pair_residual(before, after, uplo, jobz):
    """The residual of the oracle; eigenvalues follow from the eigenvectors, where these are returned."""
    (a, b), found = before, after[0]
    V = found if jobz == "V" else a
    w = np.einsum("qij,qik,qkj->qj", V.conj(), symmetric(a, uplo, "C"), V).real if jobz == "V" else found
    L = np.linalg.cholesky(symmetric(b, uplo, "C"))
    return oracle.named("sygv").residual((a, b), (V, L if uplo == "L" else op(L, "C"), w[:, :, None]), uplo, jobz)


def qr(a):
    """Reflectors as LAPACK stores them, and tau."""

    def call():
        transposed, tau = np.linalg.qr(a, mode="raw")
        return transposed.swapaxes(1, 2), tau[:, :, None]

    return call


def orthogonal(a, tau):
    """The first columns of Q, of LAPACK, one matrix after the other."""
    (orgqr,) = get_lapack_funcs(("orgqr",), (a,))
    return lambda: (np.stack([orgqr(x, t[:, 0])[0] for x, t in zip(a, tau, strict=True)]), tau)


def multiply_orthogonal(a, tau, c, side, trans):
    """Products with Q, of LAPACK, one matrix after the other."""
    (ormqr,) = get_lapack_funcs(("ormqr",), (a,))
    work, adjoint = 64 * max(c.shape[1:]), "N" if trans == "N" else "C" if a.dtype.kind == "c" else "T"
    each = functools.partial(ormqr, side, adjoint)
    return lambda: np.stack([each(x, t[:, 0], y, work)[0] for x, t, y in zip(a, tau, c, strict=True)])


def lstsq(a, b):
    return lambda: scipy.linalg.lstsq(a, b, lapack_driver="gelsy", check_finite=False)[0]


def pivoted_qr(a):
    """R with its columns where those of A are."""

    def call():
        R, jpvt = scipy.linalg.qr(a, mode="r", pivoting=True, check_finite=False)
        return np.take_along_axis(R, np.argsort(jpvt)[:, None], axis=2)

    return call


def gram_residual(before, after):
    """||A^H A - R^H R|| / (n eps ||A||^2) in the 1-norm."""
    (a,), (R,) = widen(*before), widen(*after)
    return ratio(norm1(op(a, "C") @ a - op(R, "C") @ R), a.shape[2] * np.finfo(after[0].dtype).eps * norm1(a) ** 2)
