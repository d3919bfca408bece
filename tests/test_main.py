"""The command line."""

import gzip
import re
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pyopencl
import pytest
import scipy.io
import scipy.sparse

from compactla.__main__ import main
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
    """What the command prints, and the table in it: iterations and residual of each preconditioner."""
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
    M = scipy.sparse.block_diag([np.eye(3), np.eye(3)[::-1], np.eye(3)], format="csr")
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
        (["solve", "system.npz", "--device", "abacus"], "--device"),
        (["solve", "system.npz", "--plot", "no/such/folder.png"], "no/such"),
        (["solve", "system.npz", "--plot", "history.nonsense"], "nonsense"),
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
    with pytest.raises(SystemExit) as exit:
        main(args)
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
