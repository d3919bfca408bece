"""A user's program, which mypy checks strictly against the annotations of the package; it need not run."""

import numpy as np
import scipy.sparse as sp

import compactla as cla
from compactla import krylov, linalg

a = np.ones((10, 3, 3)) + 3 * np.eye(3)
A, B = cla.pack(a), cla.Pack.identity(10, 3)
C: cla.Pack = 2 * A @ B.copy()
for matrix in A:
    print(matrix.shape, A[0], A[1:, :2], len(A), C.unpack(), A.T, A.to("cpu"), C.device)
ipiv, info = cla.getrf(A)
cla.getrs(A, ipiv, cla.gemm(A, B, C, beta=1.0, threads=2))
x = linalg.solve(a, a, on_error="nan")
T = cla.BlockTridiag(np.ones((4, 2, 3, 3)), np.ones((4, 3, 3, 3)), np.ones((4, 2, 3, 3)), pivots="perturb")
print(T.factor().any(), T.solve(np.ones((4, 3, 3))), T.report)
M = sp.eye_array(6).tobsr((2, 2))
P = cla.LinePreconditioner(M, cla.find_lines(M), storage="float32")
print(P.update(M), P.solve(np.ones(6)))
S = cla.Tridiag(np.ones((4, 2)), np.ones((4, 3)), np.ones((4, 2)), periodic=False)
print(S.factor(), S.solve(np.ones((4, 3))), S.nsys)
D = cla.BatchCSR((np.ones((2, 3)), np.arange(3), np.arange(4)))
y, report = krylov.cg(D, np.ones((2, 3)), M=cla.krylov.ILU0(D))
print(report.iterations.max(), cla.BatchLU(D).solve(y), D @ y, D.T @ y)
run = cla.prepare(cla.gemm, A, B, C)
run()
print(cla.kron_apply((a[0], a[0]), np.ones((5, 3, 3))))
