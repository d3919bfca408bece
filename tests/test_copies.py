"""Copies and pickles of packs, pivots and sparse matrices; those of solvers are in test_solvers.py."""

import copy
import pickle

import numpy as np
import pytest

import compactla as cla
from cases import here, random, same_bits, slow, there
from compactla import krylov
from systems import convection_diffusion


def packed(queue, rng):
    A = cla.pack(random(rng, (9, 3, 3), np.float64), queue=queue)
    return A, lambda A: A.unpack(), lambda A: A.data.fill(0)


def pivots(queue, rng):
    ipiv, _ = cla.getrf(cla.pack(random(rng, (9, 3, 3), np.float64), queue=queue))
    return ipiv, np.asarray, lambda ipiv: ipiv.data.fill(0)


def matrix(queue, rng):
    M, b = convection_diffusion(2, 9, 3)[0], there(random(rng, 54, np.float64), queue)
    A = krylov.SparseMatrix(M, queue)
    return A, lambda A: here(krylov.bicgstab(A, b, maxiter=3)[0]), lambda A: A.data.fill(0)


OBJECTS = {"Pack": packed, "Integers": pivots, "SparseMatrix": matrix}


@pytest.mark.parametrize("name", ["Pack", "Integers", slow("SparseMatrix")])
def test_copies_have_memory_of_their_own(name, queue, rng):
    """Copies live where the object lives; OpenCL's have to be moved to the CPU before they are pickled."""
    x, use, change = OBJECTS[name](queue, rng)
    expected = use(x)
    made = [copy.deepcopy(x), copy.deepcopy({"x": x})["x"]]
    if name == "SparseMatrix":  # copies of the others see the same memory
        made.append(copy.copy(x))
    if queue is None:
        made.append(pickle.loads(pickle.dumps(x)))
    else:
        way = {"Pack": "see to", "Integers": "see numpy.asarray"}.get(name, "make it there")
        with pytest.raises(TypeError, match=f"{type(x).__name__} lives on .* to be pickled: {way}"):
            pickle.dumps(x)
    change(x)
    for y in made:
        assert type(y) is type(x) and y.queue == queue
        assert same_bits(use(y), expected)
