"""The command line."""

import gzip
import io
import re
import subprocess
import sys
import warnings
from importlib.resources import files

import numpy as np
import pyopencl
import pytest
import scipy.io
import scipy.sparse

from cases import slow
from compactla.__main__ import Solve, import_pyplot, main, plot
from compactla.cli.files import read_system
from systems import convection_diffusion

SHERMAN5 = str(files("compactla") / "data" / "sherman5_b3.npz")


@pytest.fixture
def system(tmp_path):
    """A small system in a folder of its own, as a .npz file with lines and right-hand side."""
    M, lines = convection_diffusion(6, 8, 3)
    rhs = np.linspace(1, 2, M.shape[0])
    np.savez(
        tmp_path / "system.npz",
        data=M.data,
        indices=M.indices,
        indptr=M.indptr,
        rhs=rhs,
        lines=lines,
        block=3,
    )
    np.savetxt(tmp_path / "lines.txt", lines, fmt="%d")
    np.save(tmp_path / "lines.npy", lines)
    np.savez(tmp_path / "lines.npz", lines=lines)
    np.savetxt(tmp_path / "rhs.txt", rhs)
    np.save(tmp_path / "rhs.npy", rhs)
    np.savez(tmp_path / "rhs.npz", rhs)
    scipy.io.mmwrite(tmp_path / "rhs.mtx", rhs[:, None])
    scipy.io.mmwrite(tmp_path / "matrix.mtx", M.tocoo())
    (tmp_path / "matrix.mtx.gz").write_bytes(gzip.compress((tmp_path / "matrix.mtx").read_bytes()))
    scipy.sparse.save_npz(tmp_path / "bsr.npz", M)
    scipy.sparse.save_npz(tmp_path / "csc.npz", scipy.sparse.csc_matrix(M))
    return tmp_path


def solve(capsys, *args):
    """The output of the command, and the table in it: iterations and residual of each preconditioner."""
    main(["solve", *map(str, args)])
    out, err = capsys.readouterr()
    assert err == ""
    rows = re.findall(r"^(none|block Jacobi|line) +(\d+) +([-+.e\d]+) ", out, re.MULTILINE)
    return out, {name: (int(iterations), float(residual)) for name, iterations, residual in rows}


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_solve_sherman5(capsys, tmp_path, device):
    out, table = solve(capsys, SHERMAN5, "--device", device, "--plot", tmp_path / "history.png")
    assert "n = 3312, 1104 block rows of 3, 3786 blocks, float64" in out
    assert "48 of 23 block rows" in out
    assert "all 48 lines nonsingular" in out
    for name, iterations in (("none", 1500), ("block Jacobi", 251), ("line", 136)):
        assert abs(table[name][0] - iterations) <= 1
        assert (table[name][1] <= 1e-8) == (name != "none")
    assert out.count("not converged") == 1
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("matrix", ["matrix.mtx", "matrix.mtx.gz", "bsr.npz", "csc.npz"])
@pytest.mark.parametrize("kind", ["txt", "npy", "npz"])
def test_formats(capsys, system, matrix, kind):
    _, expected = solve(capsys, system / "system.npz")
    files = "--lines", system / f"lines.{kind}", "--rhs", system / f"rhs.{kind}"
    out, table = solve(capsys, system / matrix, "--block-size", 3, *files)
    assert "n = 144, 48 block rows of 3, 212 blocks, float64" in out
    assert table == expected


def test_matrix_market_vector(capsys, system):
    _, expected = solve(capsys, system / "system.npz")
    assert solve(capsys, system / "system.npz", "--rhs", system / "rhs.mtx")[1] == expected


@pytest.mark.parametrize(("dtype", "extended", "factor"), [("d", "g", 1), ("D", "G", 1j)])
def test_right_hand_sides_in_extended_precision(capsys, system, dtype, extended, factor):
    rhs, tables = factor * np.load(system / "rhs.npy"), []
    for kind in (dtype, extended):
        np.save(system / "rhs.npy", rhs.astype(kind))
        tables.append(solve(capsys, system / "system.npz", "--rhs", system / "rhs.npy")[1])
    assert tables[0] == tables[1]


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e300, 1e-200j])
def test_right_hand_sides_whose_norms_are_out_of_range(capsys, system, size):
    tables = []
    for size_of in (size, 1):
        np.save(system / "constant.npy", np.full(144, size_of))
        tables.append(solve(capsys, system / "system.npz", "--rhs", system / "constant.npy")[1])
    assert tables[0] == tables[1]
    assert tables[0]["line"][1] <= 1e-8


