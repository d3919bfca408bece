"""Programs that tests/test_petsc.py runs with a Python that has petsc4py, on each of some ranks."""

import os
import sys
import traceback
import warnings
from importlib.resources import files

import numpy as np
import scipy.sparse
from petsc4py import PETSc

import compactla as cla
from compactla.petsc import LinePC, own_block
from systems import convection_diffusion, scattered

NX, NY, B = 12, 16, 3
COMM = PETSc.COMM_WORLD
TYPE = "compactla.petsc.LinePC"


def petsc_matrix(M, kind="aij", rows=None):
    """A matrix of which this rank owns the block rows `rows`; default: as many as the others."""
    M = M.tocsr()
    n, b = M.shape[0], B
    first, last = rows or (n // b * COMM.rank // COMM.size, n // b * (COMM.rank + 1) // COMM.size)
    part = M[first * b : last * b]
    A = PETSc.Mat().create(COMM)
    A.setSizes([((last - first) * b, n)] * 2)
    A.setType(kind)
    A.setBlockSize(b)
    A.setUp()
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    if kind == "sbaij":
        A.setOption(PETSc.Mat.Option.IGNORE_LOWER_TRIANGULAR, True)
    for i in range(part.shape[0]):
        row = slice(part.indptr[i], part.indptr[i + 1])
        A.setValues([first * b + i], part.indices[row], part.data[row])
    A.assemble()
    return A


def vectors(A, seed=0):
    """A random vector, and the part of it that this rank owns."""
    x, y = A.createVecs()
    whole = np.random.default_rng(seed).uniform(-1, 1, A.getSize()[0])
    x.setArray(whole[slice(*x.getOwnershipRange())])
    return x, y


def solver(A, prefix, **options):
    """A KSP with these options."""
    database = PETSc.Options()
    settings = {"ksp_type": "gmres", "ksp_pc_side": "right", "ksp_rtol": 1e-10, "ksp_gmres_restart": 50}
    for name, value in ({**settings, "pc_type": "python", "pc_python_type": TYPE} | options).items():
        database[f"{prefix}_{name}"] = value
    ksp = PETSc.KSP().create(COMM)
    ksp.setOptionsPrefix(f"{prefix}_")
    ksp.setOperators(A)
    ksp.setFromOptions()
    ksp.setUp()
    return ksp


def same(y, expected):
    np.testing.assert_array_equal(y.getArray(readonly=True), expected)


def own_lines():
    """Lines of the rank's own part of `convection_diffusion`, of which no line is cut."""
    return np.arange(NX * NY // COMM.size).reshape(-1, NY)


def test_apply():
    """The PC is the line preconditioner of the rank's diagonal block, for every type of matrix."""
    M, _ = convection_diffusion(NX, NY, B)
    for kind in ("aij", "baij"):
        A = petsc_matrix(M, kind)
        pc = solver(A, kind).pc
        own = own_block(A)
        first, last = (i for i in A.getOwnershipRange())
        assert abs(own - M.tocsr()[first:last, first:last]).sum() == 0
        P = cla.LinePreconditioner(own, own_lines(), B)
        x, y = vectors(A)
        pc.apply(x, y)
        same(y, P @ x.getArray())
    symmetric, _ = convection_diffusion(NX, NY, B, wind=0)
    A = petsc_matrix(symmetric, "sbaij")
    x, y = vectors(A)
    solver(A, "sbaij").pc.apply(x, y)
    same(y, cla.LinePreconditioner(own_block(petsc_matrix(symmetric)), own_lines(), B) @ x.getArray())


def test_transpose_and_several_vectors():
    M, _ = convection_diffusion(NX, NY, B)
    A = petsc_matrix(M)
    pc = solver(A, "several").pc
    x, y = vectors(A, 1)
    z, w = vectors(A, 2)
    for _ in range(2):
        pc.apply(x, y)
        pc.applyTranspose(z, w)
        assert abs(y.dot(z) - x.dot(w)) < 1e-12 * x.norm() * z.norm()
        A.scale(2)  # and the factors must follow
        pc.setUp()
    n = (A.getLocalSize()[0], None)
    X, Y = (PETSc.Mat().createDense((n, 3), comm=COMM) for _ in range(2))
    for D in (X, Y):
        D.setUp()
    X.getDenseArray()[:] = np.random.default_rng(COMM.rank).uniform(-1, 1, X.getDenseArray().shape)
    X.assemble()
    Y.assemble()
    pc.matApply(X, Y)
    np.testing.assert_array_equal(Y.getDenseArray(), pc.getPythonContext().P @ X.getDenseArray())


def test_solve_and_reuse():
    """New values: the symbolic work is not done again; another pattern: it is."""
    M, _ = convection_diffusion(NX, NY, B)
    A = petsc_matrix(M)
    ksp = solver(A, "reuse")
    x, b = vectors(A)
    solution = x.duplicate()
    A.mult(x, b)
    ksp.solve(b, solution)
    assert ksp.getConvergedReason() > 0
    assert (solution - x).norm() < 1e-7 * x.norm()
    steps = ksp.getIterationNumber()
    P = ksp.pc.getPythonContext().P
    A.shift(1.0)
    A.mult(x, b)
    ksp.solve(b, solution)
    assert ksp.pc.getPythonContext().P is P
    assert (solution - x).norm() < 1e-7 * x.norm()
    y = x.duplicate()
    ksp.pc.apply(x, y)
    same(y, cla.LinePreconditioner(own_block(A), own_lines(), B) @ x.getArray())
    first = A.getOwnershipRange()[0]
    A.setValue(first, first + 2 * B * NY, 0.5)
    A.assemble()
    A.mult(x, b)
    ksp.solve(b, solution)
    assert ksp.pc.getPythonContext().P is not P
    assert (solution - x).norm() < 1e-7 * x.norm()
    jacobi = solver(A, "jacobi", pc_type="pbjacobi")
    jacobi.solve(b, solution)
    assert steps < jacobi.getIterationNumber() / 3


def test_made_anew():
    """P is made anew for other options, blocks of another size, and after a reset, for another matrix too."""
    M, _ = convection_diffusion(NX, NY, B)
    A, scalar = petsc_matrix(M), petsc_matrix(M)
    scalar.setBlockSize(1)
    context, ksp = LinePC(), PETSc.KSP().create(COMM)
    ksp.setOptionsPrefix("anew_")
    ksp.setOperators(A)
    ksp.pc.setType("python")
    ksp.pc.setPythonContext(context)
    ksp.setUp()
    x, y = vectors(A)
    made = [context.P]
    for value in ("perturb", "perturb", "shift"):
        PETSc.Options()["anew_pc_line_pivots"] = value
        ksp.setFromOptions()
        ksp.pc.apply(x, y)  # whose values are the same, so that PETSc sets nothing up
        made.append(context.P)
    assert made[0] is not made[1] is made[2] is not made[3]
    PETSc.Options()["anew_pc_python_type"] = TYPE  # of which each call makes a context
    ksp.setFromOptions()
    ksp.pc.apply(x, y)
    context = ksp.pc.getPythonContext()
    assert context.P.block_size == B
    ksp.setOperators(scalar)
    ksp.setUp()
    assert context.P.block_size == 1
    ksp.reset()
    assert context.P is None
    larger = petsc_matrix(convection_diffusion(NX, 2 * NY, B)[0])
    ksp.setOperators(larger)
    x, y = vectors(larger)
    ksp.pc.applyTranspose(x, y)
    assert context.P.shape == (larger.getLocalSize()[0],) * 2
    ksp.destroy()


def test_sherman5():
    """GMRES takes as many iterations as on the command line, with given lines and with those that are found."""
    file = files("compactla") / "data" / "sherman5_b3.npz"
    with np.load(file) as system:
        A = petsc_matrix(scipy.sparse.bsr_array((system["data"], system["indices"], system["indptr"])))
        whole, lines = system["rhs"], len(system["lines"])
    x, b = A.createVecs()
    b.setArray(whole[slice(*b.getOwnershipRange())])
    steps = {}
    for name in (file, "auto"):
        ksp = solver(A, "sherman5", pc_line_lines=name, ksp_rtol=1e-8)
        ksp.solve(b, x)
        assert ksp.getConvergedReason() > 0
        steps[name] = ksp.getIterationNumber()
        if COMM.size == 1 and name == file:
            assert len(ksp.pc.getPythonContext().P.info) == lines
    if COMM.size == 1:  # two ranks cut the lines
        assert abs(steps[file] - 136) <= 2
        assert steps["auto"] <= 1.1 * steps[file]


def test_options(folder):
    """The context has what the database says, behind its prefix."""
    M, lines = convection_diffusion(NX, NY, B)
    A = petsc_matrix(M)
    A.setBlockSize(1)
    x, y = vectors(A)
    # a file whose lines go across, and over the border of the ranks
    file = f"{folder}/lines.npy"
    if not COMM.rank:
        np.save(file, lines.T)
    COMM.barrier()
    ksp = solver(A, "file", pc_line_block_size=B, pc_line_lines=file, pc_line_threads=1, pc_line_vlen=2)
    P = ksp.pc.getPythonContext().P
    assert (P.threads, P.vlen) == (1, 2)
    ksp.pc.apply(x, y)
    same(y, cla.LinePreconditioner(own_block(A), own_lines().T, B, vlen=2) @ x.getArray())
    found = solver(A, "none", pc_line_block_size=B, pc_line_anisotropy=1e6).pc.getPythonContext().P
    assert len(found.info) == NX * NY // COMM.size
    long = solver(A, "long", pc_line_block_size=B, pc_line_min_length=NY + 1).pc.getPythonContext().P
    assert len(long.info) == NX * NY // COMM.size
    for name, options in (("small", {"storage": "float32"}), ("swap", {"pivots": "perturb", "pivoting": True})):
        ksp = solver(A, name, pc_line_block_size=B, **{f"pc_line_{option}": given for option, given in options.items()})
        ksp.pc.apply(x, y)
        P = ksp.pc.getPythonContext().P
        same(y, cla.LinePreconditioner(own_block(A), own_lines(), B, **options) @ x.getArray())
        assert (P.report.replaced is None) == (name == "small")


def test_sweeps():
    """An option of sweeps makes the PC that relaxation, and its adjoint the transpose."""
    M, _ = convection_diffusion(NX, NY, B)
    A = petsc_matrix(M)
    x, y = vectors(A)
    given = {"scheme": "gauss-seidel"}, {"sweeps": 2}, {"damping": 0.7}, {"scheme": "symmetric", "sweeps": 2}
    for i, options in enumerate(given):
        ksp = solver(A, f"sweeps{i}", **{f"pc_line_{option}": value for option, value in options.items()})
        S = cla.LineRelaxation(own_block(A), own_lines(), B, **options)
        ksp.pc.apply(x, y)
        same(y, S @ x.getArray())
        ksp.pc.applyTranspose(x, y)
        same(y, S.rmatvec(x.getArray()))
        assert x.norm() > 0  # which is left as it was
        assert isinstance(ksp.pc.getPythonContext().P, cla.LineRelaxation)


def test_smoother_of_multigrid():
    """Lines smooth on all levels of GAMG; a rank may have no rows on some."""
    M, _ = convection_diffusion(NX, NY, B, wind=0)
    A = petsc_matrix(M)
    x, b = vectors(A)
    A.mult(x, b)
    solution, steps = x.duplicate(), {}
    smoother = {"pc_type": "python", "pc_python_type": TYPE, "ksp_type": "richardson", "ksp_max_it": 1}
    for scheme in ("jacobi", "symmetric"):
        line = {"pc_line_scheme": scheme, "pc_line_damping": 0.8 if scheme == "jacobi" else 1}
        levels = {f"mg_levels_{name}": value for name, value in (smoother | line).items()}
        ksp = solver(A, scheme, ksp_type="cg", ksp_pc_side="left", pc_type="gamg", pc_gamg_coarse_eq_limit=20, **levels)
        ksp.solve(b, solution)
        assert ksp.getConvergedReason() > 0
        assert (solution - x).norm() < 1e-7 * x.norm()
        steps[scheme] = ksp.getIterationNumber()
    assert steps["symmetric"] <= steps["jacobi"] < 40


def test_opencl():
    M, _ = convection_diffusion(NX, NY, B)
    A = petsc_matrix(M)
    ksp = solver(A, "opencl", pc_line_device="opencl")
    P = ksp.pc.getPythonContext().P
    assert P.queue is not None
    x, y = vectors(A)
    ksp.pc.apply(x, y)
    same(y, P @ x.getArray())


def test_lines_of_the_program():
    """Given lines, and ranks that own different numbers of rows, or none."""
    lengths = [1, 7, 3, 3, 12, 1, 5, 7, 2]
    M, lines = scattered(np.random.default_rng(0), lengths, B, np.float64)
    order = np.concatenate(lines)
    rows = (order[:, None] * B + np.arange(B)).ravel()
    M = M.tocsr()[rows][:, rows]  # now lines are one after the other
    bounds = np.cumsum([0, *lengths])
    for split in (4, 9):
        first, last = (0, split) if not COMM.rank else (split, 9)
        if COMM.size == 1:
            first, last = 0, 9
        A = petsc_matrix(M, rows=(int(bounds[first]), int(bounds[last])))
        own = [np.arange(bounds[k], bounds[k + 1]) - bounds[first] for k in range(first, last)]
        ksp = PETSc.KSP().create(COMM)
        ksp.setOperators(A)
        ksp.pc.setType("python")
        ksp.pc.setPythonContext(LinePC(own))
        ksp.setUp()
        x, y = vectors(A)
        ksp.pc.apply(x, y)
        if own:
            same(y, cla.LinePreconditioner(own_block(A), own, B) @ x.getArray())


def test_chords():
    """Couplings that lines of the program leave out are told of once."""
    M, lines = convection_diffusion(1, 8, B)
    M = M.tolil()
    M[0, 3 * B] = M[3 * B, 0] = 1e4
    A = petsc_matrix(scipy.sparse.block_diag([M] * COMM.size))
    pc = PETSc.PC().create(COMM)
    pc.setOperators(A)
    pc.setType("python")
    pc.setPythonContext(LinePC(lines))
    with warnings.catch_warnings(record=True) as told:
        pc.setUp()
        A.scale(2)
        pc.setUp()
    assert ["lines have chords (1)" in str(warning.message) for warning in told] == [True]
    pc.setPythonContext(LinePC())
    with warnings.catch_warnings(action="error"):
        pc.setUp()


def test_view(folder):
    M, _ = convection_diffusion(NX, NY, B)
    M = M.tocsr()
    M[:B, :B] = np.triu(np.ones((B, B)), 1)
    A = petsc_matrix(M)
    ksp = PETSc.KSP().create(COMM)
    ksp.setOperators(A)
    ksp.pc.setType("python")
    ksp.pc.setPythonContext(LinePC())
    before = viewed(ksp, folder)
    with np.errstate(all="ignore"):
        ksp.setUp()
    after = viewed(ksp, folder)
    ksp.reset()
    assert before == viewed(ksp, folder) == "  lines: not set up yet"
    assert after == f"  lines: auto, {NX} of blocks of 3, 1 singular; device: cpu"
    ksp.setOperators(A)
    ksp.pc.setPythonContext(LinePC(sweeps=2, damping=0.5))
    with np.errstate(all="ignore"):
        ksp.setUp()
    assert viewed(ksp, folder) == f"{after}; scheme: jacobi, sweeps: 2, damping: 0.5"


def viewed(ksp, folder):
    """The text that the PC writes to an ASCII viewer; to others it writes nothing."""
    binary = PETSc.Viewer().createBinary(f"{folder}/view.bin", "w", comm=COMM)
    ksp.pc.view(binary)
    binary.destroy()
    viewer = PETSc.Viewer().createASCII(f"{folder}/view.txt", comm=COMM)
    ksp.view(viewer)
    viewer.destroy()
    COMM.barrier()
    with open(f"{folder}/view.txt") as file:
        lines = file.read().splitlines()
    COMM.barrier()
    name = next(number for number, line in enumerate(lines) if "Python: compactla.petsc.LinePC" in line)
    return lines[name + 1].removeprefix("  ")


def raises(error, message, call):
    try:
        call()
    except error as raised:
        assert message in str(raised), raised
    else:
        raise AssertionError(f"no {error.__name__}")


def test_errors(folder):
    A = petsc_matrix(convection_diffusion(NX, NY, B)[0])
    raises(TypeError, "colour is no option, must be one of lines, block_size", lambda: LinePC(colour=1))
    file = f"{folder}/short.txt"  # its rows are those of the whole matrix, on every rank
    with open(file, "w") as lines:
        lines.write(" ".join(map(str, range(NX * NY - 1))))
    COMM.barrier()
    for context, error, message in (
        (LinePC(block_size=7), ValueError, "block_size is 7, must divide"),
        (LinePC(block_size=0), ValueError, "block_size is 0, must divide"),
        (LinePC("nothing.npy"), ValueError, "lines is 'nothing.npy', must be 'auto' or the name of a file"),
        (LinePC(file), ValueError, f"block row {NX * NY - 1} is on no line"),
        (LinePC([[0, 1]]), ValueError, "is on no line"),
        (LinePC(device="abacus"), ValueError, "device is abacus, must be cpu, opencl or opencl:NAME"),
        (LinePC(anisotropy=-1), ValueError, "anisotropy is -1"),
    ):
        pc = PETSc.PC().create(COMM)
        pc.setOperators(A)
        pc.setType("python")
        pc.setPythonContext(context)
        raises(error, message, pc.setUp)
    for name, value, kind in (
        ("block_size", "three", "an integer"),
        ("threads", "1.5", "an integer"),
        ("anisotropy", "high", "a number"),
        ("min_length", "", "an integer"),
        ("pivoting", "perhaps", "true or false"),
        ("storage", "", "a word"),
        ("sweeps", "many", "an integer"),
        ("damping", "1/2", "a number"),
    ):
        option = f"pc_line_{name}"
        message = f"-{name}_{option} is {value!r}, must be {kind}"
        raises(ValueError, message, lambda name=name, given={option: value}: solver(A, name, **given))
    for name, value, must in (
        ("scheme", "sor", "'sor', must be one of 'jacobi', 'gauss-seidel', 'symmetric'"),
        ("sweeps", 0, "0, must be at least 1"),
        ("damping", -1, "-1.0, must be positive"),
        ("block_size", 7, "7, must divide"),
    ):
        option = f"pc_line_{name}"
        message = f"-bad_{name}_{option} is {must}"
        raises(ValueError, message, lambda name=name, given={option: value}: solver(A, f"bad_{name}", **given))


def run_all(folder):
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(*[folder] * test.__code__.co_argcount)
            if not COMM.rank:
                print(name, flush=True)


if __name__ == "__main__":
    try:
        run_all(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # at once: other ranks may wait for this one, and mpirun then ends them
