"""The examples run, and solve what they say."""

import contextlib
import re

import numpy as np
import pytest

import compactla
from compactla.examples import (
    batches,
    beside,
    bicgstab_opencl,
    channel,
    chemistry,
    hot_wall,
    ignition,
    kabsch,
    kalman,
    quadratic_programs,
    spectral_elements,
    surface,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def flow():
    return channel.Channel(7, 9)


def test_grid(flow):
    heights = np.diff(flow.y)
    np.testing.assert_allclose(heights[1:] / heights[:-1], heights[1] / heights[0])
    assert heights[0] < channel.HEIGHT / 500 and np.isclose(flow.y[-1], channel.HEIGHT)


def test_transport(flow):
    """A steady mixture as it flows in, but for the heat from the wall; without loss where it does not flow out."""
    q = np.tile(channel.INFLOW, (63, 1))
    change = (flow.transport @ q.ravel()).reshape(-1, 3) - flow.source
    np.testing.assert_allclose(change[:, :2], 0, atol=1e-9)
    heated = change[:, 2].reshape(7, 9) < -1e-9
    assert heated[:, 0].tolist() == [False, *[True] * 6] and not heated[:, 1:].any()
    curved = flow.y**2
    bent = channel.diffusion(flow.y) @ ((curved[1:] + curved[:-1]) / 2)
    volume = np.diff(flow.y)
    assert abs(volume @ bent) < 1e-9 * (volume @ abs(bent))


def test_jacobian(flow, rng):
    q, before, direction = rng.random((3, 63, 3))
    step, dt = 1e-6, 0.1
    ahead, behind = (flow.residual(q + s * direction, before, dt) for s in (step, -step))
    slope = (flow.jacobian(q, dt) @ direction.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6 * abs(slope).max())
    pattern = flow.jacobian(before, dt)
    assert np.array_equal(pattern.indices, flow.transport.indices)


def test_hot_wall(capsys, tmp_path, monkeypatch):
    calls = {"find_lines": 0, "LinePreconditioner": 0}

    def counted(name, original):
        def call(*args, **options):
            calls[name] += 1
            return original(*args, **options)

        monkeypatch.setattr(hot_wall.cla, name, call)

    for name in calls:
        counted(name, getattr(hot_wall.cla, name))
    hot_wall.main(["--cells", "20", "24", "--steps", "8", "--plot", str(tmp_path / "hot.png")])
    out = capsys.readouterr().out
    steps = [[int(n) for n in found.split(",")] for found in re.findall(r"GMRES: \[(.*)\]", out)]
    assert len(steps) == 8
    assert max(map(max, steps)) < 20 and max(map(len, steps)) < 8
    line, jacobi = map(int, re.search(r"to 1e-8: line (\d+), block Jacobi (\d+)", out).groups())
    assert line < jacobi / 3
    assert calls == {"find_lines": 1, "LinePreconditioner": 2}  # the second is block Jacobi, which is compared with
    assert (tmp_path / "hot.png").read_bytes().startswith(b"\x89PNG")


def test_newton_gives_up(capsys):
    with pytest.raises(SystemExit, match="does not converge: try a smaller --dt"):
        hot_wall.main(["--cells", "8", "8", "--dt", "1e9"])


def numbers(out, pattern):
    """The printed numbers at the groups of a pattern."""
    return [float(number) for number in re.search(pattern, out).groups()]


def test_kalman(capsys, tmp_path):
    kalman.main(["--objects", "300", "--steps", "9", "--plot", str(tmp_path / "kalman.png")])
    out = capsys.readouterr().out
    (differ,) = numbers(out, r"differ by (\S+) of")
    measured, filtered = numbers(out, r"measured (\S+), filtered (\S+)")
    innovations, errors = numbers(out, r"over S: (\S+), 2 expected\nerrors squared over P: (\S+), 4 expected")
    assert differ < 1e-13 and filtered < 0.9 * measured
    assert abs(innovations - 2) < 4 * np.sqrt(4 / 2700) and abs(errors - 4) < 4 * np.sqrt(8 / 300)
    assert (tmp_path / "kalman.png").read_bytes().startswith(b"\x89PNG")


def test_kabsch(capsys, tmp_path):
    kabsch.main(["--frames", "200", "--plot", str(tmp_path / "kabsch.png")])
    out = capsys.readouterr().out
    differ, determinant, mirrored = numbers(out, r"differ by (\S+)\n.* 1 to (\S+)\n(\d+) frames would")
    assert differ < 1e-11 and determinant < 1e-13 and 20 < mirrored < 100
    distance, expected = numbers(out, r"are (\S+) apart, (\S+) exp")
    assert abs(distance / expected - 1) < 0.05
    assert (tmp_path / "kabsch.png").read_bytes().startswith(b"\x89PNG")


def test_rotations_without_noise(rng):
    points, seen, turns = kabsch.frames(7, 50, 0, rng)
    R, distance, mirrored = kabsch.align(np.linalg, points, seen)
    np.testing.assert_allclose(R, turns, atol=1e-12)
    assert distance.max() < 1e-6 and not mirrored.any()


def test_ignition(capsys, tmp_path):
    """All solvers agree, and steps are of third order."""
    ignition.main(["--side", "6", "--steps", "12", "--plot", str(tmp_path / "ignition.png")])
    out = capsys.readouterr().out
    assert max(float(apart) for apart in re.findall(r"(\S+) apart", out)) < 1e-6
    incomplete, diagonal = numbers(out, r"ILU0: (\S+) iterations in[^:]*: (\S+) iterations")
    assert 1 <= incomplete < diagonal
    assert (tmp_path / "ignition.png").read_bytes().startswith(b"\x89PNG")
    found = []
    for steps in (20, 40, 80):
        y = ignition.hot_spot(2, 1050, 2000)
        F = compactla.BatchLU(compactla.BatchCSR(batches.implicit(chemistry.HYDROGEN, y, 1e-5)))
        for _ in range(steps):
            y, *_ = ignition.step(y, 1e-5 / steps, F)
        found.append(y)
    assert 5 < abs(found[0] - found[2]).max() / abs(found[1] - found[2]).max() < 13


def test_bicgstab_opencl(capsys, tmp_path):
    plot = tmp_path / "bicgstab.png"
    bicgstab_opencl.main(["--plot", str(plot)])
    out = capsys.readouterr().out
    assert max(float(residual) for residual in re.findall(r"relative residual (\S+)", out)) < 2e-8
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_surface(capsys, tmp_path):
    """A program for NumPy, with its functions, and with ours in their places."""
    plot, found = tmp_path / "surface.png", []
    for patch in (contextlib.nullcontext(), compactla.patch_numpy()):
        with patch:
            surface.main(["--points", "4000", "--rounds", "1", "--plot", str(plot)])
        found.append(numbers(capsys.readouterr().out, r"median error (\S+), largest value (\S+)"))
    assert found[0] == found[1] and found[0][0] < 0.2
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_torch_lorenz(capsys, tmp_path):
    torch = pytest.importorskip("torch", reason="needs PyTorch, as tests/test_torch_operators.py")
    from compactla.examples import torch_lorenz

    plot, dtype = tmp_path / "lorenz.png", torch.get_default_dtype()
    try:
        torch_lorenz.main(["--particles", "20", "--rounds", "3", "--plot", str(plot)])
    finally:
        torch.set_default_dtype(dtype)
    (apart,) = numbers(capsys.readouterr().out, r"parameters differ by (\S+)")
    assert apart < 1e-9
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_jax_rods(capsys, tmp_path):
    pytest.importorskip("jax", reason="needs JAX: .venv/bin/python -m pip install jax")
    from compactla.examples import jax_rods

    plot = tmp_path / "rods.png"
    jax_rods.main(["--rods", "50", "--plot", str(plot)])
    out = capsys.readouterr().out
    assert max(float(apart) for apart in re.findall(r"(\S+)%", out)) < 6
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_spectral_elements(capsys, tmp_path):
    plot = tmp_path / "elements.png"
    spectral_elements.main(["--elements", "2", "--degree", "7", "--plot", str(plot)])
    out = capsys.readouterr().out
    assert max(float(apart) for apart in re.findall(r"(\S+) apart", out)) < 1e-11
    along = numbers(out, r"off by (\S+) \(x\), (\S+) \(y\), (\S+) \(z\)")
    (solved,) = numbers(out, r"mass solve is off by (\S+)")
    assert max(along) < 1e-5 and solved < 1e-13
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_matrices_of_spectral_elements():
    x, D, M = spectral_elements.matrices(6)
    np.testing.assert_allclose(D @ x**6, 6 * x**5, atol=1e-12)
    np.testing.assert_allclose((x**4) @ M @ x**2, 2 / 7, rtol=1e-12)


def test_quadratic_programs(capsys, rng):
    quadratic_programs.main(["--problems", "40"])
    out = capsys.readouterr().out
    assert max(numbers(out, r"residuals are (\S+) at most, gaps (\S+)\n.* differ by (\S+) at most")) < 1e-10
    Q, r, A, b = quadratic_programs.portfolios(3, 12, 4, rng)
    x, *_ = quadratic_programs.interior_point(beside.symmetric_by_loop, Q, r, A, b, 12)
    assert (x > 0).all() and np.allclose(np.einsum("qij,qj->qi", A, x), b)
    slope = np.einsum("qij,qj->qi", Q, x) - r  # along which no feasible direction goes down
    for c, g, held in zip(A, slope, x > 1e-6, strict=True):
        y, *_ = np.linalg.lstsq(c[:, held].T, g[held], rcond=None)
        assert np.allclose(c[:, held].T @ y, g[held], atol=1e-6) and (g - c.T @ y > -1e-6).all()
