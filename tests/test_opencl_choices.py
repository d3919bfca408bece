"""Kernels that are compiled for a size: each is right on every device, and choosing one of them never fails."""

import contextlib
import json
from itertools import chain, product

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import compactla as cla
import reference
from cases import dominant, exhaustive, lines, make_singular, poisoned, random, same_bits, transposed
from compactla import oracle
from compactla.bench import filling, tune
from compactla.digests import digest_of_code
from compactla.gpu import launch, override
from compactla.gpu import lines as gpu_lines
from compactla.gpu.arrays import download
from compactla.gpu.forced import forced
from compactla.gpu.tuning import choices, refresh
from compactla.lines.storage import STORAGE
from compactla.opencl_sources import SOURCES
from compactla.results import unpacked
from compactla.routine import named, names
from drivers import working_devices
from rows import MODELS, OTHER, argument, own

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimized")]

on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
NM, VLEN = 11, 4  # a partial pack, and as many packs as need two work-groups


def with_types(names, cases):
    """Cases with types: a real and a complex one in turns, since every kernel is compiled anew for each."""
    first = [(*case, np.dtype("dF"[i % 2])) for i, case in enumerate(cases)]
    second = [exhaustive(*case, np.dtype("Fd"[i % 2])) for i, case in enumerate(cases)]
    return pytest.mark.parametrize((*names, "dtype"), first + second)


@pytest.fixture
def use(queue):
    """A function that has this kernel of a routine run, with these tunables; all others run those for any size."""
    with contextlib.ExitStack() as stack:

        def choose(routine, kernel, **tunables):
            for name in {routine, f"{routine}_few"}.intersection(choices.searches()):
                stack.enter_context(forced(queue, name, {"kernel": kernel, **tunables}))

        for name in choices.searches():
            stack.enter_context(forced(queue, name, {}))
        yield choose


def ran(queue, routine):
    """The kernels that ran for a routine, by name."""
    names = {str(plan.choice["kernel"]) for plan in launch.plans(queue).known.values() if plan and plan.choice}
    return {name for name in names if name.startswith(routine)}


def ratio(routine, before, result, *options):
    """The largest residual of what a pack holds after a call."""
    return oracle.named(routine).residual(before, (*before[:-1], result.unpack()), *options).max()


GEMM = [
    ((5, 3, 4), "gemm_item", {"GROUP": 8}),
    ((6, 4, 8), "gemm_team", {"LANES": 4, "TI": 3, "TJ": 2, "DEPTH": 4, "AHEAD": 0, "ROUNDS": 1}),
    ((6, 4, 8), "gemm_team", {"LANES": 2, "TI": 3, "TJ": 2, "DEPTH": 4, "AHEAD": 2, "ROUNDS": 4}),
    ((5, 7, 5), "gemm_team", {"LANES": 4, "TI": 2, "TJ": 3, "DEPTH": 3, "AHEAD": 3, "ROUNDS": 2}),
]


@on_devices
@with_types(("size", "kernel", "tunables"), GEMM)
def test_gemm(queue, dtype, rng, use, monkeypatch, size, kernel, tunables):
    use("gemm", kernel, **tunables)
    monkeypatch.setattr(launch, "FILL", 0)  # as few work-groups as ROUNDS asks for
    m, n, k = size
    a, b, c = random(rng, (NM, m, k), dtype), random(rng, (NM, k, n), dtype), random(rng, (NM, m, n), dtype)
    scalars = 0.75 - 0.5j if dtype.kind == "c" else 0.75
    for alpha, beta in ((1, 0), (scalars, -1)):
        A, B, C = transposed(a, VLEN, queue=queue), cla.pack(b, VLEN, queue=queue), cla.pack(c, VLEN, queue=queue)
        cla.gemm(A, B, C, alpha, beta)
        assert ratio("gemm", (a, b, c), C, alpha, beta) < oracle.THRESHOLD
        turned = a.swapaxes(1, 2)
        cla.gemm(cla.pack(turned, VLEN, queue=queue), transposed(b, VLEN, queue=queue), C, alpha, 0, "C")
        assert ratio("gemm", (turned, b, c), C, alpha, 0, "C") < oracle.THRESHOLD
    assert ran(queue, "gemm") == {kernel}


@on_devices
@pytest.mark.parametrize("size", [(9, 23, 7), (32, 32, 32)], ids=str)
def test_gemm_on_matrix_units(queue, rng, use, monkeypatch, size):
    use("gemm", "gemm_mma", LANES=4, DEPTH=4, WARPS=2, AHEAD=2, ROUNDS=2, TALL=0)
    monkeypatch.setattr(launch, "FILL", 0)
    m, n, k = size
    a, b, c = (random(rng, (NM, *shape), np.float64) for shape in ((m, k), (k, n), (m, n)))
    a[3] = np.nan
    for alpha, beta in ((1, 0), (0.75, -1)):
        A, B, C = (cla.pack(x, VLEN, queue=queue) for x in (a, b, c))
        got = cla.gemm(A, B, C, alpha, beta).unpack()
        others = np.arange(NM) != 3
        assert np.isnan(got[3]).all()
        before = a[others], b[others], c[others]
        assert oracle.named("gemm").residual(before, (*before[:2], got[others]), alpha, beta).max() < oracle.THRESHOLD
    assert ran(queue, "gemm") == ({"gemm_mma"} if "NVIDIA" in queue.device.platform.name else set())  # which refuse it


