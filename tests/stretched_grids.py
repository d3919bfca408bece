"""Systems on stretched grids of which the lines are known: what the finding of lines is judged on.

Every function returns a matrix (M, a bsr_array) and its columns, a list of arrays of block rows: those above one
another, from the wall on. The wall is at the bottom, or one at the bottom and one at the top; unknowns there are
eliminated. Cells are as long as 1 and lower by `aspect` at a wall, from where they grow. Block rows are numbered column
after column, or at random.
"""

from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.spatial import Delaunay

NUMBERINGS = "natural", "random"


class Rule(NamedTuple):
    """Shape functions of a cell, in the points of a quadrature: Gauss's, and its weights."""

    values: np.ndarray  # (points, nodes)
    derivatives: np.ndarray  # (points, nodes, dimensions)
    weights: np.ndarray  # (points,)


def gauss_rule() -> Rule:
    """Two points on an interval from 0 to 1, exact for cubic polynomials."""
    x = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3)
    return Rule(np.stack([1 - x, x], axis=1), np.tile([[-1.0], [1.0]], (2, 1, 1)), np.full(2, 0.5))


def triangle_rule() -> Rule:
    """The three midpoints of the edges, exact for quadratic polynomials."""
    values = 0.5 * (1 - np.eye(3))
    return Rule(values, np.tile([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], (3, 1, 1)), np.full(3, 1 / 6))


def product_rule(r: Rule, s: Rule) -> Rule:
    """The rule for cells that are products, with nodes of the second factor counting fastest."""
    shape = len(r.weights) * len(s.weights), r.values.shape[1] * s.values.shape[1]
    values = np.kron(r.values, s.values)
    first = np.einsum("qad,pb->qpabd", r.derivatives, s.values).reshape(*shape, -1)
    second = np.einsum("qa,pbd->qpabd", r.values, s.derivatives).reshape(*shape, -1)
    return Rule(values, np.concatenate([first, second], axis=2), np.kron(r.weights, s.weights))


class Grid(NamedTuple):
    """Nodes and cells."""

    nodes: np.ndarray  # (nodes, dimensions)
    cells: np.ndarray  # (cells, nodes of a cell)
    rule: Rule


def interval(n: int) -> Grid:
    """Cells of length 1."""
    nodes = np.arange(n + 1)
    return Grid(nodes[:, None].astype(float), np.stack([nodes[:-1], nodes[1:]], axis=1), gauss_rule())


def triangles(n: int, seed: int) -> Grid:
    """An unstructured plane of about 1 a node: points of a square that are moved at random, but for its border."""
    i, j = (index.ravel() for index in np.indices((n, n)))
    inner = (np.minimum(i, j) > 0) & (np.maximum(i, j) < n - 1)
    nodes = np.stack([i, j], axis=1) + np.random.default_rng(seed).uniform(-0.45, 0.45, (n * n, 2)) * inner[:, None]
    cells = Delaunay(nodes).simplices
    corners = nodes[cells]
    area = np.linalg.det(corners[:, 1:] - corners[:, :1])
    cells[area < 0] = cells[area < 0][:, [0, 2, 1]]
    return Grid(nodes, cells[abs(area) > 1e-9], triangle_rule())


def extruded(base: Grid, heights) -> Grid:
    """Layers of these heights upon a grid; nodes above one another are numbered one after the other."""
    z = np.concatenate([[0], np.cumsum(heights)])
    nodes = np.column_stack([np.repeat(base.nodes, len(z), axis=0), np.tile(z, len(base.nodes))])
    layer = np.arange(len(z))
    layers = np.stack([layer[:-1], layer[1:]], axis=1)
    cells = base.cells[:, None, :, None] * len(z) + layers[None, :, None, :]
    return Grid(nodes, cells.reshape(-1, base.cells.shape[1] * 2), product_rule(base.rule, gauss_rule()))


def layers(n, aspect, growth, walls):
    """Heights of n layers: lowest at the wall, or at both."""
    k = np.arange(n)
    return growth ** (k if walls == 1 else np.minimum(k, k[::-1])) / aspect


