"""Schur forms A = Z T Z^H: T is upper triangular, but for blocks of two on the diagonal if A is real; and what they are
for, eigenvalues and eigenvectors.
"""

from compactla.cpu.emit.code import Code
from compactla.cpu.emit.matrices import Elements
from compactla.cpu.emit.vectors import Flags
from compactla.cpu.kernels.balance import Balance
from compactla.cpu.kernels.eigenvectors import eigenvalues, eigenvectors
from compactla.cpu.kernels.francis import Iteration, standardise
from compactla.cpu.kernels.hessenberg import hessenberg
from compactla.cpu.kernels.norms import Scaling, larger, scaling

EXPONENT = {64: 300, 32: 30}  # of the largest number of a scaled matrix: products of three do not overflow


def schur(code: Code, A: Elements, Z: Elements | None = None) -> Flags:
    """A <- T, and Z <- Schur vectors, if it is given; LAPACK's gees.

    If A is real, a block of two has equal diagonal elements, and the others have unequal signs. All else below the
    diagonal is exactly zero. Returns flags of lanes with NaN or infinities, and of those that do not converge, whose
    results mean nothing.
    """
    A, Z = unknown(A), Z and unknown(Z)
    scale = scaled(code, A)
    balance = Balance(code, A)
    failed = triangular(code, A, Z)
    if Z:
        balance.restore(Z)
    zero = code.zero(A.vector)
    for X, restored in ((A, scale.restored), (Z, lambda x: x)):
        if X:
            with code.loop(A.n) as i, code.loop(A.n) as j:
                X[i, j] = restored(X[i, j]) + zero
    return failed | scale.unknown


def eigen(code: Code, A: Elements, w: Elements, V: Elements | None = None, Z: Elements | None = None) -> Flags:
    """w <- eigenvalues of A, and V <- eigenvectors of length 1, if it is given; LAPACK's geev. Both are complex.

    A is overwritten, and so is Z, where Schur vectors have room beside V. Returns flags of lanes as `schur` does.
    """
    A, V, Z = unknown(A), V and unknown(V), Z and unknown(Z)
    scale = scaled(code, A)
    balance = Balance(code, A)
    balance.scale()
    failed = triangular(code, A, Z, whole=Z is not None)
    eigenvalues(code, A, w)
    if V and Z:
        balance.restore(Z)
        eigenvectors(code, A, w, Z, V)
    with code.loop(A.n) as i:
        w[i, 0] = scale.restored(w[i, 0]) + code.zero(w.vector)
    return failed | scale.unknown


def triangular(code: Code, A: Elements, Z: Elements | None, whole: bool = True) -> Flags:
    """A <- T, and Z <- Schur vectors, of scaled matrices; if not `whole`, of T only its diagonal blocks are right.

    Returns flags of lanes that do not converge.
    """
    hessenberg(code, A, Z)
    failed = Iteration(code, A, Z, whole).failed
    if not A.vector.is_complex:
        standardise(code, A, Z, whole)
    return failed


def scaled(code: Code, A: Elements) -> Scaling:
    """Scale A so that nothing overflows; matrices with NaN or infinities become zero."""
    zero = code.zero(A.vector)
    largest = code.registers(zero.vector.reals, 1)
    largest[0, 0] = zero.real
    with code.loop(A.m) as i, code.loop(A.n) as j:
        largest[0, 0] = larger(largest[0, 0], A[i, j])
    scale = scaling(largest[0, 0], EXPONENT[zero.vector.real.bitwidth])
    with code.loop(A.m) as i, code.loop(A.n) as j:
        A[i, j] = scale.unknown.select(zero, scale.scaled(A[i, j]))
    return scale


def unknown(A: Elements) -> Elements:
    """The matrix with sizes that are not known: no loop over them is written out."""
    return A._replace(m=A.code.unknown(A.m), n=A.code.unknown(A.n))
