"""Lines found from coefficients and from coordinates."""

from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, cg, gmres

import compactla as cla
from cases import in_turns
from compactla.cpu.late import CompiledLate
from compactla.lines import chords as chords_of
from compactla.lines import couplings, extraction, relaxation, walking
from stretched_grids import GRIDS, hexahedra
from systems import STORED, convection_diffusion, pack_lines, scattered


def as_lists(lines):
    return [list(map(int, line)) for line in lines]


def from_the_lower_end(lines):
    return sorted(line if line[0] < line[-1] else line[::-1] for line in as_lists(lines))


def permuted(M, order):
    """The matrix (BSR) of which block row i is block row ``order[i]`` of `M`."""
    b = M.blocksize[0]
    rows = (order[:, None] * b + np.arange(b)).ravel()
    return M.tocsr()[rows][:, rows].tobsr((b, b))


def tridiagonal(n, lower=-1.0, upper=-1.0):
    return scipy.sparse.diags_array([lower, 2.0 + abs(lower + upper), upper], offsets=[-1, 0, 1], shape=(n, n))


def grid(*factors):
    """Couplings of a grid: strength of each direction, the last one numbered fastest."""
    M = 0
    for direction, (n, strength) in enumerate(factors):
        sides = [scipy.sparse.eye_array(m) for m, _ in factors]
        sides[direction] = strength * tridiagonal(n)
        term = sides[0]
        for side in sides[1:]:
            term = scipy.sparse.kron(term, side)
        M = M + term
    return M.tocsr()


@pytest.mark.parametrize("form", ["bsr", "csr"])
@pytest.mark.parametrize(("b", "dtype"), in_turns([1, 2, 5]), ids=str)
def test_stretched_grid(rng, dtype, b, form):
    M, lines = convection_diffusion(7, 9, b)
    M = M.astype(dtype)
    if dtype.kind == "c":
        M.data *= np.exp(1j)
    M = M if form == "bsr" else M.tocsr()
    assert as_lists(cla.find_lines(M, b)) == lines.tolist()


@pytest.mark.parametrize("b", [1, 3])
def test_numbering_makes_no_difference(rng, b):
    M, lines = convection_diffusion(6, 11, b)
    order = rng.permutation(66)
    found = cla.find_lines(permuted(M, order))
    assert from_the_lower_end(found) == as_lists(found)  # as the docstring says
    assert sorted(sorted(order[line].tolist()) for line in found) == lines.tolist()
    assert all((abs(np.diff(order[line])) == 1).all() for line in found)


@pytest.mark.parametrize("form", ["bsr", "csr"])
@pytest.mark.parametrize("stored", STORED)
def test_storage_makes_no_difference(rng, form, stored):
    M, _ = scattered(rng, [1, 7, 3, 12, 5], 3, np.float64)
    N = stored(M if form == "bsr" else M.tocsr())
    before = N.data.copy(), N.indices.copy()
    expected = as_lists(cla.find_lines(M))
    assert max(map(len, expected)) > 2
    assert as_lists(cla.find_lines(N, 3)) == expected
    assert np.array_equal(N.data, before[0]) and np.array_equal(N.indices, before[1])


def test_units_make_no_difference(rng):
    """Neither those of equations, which may be scaled one by one, nor those of unknowns."""
    M, _ = scattered(rng, [1, 7, 3, 12, 5, 9, 4], 3, np.float64)
    expected = as_lists(cla.find_lines(M))
    rows = scipy.sparse.diags_array(10.0 ** rng.uniform(-6, 6, M.shape[0]))
    columns = scipy.sparse.diags_array(np.tile([1e5, 1.0, 3e-4], M.shape[0] // 3))
    assert as_lists(cla.find_lines((rows @ M @ columns).tobsr((3, 3)))) == expected


@pytest.mark.parametrize("units", [1e-100, 1.0, 1e100])
def test_units_of_equations_make_no_difference_to_singular_blocks(units):
    """One of two equations couples along the grid, the other more strongly across it."""
    along, across = (scipy.sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n)) for n in (4, 5))
    along, across = scipy.sparse.kron(along, np.eye(5)), scipy.sparse.kron(np.eye(4), across)
    M = scipy.sparse.kron(scipy.sparse.eye_array(20), [[0, 2], [0, 4]])
    M = M + scipy.sparse.kron(along, np.diag([1, 0])) + scipy.sparse.kron(across, np.diag([0, 3]))
    M = scipy.sparse.diags_array(np.tile([units, 1], 20)) @ M
    assert as_lists(cla.find_lines(M.tocsr(), 2)) == np.arange(20).reshape(4, 5).tolist()


