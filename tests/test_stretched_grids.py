"""The grids of tests/stretched_grids.py are what they say they are."""

import inspect

import numpy as np
import pytest

from stretched_grids import GRIDS, Elements, extruded, hexahedra, interval, layers, prisms, triangles, volumes

pytestmark = pytest.mark.slow

SMALL = {"nx": 3, "ny": 4, "nz": 5, "n": 4}


def small(name, numbering):
    make = GRIDS[name]
    sizes = {size: SMALL[size] for size in inspect.signature(make.func).parameters if size in SMALL}
    return make(**sizes, numbering=numbering)


@pytest.mark.parametrize("name", GRIDS)
def test_grid(name):
    M, columns = small(name, "natural")
    n, b = M.shape[0] // M.blocksize[0], M.blocksize[0]
    assert M.has_canonical_format
    assert [row for column in columns for row in column] == list(range(n))
    A = M.toarray()
    symmetric = "volumes" not in name and "thermo" not in name
    assert np.allclose(A, A.T, rtol=0, atol=1e-15 * abs(A).max()) == symmetric
    if symmetric:
        np.linalg.cholesky(A)
    ones = np.ones(len(A))
    assert np.allclose(np.linalg.solve(A, A @ ones), ones, rtol=1e-8)
    # the same in another order of its block rows
    S, places = small(name, "random")
    order = (np.concatenate(places)[:, None] * b + np.arange(b)).ravel()
    assert [len(place) for place in places] == [len(column) for column in columns]
    assert np.array_equal(S.toarray()[np.ix_(order, order)], A)


@pytest.mark.parametrize(
    ("base", "dimensions"), [(interval(4), 2), (extruded(interval(4), np.ones(3)), 3), (triangles(5, 0), 3)]
)
def test_elements(base, dimensions):
    """Integrals of polynomials that the elements hold are exact; no forces within come of a uniform strain."""
    heights = layers(4, 20.0, 1.3, 2)
    grid = extruded(base, heights)
    elements = Elements(grid)
    volume = heights.sum() * (4 if dimensions == 2 else np.prod(np.ptp(base.nodes, axis=0)))
    x = grid.nodes[grid.cells]
    assert np.isclose(elements.mass().sum(), volume)
    square = np.einsum("ea,eac,ec->", x[:, :, -1], elements.mass(), x[:, :, -1])
    assert np.isclose(square, volume * heights.sum() ** 2 / 3)
    assert np.isclose(elements.stiffness().sum(axis=2), 0, atol=1e-9).all()
    strain = np.random.default_rng(0).standard_normal((dimensions, dimensions))
    force = np.zeros_like(grid.nodes)
    np.add.at(force, grid.cells, np.einsum("eacij,ecj->eai", elements.elasticity(), x @ strain.T))
    lowest, highest = grid.nodes.min(axis=0), grid.nodes.max(axis=0)
    inner = ((grid.nodes > lowest + 1e-9) & (grid.nodes < highest - 1e-9)).all(axis=1)
    assert inner.any()
    assert abs(force[inner]).max() < 1e-12 * abs(force).max()


def test_stencils():
    assert np.diff(hexahedra(4, 4, 6)[0].indptr).max() == 27
    assert np.diff(prisms(5, 4, b=1)[0].indptr).max() > 18
    for neighbours in (5, 9):
        assert np.diff(volumes(5, 4, neighbours)[0].indptr).max() == neighbours