def test_sparse_right_hand_side(capsys, system):
    _, expected = solve(capsys, system / "system.npz")
    scipy.io.mmwrite(system / "sparse.mtx", scipy.sparse.coo_array(np.load(system / "rhs.npy")[:, None]))
    assert solve(capsys, system / "system.npz", "--rhs", system / "sparse.mtx")[1] == expected


def test_lines_for_other_blocks_than_those_of_the_file(capsys, system):
    out, _ = solve(capsys, system / "system.npz", "--block-size", 1, "--lines", "auto")
    assert "144 block rows of 1" in out


def test_only_arrays_that_are_needed_are_read(capsys, system):
    with np.load(system / "system.npz") as file:
        np.savez(system / "more.npz", **file, more=np.array([None]))  # which NumPy would refuse to read
    assert solve(capsys, system / "more.npz")[1] == solve(capsys, system / "system.npz")[1]


@pytest.mark.parametrize("form", ["own", "bsr", "csr", "csc"])
@pytest.mark.parametrize(
    ("array", "change", "message"),
    [
        ("indices", lambda a: a.__setitem__(0, 10**8), r"M.indices\[0\] is 100000000, must be one of 0 to "),
        ("indices", lambda a: a.__setitem__(3, -(10**8)), r"M.indices\[3\] is -100000000"),
        ("indptr", lambda a: a.__setitem__(2, 10**8), r"M.indptr\[3\] is \d+, must be at least 100000000"),
        ("indptr", lambda a: a.__setitem__(2, -(10**8)), r"M.indptr\[2\] is -100000000"),
        ("indices", lambda a: a.astype(str), "its array 'indices' holds <U11, must hold integers"),
        ("indices", lambda a: a + 0.5, "its array 'indices' holds float64"),
        ("indptr", lambda a: a + 0j, "its array 'indptr' holds complex128"),
    ],
)
def test_malformed_matrix(tmp_path, form, array, change, message):
    M = convection_diffusion(4, 5, 3)[0].asformat("bsr" if form == "own" else form)
    arrays = {name: getattr(M, name).copy() for name in ("data", "indices", "indptr")}
    changed = change(arrays[array])
    if changed is not None:
        arrays[array] = changed
    np.savez(tmp_path / "M.npz", **arrays, **({} if form == "own" else {"format": form, "shape": M.shape}))
    with pytest.raises(ValueError, match=message):
        read_system(tmp_path / "M.npz", 3)


