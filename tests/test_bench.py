"""`python -m compactla bench`: tables that are complete and right, errors that are one sentence."""

import ctypes
import functools
import json
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import compactla as cla
from benchmarks import blocktridiag, mkl, peers
from cases import exhaustive, slow
from compactla import oracle, routine
from compactla.__main__ import main
from compactla.bench import cases, ceilings, command, lines, table, timing, turns
from compactla.bench.lanes import counting, counts_of
from compactla.cpu.emit.matrices import native_width
from compactla.cpu.threads.sharing import THREADS
from compactla.gpu.devices import devices

DENSE = routine.names()
SOME = ["gemm", "trsm", "getrfnp", "potrf"]  # whose cases stand for all others
EACH = ["gemm", *(slow(name) if name in SOME else exhaustive(name) for name in DENSE if name != "gemm")]
COLUMNS = "routine n what time us GFlop/s GB/s peak bandw. bound residual".split()
NUMBER = r"[-+.\deinf]+"
NM = 4000  # on a device, whose bandwidth takes a hundred thousand launches to measure on a few matrices


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Times need not be good here."""
    monkeypatch.setattr(timing, "SECONDS", 0)
    monkeypatch.setattr(timing, "DURATION", 1e-5)
    monkeypatch.setattr(timing, "AT_ONCE", 1e-5)
    monkeypatch.setattr(timing, "ROUNDS", 2)
    monkeypatch.setattr(ceilings, "PASSES", 1)


def bench(capsys, *args):
    """The output of the command, and its rows as (routine, n, what, residual), with their numbers checked."""
    main(["bench", *map(str, args)])
    out, err = capsys.readouterr()
    assert err == ""
    _, _, table = out.partition("\nroutine ")
    header, *lines = ("routine " + table).split("\n\n")[0].splitlines()
    assert header.split() == COLUMNS
    rows = []
    for line in lines:
        pattern = rf"(\S+) +(\d+)  (.*?)  +({NUMBER}) +({NUMBER}) +({NUMBER}) +(\d+%|-) +(\d+)% +(\d+)% \+-\d+%"
        routine, n, what, *numbers, residual = re.fullmatch(rf"{pattern}  +({NUMBER})(?:  wrong)?", line).groups()
        seconds, _, gbytes, of_peak, of_bandwidth, of_bound = numbers
        assert float(seconds) > 0 and float(gbytes) >= 0
        assert int(of_bound) >= max(int(of_bandwidth), int(of_peak.strip("%")) if of_peak != "-" else 0)
        assert 0 <= float(residual) < oracle.THRESHOLD or what.startswith("MKL")  # which is wrong for some sizes
        rows.append((routine, int(n), what))
    assert re.search(r"^[.\d]+ [kMG]B \(\w+\) +(\d+|-) +[.\d]+   .*[.\d]+", out, re.MULTILINE)
    return out, rows


@pytest.mark.parametrize("routine", EACH)
@pytest.mark.parametrize("dtype", ["s", exhaustive("complex128")])
def test_batches(capsys, routine, dtype):
    out, rows = bench(capsys, routine, "--n", 1, 4, "--nm", 21, "--dtype", dtype)
    assert f"{'float32' if dtype == 's' else 'complex128'}\n" in out
    for n in (1, 4):
        found = [what for name, size, what in rows if (name, size) == (routine, n)]
        assert found[:2] == ["compactla", "compactla, in cache"]
        assert {*peers.PEERS[routine].libraries} <= {*found}
        assert any(what.startswith(("numpy", "scipy")) for what in found)
        if mkl.load() and mkl.has(routine):
            assert any(re.fullmatch(r"MKL [.\d]+ (SSE|AVX|AVX512)", what) for what in found)
            assert any(re.fullmatch(r"MKL [.\d]+ (SSE|AVX|AVX512), in cache", what) for what in found)
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("options", [("L", "U", "T", "N"), ("R", "L", "C", "U"), ("R", "U", "N", "N")])
def test_trsm_options(capsys, options):
    side, uplo, trans, diag = options
    chosen = "--side", side, "--uplo", uplo, "--trans", trans, "--diag", diag
    out, rows = bench(capsys, "trsm", "--n", 4, "--nm", 9, "--dtype", "z", *chosen)
    assert "side = {}, uplo = {}, trans = {}, diag = {}".format(*options) in out
    assert ("trsm", 4, "compactla, in cache") in rows


@pytest.mark.parametrize("routine", [*EACH, "pack", "line"])
def test_threads(capsys, routine):
    size = ("-N", 40, "-L", 3, "-B", 2) if routine == "line" else ("--n", 2, "--nm", 40)
    out, _ = bench(capsys, routine, *size, "--threads", 1)
    assert ", 1 thread\n" in out


WORK = {  # of real matrices of order 4: operations, bytes, and the loop that moves as many
    ("gemm", 1): (128, 4 * 128, "axpy"),
    ("gemm", 0): (128, 3 * 128, "copy"),
    ("trsm", None): (64, 80 + 2 * 128, "axpy"),
    ("getrfnp", None): (2 / 3 * 64, 2 * 128, "update"),
}


@pytest.mark.parametrize(("routine", "beta"), WORK)
def test_work(routine, beta):
    """Flops and bytes stay the same, since results of several years are compared by them."""
    case = cases.Dense(routine, 4, 9, **({} if beta is None else {"beta": beta}))
    flops, nbytes, loop = WORK[routine, beta]
    assert (case.flops, case.nbytes, case.loop) == (pytest.approx(9 * flops), 9 * nbytes, loop)


@pytest.mark.slow
def test_lanes(capsys):
    """Instructions of a product are multiply-adds of whole vectors; lanes without a matrix do nothing useful."""
    main(["bench", *"gemm --n 4 --nm 9 --no-baselines --lanes --beta 0".split()])
    line, operations = [x for x in capsys.readouterr().out.splitlines() if x.startswith(("lanes", "operations"))]
    useful, width, count, filled = re.search(r"([\d.]+) of (\d+) useful in (\d+) .*, (\d+)% of", line).groups()
    V = cla.pack(np.zeros((1, 1, 1))).vlen
    part = 9 / (-(-9 // V) * V)
    assert int(filled) == round(100 * part) and int(width) == native_width(np.dtype("d"))
    packs, registers = -(-9 // V), V // int(width)
    assert 64 * packs * registers <= int(count) <= 80 * packs * registers  # 16 are products with alpha
    assert abs(float(useful) - part * int(width)) < 0.01
    share, executed = re.search(r"(\d+)% of (\d+) useful", operations).groups()
    assert abs(int(share) - 100 * 9 * 2 * 64 / int(executed)) <= 0.5 and int(executed) >= (2 * 64 - 16) * packs * V


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("  %.3 = fmul fast <8 x double> %.1, %.2", (1, 8, 8)),
        ("  %.3 = fadd <8 x double> %.1, <double 1.0, double 2.0>", (1, 8, 8)),
        ("  %3 = tail call contract <16 x double> @llvm.fma.v16f64(<16 x double> %1, <16 x double> %2)", (2, 16, 32)),
        ("  %3 = call float @llvm.sqrt.f32(float %1)", (1, 1, 1)),
        ("  %3 = fdiv double 1.000000e+00, %1", (1, 1, 1)),
        ("  %3 = fcmp ogt <8 x double> %1, %2", (0, 0, 0)),
        ("  store <8 x double> %.3, ptr %.4", (0, 0, 0)),
    ],
)
def test_operations_of_instructions(line, found):
    assert counts_of(line, 64) == found


def test_blocks_count_what_they_execute():
    """A loop of 10 products, and one more behind it."""
    code = """
