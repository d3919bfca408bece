"""Objects that hold factors, one of each kind, for processes that get them from others."""

import numpy as np

import compactla as cla
import reference
from cases import BATCH, dominant, lines, random
from compactla.oracle import THRESHOLD
from systems import line_part, scattered

N = 9


def problems(rng):
    """By name: an object with factors, a right-hand side for each system, and the matrices."""
    a, blocks, own = dominant(rng, BATCH, 3, 3, np.float64), lines(rng, BATCH, 5, 3, np.float64), {}
    A = cla.pack(a)
    own["getrs"] = (A, cla.getrf(A)[0]), a
    for name, options in {"whole": {}, "parts": {"parts": 2}, "stored": {"storage": "bfloat16", "refine": 8}}.items():
        own[name] = cla.BlockTridiag(*blocks, **options), reference.block_tridiagonal(*blocks)
        own[name][0].factor()
    lower, diag, upper = lines(rng, BATCH, N, 1, np.float64)
    diagonals = (x[..., 0, 0] for x in (lower, diag, upper))
    own["Tridiag"] = cla.Tridiag(*diagonals), reference.block_tridiagonal(lower, diag, upper)
    own["Tridiag"][0].factor()
    M, rows = scattered(rng, [1, 7, 3, 3, 12], 3, np.float64)
    own["LinePreconditioner"] = cla.LinePreconditioner(M, rows), line_part(M, rows, 3)[None]
    pattern = np.eye(N, dtype=bool) | (rng.random((N, N)) < 0.2)
    sparse = pattern * dominant(rng, BATCH, N, N, np.float64)
    S = cla.BatchCSR((sparse[:, pattern], np.nonzero(pattern)[1], np.append(0, pattern.sum(1).cumsum())))
    own["BatchLU"] = cla.BatchLU(S), sparse
    own["BatchLU"][0].factor()
    return {name: (solver, random(rng, dense.shape[:2], np.float64), dense) for name, (solver, dense) in own.items()}


def check(name, solver, rhs, dense):
    """Solve, and see that residuals are as small as those of LAPACK's tests."""
    if name == "getrs":
        A, ipiv = solver
        X = cla.pack(rhs[..., None], A.vlen)
        cla.getrs(A, ipiv, X)
        x = X.unpack()
    elif name == "LinePreconditioner":
        x = (solver @ rhs[0])[None]
    else:
        x = solver.solve(rhs.reshape(BATCH, 5, 3) if isinstance(solver, cla.BlockTridiag) else rhs)
    columns = *rhs.shape, 1
    assert reference.solve_ratio(dense, x.reshape(columns), rhs.reshape(columns)) < THRESHOLD, name