def test_names_of_files_on_any_terminal(system, monkeypatch):
    """Names may be ASCII, hold what matplotlib takes for mathematics, or letters that no font has."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    for name in ("Größe.npz", r"$\nonsense$_日本.npz"):
        (system / "system.npz").rename(system / name)
        main(["solve", str(system / name), "--plot", str(system / "history.png")])
        (system / name).rename(system / "system.npz")
        assert (system / "history.png").stat().st_size
    out = stream.buffer.getvalue()
    assert rb"Gr\xf6\xdfe.npz: n = 144" in out
    history = Solve("line", [1.0, 0.1], 0.1, True, 1.0)
    plot(import_pyplot("history.png"), [history], "\udcff.npz", system / "surrogate.png")
    assert (system / "surrogate.png").stat().st_size


@pytest.mark.parametrize(
    ("args", "works"),
    [
        (["solve", "system.npz"], "compactla.__main__.read_system"),
        (["bench", "gemm"], "compactla.bench.command.show"),
        (["tune"], "compactla.bench.tune.tune_all"),
    ],
)
def test_interrupted(capsys, monkeypatch, args, works):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(works, interrupted)
    with pytest.raises(SystemExit) as exit:
        main(args)
    assert exit.value.code == 130
    assert capsys.readouterr().err == "python -m compactla: interrupted\n"


@pytest.mark.parametrize(
    ("redirection", "code", "err"), [("| true", 141, ""), ("2>&-", 0, ""), slow(">&-", 0, ""), slow("<&-", 0, "")]
)
def test_streams_that_are_closed(system, redirection, code, err):
    command = f"set -o pipefail; '{sys.executable}' -m compactla solve system.npz {redirection}"
    found = subprocess.run(["bash", "-c", command], cwd=system, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (code, err)


def test_tolerance(capsys, system):
    loose, tight = (solve(capsys, system / "system.npz", "--tol", tol)[1]["line"] for tol in (1e-3, 1e-10))
    assert loose[0] < tight[0]
    assert tight[1] <= 1e-10 < loose[1] <= 1e-3


def test_without_right_hand_side(capsys, system):
    out, table = solve(capsys, system / "bsr.npz", "--lines", system / "lines.npy")
    assert "matrix times ones" in out
    assert table["line"][1] <= 1e-8


def test_lines_of_different_lengths(capsys, system):
    (system / "lines.txt").write_text("0 1 2\n\n" + " ".join(map(str, range(3, 48))) + "\n")
    out, _ = solve(capsys, system / "bsr.npz", "--lines", system / "lines.txt")
    assert "2 of 3 to 45 block rows" in out
    assert re.search(r"^warning   lines have chords \(\d+\): ", out, re.MULTILINE)


@pytest.mark.parametrize("args", [["bsr.npz"], ["system.npz", "--lines", "auto"]])
def test_lines_are_found(capsys, system, args):
    out, table = solve(capsys, system / args[0], *args[1:])
    assert re.search(r"^lines +6 of 8 block rows, found in .* u?m?s$", out, re.MULTILINE)
    assert abs(table["line"][0] - solve(capsys, system / "system.npz")[1]["line"][0]) <= 1


def test_given_lines_come_first(capsys, system):
    np.save(system / "others.npy", np.arange(48).reshape(12, 4))
    out, _ = solve(capsys, system / "system.npz", "--lines", system / "others.npy")
    assert f"12 of 4 block rows, from {system / 'others.npy'}\n" in out
    out, _ = solve(capsys, system / "system.npz")
    assert "6 of 8 block rows, from the matrix file\n" in out


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64])
def test_dtypes(capsys, tmp_path, dtype):
    M = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(30, 30)).astype(dtype)
    scipy.sparse.save_npz(tmp_path / "matrix.npz", M)
    (tmp_path / "lines").write_text(" ".join(map(str, range(10))))
    args = "--block-size", 3, "--lines", tmp_path / "lines", "--tol", 1e-4
    out, table = solve(capsys, tmp_path / "matrix.npz", *args)
    assert f"{np.result_type(dtype, np.float32)}\n" in out
    assert table["line"][0] == 1


def test_singular_line(capsys, tmp_path):
    M = scipy.sparse.block_diag([scipy.sparse.eye_array(3), np.eye(3)[::-1], np.eye(3)], format="csr")
    scipy.sparse.save_npz(tmp_path / "matrix.npz", M)
    np.save(tmp_path / "lines.npy", [[0], [1], [2]])
    out, _ = solve(capsys, tmp_path / "matrix.npz", "--block-size", 3, "--lines", tmp_path / "lines.npy")
    assert "zero pivot in 1 of 3 lines: line 1 (row 0)" in out


def test_info():
    command = [sys.executable, "-m", "compactla", "info"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for word in (
        "processor",
        "float32 ",
        "complex128 ",
        "threads",
        f"numpy {np.__version__}",
        "opencl",
        "fp64",
    ):
        assert word in out


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "COMMAND"),
        (["solve"], "MATRIX"),
        (["solve", "nowhere.npz"], "nowhere.npz does not exist"),
        (["solve", "nowhere.mtx"], "nowhere.mtx"),
        (["solve", "broken.npz"], "broken.npz cannot be read as a matrix"),
        (["solve", "broken.mtx"], "broken.mtx cannot be read as a matrix"),
        (["solve", "empty.npz"], "empty.npz cannot be read as a matrix"),
        (["solve", "lines.npz"], "no array 'data'"),
        (["solve", "lines.npy"], "lines.npy has another ending"),
        (["solve", "rhs.mtx"], "dense"),
        (["solve", "nan.npz"], "infinite or NaN"),
        (["solve", "oblong.npz"], r"data has shape \(2, 3, 2\)"),
        (["solve", "matrix.mtx"], "--block-size"),
        (["solve", "matrix.mtx", "--block-size", "5"], "144 rows, which do not divide into blocks of 5"),
        (["solve", "matrix.mtx", "--block-size", "0"], "--block-size is 0, must be positive"),
        (["solve", "matrix.mtx", "--block-size", "two"], "--block-size"),
        (
            ["solve", "bsr.npz", "--lines", "broken.txt"],
            "row 2: '2 three' must be block row numbers",
        ),
        (["solve", "bsr.npz", "--lines", "few.txt"], "block row 3 is on no line"),
        (["solve", "bsr.npz", "--lines", "rhs.npy"], "lines"),
        (["solve", "bsr.npz", "--lines", "nowhere.npy"], "nowhere.npy"),
        (
            ["solve", "system.npz", "--rhs", "lines.npy"],
            r"of int64 \(6, 8\), must be numbers \(144,\)",
        ),
        (["solve", "system.npz", "--rhs", "zero.npy"], "zero or not finite"),
        (["solve", "system.npz", "--rhs", "broken.npz"], "broken.npz cannot be read as a vector"),
        (["solve", "system.npz", "--tol", "-1"], "--tol is -1.0, must be between 0 and 1"),
        (["solve", "system.npz", "--device", "abacus"], "--device is abacus, must be cpu, opencl or opencl:NAME"),
        (["solve", "system.npz", "--device", "opencl:abacus"], "opencl:abacus, must name one of the OpenCL devices"),
        (["solve", "system.npz", "--plot", "no/such/folder.png"], "no/such"),
        (["solve", "system.npz", "--plot", "history.nonsense"], "nonsense"),
        (["solve", "system.npz", "--plot", "folder.png"], "--plot is 'folder.png', must be a file that can be written"),
        (["solve", "system.npz", "--plot", "a\0b.png"], "--plot is 'a.x00b.png', must be a file that can be written"),
        (["solve", "system.npz", "--plot", ""], "--plot is , must end in .png"),
        (["solve", "system.npz", "--rhs", ""], "cannot be read as a vector"),
        (["bench", "gemm", "--json", "folder.png"], "--json is 'folder.png', must be a file that can be written"),
        (["bench", "gemm", "--json", ""], "--json is '', must be a file that can be written"),
        (["solve", "system.npz", "--block-size", "1"], "holds lines of blocks of 3, --lines must be given with"),
        (["solve", "system.npz", "--rhs", "empty.txt"], "empty.txt cannot be read as a vector: .* no data"),
        (["solve", "system.npz", "--rhs", "huge.mtx"], r"\(100000000, 100000000\), must be numbers \(144,\)"),
        (["solve", "huge.mtx", "--block-size", "1"], "huge.mtx holds 1 entries in 100000000 rows, must hold at least"),
        (["solve", "huge.npz"], "huge.npz holds 0 entries in 100000000 rows"),
        (["solve", "zero.npz"], r"data has shape \(0, 0, 0\), must be \(blocks, b, b\)"),
        (["tune", "gemm", "--storage", "float16"], "--storage is float16, must be left out for gemm"),
        (["tune", "abacus"], "ROUTINE is abacus, must be one of axpy, .*, solve_few"),
        (["tune", "gemm", "--device", "cpu"], "ROUTINE is gemm, must be left out with --device cpu"),
        (["tune", "--device", "opencl:"], "--device is opencl:, must be cpu, opencl or opencl:NAME"),
    ],
)
def test_errors_are_one_sentence(capsys, system, monkeypatch, args, message):
    monkeypatch.chdir(system)
    write(system / "broken.npz", b"PK\x03\x04 broken")
    write(system / "broken.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n7 7 1.0\n")
    write(system / "empty.npz", b"")
    pattern = {"indices": [0, 1], "indptr": [0, 1, 2]}
    np.savez(system / "nan.npz", data=np.full((2, 3, 3), np.nan), **pattern)
    np.savez(system / "oblong.npz", data=np.ones((2, 3, 2)), **pattern)
    write(system / "broken.txt", b"0 1\n2 three\n")
    write(system / "few.txt", b"0 1 2\n")
    np.save(system / "zero.npy", np.zeros(144))
    np.savez(system / "zero.npz", data=np.zeros((0, 0, 0)), **pattern)
    np.savez(system / "huge.npz", data=np.zeros((0, 10**8, 10**8)), indices=np.zeros(0, int), indptr=[0, 0])
    write(system / "huge.mtx", b"%%MatrixMarket matrix coordinate real general\n100000000 100000000 1\n5 5 1\n")
    write(system / "empty.txt", b"")
    (system / "folder.png").mkdir()
    with warnings.catch_warnings(record=True) as noise, pytest.raises(SystemExit) as exit:
        warnings.simplefilter("always")
        main(args)
    assert not noise
    assert exit.value.code == 2
    err = capsys.readouterr().err
    assert re.search(message, err)
    assert err.count("\n") == 1


def test_no_matplotlib(capsys, system, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        main(["solve", str(system / "system.npz"), "--plot", str(system / "history.png")])
    assert "--plot needs matplotlib: pip install matplotlib" in capsys.readouterr().err


def test_no_tqdm(capsys, system, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert solve(capsys, system / "system.npz")[1]["line"][1] <= 1e-8


def test_no_opencl_driver(capsys, system, monkeypatch):
    def no_platforms():
        raise pyopencl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(pyopencl, "get_platforms", no_platforms)
    with pytest.raises(SystemExit):
        main(["solve", str(system / "system.npz"), "--device", "opencl"])
    assert "there is no OpenCL device" in capsys.readouterr().err
    main(["info"])
    assert "no devices" in capsys.readouterr().out