class Elements:
    """Integrals over the cells of a grid, of its shape functions N and their gradients."""

    def __init__(self, grid: Grid):
        jacobian = np.einsum("qad,eak->eqkd", grid.rule.derivatives, grid.nodes[grid.cells], optimize=True)
        gradient = grid.rule.derivatives @ np.linalg.inv(jacobian)
        self.values, self.gradient = grid.rule.values, gradient  # (q, a), (e, q, a, d)
        self.weights = np.abs(np.linalg.det(jacobian)) * grid.rule.weights  # (e, q)
        self.points = np.einsum("qa,ead->eqd", self.values, grid.nodes[grid.cells], optimize=True)

    def mass(self):
        """N_a N_c: (e, a, c)"""
        return np.einsum("eq,qa,qc->eac", self.weights, self.values, self.values, optimize=True)

    def divergence(self):
        """N_a d_i N_c: (e, a, c, i)"""
        return np.einsum("eq,qa,eqci->eaci", self.weights, self.values, self.gradient, optimize=True)

    def convection(self, velocity):
        """N_a v . grad N_c: (e, a, c)"""
        return np.einsum("eq,qa,eqi,eqci->eac", self.weights, self.values, velocity, self.gradient, optimize=True)

    def products(self):
        """d_i N_a d_j N_c: (e, a, c, i, j)"""
        e, q, a, d = self.gradient.shape
        flat = self.gradient.reshape(e, q, a * d)
        both = (flat * self.weights[:, :, None]).swapaxes(1, 2) @ flat
        return both.reshape(e, a, d, a, d).transpose(0, 1, 3, 2, 4)

    def stiffness(self):
        """grad N_a . grad N_c: (e, a, c)"""
        return np.trace(self.products(), axis1=3, axis2=4)

    def elasticity(self, poisson=0.3):
        """Linear elasticity of Young's modulus 1, plane strain in two dimensions: (e, a, c, i, j)"""
        lame, shear = poisson / ((1 + poisson) * (1 - 2 * poisson)), 0.5 / (1 + poisson)
        both = self.products()
        trace = np.trace(both, axis1=3, axis2=4)[..., None, None] * np.eye(both.shape[-1])
        return lame * both + shear * (both.swapaxes(3, 4) + trace)


def assembled(grid: Grid, blocks, nz: int, walls: int, numbering: str, seed: int):
    """The matrix of the blocks (cells, nodes, nodes, b, b) on a grid with nz nodes in a column, and its columns."""
    layer = np.arange(len(grid.nodes)) % nz
    free = (layer > 0) & ((walls == 1) | (layer < nz - 1))
    number = np.full(len(free), -1)
    number[free] = np.arange(free.sum())
    row, column = np.broadcast_arrays(number[grid.cells][:, :, None], number[grid.cells][:, None, :])
    kept = (row >= 0) & (column >= 0)
    return numbered(row[kept], column[kept], blocks[kept], free.sum(), nz - walls, numbering, seed)


