"""What else does the work of a case: routines of NumPy and SciPy, on ordinary arrays, and of Intel MKL, on packs.

NumPy and SciPy take the whole batch in one call, as it is, which they do in one thread. How MKL is called is in `mkl`.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.linalg import cholesky
from scipy.linalg import cho_solve, lu_factor, lu_solve

import compactla as cla
from compactla import oracle
from compactla.oracle import getrf, getri, norm1, op, ratio, solve_ratio, symmetric, triangle, widen

BANDED = 16  # lines that SciPy's banded solver is timed on: it takes them one by one


class Peer(NamedTuple):
    """One way to do the work of a case."""

    name: str
    call: Callable[[], object]
    residual: Callable[[], float]
    scale: float = 1  # of its time: how much more work a case is than a call


class Peers(NamedTuple):
    """What other libraries have for a routine.

    Attributes
    ----------
    compact : str
        The arguments of MKL's compact routine of the same name, without those that all have, leading dimensions, and
        the size of "work".
    libraries : dict
        By name, which begins with the library's: functions of operands and options, which prepare a call that returns
        what the routine writes, and leave the operands alone. A call that returns something else stands with a
        residual of its own, as those of `compactla.oracle`.
    """

    compact: str = ""
    libraries: Mapping[str, Callable | tuple[Callable, Callable]] = MappingProxyType({})


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


def positive(a, b, uplo):
    whole = symmetric(a, uplo, "C")
    return lambda: np.linalg.solve(whole, b)


def solution_residual(before, after, uplo):
    a, x, b = widen(symmetric(before[0], uplo, "C"), after[1], before[1])
    return solve_ratio(a, x, b, np.finfo(after[1].dtype).eps)


def swapped_residual(before, after):
    """Of factors, with the swaps that SciPy makes."""
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
    a = (np.tril(lu, -1) + np.eye(lu.shape[1])) @ np.triu(lu)
    return lambda: np.linalg.inv(a)
def svd(a, compute_uv):
    """All operands of gesvd after a call."""

    def call():
        if not compute_uv:
            return a, None, np.linalg.svd(a, compute_uv=False)[:, :, None], None
        U, s, Vh = np.linalg.svd(a, full_matrices=False)
        return a, U, s[:, :, None], Vh

    return call


def inverse_residual(before, after):
    """||I - A X|| / (n eps ||A|| ||X||) in the 1-norm."""
    (a,), (x,) = before, after
    return solve_ratio(*widen(a, x), np.eye(a.shape[1]), np.finfo(x.dtype).eps)


def eigh(a, uplo, jobz):
    if jobz == "N":
        return lambda: np.linalg.eigvalsh(a, uplo)
    return lambda: np.linalg.eigh(a, uplo)[1]


def eigen_residual(before, after, uplo, jobz):
    """That of the oracle, where eigenvalues are those of the eigenvectors, or all that there is."""
    (a,), (found,) = before, after
    V = found if jobz == "V" else a
    w = np.einsum("qij,qik,qkj->qj", V.conj(), symmetric(a, uplo, "C"), V).real if jobz == "V" else found
    return oracle.named("syev").residual((a,), (V, w[:, :, None]), uplo, jobz)


def qr(a):
    """Reflectors as LAPACK stores them, and tau."""

    def call():
        transposed, tau = np.linalg.qr(a, mode="raw")
        return transposed.swapaxes(1, 2), tau[:, :, None]

    return call
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


# For each routine that has a row. No rows are interchanged by lu_factor: the diagonal is dominant.
PEERS = {
    "gemm": Peers("transa transb m n k alpha A B beta C", {"numpy matmul": matmul}),
    "trmm": Peers(libraries={"numpy matmul": triangular_matmul}),
    "symm": Peers(libraries={"numpy matmul": symmetric_matmul}),
    "hemm": Peers(libraries={"numpy matmul": functools.partial(symmetric_matmul, trans="C")}),
    "syrk": Peers(libraries={"numpy matmul": matmul_with_transpose}),
    "herk": Peers(libraries={"numpy matmul": functools.partial(matmul_with_transpose, adjoint="C")}),
    "trsm": Peers("side uplo trans diag m n alpha A B", {
        "numpy solve": solve,
        "scipy solve, triangular": solve_triangular,
    }),
    "getrfnp": Peers("m n A info", {
        "scipy lu_factor": lambda a: lambda: lu_factor(a, check_finite=False)[0],
        "numpy inv": (lambda a: lambda: np.linalg.inv(a), inverse_residual),
    }),
    "getrf": Peers(libraries={
        "scipy lu_factor": (lambda a: lambda: lu_factor(a, check_finite=False)[0], swapped_residual),
    }),
    "gesv": Peers(libraries={"numpy solve": lambda a, b: lambda: np.linalg.solve(a, b)}),
    "getrs": Peers(libraries={"scipy lu_solve": lu_solved_swapped}),
    "getri": Peers(libraries={"numpy inv": inverse_swapped}),
    "potrf": Peers("uplo n A info", {"numpy cholesky": lambda a, uplo: lambda: op(cholesky(a), "NC"[uplo == "U"])}),
    "syev": Peers(libraries={"numpy eigh": (eigh, eigen_residual)}),
    "getrinp": Peers("n A work info", {"numpy inv": inverse}),
    "getrsnp": Peers(libraries={"scipy lu_solve": lu_solved}),
    "trtri": Peers(libraries={"numpy inv": lambda a, uplo, diag: lambda: np.linalg.inv(triangle(a, uplo, diag))}),
    "axpy": Peers(libraries={"numpy": lambda alpha, x, y: lambda: alpha * x + y}),
    "scal": Peers(libraries={"numpy": lambda alpha, x: lambda: alpha * x}),
    "dot": Peers(libraries={"numpy einsum": (inner_products, of_columns("dot"))}),
    "nrm2": Peers(libraries={"numpy norm": (lambda x: lambda: np.linalg.norm(x, axis=1), of_columns("nrm2"))}),
    "gemv": Peers(libraries={
        "numpy matmul": lambda a, x, y, trans, beta: matmul(a, x, y, trans, "N", beta),
    }),
    "trsv": Peers(libraries={"numpy solve": functools.partial(solve, side="L")}),
    "ger": Peers(libraries={"numpy matmul": lambda x, y, a, conj: lambda: a + x @ op(y, "TC"[conj])}),
    "geqrf": Peers("m n A tau work info", {"numpy qr": qr}),
    "gels": Peers(libraries={"scipy lstsq": lambda a, b, trans: lstsq(op(a, trans), b)}),
    "gelsy": Peers(libraries={"scipy lstsq": lstsq}),
    "geqp3": Peers(libraries={"scipy qr, pivoting": (pivoted_qr, gram_residual)}),
    "posv": Peers(libraries={"numpy solve": (positive, solution_residual)}),
    "potrs": Peers(libraries={"scipy cho_solve": lambda a, b, uplo: lambda: cho_solve((a, uplo == "L"), b)}),
    "gesvd": Peers(libraries={"numpy svd": svd}),
}


def dense_peers(case):
    """Of a routine that has a row."""
    found = []
    for name, prepare in PEERS.get(case.routine, Peers()).libraries.items():
        prepare, of_its_own = prepare if isinstance(prepare, tuple) else (prepare, None)
        prepared = functools.partial(prepare, *case.operands, **case.options)
        found.append(Peer(name, prepared(), lambda p=prepared, r=of_its_own: case.error(p()(), r)))
    return found


def pack_peers(case):
    V = cla.pack(case.a[:1]).vlen
    full, rest = divmod(case.nm, V)
    item = (2,) if case.dtype.kind == "c" else ()
    source = case.a.view(np.finfo(case.dtype).dtype).reshape(case.nm, case.n, case.n, *item)

    def call():
        data = np.empty((full + bool(rest), case.n, case.n, *item, V), source.dtype)
        data[:full] = np.moveaxis(source[: full * V].reshape(full, V, *source.shape[1:]), 1, -1)
        if rest:
            unused = np.eye(case.n)[..., None] * [1, 0] if item else np.eye(case.n)
            data[full] = unused[..., None]
            data[full, ..., :rest] = np.moveaxis(source[full * V :], 0, -1)
        return data

    return [Peer("numpy transpose", call, lambda: case.error(cla.Pack(call(), case.nm).unpack()))]


def unpack_peers(case):
    A = cla.pack(case.a)
    V, result = A.vlen, np.empty_like(case.a)
    full, rest = divmod(case.nm, V)
    item = (2,) if case.dtype.kind == "c" else ()
    target = result.view(A.data.dtype).reshape(case.nm, case.n, case.n, *item)

    def call():
        target[: full * V].reshape(full, V, *target.shape[1:])[...] = np.moveaxis(A.data[:full], -1, 1)
        if rest:
            target[full * V :] = np.moveaxis(A.data[full, ..., :rest], -1, 0)

    def residual():
        call()
        return case.error(result)

    return [Peer("numpy transpose", call, residual)]


class BlockThomas:
    """Block elimination in NumPy, with inverses of the diagonal blocks; block k of all lines is contiguous."""

    def __init__(self, case):
        self.E, self.D, self.F, self.rhs = (
            np.ascontiguousarray(a.swapaxes(0, 1)) for a in (case.lower, case.diag, case.upper, case.rhs)
        )
        self.W, self.G = np.empty_like(self.D), np.empty_like(self.F)

    def factor(self):
        D = self.D[0]
        for k in range(len(self.D)):
            self.W[k] = np.linalg.inv(D)
            if k + 1 < len(self.D):
                np.matmul(self.W[k], self.F[k], out=self.G[k])
                D = self.D[k + 1] - self.E[k] @ self.G[k]

    def solve(self):
        x = self.rhs.copy()
        for k in range(len(x)):
            x[k] = self.W[k] @ (x[k] - self.E[k - 1] @ x[k - 1] if k else x[k])
        for k in range(len(x) - 2, -1, -1):
            x[k] -= self.G[k] @ x[k + 1]
        return x.swapaxes(0, 1)


def lines_peers(case):
    thomas = BlockThomas(case)
    thomas.factor()
    call = {"factor": thomas.factor, "solve": thomas.solve}[case.routine]
    return [Peer("numpy block Thomas", call, lambda: case.error(thomas.solve()))]


def banded(case) -> Peer:
    """Factor and solve with SciPy's banded solver, line by line."""
    b, K, lines = case.n, case.K, min(BANDED, case.nm)
    wide = 2 * b - 1
    ab = np.zeros((lines, 2 * wide + 1, K * b), case.dtype)
    i, j = np.ogrid[:b, :b]
    for blocks, row, column in ((case.lower, 1, 0), (case.diag, 0, 0), (case.upper, 0, 1)):
        for k in range(blocks.shape[1]):
            rows, columns = (k + row) * b + i, (k + column) * b + j
            ab[:, wide + rows - columns, columns] = blocks[-lines:, k]
    rhs = case.rhs[-lines:].reshape(lines, K * b, case.nrhs)

    def call():
        return [scipy.linalg.solve_banded((wide, wide), ab[i], rhs[i], check_finite=False) for i in range(lines)]

    def residual():
        return case.error(np.reshape(call(), (lines, K, b, case.nrhs)))

    return Peer("scipy solve_banded", call, residual, case.nm / lines)


OTHERS = {"pack": pack_peers, "unpack": unpack_peers, "factor": lines_peers, "solve": lines_peers}


def library_peers(case) -> list[Peer]:
    """What NumPy and SciPy have for a case."""
    return OTHERS.get(case.routine, dense_peers)(case)
