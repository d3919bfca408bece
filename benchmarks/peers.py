"""Peers that do the work of a case: routines of NumPy and SciPy, on ordinary arrays, and of Intel MKL, on packs.

NumPy and SciPy take the whole batch in one call, as it is, which they do in one thread. What takes more than a line to
call is in `numpy_scipy`, and how MKL is called in `mkl`.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.linalg import cholesky
from scipy.linalg import cho_solve, lu_factor

import compactla as cla
from compactla.oracle import op, triangle

from . import numpy_scipy

BANDED = 16  # lines that SciPy's banded solver is timed on: it takes them one by one


class Peer(NamedTuple):
    """One way to do the work of a case."""

    name: str
    call: Callable[[], object]
    residual: Callable[[], float]
    scale: float = 1  # of its time: how much more work a case is than a call


class Peers(NamedTuple):
    """The peers of a routine in other libraries.

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


# For each routine that has a row. No rows are interchanged by lu_factor: the diagonal is dominant.
PEERS = {
    "gemm": Peers("transa transb m n k alpha A B beta C", {"numpy matmul": numpy_scipy.matmul}),
    "trmm": Peers(libraries={"numpy matmul": numpy_scipy.triangular_matmul}),
    "symm": Peers(libraries={"numpy matmul": numpy_scipy.symmetric_matmul}),
    "hemm": Peers(libraries={"numpy matmul": functools.partial(numpy_scipy.symmetric_matmul, trans="C")}),
    "syrk": Peers(libraries={"numpy matmul": numpy_scipy.matmul_with_transpose}),
    "herk": Peers(libraries={"numpy matmul": functools.partial(numpy_scipy.matmul_with_transpose, adjoint="C")}),
    "trsm": Peers(
        "side uplo trans diag n r alpha A B",
        {
            "numpy solve": numpy_scipy.solve,
            "scipy solve, triangular": numpy_scipy.solve_triangular,
        },
    ),
    "getrfnp": Peers(
        "m n A info",
        {
            "scipy lu_factor": lambda a: lambda: lu_factor(a, check_finite=False)[0],
            "numpy inv": (lambda a: lambda: np.linalg.inv(a), numpy_scipy.inverse_residual),
        },
    ),
    "getrf": Peers(
        libraries={
            "scipy lu_factor": (lambda a: lambda: lu_factor(a, check_finite=False)[0], numpy_scipy.swapped_residual),
        }
    ),
    "gesv": Peers(libraries={"numpy solve": lambda a, b: lambda: np.linalg.solve(a, b)}),
    "getrs": Peers(libraries={"scipy lu_solve": numpy_scipy.lu_solved_swapped}),
    "getri": Peers(libraries={"numpy inv": numpy_scipy.inverse_swapped}),
    "potrf": Peers("uplo n A info", {"numpy cholesky": lambda a, uplo: lambda: op(cholesky(a), "NC"[uplo == "U"])}),
    "chud": Peers(libraries={"numpy matmul, cholesky": numpy_scipy.updated}),
    "sysv": Peers(
        libraries={
            "numpy solve": tuple(
                functools.partial(f, trans="T") for f in (numpy_scipy.whole, numpy_scipy.solution_residual)
            )
        }
    ),
    "hesv": Peers(libraries={"numpy solve": (numpy_scipy.whole, numpy_scipy.solution_residual)}),
    "sytrf": Peers(libraries={"scipy ldl": (numpy_scipy.ldl, numpy_scipy.ldl_residual)}),
    "hetrf": Peers(
        libraries={
            "scipy ldl": tuple(functools.partial(f, trans="C") for f in (numpy_scipy.ldl, numpy_scipy.ldl_residual))
        }
    ),
    "sytrs": Peers(libraries={"numpy solve": numpy_scipy.solve_indefinite}),
    "hetrs": Peers(libraries={"numpy solve": functools.partial(numpy_scipy.solve_indefinite, trans="C")}),
    "sygv": Peers(libraries={"scipy eigh": (numpy_scipy.eigh_of_pairs, numpy_scipy.pair_residual)}),
    "syev": Peers(libraries={"numpy eigh": (numpy_scipy.eigh, numpy_scipy.eigen_residual)}),
    "getrinp": Peers("n A work info", {"numpy inv": numpy_scipy.inverse}),
    "getrsnp": Peers(libraries={"scipy lu_solve": numpy_scipy.lu_solved}),
    "trtri": Peers(libraries={"numpy inv": lambda a, uplo, diag: lambda: np.linalg.inv(triangle(a, uplo, diag))}),
    "axpy": Peers(libraries={"numpy": lambda alpha, x, y: lambda: alpha * x + y}),
    "scal": Peers(libraries={"numpy": lambda alpha, x: lambda: alpha * x}),
    "dot": Peers(libraries={"numpy einsum": (numpy_scipy.inner_products, numpy_scipy.of_columns("dot"))}),
    "nrm2": Peers(
        libraries={
            "numpy norm": (lambda x: lambda: np.linalg.norm(x, axis=1), numpy_scipy.of_columns("nrm2")),
        }
    ),
    "gemv": Peers(
        libraries={
            "numpy matmul": lambda a, x, y, trans, beta: numpy_scipy.matmul(a, x, y, trans, "N", beta),
        }
    ),
    "trsv": Peers(libraries={"numpy solve": functools.partial(numpy_scipy.solve, side="L")}),
    "ger": Peers(libraries={"numpy matmul": lambda x, y, a, conj: lambda: a + x @ op(y, "TC"[conj])}),
    "syr": Peers(libraries={"numpy matmul": numpy_scipy.rank_one}),
    "her": Peers(libraries={"numpy matmul": functools.partial(numpy_scipy.rank_one, adjoint="C")}),
    "geqrf": Peers("m n A tau work info", {"numpy qr": numpy_scipy.qr}),
    "orgqr": Peers(libraries={"scipy lapack.orgqr": numpy_scipy.orthogonal}),
    "ormqr": Peers(libraries={"scipy lapack.ormqr": numpy_scipy.multiply_orthogonal}),
    "gels": Peers(libraries={"scipy lstsq": lambda a, b, trans: numpy_scipy.lstsq(op(a, trans), b)}),
    "gelsy": Peers(libraries={"scipy lstsq": numpy_scipy.lstsq}),
    "geqp3": Peers(libraries={"scipy qr, pivoting": (numpy_scipy.pivoted_qr, numpy_scipy.gram_residual)}),
    "posv": Peers(libraries={"numpy solve": (numpy_scipy.whole, numpy_scipy.solution_residual)}),
    "potrs": Peers(libraries={"scipy cho_solve": lambda a, b, uplo: lambda: cho_solve((a, uplo == "L"), b)}),
    "geev": Peers(libraries={"numpy eig": numpy_scipy.eig}),
    "gesvd": Peers(libraries={"numpy svd": numpy_scipy.svd}),
}


def dense_peers(case):
    """The peers of a routine that has a row."""
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
    """The peers of a case in NumPy and SciPy."""
    return OTHERS.get(case.routine, dense_peers)(case)