def numbered(row, column, blocks, n, length, numbering, seed):
    """The sum of blocks at (row, column), in this numbering, and the columns of this length."""
    if numbering not in NUMBERINGS:
        raise ValueError(f"numbering is {numbering!r}, must be one of {', '.join(NUMBERINGS)}")
    number = np.arange(n) if numbering == "natural" else np.random.default_rng(seed).permutation(n)
    place = number[row] * n + number[column]
    place, which = np.unique(place, return_inverse=True)
    b = blocks.shape[1]
    summed = scipy.sparse.csc_array((np.ones(len(which)), which, np.arange(len(which) + 1)), (len(place), len(which)))
    data = (summed @ blocks.reshape(-1, b * b)).reshape(-1, b, b)
    indptr = np.searchsorted(place // n, np.arange(n + 1))
    M = scipy.sparse.bsr_array((data, place % n, indptr), shape=(n * b, n * b))
    return M, list(number.reshape(-1, length))


def quadrilaterals(nx=96, ny=48, aspect=1000.0, growth=1.12, walls=1, numbering="natural", seed=0):
    """Plane elasticity, bilinear: b = 2, 9 neighbours, symmetric positive definite."""
    grid = extruded(interval(nx), layers(ny, aspect, growth, walls))
    return assembled(grid, Elements(grid).elasticity(), ny + 1, walls, numbering, seed)


def hexahedra(nx=10, ny=10, nz=32, aspect=200.0, growth=1.0, walls=1, numbering="natural", seed=0):
    """Elasticity in a box, trilinear: b = 3, 27 neighbours, symmetric positive definite."""
    grid = extruded(extruded(interval(nx), np.ones(ny)), layers(nz, aspect, growth, walls))
    return assembled(grid, Elements(grid).elasticity(), nz + 1, walls, numbering, seed)


def prisms(n=13, nz=24, b=3, aspect=200.0, growth=1.15, walls=1, numbering="natural", seed=0):
    """Layers upon an unstructured plane: elasticity for b = 3, else coupled diffusions; symmetric positive definite."""
    grid = extruded(triangles(n, seed), layers(nz, aspect, growth, walls))
    elements = Elements(grid)
    if b == 3:
        blocks = elements.elasticity()
    else:
        reaction, diffusion = np.eye(b) + np.ones((b, b)), np.eye(b) + 0.3 * np.ones((b, b))
        blocks = np.multiply.outer(elements.stiffness(), diffusion) + np.multiply.outer(elements.mass(), reaction)
    return assembled(grid, blocks, nz + 1, walls, numbering, seed)


def thermo_hydro_mechanics(nx=80, ny=40, aspect=500.0, growth=1.12, walls=1, numbering="natural", seed=0):
    """A time step of displacements, temperature and two pressures: b = 5, bilinear, 9 neighbours, not symmetric.

    Both fluids push the solid and are pushed by it, heat expands it and flows with the fluids, which are exchanged.
    """
    grid = extruded(interval(nx), layers(ny, aspect, growth, walls))
    elements = Elements(grid)
    height = elements.points[..., 1]
    velocity = np.stack([height / height.max(), np.full_like(height, -0.2)], axis=-1)  # along the wall, and into it
    mass, stiffness, divergence = elements.mass(), elements.stiffness(), elements.divergence()
    convection = elements.convection(velocity)
    blocks = np.zeros((*mass.shape, 5, 5))
    blocks[..., :2, :2] = elements.elasticity()
    for k, push, conductivity, storage in ((2, 0.3, 0.05, 1.0), (3, 0.8, 0.02, 0.1), (4, 0.2, 0.005, 0.3)):
        blocks[..., :2, k] = -push * divergence.swapaxes(1, 2)
        blocks[..., k, :2] = push * divergence
        blocks[..., k, k] = conductivity * stiffness + storage * (mass + (k == 2) * convection)
    blocks[..., 2, 3] += 0.1 * convection
    blocks[..., 3, 2] -= 0.2 * mass
    for k, other in ((3, 4), (4, 3)):
        blocks[..., k, k] += 0.5 * mass
        blocks[..., k, other] -= 0.5 * mass
    return assembled(grid, blocks, ny + 1, walls, numbering, seed)


def volumes(nx=96, ny=48, neighbours=5, aspect=1000.0, growth=1.12, walls=1, numbering="natural", seed=0):
    """Finite volumes with 5 or 9 neighbours: b = 3, diffusion along and across, convection upwind, reactions.

    With 9 neighbours the directions in which diffusion is strongest are oblique, which cells at the corners take up.
    """
    # cells from wall to wall, and how steep differences between their centres are
    heights = layers(ny, aspect, growth, walls)
    centre = np.cumsum(heights) - heights / 2
    slope = 1 / np.diff(centre)
    at_walls = np.zeros(ny)
    at_walls[[0, -1][:walls]] = 2 / heights[[0, -1][:walls]]

    def second_difference(weight):
        total = np.append(weight, 0) + np.append(0, weight)
        return scipy.sparse.diags_array([-weight, total, -weight], offsets=[-1, 0, 1])

    def central_difference(n):
        return scipy.sparse.diags_array([np.full(n - 1, -0.5), np.full(n - 1, 0.5)], offsets=[-1, 1])

    def diagonal(values):
        return scipy.sparse.diags_array(values, offsets=0)

    # differences in both directions, and their products with the sizes of cells
    up = second_difference(slope) + diagonal(at_walls)
    along = second_difference(np.ones(nx - 1))
    upwind = scipy.sparse.diags_array([np.ones(nx), np.full(nx - 1, -1.0)], offsets=[0, -1])
    kron, everywhere = scipy.sparse.kron, diagonal(np.ones(nx))
    grid = kron(along, diagonal(heights)) + kron(everywhere, up)
    if neighbours == 9:
        grid = grid - 2 * 0.4 * kron(central_difference(nx), central_difference(ny))
    elif neighbours != 5:
        raise ValueError(f"neighbours is {neighbours}, must be 5 or 9")
    wind = kron(upwind, diagonal(heights * centre / centre.max()))
    stored = kron(everywhere, diagonal(heights))
    # three unknowns a cell: each operator with its own coupling of them
    diffusion = np.array([[1.0, 0.1, 0.0], [0.0, 0.5, 0.1], [0.2, 0.0, 2.0]])
    reaction = np.array([[2.0, -1.0, 0.5], [-0.5, 1.0, 0.0], [0.0, -2.0, 3.0]])
    blocks = sum(kron(of, by) for of, by in ((grid, diffusion), (wind, np.eye(3)), (stored, reaction)))
    M = blocks.tobsr(blocksize=(3, 3))
    row = np.repeat(np.arange(nx * ny), np.diff(M.indptr))
    return numbered(row, M.indices, M.data, nx * ny, ny, numbering, seed)


# What a test goes through: names, and functions of the numbering.
GRIDS = {
    f"{name}, {walls} walls" if walls > 1 else name: partial(make, walls=walls, **options)
    for (name, make, options), walls in product(
        [
            ("quadrilaterals", quadrilaterals, {}),
            ("hexahedra, 20 times as long", hexahedra, {"aspect": 20.0}),
            ("hexahedra, 200 times as long", hexahedra, {}),
            ("hexahedra, stretched", hexahedra, {"aspect": 500.0, "growth": 1.12}),
            ("thermo-hydro-mechanics", thermo_hydro_mechanics, {}),
            ("volumes, 5", volumes, {}),
            ("volumes, 9", volumes, {"neighbours": 9}),
            ("prisms, 1", prisms, {"b": 1}),
            ("prisms, 2", prisms, {"b": 2}),
            ("prisms, 3", prisms, {}),
        ],
        (1, 2),
    )
}