@on_devices
def test_a_zero_alpha_does_not_read(queue, rng, use):
    use("gemm", "gemm_item", GROUP=8)
    a, c = np.full((NM, 3, 3), np.nan), random(rng, (NM, 3, 3), np.float64)
    A, C = cla.pack(a, VLEN, queue=queue), cla.pack(c, VLEN, queue=queue)
    assert same_bits(cla.gemm(A, A, C, 0, 1).unpack(), c)


TRSM = [
    ((5, 3), "trsm_item", {"GROUP": 8}),
    ((6, 5), "trsm_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 3}),
    ((4, 6), "trsm_team", {"LANES": 2, "COLUMNS": 2, "TEAM": 3}),
    ((3, 1), "trsm_team", {"LANES": 4, "COLUMNS": 1, "TEAM": 1}),
]


@on_devices
@with_types(("size", "kernel", "tunables"), TRSM)
def test_trsm(queue, dtype, rng, use, size, kernel, tunables):
    use("trsm", kernel, **tunables)
    n, r = size
    a = dominant(rng, NM, n, n, dtype)
    for *options, alpha in (*"LLNU", 1), (*"RUNN", 1), (*"RLCN", -2), (*"LUTU", 2):
        scaled = a / (4 * n) if options[3] == "U" else a  # else the solution grows
        b = random(rng, (NM, n, r) if options[0] == "L" else (NM, r, n), dtype)
        X = cla.pack(b, VLEN, queue=queue)
        cla.trsm(poisoned(scaled, VLEN, queue=queue), X, *options, alpha)
        assert ratio("trsm", (scaled, b), X, *options, alpha) < oracle.THRESHOLD
    assert ran(queue, "trsm") == {kernel}


GETRF = [
    ((4, 3), "getrfnp_item", {"GROUP": 8}),
    ((6, 6), "getrfnp_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 3, "PANEL": 0}),
    ((6, 6), "getrfnp_team", {"LANES": 2, "COLUMNS": 2, "TEAM": 3, "PANEL": 1}),
    ((7, 5), "getrfnp_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 3, "PANEL": 0}),
    ((4, 7), "getrfnp_team", {"LANES": 4, "COLUMNS": 3, "TEAM": 3, "PANEL": 1}),
]


@on_devices
@with_types(("size", "kernel", "tunables"), GETRF)
def test_getrfnp(queue, dtype, rng, use, size, kernel, tunables):
    use("getrfnp", kernel, **tunables)
    a = dominant(rng, NM, *size, dtype)
    make_singular(a[4], 2)
    A = cla.pack(a, VLEN, queue=queue)
    info = cla.getrfnp(A)
    assert info.tolist() == [3 if q == 4 else 0 for q in range(NM)]
    assert ratio("getrfnp", (a,), A) < oracle.THRESHOLD
    assert same_bits(A.unpack()[:, 0], a[:, 0])
    A = cla.pack(a, VLEN, queue=queue)
    assert not cla.getrfnp(A, tiny=0.5).any()
    assert oracle.named("getrfnp").residual((a,), (A.unpack(),), tiny=0.5).max() < oracle.THRESHOLD
    assert ran(queue, "getrfnp") == {kernel}


def tried(name, *case):
    """Kernels of models in `.ci/run` too."""
    return (name, *case) if name in (*MODELS, "trsm") else exhaustive(name, *case)


TEAMS = [tried(name, k) for name in names() for k, x in named(name).search.kernels.items() if "COLUMNS" in x.tunables]
SEARCHES = [exhaustive(s) if s in {*names()} - {*MODELS} else s for s in choices.searches()]
KERNELS = [
    case
    for name in names()
    for kernel in (*named(name).search.kernels, f"{name}_batch")
    if kernel != "gemm_mma"  # which some devices have, for large matrices of doubles
    for case in (tried(name, kernel, own(name)), exhaustive(name, kernel, np.dtype(OTHER[own(name).char])))
]


@on_devices
@pytest.mark.parametrize(("name", "kernel", "dtype"), KERNELS)
def test_every_kernel_of_every_routine(queue, rng, use, name, kernel, dtype):
    """The first shape that a device is given, or any size, for all that is compiled in; one of the matrices fails."""
    row, judge, bad = named(name), oracle.named(name), 4
    found = (
        (sizes, vlen, choice)
        for vlen in (32, 1)  # some are for ordinary matrices
        for sizes in (dict(zip(row.letters, numbers, strict=False)) for numbers in ((6, 5, 7), (4, 3, 5), (3, 5, 4)))
        for choice in chain(choices.candidates(queue.device, row.search, tuple(sizes.values()), dtype, vlen), [{}])
        if choice.get("kernel", f"{name}_batch") == kernel  # some are for few registers
    )
    sizes, vlen, choice = next(found)
    if choice:
        use(name, **choice)
    for values in product(*(row.options[option] for option in row.compiled)):
        options = {option: letters[-1] for option, letters in row.allowed(dtype).items()}
        options |= dict(zip(row.compiled, values, strict=True))
        before = judge.operands(lambda m, n: random(rng, (NM, m, n), dtype), **sizes, **options)
        failed = judge.spoil(bad, 2, *before, **options) if "info" in row.outputs else 0
        packs = [argument(A, a, vlen=vlen, queue=queue) for A, a in zip(row.inputs, before, strict=True)]
        after, info = unpacked(row, packs, row.function(*packs, **options))
        good = np.arange(NM) != (bad if "info" in row.outputs else -1)
        if "info" in row.outputs:
            assert info.tolist() == [0 if q else failed for q in good]
        after = [a if a is None else a[good] for a in after]
        assert judge.residual([a[good] for a in before], after, **options).max() < oracle.THRESHOLD
        assert ran(queue, name) == ({kernel} if choice else set())


GRIDS = [name for name in names() if f"{name}_grid" in named(name).search.kernels]
BOTH = "gesv", "posv", "getrsnp", "potrs", "getri"  # factor and solve by the steps of others, or solve as others do


@on_devices
@pytest.mark.parametrize("n", [35, exhaustive(70)])
@pytest.mark.parametrize("name", [exhaustive(name) if name in BOTH else name for name in GRIDS])
def test_more_than_32_rows(queue, rng, monkeypatch, name, n):
    """Teams have larger matrices, in packs or in copies of them; one of the matrices is not finite, and one fails."""
    monkeypatch.setattr(choices, "is_cpu", lambda device: False)
    launch.plans(queue).known.clear()
    row, judge, bad = named(name), oracle.named(name), 4
    before = judge.operands(lambda m, n: random(rng, (NM, m, n), np.float64), *(n, 3, 3)[: len(row.letters)])
    failed = judge.spoil(bad, 2, *before) if "info" in row.outputs else 0
    before[0][6] = np.nan
    packs = [argument(A, a, vlen=VLEN, queue=queue) for A, a in zip(row.inputs, before, strict=True)]
    after, info = unpacked(row, packs, row.function(*packs))
    good = ~np.isin(np.arange(NM), [6, bad] if "info" in row.outputs else [6])
    if "info" in row.outputs:
        assert info[bad] == failed and not info[good].any()
    after = [a if a is None else a[good] for a in after]
    assert judge.residual([a[good] for a in before], after).max() < oracle.THRESHOLD
    assert ran(queue, name) == {f"{name}_grid"}
    launch.plans(queue).known.clear()


@on_devices
@pytest.mark.parametrize(("name", "kernel"), TEAMS)
def test_columns_of_no_matrix(queue, rng, use, name, kernel):
    """Two work-items with three columns each have two more than a matrix of four, and leave those alone."""
    row, judge, dtype = named(name), oracle.named(name), own(name)
    sizes = (4,) * len(row.letters)
    for choice in choices.candidates(queue.device, row.search, sizes, dtype, 32):
        if choice["kernel"] == kernel and choice["COLUMNS"] == 3 and choice["LANES"] == 32:
            use(name, **choice)
            before = judge.operands(lambda m, n: random(rng, (NM, m, n), dtype), *sizes)
            packs = [argument(A, a, vlen=32, queue=queue) for A, a in zip(row.inputs, before, strict=True)]
            after, _ = unpacked(row, packs, row.function(*packs))
            assert judge.residual(before, after).max() < oracle.THRESHOLD


FACTOR = [
    (3, "factor_line", {"GROUP": 8, "AHEAD": 0}),
    (2, "factor_line", {"GROUP": 8, "AHEAD": 1}),
    (3, "factor_team", {"LANES": 4, "COLUMNS": 1, "TEAM": 3, "AHEAD": 0}),
    (4, "factor_team", {"LANES": 2, "COLUMNS": 2, "TEAM": 2, "AHEAD": 1}),
    (3, "factor_team", {"LANES": 4, "COLUMNS": 1, "TEAM": 3, "AHEAD": 2}),
    (2, "factor_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 1, "AHEAD": 2}),
    (3, "factor_team", {"LANES": 2, "COLUMNS": 2, "TEAM": 2, "AHEAD": 1}),
    (3, "factor_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 2, "AHEAD": 3}),
    (3, "factor_team", {"LANES": 4, "COLUMNS": 1, "TEAM": 3, "AHEAD": 4}),
    (3, "factor_team", {"LANES": 2, "COLUMNS": 2, "TEAM": 2, "AHEAD": 4}),
    (3, "factor_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 2, "AHEAD": 5}),
    (3, "factor_team", {"LANES": 4, "COLUMNS": 1, "TEAM": 3, "AHEAD": 6}),
    (2, "factor_team", {"LANES": 4, "COLUMNS": 2, "TEAM": 1, "AHEAD": 6}),
    (3, "factor_warp", {"LANES": 4, "TEAM": 2, "AHEAD": 1}),
    (3, "factor_warp", {"LANES": 4, "TEAM": 4, "AHEAD": 2}),
    (2, "factor_warp", {"LANES": 4, "TEAM": 1, "AHEAD": 3}),
]
SOLVE = {1: {"LANES": 4, "RHS": 1, "AHEAD": 2, "AHEAD_UP": 3}, 3: {"LANES": 2, "RHS": 2, "AHEAD": 1, "AHEAD_UP": 1}}


@on_devices
@with_types(("b", "kernel", "tunables"), FACTOR)
def test_lines(queue, dtype, rng, use, b, kernel, tunables):
    use("factor", kernel, **tunables)
    for nrhs, solve_with in SOLVE.items():
        use("solve", "solve_team", **solve_with)
        for K in (1, 2, 5):
            blocks, rhs = lines(rng, NM, K, b, dtype), random(rng, (NM, K, b, nrhs), dtype)
            make_singular(blocks[1][4, 0], 1)
            T = cla.BlockTridiag(*blocks, vlen=VLEN, queue=queue)
            assert T.factor().tolist() == [2 if q == 4 else 0 for q in range(NM)]
            x, good = T.solve(rhs), np.arange(NM) != 4
            dense = reference.block_tridiagonal(*(a[good] for a in blocks))
            columns = (NM - 1, K * b, nrhs)
            found = reference.solve_ratio(dense, x[good].reshape(columns), rhs[good].reshape(columns))
            assert found < oracle.THRESHOLD
        assert ran(queue, "factor") == {kernel} and ran(queue, "solve") == {"solve_team"}


@on_devices
@with_types(("b", "team"), [(3, {}), (4, {"COLUMNS": 2, "TEAM": 2, "AHEAD": 1})])
def test_lines_with_an_eye_on_the_pivots(queue, dtype, rng, use, b, team):
    """thomas_solve.cl solves with such factors, with swapped rows too, by one work-item per line or by a team."""
    use("factor", "factor_team", LANES=4, COLUMNS=1, TEAM=b, AHEAD=0)
    if team:
        use("factor_watched", "factor_team", LANES=4, **team)
    use("solve", "solve_team", **SOLVE[3])
    blocks, rhs = lines(rng, NM, 5, b, dtype), random(rng, (NM, 5, b, 3), dtype)
    blocks[1][:] = np.roll(blocks[1], 1, axis=-1)
    make_singular(blocks[1][4, 0], 0)
    blocks[1][4, 0, :, 0] = 0
    T = cla.BlockTridiag(*blocks, vlen=VLEN, queue=queue, pivoting=True)
    good = np.arange(NM) != 4
    assert np.array_equal(T.factor() == 0, good)
    x, dense = T.solve(rhs), reference.block_tridiagonal(*(a[good] for a in blocks))
    columns = (NM - 1, 5 * b, 3)
    assert reference.solve_ratio(dense, x[good].reshape(columns), rhs[good].reshape(columns)) < oracle.THRESHOLD
    assert ran(queue, "factor") == {"factor_team"} and ran(queue, "solve") == {"solve_team"}
    for q, (info, smallest, growth, _) in enumerate(reference.watched_lu(A, b, pivoting=True) for A in dense):
        line = np.flatnonzero(good)[q]
        assert info == 0
        assert abs(T.report.growth[line] / growth - 1) < 1e-3
        assert abs(T.report.smallest[line] / smallest - 1) < 1e-3


@on_devices
@pytest.mark.parametrize("options", [{"pivots": "perturb"}, {"pivots": "shift", "pivoting": True}], ids=str)
def test_teams_do_about_pivots_what_one_work_item_does(queue, rng, use, options):
    """Teams watch pivots as one work-item does, in lines with padding too."""
    b, reports, solutions = 3, [], []
    use("factor", "factor_team", LANES=4, COLUMNS=1, TEAM=b, AHEAD=0)
    use("solve", "solve_team", **SOLVE[1])
    blocks, rhs = lines(rng, NM, 5, b, np.float64), random(rng, (NM, 5, b), np.float64)
    blocks[1][:] -= (6 * b - 2) * np.eye(b)
    make_singular(blocks[1][4, 0], 1)
    blocks[1][6, 3], blocks[0][6, 2] = 0, 0
    for q in range(0, NM, 3):  # ends with its third block
        blocks[0][q, 2:], blocks[2][q, 2:], blocks[1][q, 3:] = 0, 0, np.eye(b)
    rows = np.arange(12 * 5).reshape(3, VLEN, 5).swapaxes(1, 2)
    rows[:, 3:] = np.where(np.arange(12).reshape(3, 1, VLEN) % 3 == 0, -1, rows[:, 3:])
    rows[2, :, NM % VLEN :] = -1
    for team in ({}, {"COLUMNS": 1, "TEAM": 3, "AHEAD": 1}, {"COLUMNS": 3, "TEAM": 1, "AHEAD": 0}):
        if team:
            use("factor_watched", "factor_team", LANES=4, **team)
        T = cla.BlockTridiag(*blocks, vlen=VLEN, queue=queue)
        packed = T.lower, T.diag, T.upper
        T = cla.BlockTridiag.from_packed(*packed, np.arange(4) * 5, rows.reshape(-1, VLEN), NM, queue=queue, **options)
        T.factor()
        x = pyopencl.array.to_device(queue, np.zeros((12 * 5, b, 1)))
        right = np.concatenate([rhs, rhs[:1]]).reshape(x.shape)
        T.solve_rows(pyopencl.array.to_device(queue, right), x)
        reports.append(T.report)
        solutions.append(x.get())
    for report, x in zip(reports[1:], solutions[1:], strict=True):
        assert np.array_equal(report.info, reports[0].info) and np.array_equal(report.replaced, reports[0].replaced)
        np.testing.assert_allclose(report.growth, reports[0].growth, 1e-9)
        np.testing.assert_allclose(report.smallest, reports[0].smallest, 1e-9, 1e-9)
        np.testing.assert_allclose(x, solutions[0], 1e-5)


@on_devices
def test_lines_of_any_rows(queue, rng, use):
    """Rows in no order, lines of several lengths: nothing that `describe_lines` could shorten."""
    use("factor", "factor_team", **FACTOR[2][2])
    use("solve", "solve_team", **SOLVE[1])
    b, lengths = 3, [5, 2, 4, 1, 3]
    order = rng.permutation(sum(lengths) + 2)
    (lower, diag, upper), rows = lines(rng, 5, 5, b, np.float64), np.full((2 * 5, VLEN), -1)
    x, expected = np.zeros((len(order), b, 1)), []
    for q, length in enumerate(lengths):
        mine = order[sum(lengths[:q]) :][:length]
        rows[q // VLEN * 5 :][:length, q % VLEN] = mine
        diag[q, length:], lower[q, length - 1 :], upper[q, length - 1 :] = np.eye(b), 0, 0
        dense = reference.block_tridiagonal(*(a[q : q + 1] for a in (lower, diag, upper)))[0]
        expected.append((mine, dense[: length * b, : length * b]))
    packed = cla.BlockTridiag(lower, diag, upper, vlen=VLEN, queue=queue)
    blocks = packed.lower, packed.diag, packed.upper
    T = cla.BlockTridiag.from_packed(*blocks, np.arange(3) * 5, rows, 5, queue=queue)
    T.factor()
    rhs = random(rng, x.shape, np.float64)
    device = [pyopencl.array.to_device(queue, a) for a in (rhs, x)]
    for _ in range(2):
        T.solve_rows(*device)
    x = device[1].get()
    for mine, dense in expected:
        assert reference.solve_ratio(dense[None], x[mine].reshape(1, -1, 1), rhs[mine].reshape(1, -1, 1)) < 30
    assert not x[order[sum(lengths) :]].any()


@on_devices
@with_types(("b",), [(5,), (1,)])
def test_parts_of_lines_with_inverses(queue, dtype, rng, use, b):
    use("factor", "factor_line", GROUP=8, AHEAD=0)
    use("solve", "solve_team", LANES=4, RHS=2, AHEAD=1, AHEAD_UP=1)
    blocks, rhs = lines(rng, NM, 10, b, dtype), random(rng, (NM, 10, b, 3), dtype)
    ring = np.arange(NM) % 2 == 0
    closed = [np.concatenate([a, random(rng, (NM, 1, b, b), dtype)], 1) for a in (blocks[0], blocks[2])]
    T = cla.BlockTridiag(closed[0], blocks[1], closed[1], VLEN, queue=queue, parts=3, periodic=ring)
    assert not T.factor().any()
    assert ran(queue, "factor") == {"factor_line"}
    dense = reference.block_tridiagonal(*blocks)
    dense[ring, :b, -b:] += closed[0][ring, -1]
    dense[ring, -b:, :b] += closed[1][ring, -1]
    x = T.solve(rhs)
    columns = NM, 10 * b, 3
    assert reference.solve_ratio(dense, x.reshape(columns), rhs.reshape(columns)) < oracle.THRESHOLD


MOVES = [(4, 6, 32), (2, 6, 32), (4, 4, 8)]  # lanes of a work-group, elements of each matrix, work-items


@on_devices
@pytest.mark.parametrize("shape", [(11, 3, 2), (9, 5, 4), (8, 7, 1), (5, 1, 6), (3, 40, 3)])
@with_types(("move",), [(move,) for move in MOVES])
def test_moves_through_local_memory(queue, dtype, rng, use, shape, move):
    nm, m, n = shape
    for routine in ("pack", "unpack"):
        use(routine, f"{routine}_tiled", **dict(zip(("LANES", "ELEMENTS", "GROUP"), move, strict=True)))
    a = random(rng, shape, dtype)
    source = pyopencl.array.to_device(queue, a)
    A = cla.pack(source, VLEN)
    assert same_bits(download(A.data), reference.pack(a, VLEN))
    target = pyopencl.array.zeros_like(source)
    assert same_bits(A.unpack(out=target).get(), a)
    lanes_last = pyopencl.array.to_device(queue, a.transpose(1, 2, 0).copy())
    T = cla.Pack.empty(nm, n, m, dtype, VLEN, queue=queue).T
    assert same_bits(cla.pack(lanes_last.transpose((2, 0, 1)), out=T).unpack(), a)
    columns = pyopencl.array.to_device(queue, a.swapaxes(1, 2).copy()).transpose((0, 2, 1))
    target = pyopencl.array.zeros_like(columns)
    assert same_bits(download(cla.pack(columns, VLEN).unpack(out=target)), a)
    assert ran(queue, "pack") == {"pack_tiled"} and ran(queue, "unpack") == {"unpack_tiled"}


def small_gpu(**changes):
    """A device that nobody knows."""
    known = {"name": "Some GPU 9", "type": cl.device_type.GPU, "max_work_group_size": 256, "local_mem_size": 2**15}
    return type("Device", (), known | changes)()


@pytest.mark.parametrize("dtype", [np.dtype("d"), np.dtype("F")], ids="dc")
@pytest.mark.parametrize("vlen", [1, 3, 8, 32, 64])
def test_unknown_devices_get_something_that_fits(dtype, vlen):
    device = small_gpu()
    for search in choices.searches().values():
        for n in (0, 1, 2, 3, 7, 13, search.largest, search.largest + 1):
            size = (n,) * len(search.sizes[0])
            found = choices.choose(device, search, size, dtype, vlen)
            assert choices.fits(device, search, found, size, dtype, vlen)
            if found == {} and 0 < n <= min(7, search.largest) and dtype.kind == "f" and vlen >= 8:
                some = search.candidates(size, dtype, choices.lane_counts(vlen))
                assert not any(some), (search.name, n)  # there is no kernel for this size


def test_results_of_the_user_come_first(tmp_path, monkeypatch):
    device, size, dtype = small_gpu(), (4, 4, 4), np.dtype(np.float32)
    monkeypatch.setattr(choices, "SHIPPED", tmp_path)
    monkeypatch.setattr(choices.platformdirs, "user_cache_dir", lambda name: str(tmp_path / "user" / name))
    choices.results.cache_clear()
    gemm = choices.searches()["gemm"]
    default = choices.choose(device, gemm, size, dtype, 32)
    shipped, mine = {"kernel": "gemm_item", "GROUP": 128}, {"kernel": "gemm_item", "GROUP": 32}
    file = tmp_path / choices.file_name(device)
    assert file.name == "some-gpu-9.json"
    assert choices.reasoned(device, gemm, size, dtype, 32)[1].startswith("the first of the candidates")
    for text, expected in (
        ("{not json", default),
        ('{"results": []}', default),
        ('{"results": [["gemm float32 4 4 4", {}]]}', default),
        ('"results"', default),
        ("[" * 10**5, default),
        (json.dumps({"results": {"gemm float32 4 4 4": shipped}}), shipped),
        (json.dumps({"results": {"gemm float32 4 4 4": {"kernel": "gemm_item", "GROUP": 4096}}}), default),
    ):
        file.write_text(text)
        choices.results.cache_clear()
        assert choices.choose(device, gemm, size, dtype, 32) == expected
    for folder in (tmp_path, tmp_path / "cuda"):
        folder.mkdir(exist_ok=True)
        choices.write(folder / file.name, {}, {"gemm float32 4 4 4": shipped})
    tune.save(type("Device", (), vars(type(device)) | {"driver_version": "1"})(), {"gemm float32 4 4 4": mine})
    choices.results.cache_clear()
    chosen, reason = choices.reasoned(device, gemm, size, dtype, 32)
    assert chosen == mine and str(choices.user_file(device)) in reason
    choices.results.cache_clear()


def test_results_for_other_kernels_are_ignored(tmp_path, monkeypatch):
    """In the user's file, with one warning; results of kernels that are as they were still count."""
    device, dtype = small_gpu(driver_version="1"), np.dtype(np.float32)
    gemm, trsm = (choices.searches()[name] for name in ("gemm", "trsm"))
    default = choices.choose(device, gemm, (4, 4, 4), dtype, 32)
    mine = {"gemm float32 4 4 4": {"kernel": "gemm_item", "GROUP": 32}}
    mine["trsm float32 4 4"] = {"kernel": "trsm_item", "GROUP": 48}
    monkeypatch.setattr(choices, "user_file", lambda device: tmp_path / "user.json")
    tune.save(device, mine)
    content = choices.read(tmp_path / "user.json")
    assert content["results"] == mine and {*content["sources"]} == {"gemm", "trsm"}
    digests = content["sources"]
    for change in ({"sources": digests | {"gemm": "0"}}, {"format": None}, {"sources": None}, {"sources": {}}):
        (tmp_path / "user.json").write_text(json.dumps(content | change))
        choices.results.cache_clear()
        with pytest.warns(RuntimeWarning, match="user.json are of other .* such as those of gemm") as told:
            assert choices.choose(device, gemm, (4, 4, 4), dtype, 32) == default
            holds = choices.choose(device, trsm, (4, 4), dtype, 32) == mine["trsm float32 4 4"]
        assert len(told) == 1 and holds == (change == {"sources": digests | {"gemm": "0"}})
    (tmp_path / "user.json").write_text(json.dumps(content | {"sources": digests | {"gemm": "0"}}))
    tune.save(device, {"gemm float32 5 5 5": mine["gemm float32 4 4 4"]})  # and the old one is gone
    found = choices.read(tmp_path / "user.json")["results"]
    assert {*found} == {"gemm float32 5 5 5", "trsm float32 4 4"}
    choices.results.cache_clear()


def test_shipped_results_are_of_these_kernels():
    """If not: tune them again, or if they hold `python -m compactla.gpu.tuning.refresh`."""
    assert all((SOURCES / file).is_file() for search in choices.searches().values() for file in search.files)
    assert refresh.shipped() and not {file.name: old for file in refresh.shipped() if (old := refresh.outdated(file))}


def test_digests_are_of_code(tmp_path):
    def digest(kernel, header):
        (tmp_path / "kernel.cl").write_text(kernel)
        (tmp_path / "header.h").write_text(header)
        return digest_of_code('#include "kernel.cl"\n', tmp_path)

    known = digest('#include "header.h"\nx = ONE / 2;\n', "#define ONE 1\n#define TWO 2\n")
    assert known == digest(
        '/* a\n comment */\n\n#include "header.h" // one\n  x  = ONE / 2;', "#define ONE \\\n  1\n\n#define TWO 2"
    )
    assert known != digest('#include "header.h"\nx = ONE / 2;\n', "#define ONE 1 #define TWO 2\n")
    assert known != digest('#include "header.h"\nx = ONE / 3;\n', "#define ONE 1\n#define TWO 2\n")


@on_devices
def test_overrides_are_of_kernels_that_are_there(queue):
    good = {"kernel": "gemm_item", "GROUP": 32}
    with pytest.raises(TypeError, match="queue is None, must be"), override(None, "gemm", good):
        pass
    for name, choice, message in (
        ("gemmm", good, "name is 'gemmm', must be one of axpy, "),
        ("gemm", {"kernel": "gemm_item"}, r"must be {} or a kernel of gemm: gemm_item with GROUP; gemm_team with "),
        ("gemm", good | {"GROUP": 0}, "choice is {'kernel': 'gemm_item', 'GROUP': 0}"),
        ("gemm", None, "choice is None"),
        ("geev", good, "there is none"),
        ("factor", {"kernel": "factor_line", "GROUP": 32, "AHEAD": 1}, "name is 'factor', must be one of axpy, "),
    ):
        with pytest.raises(ValueError, match=message), override(queue, name, choice):
            pass


@on_devices
def test_an_override_ends(queue, rng):
    """And the one before it comes back; sizes that it is not for run what they would run without."""
    dtype, gemm = np.dtype(np.float64), choices.searches()["gemm"]
    usual = choices.choose(queue.device, gemm, (4, 4, 4), dtype, VLEN)
    item = {"kernel": "gemm_item", "GROUP": 8}
    with override(queue, "gemm", item):
        with override(queue, "gemm", item | {"GROUP": 4}):
            A = cla.pack(random(rng, (NM, 4, 4), dtype), VLEN, queue=queue)
            cla.gemm(A, A, cla.Pack.zeros(NM, 4, 4, vlen=VLEN, queue=queue))
            ran = [plan.choice for plan in launch.plans(queue).known.values() if plan]
            assert [choice["GROUP"] for choice in ran if choice["kernel"] == "gemm_item"] == [4]
            assert choices.choose(queue.device, gemm, (40, 4, 4), dtype, VLEN) == {}
        assert not launch.plans(queue).known
        assert choices.choose(queue.device, gemm, (4, 4, 4), dtype, VLEN) == item
    assert choices.choose(queue.device, gemm, (4, 4, 4), dtype, VLEN) == usual


GOOD = {
    "gemm": {"kernel": "gemm_team", "LANES": 4, "TI": 2, "TJ": 2, "DEPTH": 4, "AHEAD": 1, "ROUNDS": 1},
    "trsm": {"kernel": "trsm_team", "LANES": 4, "COLUMNS": 2, "TEAM": 2},
    "factor": {"kernel": "factor_team", "LANES": 4, "COLUMNS": 2, "TEAM": 2, "AHEAD": 0},
    "pack": {"kernel": "pack_tiled", "LANES": 4, "ELEMENTS": 16, "GROUP": 32},
}
BAD = {
    "a kernel of another version": ("gemm", {"kernel": "gemm_warp"}),
    "a kernel of another routine": ("gemm", {"kernel": "trsm_team"}),
    "no kernel": ("gemm", {"kernel": None}),
    "a list for a kernel": ("gemm", {"kernel": ["gemm_team"]}),
    "one more tunable": ("gemm", {"BANKS": 3}),
    "a string": ("gemm", {"TI": "2"}),
    "code": ("gemm", {"TI": "2 -DK=1"}),
    "a fraction": ("gemm", {"TI": 2.0}),
    "a bool": ("gemm", {"TI": True}),
    "a list": ("gemm", {"TI": [2]}),
    "null": ("gemm", {"TI": None}),
    "zero": ("gemm", {"TI": 0}),
    "a negative number": ("gemm", {"LANES": -4}),
    "a large number": ("gemm", {"DEPTH": 10**30}),
    "too few columns": ("trsm", {"COLUMNS": 1}),
    "too small a team": ("trsm", {"TEAM": 1}),
    "too few columns of blocks": ("factor", {"COLUMNS": 1}),
    "too much to move": ("pack", {"GROUP": 1}),
}


@pytest.mark.parametrize(("routine", "changes"), BAD.values(), ids=BAD)
def test_what_kernels_do_not_know_is_not_chosen(tmp_path, monkeypatch, routine, changes):
    """Anything may be in a user's file: with wrong teams results would be wrong."""
    device, dtype, search = small_gpu(), np.dtype(np.float32), choices.searches()[routine]
    size = (4,) * len(search.sizes[0])
    name, good = choices.key(routine, size, dtype), GOOD[routine]
    assert choices.is_choice(good, name) and choices.is_choice({}, name)
    missing = {key: good[key] for key in list(good)[:-1]}
    default = choices.choose(device, search, size, dtype, 32)
    monkeypatch.setattr(choices, "user_file", lambda device: tmp_path / "user.json")
    for bad in (good | changes, missing, {"GROUP": 8}, [good], "gemm_team", 3, True, None):
        choices.write(tmp_path / "user.json", {}, {name: bad, f"{routine} x": good, routine: good})
        choices.results.cache_clear()
        assert choices.choose(device, search, size, dtype, 32) == default
    choices.results.cache_clear()


def test_shipped_results_are_candidates_that_fit():
    for file in choices.SHIPPED.glob("*.json"):
        for key, chosen in json.loads(file.read_text())["results"].items():
            routine, dtype, *size = key.split()
            dtype, _, stored = dtype.partition(":")
            assert stored in ("", "beta", *STORAGE)
            assert routine in choices.searches() and choices.is_choice(chosen, key)
            size = tuple(map(int, size))
            device = small_gpu(max_work_group_size=1024, local_mem_size=2**16)
            assert choices.fits(device, choices.searches()[routine], chosen, size, np.dtype(dtype), 32)


def test_arrays_left_in_memory_are_seen():
    log = "    {} bytes stack frame, {} bytes spill stores, 0 bytes spill loads\nptxas info    : Used 40 registers"
    assert tune.left_in_memory(log.format(0, 0)) == "" == tune.left_in_memory(log.format(16, 16))
    assert "320 bytes" in tune.left_in_memory(log.format(320, 0))


@on_devices
def test_tuner_takes_the_fastest_that_is_right(queue, monkeypatch):
    monkeypatch.setattr(tune, "ROUNDS", 2)
    good = {"kernel": "gemm_item", "GROUP": 8}
    bad = {"kernel": "gemm_team", "LANES": 4, "TI": 1, "TJ": 1, "DEPTH": 3, "AHEAD": 0, "ROUNDS": 1, "M": 2}
    key = choices.key("gemm", (3, 3, 3), np.dtype(np.float32))
    monkeypatch.setitem(choices.results(queue.device)["gemm"], key, {})  # what it was is put back
    with tune.Tuner(queue.device, 2**12, builders=0) as tuner:
        found = list(tuner.tune("gemm", (3, 3, 3), np.float32, 4, candidates=[bad, good]))
        assert [bool(r.remark) for r in found] == [True, False]
        assert 0 < found[1].seconds < 1 and found[1].fraction > 0
        assert choices.results(queue.device)["gemm"][key] == good


@on_devices
@pytest.mark.parametrize("storage", list(STORAGE))
def test_tuner_for_factors_in_smaller_types(queue, monkeypatch, storage):
    monkeypatch.setattr(tune, "ROUNDS", 1)
    monkeypatch.setattr(filling, "BLOCKS_A_LINE", 3)
    candidate = {"kernel": "solve_team", "LANES": 4, "RHS": 1, "AHEAD": 1, "AHEAD_UP": 1}
    key = choices.key("solve", (2, 1), np.dtype(np.float64), storage)
    monkeypatch.setitem(choices.results(queue.device)["solve"], key, {})  # what it was is put back
    solve = choices.searches()["solve"]
    plain = choices.choose(queue.device, solve, (2, 1), np.dtype(np.float64), 4)
    with tune.Tuner(queue.device, 2**12, builders=0) as tuner:
        (found,) = tuner.tune("solve", (2, 1), np.float64, 4, candidates=[candidate], storage=storage)
    assert found.remark == "" and choices.results(queue.device)["solve"][key] == candidate
    assert choices.choose(queue.device, solve, (2, 1), np.dtype(np.float64), 4, storage) == candidate
    assert choices.choose(queue.device, solve, (2, 1), np.dtype(np.float64), 4) == plain


@on_devices
@pytest.mark.parametrize("routine", SEARCHES)
def test_tuner_knows_every_routine(queue, routine, monkeypatch):
    monkeypatch.setattr(tune, "ROUNDS", 1)
    monkeypatch.setattr(filling, "BLOCKS_A_LINE", 3)
    before = {name: dict(choices.results(queue.device)[name]) for name in choices.searches()}
    with tune.Tuner(queue.device, 2**12, builders=0) as tuner:
        for part in ("factor", routine):
            search = choices.searches()[part]
            size = next(size for size in search.sizes if size[0] == 2)
            some = list(choices.candidates(queue.device, search, size, np.dtype("d"), 4))
            found = list(tuner.tune(part, size, np.float64, 4, candidates=some[:1]))
            assert [r.remark for r in found] == [""] and found[0].fraction > 0
    choices.results(queue.device).clear()
    choices.results(queue.device).update(before)
    launch.plans(queue).known.clear()


@on_devices
def test_a_tuner_that_fails_leaves_what_lines_are_few(queue):
    few = gpu_lines.FEW
    with pytest.raises(MemoryError), tune.counted_as(queue, "factor_few"):
        assert gpu_lines.FEW != few
        raise MemoryError
    assert gpu_lines.FEW == few