@pytest.mark.parametrize("anisotropy", [None, 0.0, 0.5, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_every_block_row_is_on_one_line(seed, anisotropy):
    rng = np.random.default_rng(seed)
    M, _ = scattered(rng, rng.integers(1, 20, 12), 2, np.float64)
    lines = cla.find_lines(M, anisotropy=anisotropy)
    nrow = len(M.indptr) - 1
    pack_lines(lines, nrow, 4)
    pattern = scipy.sparse.csr_array((np.ones(len(M.indices)), M.indices, M.indptr), shape=(nrow, nrow)).toarray()
    for line in lines:
        assert (pattern[line[1:], line[:-1]] + pattern[line[:-1], line[1:]]).all()


def test_lines_end_where_nothing_stands_out():
    """Boundary layers at both ends of each row of the grid, with cells that are alike all around between them."""
    size = np.array([0.01, 0.03, 0.1, 0.3, 1, 1, 1, 1, 0.3, 0.1, 0.03, 0.01])
    along = 2 / (size[1:] + size[:-1])
    n, rows = len(size), 6
    one = scipy.sparse.diags_array([along, along], offsets=[-1, 1], shape=(n, n))
    beside = scipy.sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(rows, rows))
    M = scipy.sparse.kron(scipy.sparse.eye_array(rows), one)
    M = M + scipy.sparse.kron(beside, scipy.sparse.diags_array(size))  # the faces between the rows of the grid
    M = scipy.sparse.diags_array(M.sum(axis=1)) - M
    lengths = {len(line) for line in cla.find_lines(M.tocsr(), 1, anisotropy=2)}
    assert lengths == {1, 4}


def test_equal_couplings_in_all_directions():
    assert as_lists(cla.find_lines(grid((4, 1), (5, 1)), 1)) == [[i] for i in range(20)]
    lines = cla.find_lines(grid((9, 1), (9, 1)), 1, anisotropy=0.5)
    assert 9 <= max(map(len, lines)) < 41  # and no line that fills the plane


def test_three_directions():
    lines = cla.find_lines(grid((4, 10), (5, 1000), (6, 1)), 1)
    expected = np.arange(120).reshape(4, 5, 6).swapaxes(1, 2).reshape(-1, 5)
    assert as_lists(lines) == expected.tolist()


@pytest.mark.parametrize("weakest", [None, 0, 7, 11])
def test_a_ring_is_opened_at_its_weakest_coupling(weakest):
    """Users who know that its ends are neighbours say so by ``periodic=True``."""
    M = 4 * scipy.sparse.eye_array(12, format="lil")
    for i in range(12):
        M[i, (i + 1) % 12] = M[(i + 1) % 12, i] = -0.5 if i == weakest else -1
    (line,) = as_lists(cla.find_lines(M.tocsr(), 1))
    after = 11 if weakest is None else weakest
    assert line in ([(after + 1 + i) % 12 for i in range(12)], [(after - i) % 12 for i in range(12)])


def chords(M, lines):
    """Pairs of block rows of a line that are coupled but no neighbours on it."""
    row = np.repeat(np.arange(M.shape[0] // M.blocksize[0]), np.diff(M.indptr))
    coupled = {*zip(row.tolist(), M.indices.tolist(), strict=True)}
    pairs = [(a, b) for line in as_lists(lines) for k, a in enumerate(line) for b in line[k + 2 :]]
    return [(a, b) for a, b in pairs if (a, b) in coupled or (b, a) in coupled]


@pytest.mark.slow
@pytest.mark.parametrize("make", GRIDS.values(), ids=GRIDS)
def test_columns_of_a_grid(make):
    M, columns = make(numbering="random")
    found = cla.find_lines(M)
    assert {*map(tuple, from_the_lower_end(found))} == {*map(tuple, from_the_lower_end(columns))}
    assert not chords(M, found)


@pytest.mark.parametrize("walls", [1, 2])
def test_columns_through_cells_that_are_as_high_as_long(walls):
    M, columns = hexahedra(6, 6, 20, aspect=30, growth=1.2 if walls == 1 else 1.4, walls=walls)
    found = cla.find_lines(M)
    assert sum(len(line) > 2 for line in found) >= 0.9 * len(columns)
    assert steps(cla.LinePreconditioner, M, found) <= 1.1 * steps(cla.LinePreconditioner, M, columns)
    assert steps(symmetric, M, found) <= 1.1 * steps(symmetric, M, columns)


def symmetric(M, lines):
    return cla.LineRelaxation(M, lines, scheme="symmetric")


def steps(make, M, lines):
    """The number of steps of conjugate gradients."""
    history = []
    _, status = cg(M, np.sin(np.arange(M.shape[0])), rtol=1e-8, M=make(M, lines), callback=history.append)
    assert status == 0
    return len(history)


@pytest.mark.slow
@pytest.mark.parametrize("anisotropy", [None, 0.0, 1.1])
@pytest.mark.parametrize("with_coordinates", [False, True])
def test_lines_have_no_chords(rng, with_coordinates, anisotropy):
    """Points at random, each coupled to those near it, some in one direction only."""
    places = rng.random((300, 2)) * [1, 10]
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    near = (distance < 0.7) & (rng.random((300, 300)) < 0.9)
    M = scipy.sparse.bsr_array(np.where(near, -rng.random((300, 300)), 0) + 30 * np.eye(300), blocksize=(1, 1))
    found = cla.find_lines(M, coordinates=places if with_coordinates else None, anisotropy=anisotropy)
    assert max(map(len, found)) > 2
    assert not chords(M, found)


def column_with_a_chord(there, back):
    """A column in which block rows 1 and 6 are coupled, too."""
    M = tridiagonal(8).tolil()
    M[1, 6], M[6, 1] = there, back
    return M.tobsr((1, 1))


@pytest.mark.parametrize(
    ("there", "back", "broken"),
    [
        *[(-0.9, -0.9, False), (-1, -1, True), (-1.1, -1.1, True), (-1, 0, False), (-1, -0.5, False)],
        *[(1e-200, 1e-200, False), (1e-9, 1e-9, False), (0.1, 0.1, True), (np.nan, -0.5, True)],
    ],
)
def test_chords_are_weaker_than_what_a_break_gives_up(there, back, broken):
    """Leaving out a positive chord makes the line's matrix indefinite, unless the chord is very small."""
    found = cla.find_lines(column_with_a_chord(there, back))
    assert (as_lists(found) != [[*range(8)]]) == broken


def with_wells(b, strength):
    """Columns of a grid, and two wells along some of their cells, eliminated: all cells of a well are coupled."""
    M = scipy.sparse.kron(grid((4, 1), (5, 1), (12, 30)), np.eye(b) + 0.2 * np.ones((b, b)))
    for cells in (range(28, 34), range(136, 143)):
        w = np.zeros(240)
        w[cells] = strength * (2 + np.sin(cells))
        eliminated = scipy.sparse.csr_array(np.diag(w) - np.outer(w, w) / w.sum())
        M = M + scipy.sparse.kron(eliminated, np.eye(b, k=b - 1) + np.eye(b))
    return M.tocsr().tobsr((b, b)), np.arange(240).reshape(20, 12)


@pytest.mark.parametrize("b", [1, 3])
def test_wells_do_not_break_lines(b):
    M, columns = with_wells(b, 10)
    found = cla.find_lines(M)
    assert as_lists(found) == columns.tolist()
    assert len(chords(M, found)) == 10 + 15
    S = cla.LineRelaxation(M, found, scheme="symmetric")
    x = np.sin(np.arange(M.shape[0]))
    for _ in range(10):
        before, x = np.linalg.norm(x), x - S @ (M @ x)
    assert np.linalg.norm(x) < 0.95 * before


@pytest.mark.parametrize("b", [1, 2])
def test_entries_in_any_order(b):
    """A chord along a positive coupling is seen wherever its row has it."""
    M = scipy.sparse.kron(column_with_a_chord(0.1, 0.1), np.eye(b) + 0.1 * np.ones((b, b)), format="csr")
    expected = as_lists(cla.find_lines(M, b))
    for row in range(M.shape[0]):
        entries = slice(M.indptr[row], M.indptr[row + 1])
        M.indices[entries], M.data[entries] = M.indices[entries][::-1].copy(), M.data[entries][::-1].copy()
    M.has_sorted_indices = M.has_canonical_format = False
    before = M.indices.copy()
    assert as_lists(cla.find_lines(M, b)) == expected and len(expected) > 1
    with pytest.warns(UserWarning, match="chords"):
        cla.LinePreconditioner(M, [range(8)], block_size=b)
    assert (M.indices == before).all()


@pytest.mark.parametrize("strength", [1, 100])
def test_lines_are_as_good_as_columns_through_wells(strength):
    M, columns = with_wells(3, strength)
    rhs = np.sin(np.arange(M.shape[0]))
    assert iterations(M, cla.find_lines(M), rhs) <= 1.1 * iterations(M, columns, rhs) + 1


def test_differences_of_fourth_order():
    """The outer coefficients are small and positive: lines that left them out would be indefinite."""
    along = scipy.sparse.diags_array([1 / 12, -4 / 3, 5 / 2, -4 / 3, 1 / 12], offsets=range(-2, 3), shape=(24, 24))
    M = scipy.sparse.kron(tridiagonal(6), scipy.sparse.eye_array(24)) + 100 * scipy.sparse.kron(np.eye(6), along)
    M = M.tobsr((1, 1))
    found = cla.find_lines(M)
    assert not chords(M, found)
    assert steps(cla.LinePreconditioner, M, found) < 150


def test_no_chords_along_positive_couplings():
    M = column_with_a_chord(-0.5, -0.5)
    M.data[M.data == -1] = 1
    assert not chords(M, cla.find_lines(M))


def test_a_row_that_is_coupled_to_all():
    """A chain, all of which is coupled weakly to its first block row: chords as long as the line, one after another."""
    n = 3000
    M = tridiagonal(n).tolil()
    M[0, 2:] = M[2:, 0] = -1e-3
    M[0, 0] = 2 + 1e-3 * n
    assert max(map(len, cla.find_lines(M.tobsr((1, 1))))) >= n - 1


def test_the_symmetric_sweep_contracts():
    """The sweep contracts for every symmetric positive definite matrix and lines without chords."""
    M, _ = hexahedra(6, 6, 16)
    S = symmetric(M, cla.find_lines(M))
    x = np.sin(np.arange(M.shape[0]))
    for _ in range(10):
        before, x = np.sqrt(x @ (M @ x)), x - S @ (M @ x)
        assert np.sqrt(x @ (M @ x)) < 0.95 * before


def test_flow_one_way():
    """Upwind differences: nothing comes back along the stream, and the pattern is not symmetric."""
    stream = scipy.sparse.kron(scipy.sparse.eye_array(4), tridiagonal(6, -1, 0))
    lines = np.arange(24).reshape(4, 6).tolist()
    assert as_lists(cla.find_lines(stream.tocsr(), 1)) == lines
    assert as_lists(cla.find_lines(stream.T.tocsr(), 1)) == lines
    diffusion = scipy.sparse.kron(tridiagonal(4), scipy.sparse.eye_array(6))
    across = cla.find_lines((stream + 0.01 * diffusion).tocsr(), 1)
    assert as_lists(across) == np.arange(24).reshape(4, 6).T.tolist()


def test_what_goes_one_way_only_does_not_distract():
    """In reservoirs, neighbours upstream act strongly on one unknown, in whatever units, and nothing acts back."""
    M, lines = convection_diffusion(6, 8, 2, wind=0)
    upstream = scipy.sparse.kron(scipy.sparse.eye_array(6, k=-1), scipy.sparse.eye_array(8))
    M = M + scipy.sparse.kron(upstream, 1e4 * np.eye(2, k=1))
    assert as_lists(cla.find_lines(M.tobsr((2, 2)))) == lines.tolist()


def test_waves_both_ways():
    """Flux splitting: what couples i to j and what couples j to i act on different unknowns, their product is zero."""
    n, parts = 8, {0: np.eye(2), 1: np.diag([-1.0, 0.0]), -1: np.diag([0.0, -1.0])}
    M = sum(scipy.sparse.kron(scipy.sparse.eye_array(n, k=k), part) for k, part in parts.items())
    assert as_lists(cla.find_lines(M.tocsr(), 2)) == [[*range(n)]]


@pytest.mark.parametrize("form", ["bsr", "csr"])
def test_isolated_rows(form):
    M = scipy.sparse.block_diag([np.eye(4), convection_diffusion(1, 5, 2)[0], np.eye(2)])
    M = M.tobsr(blocksize=(2, 2)) if form == "bsr" else M.tocsr()
    assert as_lists(cla.find_lines(M, 2)) == [[0], [1], [2, 3, 4, 5, 6], [7]]


@pytest.mark.parametrize("nrow", [0, 1, 2])
def test_few_rows(nrow):
    M = scipy.sparse.csr_array(np.ones((3 * nrow, 3 * nrow)))
    assert as_lists(cla.find_lines(M, 3)) == [[*range(nrow)]] * (nrow > 0)


@pytest.mark.parametrize("block", [np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
def test_bad_diagonal_blocks_spoil_nothing_else(block):
    M, lines = convection_diffusion(5, 8, 2)
    places = np.flatnonzero(M.indices == np.repeat(np.arange(40), np.diff(M.indptr)))
    M.data[places[19]] = block
    found = as_lists(cla.find_lines(M))
    others = [line for line in lines.tolist() if 19 not in line]
    assert [line for line in found if not {*range(16, 24)} & {*line}] == others


def test_missing_diagonal_block():
    M, lines = convection_diffusion(3, 6, 1)
    M = M.tolil()
    M[8, 8] = 0
    assert as_lists(cla.find_lines(M.tocsr(), 1)) == lines.tolist()


def test_anisotropy():
    M = grid((5, 1), (6, 3))  # 3 times as strong
    assert len(cla.find_lines(M, 1, anisotropy=2.9)) == 5
    assert len(cla.find_lines(M, 1, anisotropy=3.1)) == 30


def test_threshold():
    weights = [1.0, 1.0, 0.1, 1.0, 1.0]
    M = scipy.sparse.diags_array([weights, np.full(6, 9.0), weights], offsets=[-1, 0, 1]).tocsr()
    assert as_lists(cla.find_lines(M, 1, threshold=0.09)) == [[*range(6)]]
    assert as_lists(cla.find_lines(M, 1, threshold=0.11)) == [[0, 1, 2], [3, 4, 5]]


def test_min_length():
    M = scipy.sparse.block_diag([tridiagonal(n) for n in (3, 1, 4, 2)], format="csr")
    for least, expected in ((0, [3, 1, 4, 2]), (2, [3, 1, 4, 2]), (3, [3, 1, 4, 1, 1]), (4, [1] * 4 + [4, 1, 1])):
        assert [len(line) for line in cla.find_lines(M, 1, min_length=least)] == expected


def iterations(M, lines, rhs):
    P = cla.LinePreconditioner(M, lines)
    assert not P.info.any()
    history = []
    options = {"callback": history.append, "callback_type": "pr_norm"}
    A = LinearOperator(M.shape, lambda y: M @ (P @ y), dtype=M.dtype)
    gmres(A, rhs, rtol=1e-8, restart=50, maxiter=20, **options)
    return len(history)


def test_iterations_on_sherman5():
    with np.load(files("compactla") / "data" / "sherman5_b3.npz") as file:
        M = scipy.sparse.bsr_array((file["data"], file["indices"], file["indptr"]))
        given, rhs = file["lines"], file["rhs"]
    assert iterations(M, cla.find_lines(M), rhs) <= 1.1 * iterations(M, given, rhs)


def boundary_layer(rng):
    """A grid around half a cylinder, stretched towards its wall, numbered at random: pattern, places, rays."""
    angles, radii = np.linspace(0, np.pi, 13), 1 + np.geomspace(1e-4, 0.5, 24)
    order = rng.permutation(len(angles) * len(radii))
    rays = np.argsort(order).reshape(len(angles), len(radii))
    places = np.stack([np.outer(np.cos(angles), radii), np.outer(np.sin(angles), radii)], axis=-1).reshape(-1, 2)
    return grid((13, 1), (24, 1))[order][:, order], places[order], rays


def line_partitioner(M, places, threshold):
    """Ifpack2::LinePartitioner, as it is written there: the number of the line of each row."""
    line, n = np.full(M.shape[0], -1), 0

    def neighbours(i):
        near = M.indices[M.indptr[i] : M.indptr[i + 1]]
        distance = np.linalg.norm(places[near] - places[i], axis=1)
        order = np.argsort(distance, kind="stable")
        return near[order], distance[order] / distance.max()

    def search(last, row):
        while line[row] < 0:
            near, ratio = neighbours(row)
            if (line[near] == n).sum() > 1:
                break
            line[row] = n
            for k in (1, 2):
                if len(near) > k + 1 and near[k] != last and line[near[k]] < 0 and ratio[k] < threshold:
                    last, row = row, near[k]
                    break
            else:
                break

    for i in range(len(line)):
        if line[i] < 0:
            line[i] = n
            near, ratio = neighbours(i)
            for k in (1, 2):
                if len(near) > k + 1 and ratio[k] < threshold:
                    search(i, near[k])
            n += 1
    return line


@pytest.mark.parametrize("b", [1, 3])
def test_coordinates(rng, b):
    M, places, rays = boundary_layer(rng)
    M = scipy.sparse.kron(M, np.ones((b, b)), format="csr")
    found = cla.find_lines(M, b, coordinates=places, anisotropy=1.5)
    assert {frozenset(line.tolist()) for line in found} == {frozenset(ray.tolist()) for ray in rays}
    for line in found:
        outwards = np.diff(np.linalg.norm(places[line], axis=1)) > 0
        assert outwards.all() or not outwards.any()


@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.5])
def test_coordinates_as_in_ifpack2(rng, threshold):
    """Lines are those of Ifpack2, but end one row earlier, as they ask both ends of a step."""
    M, places, _ = boundary_layer(rng)
    theirs = line_partitioner(M, places, threshold)
    ours = [set(line.tolist()) for line in cla.find_lines(M, 1, coordinates=places, anisotropy=1 / threshold)]
    for n in range(theirs.max() + 1):
        line = {*np.flatnonzero(theirs == n).tolist()}
        assert any(found <= line and len(found) >= len(line) - 2 for found in ours)
    assert max(map(len, ours)) > 5


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-170, 1e160, 1e308])
def test_units_of_coordinates_make_no_difference(rng, scale):
    M, places, _ = boundary_layer(rng)
    if scale == 5e-324:  # only so many numbers are left
        places = np.round(places * 2**20)
    expected = as_lists(cla.find_lines(M, 1, coordinates=places))
    assert max(map(len, expected)) > 5
    assert as_lists(cla.find_lines(M, 1, coordinates=places * scale)) == expected


def test_points_that_coincide():
    M = tridiagonal(5).tocsr()
    lines = cla.find_lines(M, 1, coordinates=[[0.0], [0], [0], [1], [2]])
    pack_lines(lines, 5, 2)


GOOD = scipy.sparse.csr_array(np.ones((6, 6)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"M": np.eye(6)}, TypeError, "M is a ndarray"),
        ({"M": GOOD.tocsc()}, TypeError, "CSC"),
        ({"M": GOOD.astype(int)}, TypeError, "M: dtype is int64"),
        ({"block_size": None}, ValueError, "block_size is missing"),
        ({"block_size": 4}, ValueError, "block_size is 4, must divide the 6 rows"),
        ({"coordinates": np.zeros((6, 2))}, ValueError, r"coordinates has shape \(6, 2\), must be \(3, dim\)"),
        ({"coordinates": np.zeros(3)}, ValueError, r"coordinates has shape \(3,\)"),
        ({"coordinates": [["a"], ["b"], ["c"]]}, TypeError, "coordinates: dtype is <U1"),
        ({"coordinates": [[0], [np.nan], [1]]}, ValueError, "coordinates holds numbers that are infinite or NaN"),
        ({"coordinates": np.ma.zeros((3, 2))}, TypeError, "coordinates is a MaskedArray with a mask"),
        ({"coordinates": [[0], [np.longdouble("1e4000")], [1]]}, ValueError, "coordinates holds numbers that are inf"),
        ({"anisotropy": 10**400}, ValueError, "anisotropy is 10000000000"),
        ({"anisotropy": -1}, ValueError, "anisotropy is -1, must be finite and not negative"),
        ({"anisotropy": np.inf}, ValueError, "anisotropy is inf"),
        ({"anisotropy": "2"}, TypeError, "anisotropy is '2', must be a number"),
        ({"threshold": np.nan}, ValueError, "threshold is nan"),
        ({"threshold": None}, TypeError, "threshold is None"),
        ({"min_length": 2.0}, TypeError, "min_length is 2.0, must be an integer"),
        ({"min_length": -1}, ValueError, "min_length is -1"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        cla.find_lines(**({"M": GOOD, "block_size": 2} | arguments))


LATE = [x for module in (walking, couplings, chords_of, extraction, relaxation) for x in vars(module).values()]
LATE = [x for x in LATE if isinstance(x, CompiledLate)]


@pytest.mark.parametrize("dtype", "fdD")
def test_small_matrices_are_not_compiled_for(dtype, monkeypatch):
    """Python finds the same lines, chords, colours and blocks in them as compiled code; not where they are complex."""
    M, _ = with_wells(2, 0.5)
    C = scipy.sparse.kron(column_with_a_chord(0.1, 0.1), np.eye(2), format="bsr")
    M, C, x = M.astype(dtype), C.astype(dtype), np.sin(np.arange(M.shape[0]))

    def refused(*args):
        raise AssertionError("this way must not be taken")

    found = []
    for left, way in (1 << 40, "compiled"), (0, "function"):
        for f in LATE:
            monkeypatch.setattr(f, "left", left)
            if dtype != "D":
                monkeypatch.setattr(f, way, refused)
        lines = cla.find_lines(M)
        with pytest.warns(UserWarning, match="chords") as warnings:
            cla.LinePreconditioner(C, [range(8)])
        S = cla.LineRelaxation(M, lines, scheme="symmetric")
        found.append((as_lists(lines), str(warnings[0].message), (S @ x.astype(dtype)).tolist()))
        monkeypatch.undo()
    assert found[0] == found[1]
    assert len(LATE) >= 10
