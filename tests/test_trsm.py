"""Tests specific to trsm: B <- alpha op(A)^-1 B or alpha B op(A)^-1."""

import re

import numpy as np
import pytest

import compactla as cla
from cases import same_bits
from rows import operands, results


@pytest.mark.parametrize("side", ["L", "R"])
def test_zero_alpha_reads_nothing(queue, dtype, side, rng):
    a, b = operands("trsm", rng, (4, 3), dtype, side=side)
    unset = np.full_like(a, np.nan), np.full_like(b, np.nan)
    (x,) = results("trsm", unset, side=side, alpha=0, queue=queue)
    assert np.array_equal(x, np.zeros_like(b))


@pytest.mark.parametrize(("uplo", "rows"), [("L", slice(2, None)), ("U", slice(3))])
def test_the_solution_of_a_singular_matrix_is_not_finite(queue, dtype, uplo, rows, rng):
    """The solution is not finite from the zero pivot on; what was found before is finite."""
    a, b = operands("trsm", rng, (5, 3), dtype, uplo=uplo)
    a[6, 2, 2] = 0
    (x,) = results("trsm", (a, b), uplo=uplo, queue=queue)
    failed = ~np.isfinite(x[6])
    assert failed[rows].all() and failed.sum() == 9
    assert np.isfinite(np.delete(x, 6, axis=0)).all()


def test_a_unit_diagonal_is_not_read(queue, dtype, rng):
    a, b = operands("trsm", rng, (5, 3), dtype, diag="U")
    other = a.copy()
    other[:, range(5), range(5)] = 0
    (x,), (y,) = (results("trsm", (given, b), diag="U", queue=queue) for given in (a, other))
    assert np.isfinite(x).all() and same_bits(x, y)


@pytest.mark.parametrize(
    ("shapes", "side", "message"),
    [
        (((3, 4), (3, 5)), "L", "A is 3 x 4, must be 3 x 3: B is 3 x 5 and side is 'L'"),
        (((3, 3), (4, 3)), "L", "A is 3 x 3, must be 4 x 4: B is 4 x 3 and side is 'L'"),
        (((3, 3), (3, 5)), "R", "A is 3 x 3, must be 5 x 5: B is 3 x 5 and side is 'R'"),
        (((3, 3), (5, 3)), "R", ""),
    ],
)
def test_which_size_does_not_fit(shapes, side, message):
    A, B = (cla.Pack.identity(2, *shape) for shape in shapes)
    if not message:
        cla.trsm(A, B, side)
        return
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cla.trsm(A, B, side)
