"""What is pickled and copied."""

import pickle

import numpy as np
import pytest

import compactla as cla
from cases import same_bits
from compactla import copies
from systems import convection_diffusion


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
    """As joblib's, which maps large arrays from files."""
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
    assert frozen == kept and not copies._writeable