define double @power(double %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %y = phi double [ 1.0, %entry ], [ %product, %loop ]
  %product = fmul double %y, %x
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 10
  br i1 %more, label %loop, label %end
end:
  %last = call double @llvm.fma.f64(double %product, double %x, double %x)
  ret double %last
}
declare double @llvm.fma.f64(double, double, double)
"""
    found = np.zeros(3, np.int64)
    places = [found.ctypes.data + 8 * i for i in range(3)]
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(llvm.parse_assembly(counting(code, places, 64)), machine) as engine:
        engine.finalize_object()
        function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(engine.get_function_address("power"))
        assert function(2.0) == 2.0**11 + 2
    assert found.tolist() == [11, 11, 12]


def test_gemm_that_overwrites(capsys):
    _, rows = bench(capsys, "gemm", "--n", 3, "--nm", 9, "--beta", 0)
    assert ("gemm", 3, "numpy matmul") in rows


@pytest.mark.parametrize("dtype", ["d", "c"])
def test_pack(capsys, dtype):
    _, rows = bench(capsys, "pack", "--n", 3, "--nm", 21, "--dtype", dtype)
    assert {(routine, what.split()[0]) for routine, _, what in rows} >= {
        (routine, what) for routine in ("pack", "unpack") for what in ("compactla", "numpy")
    }


@pytest.mark.parametrize("dtype", ["d", "c"])
def test_line(capsys, dtype):
    out, rows = bench(capsys, "line", "-N", 9, "-L", 4, "-B", 2, 3, "-Nvec", 2, "-Niter", 3, "--dtype", dtype)
    assert "9 lines of 4 blocks, n x n, right-hand sides: 2" in out
    for b in (2, 3):
        assert ("both", b, "scipy solve_banded") in rows
        for name in ("factor", "solve"):
            assert (name, b, "compactla") in rows
            assert (name, b, "numpy block Thomas") in rows


def test_lines_in_parts(capsys):
    _, rows = bench(capsys, "line", "-N", 2, "-L", 9, "-B", 2, "--parts", 3, "-Niter", 1, "--no-baselines")
    assert [routine for routine, *_ in rows] == ["factor", "solve", "both"]


def test_lines_of_one_block(capsys):
    _, rows = bench(capsys, "line", "-N", 3, "-L", 1, "-B", 2, "-Niter", 1)
    assert ("both", 2, "compactla") in rows


@pytest.mark.parametrize("routine", ["gemm", *(exhaustive(name) for name in DENSE if name != "gemm"), "pack"])
def test_opencl(capsys, routine):
    out, rows = bench(capsys, routine, "--n", 3, "--nm", NM, "--device", "opencl")
    assert "(device)" in out
    assert "compactla" in {what for *_, what in rows}
    assert "compactla, in cache" not in {what for *_, what in rows}


def test_opencl_lines_on_a_named_device(capsys):
    name = devices()[0].name.strip()
    size = "-N", NM, "-L", 3, "-B", 2
    out, rows = bench(capsys, "line", *size, "--device", f"opencl:{name[2:]}", "--no-baselines")
    assert f"runs on    {name}\n" in out
    assert [(routine, what) for routine, _, what in rows] == [(r, "compactla") for r in ("factor", "solve", "both")]


@pytest.mark.slow
def test_ceilings(capsys):
    main(["bench", "ceilings", "--dtype", "s", "--threads", "1"])
    out, _ = capsys.readouterr()
    for level in ("L1", "L2", "memory"):
        assert f"({level})" in out


TIMES = [(4.4e-9, "0.0044"), (1e-13, "1e-07"), (2e-7, "0.20"), (1.5, "1500000.00")]


@pytest.mark.parametrize(("seconds", "text"), TIMES)
def test_times_have_digits_on_fast_machines_too(seconds, text):
    assert table.microseconds(seconds) == text


def test_json(capsys, tmp_path):
    file = tmp_path / "rows.json"
    _, rows = bench(capsys, "getrfnp", "--n", 3, "--nm", 9, "--json", file)
    content = json.loads(file.read_text())
    assert [(row["routine"], row["n"]) for row in content["rows"]] == [row[:2] for row in rows]
    assert content["rows"][0]["flops"] == 9 * 18
    assert content["threads"] == THREADS
    fraction = content["rows"][0]["of_bound"]
    assert 0 < fraction["lower"] <= fraction["median"] <= fraction["upper"]


def test_without_mkl(capsys, monkeypatch):
    monkeypatch.setattr(mkl, "load", lambda path: None)
    out, rows = bench(capsys, "gemm", "--n", 3, "--nm", 9)
    assert "no MKL (pip install mkl)" in out
    assert not any(what.startswith("MKL") for *_, what in rows)


def test_without_baselines(capsys, monkeypatch, tmp_path):
    """A wheel has no benchmarks/ beside the package."""
    monkeypatch.setattr(command, "PACKAGE", tmp_path / "compactla")
    out, rows = bench(capsys, "gemm", "--n", 3, "--nm", 9)
    assert "baselines  none" in out
    assert {what for *_, what in rows} == {"compactla", "compactla, in cache"}
    with pytest.raises(SystemExit):
        main(["bench", "gemm", "--mkl", "libmkl_rt.so"])
    assert "--mkl is libmkl_rt.so, must be left out" in capsys.readouterr().err


def test_wrong_formats_of_mkl_are_no_match(monkeypatch):
    wrong, right = ("wrong", lambda: None, lambda: np.nan), ("right", lambda: sum(range(10000)), lambda: 0.1)
    for found in ([wrong, right], [right, wrong]):
        monkeypatch.setattr(mkl, "candidates", lambda *_, found=found: found)
        assert mkl.fastest(None, None, 1) == right


def test_wrong_results_are_said(capsys, monkeypatch):
    monkeypatch.setattr(cases.Dense, "compare", lambda *_: np.nan)
    main(["bench", "gemm", "--n", "3", "--nm", "9", "--no-baselines"])
    out, _ = capsys.readouterr()
    assert out.count("  wrong\n") == 2


@pytest.mark.parametrize("routine", SOME)
def test_errors_are_seen(routine):
    """A residual that cannot fail would be worthless."""
    case = cases.Dense(routine, 4, 9)
    assert case.residual() < 1
    assert case.error(case.random(9, 4, 4)) > 1e10


def test_errors_of_lines_are_seen():
    case = lines.Solve(3, 9, K=4)
    x = case.T.solve(case.rhs)
    assert case.error(x) < 1
    x[5, 2, 1] += 1e-6
    assert case.error(x) > 1e3


DENSE_CASES = [functools.partial(cases.Dense, name) for name in SOME]


@pytest.mark.parametrize("make", [*DENSE_CASES, lines.Factor, lines.Solve], ids=[*SOME, "factor", "solve"])
def test_operands_last(make):
    """Operands that are timed again and again neither overflow nor become subnormal."""
    case = make(5, 9)
    for _ in range(300):
        case.call()
    data = case.T.diag if hasattr(case, "T") else case.bound.args[-1].data
    size = np.abs(data[data != 0])
    assert 1e-10 < size.min() and size.max() < 1e10


def test_ceilings_of_several_threads():
    assert ceilings.peak("complex64", threads=3) > 0
    assert set(ceilings.bandwidth(2**14, threads=3)) == set(ceilings.PATTERNS)


LIKE = {"copy": ["copy", "streamed copy"], "read": ["read"], "of a device": [*ceilings.PATTERNS]}


@pytest.mark.parametrize("loop", LIKE)
def test_the_loops_beside_a_call(loop):
    """A copy is of either kind, and all stand for one that is not there."""
    assert [name for name, _ in ceilings.memory_loops(2**14, None, 1, loop)] == LIKE[loop]


WORK_OF_ONE = turns.Work(flops=1, nbytes=1, footprint=2**14, loop="update", dtype=np.dtype("d"))


def test_a_slower_machine_has_the_same_fractions(monkeypatch):
    """Each round has its own ceilings, and a disturbed round changes neither median nor quartiles."""
    slowness, disturbed = [1.0, 5.0, 1.0, 5.0, 1.0, 1.0, 1.0, 1.0], 3

    def bursts(measures, *_):
        call = [8.0 * slow for slow in slowness]
        call[disturbed] *= 100
        return [call, *([2.0 * slow for slow in slowness] for _ in measures[1:])]

    monkeypatch.setattr(timing, "in_turns", bursts)
    measured = turns.in_turns(timing.repetitions(int), WORK_OF_ONE)
    assert measured.of_bound.spread == pytest.approx(0, abs=1e-9)
    for of, seconds in ((measured.of_peak, measured.arithmetic), (measured.of_bandwidth, measured.memory)):
        assert of.median == pytest.approx(seconds[0] / 8)
    both = measured.then(measured)
    assert both.of_bound == pytest.approx(measured.of_bound) and both.seconds[0] == 16


def test_turns_follow_each_other(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0)
    seen = []
    found = timing.in_turns([lambda: seen.append("a") or 1.0, lambda: seen.append("b") or 2.0], rounds=2, parts=2)
    assert "".join(seen) == "abababab" and found == [[1.0] * 4, [2.0] * 4]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "ROUTINE"),
        (["abacus"], "abacus"),
        (["gemm", "--n", "0"], "--n: 0 must be positive"),
        (["gemm", "--n", "three"], "--n"),
        (["gemm", "--nm", "-5"], "--nm: -5 must be positive"),
        (["gemm", "--nm", "9" * 23], f"--nm: {'9' * 23} must be positive, at most 9223372036854775807"),
        (["gemm", "--dtype", "int64"], "'int64' must be s, d, c or z, or float32"),
        (["gemm", "--dtype", "nonsense"], "'nonsense' must be s, d, c or z"),
        (["gemm", "--threads", "0"], "--threads: 0 must be positive"),
        (["gemm", "--beta", "2"], "--beta"),
        (["gemm", "--side", "L"], "--side"),
        (["trsm", "--side", "M"], "--side"),
        (["gemm", "--device", "abacus"], "--device is abacus, must be cpu, opencl or opencl:NAME"),
        (["gemm", "--device", "cpu:0"], "--device is cpu:0, must be"),
        (["gemm", "--device", "opencl:abacus"], "must name one of the OpenCL devices: "),
        (["gemm", "--device", "opencl", "--threads", "1"], "--threads is for --device cpu"),
        (["gemm", "--json", "no/such/folder.json"], "--json is no/such/folder.json, must be in a folder that exists"),
        (["gemm", "--mkl", "no/such/library"], "no/such/library cannot be used as the runtime library of MKL"),
        (["line", "-B", "0"], "-B: 0 must be positive"),
        (["line", "--n", "3"], "--n"),
        (["line", "-Nvec", "x"], "-Nvec"),
    ],
)
def test_bad_options_are_errors(capsys, args, message):
    with pytest.raises(SystemExit) as exit:
        main(["bench", *args])
    assert exit.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_pack_of_numpy_is_the_layout():
    """The calls that are compared do the same work."""
    for dtype in "dF":
        case = cases.Pack(3, 9, dtype)
        assert np.array_equal(peers.pack_peers(case)[0].call(), cla.pack(case.a).data)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("n", [3, 17])
def test_own_factorization(n, dtype):
    """A loop as users write it gives the very factors of BlockTridiag."""
    own = blocktridiag.WrittenOut(n, 5, dtype, K=4)
    assert own.residual() < oracle.THRESHOLD
    ours, theirs = lines.Factor(n, 5, dtype, K=4).factored(), own.factored()
    assert all((getattr(ours, name) == getattr(theirs, name)).all() for name in ("lower", "diag", "upper", "info"))
