"""Tests specific to gemm: C <- alpha op(A) op(B) + beta C."""

import re

import numpy as np
import pytest

import compactla as cla
from cases import random, same_bits
from rows import BATCH, operands, results


def test_an_empty_sum_is_zero_whatever_multiplies_it(queue, dtype, rng):
    a, b, c = operands("gemm", rng, (5, 4, 0), dtype)
    for alpha in (1, np.inf, np.nan):
        for beta in (0, 1):
            (found,) = results("gemm", (a, b, c), queue=queue, alpha=alpha, beta=beta)
            assert same_bits(found, beta * c if beta else np.zeros_like(c))


def test_the_conjugate_transpose_of_real_matrices(queue, rng):
    a, b, c = operands("gemm", rng, (5, 4, 6), np.float64, transa="T", transb="T")
    (expected,) = results("gemm", (a, b, c), queue=queue, transa="T", transb="T", alpha=0.5, beta=2)
    (found,) = results("gemm", (a, b, c), queue=queue, transa="C", transb="C", alpha=0.5, beta=2)
    assert same_bits(found, expected)


def test_one_pack_for_both_operands(queue, dtype, rng):
    a = random(rng, (BATCH, 4, 4), dtype)
    A, C = cla.pack(a, queue=queue), cla.Pack.zeros(BATCH, 4, 4, dtype, queue=queue)
    cla.gemm(A, A.T, C, 0.5, 2)
    (expected,) = results("gemm", (a, a, np.zeros_like(a)), queue=queue, alpha=0.5, beta=2, transb="T")
    assert same_bits(C.unpack(), expected)


def test_blocks_of_one_pack(queue, rng):
    """Memory that is written must not be read; what lies between its elements may be."""
    A, other = (cla.pack(random(rng, (40, 6, 6), np.float64), queue=queue) for _ in range(2))
    halves = A[:3, :], A[3:, :]
    for C, X in ((A, A), (A, A.T), (A[:3, :3], A[2:5, 2:5]), (A[::2, ::2], A[:3, :3]), (A[:3, :].T, A[2:5, :].T)):
        Y = other[: C.m, : C.n]
        with pytest.raises(ValueError, match="C shares memory with A"):
            cla.gemm(X, Y, C)
        with pytest.raises(ValueError, match="C shares memory with B"):
            cla.gemm(Y, X, C, transb="T")
    apart = [(A[:3, :3], other[:3, :3]), (halves[0][:, :3], halves[1][:, :3]), (A[:0, :0], A[:0, :0])]
    if queue is None:  # on a device, what is between the elements counts too
        apart += [(A[::2, ::2], A[1::2, ::2]), (A[:3, :3], A[:3, 3:]), (A[:3, :3].T, A[3:, :3])]
    for C, X in apart if queue is None else apart[::2]:
        Y = other[3 : 3 + X.n, 3 : 3 + C.n]
        expected = X.unpack() @ Y.unpack()
        assert np.allclose(cla.gemm(X, Y, C).unpack(), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((3, 4), (3, 5), (3, 5)), "NN", "op(B) is 3 x 5, must have 4 rows, as many as there are columns of op(A)"),
        (((3, 4), (4, 5), (4, 5)), "NN", "C is 4 x 5, must have 3 rows, as many as there are rows of op(A)"),
        (((3, 4), (4, 5), (3, 4)), "NN", "C is 3 x 4, must have 5 columns, as many as there are columns of op(B)"),
        (((3, 4), (4, 5), (3, 5)), "TN", "op(B) is 4 x 5, must have 3 rows, as many as there are columns of op(A)"),
        (((3, 4), (4, 5), (3, 5)), "NC", "op(B) is 5 x 4, must have 4 rows, as many as there are columns of op(A)"),
        (((3, 4), (5, 4), (3, 5)), "NT", ""),
    ],
)
def test_which_size_does_not_fit(shapes, options, message):
    A, B, C = (cla.Pack.zeros(2, *shape) for shape in shapes)
    if not message:
        cla.gemm(A, B, C, 1, 0, *options)
        return
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cla.gemm(A, B, C, 1, 0, *options)
