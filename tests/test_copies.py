"""Tests of pickling and copying."""

import copy
import pickle

import numpy as np
import pytest

import compactla as cla
from cases import lines, random, same_bits, slow
from compactla import krylov, pickling
from systems import convection_diffusion
from systems_sparse import there


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (cla.LinePreconditioner, {}),
        (cla.LinePreconditioner, {"parts": 3, "periodic": [True, False]}),
        (cla.LinePreconditioner, {"refine": 1, "pivoting": True}),
        (cla.LinePreconditioner, {"storage": "float32"}),
        (cla.LineRelaxation, {"scheme": "symmetric", "tol": 1e-3}),
    ],
    ids=str,
)
def test_pickles_over_memory_that_cannot_be_written(make, options):
    """Unpickling works as with joblib, which maps large arrays from files."""
    M, lines = convection_diffusion(2, 9, 3)
    P, r = make(M, lines, **options), np.sin(np.arange(54))
    buffers = []
    state = pickle.dumps(P, protocol=5, buffer_callback=buffers.append)
    frozen = [bytes(buffer.raw()) for buffer in buffers]
    assert frozen
    kept = list(frozen)
    for _ in range(2):
        Q = pickle.loads(state, buffers=frozen)
        assert same_bits(Q @ r, P @ r)
        Q.update(2 * M)
        assert same_bits(Q @ (2 * r), P @ r)
        assert same_bits(Q.rmatvec(2 * r), P.rmatvec(r))
    assert frozen == kept and not pickling._writeable


def block_tridiagonal(queue, rng, **options):
    T = cla.BlockTridiag(*lines(rng, 7, 4, 3, np.float64), queue=queue, **options)
    rhs = random(rng, (7, 4, 3), np.float64)
    T.factor()

    def change(T):
        for block in (T.lower, T.diag, T.upper):
            block.fill(0)

    return T, lambda T: T.solve(rhs), change


def of_lines(queue, rng, kind=cla.LinePreconditioner, **options):
    M, along = convection_diffusion(2, 9, 3)
    P, r = kind(M, along, queue=queue, **options), random(rng, 54, np.float64)
    P.rmatvec(r)
    return P, lambda P: np.array([P @ r, P.rmatvec(r)]), lambda P: P.update(2 * M)


def banded(queue, rng, kind=cla.Banded):
    ab = rng.random((9, 3 if kind is cla.Banded else 2, 6))
    ab[:, 1] += 9
    given = there(queue, ab)
    B, rhs = kind(*([(1, 1)] if kind is cla.Banded else []), given), random(rng, (9, 6), np.float64)
    B.factor()

    def change(B):
        given.fill(1)
        B.factor()

    return B, lambda B: B.solve(rhs), change


def batch(queue, rng, make=lambda A: A):
    data, b = random(rng, (9, 36), np.float64) + 9 * np.eye(6).reshape(-1), random(rng, (9, 6), np.float64)
    A = cla.BatchCSR((data, np.tile(np.arange(6), 6), np.arange(7) * 6), queue=queue)
    x = make(A)
    if x is not A:
        return x, lambda x: x.solve(b), lambda _: A.update(there(queue, 2 * data))
    return A, lambda A: A @ b, lambda A: A.update(there(queue, 2 * data))


def packed(queue, rng):
    A = cla.pack(random(rng, (9, 3, 3), np.float64), queue=queue)
    return A, lambda A: A.unpack(), lambda A: A.data.fill(0)


def pivots(queue, rng):
    ipiv, _ = cla.getrf(cla.pack(random(rng, (9, 3, 3), np.float64), queue=queue))
    return ipiv, np.asarray, lambda ipiv: ipiv.data.fill(0)


def matrix(queue, rng):
    M, b = convection_diffusion(2, 9, 3)[0], there(queue, random(rng, 54, np.float64))
    A = krylov.SparseMatrix(M, queue)
    return A, lambda A: there(None, krylov.bicgstab(A, b, maxiter=3)[0]), lambda A: A.data.fill(0)


def made(make, *args, **options):
    return lambda queue, rng: make(queue, rng, *args, **options)


OBJECTS = {
    "Pack": packed,
    "Integers": pivots,
    "BlockTridiag": block_tridiagonal,
    "parts": made(block_tridiagonal, parts=2),
    "refine": made(block_tridiagonal, refine=1, storage="float32"),
    "LinePreconditioner": of_lines,
    "LineRelaxation": made(of_lines, cla.LineRelaxation, scheme="symmetric", tol=1e-3),
    "Banded": banded,
    "BandedSPD": made(banded, cla.BandedSPD),
    "BatchCSR": batch,
    "BatchLU": made(batch, cla.BatchLU),
    "ILU0": made(batch, krylov.ILU0),
    "ISAI": made(batch, krylov.ISAI),
    "SparseMatrix": matrix,
}
SLOW = "refine", "LineRelaxation", "BandedSPD", "ISAI", "SparseMatrix"


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in OBJECTS])
def test_copies_have_memory_of_their_own(name, queue, rng):
    """Copies live where the object lives; OpenCL's have to be moved to the CPU before they are pickled."""
    x, use, change = OBJECTS[name](queue, rng)
    expected = use(x)
    made = [copy.deepcopy(x), copy.deepcopy({"x": x})["x"]]
    if name not in ("Pack", "Integers"):  # these see the same memory
        made.append(copy.copy(x))
    if queue is None:
        made.append(pickle.loads(pickle.dumps(x)))
    else:
        way = {"Pack": "see to", "BatchCSR": "see to", "Integers": "see numpy.asarray"}.get(name, "make it there")
        with pytest.raises(TypeError, match=f"{type(x).__name__} lives on .* to be pickled: {way}"):
            pickle.dumps(x)
    change(x)
    for y in made:
        assert type(y) is type(x) and y.queue == queue
        assert same_bits(use(y), expected)
