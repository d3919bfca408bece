"""`python -m benchmarks.report`: what asv wrote becomes tables and plots, whatever is missing."""

import itertools
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from asv.results import Results
from asv.runner import BenchmarkResult

from benchmarks import gallery, record, report_plots, report_results
from benchmarks import report as benchmarks_report
from compactla import routine
from compactla.examples import beside

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
OLD, NEW = (
    ("a" * 40, 1_700_000_000_000),
    ("b" * 40, 1_800_000_000_000),
)  # commits, and when they were made: in 2023, 2027
README = """# Title

<!-- report: fractions box numba:1 -->
old
<!-- end -->

between

<!-- report: plot sizes box -->
<!-- end -->

after
"""


def write(folder, machine, commit, measured, failed=()):
    """Results of a commit as asv writes them: {benchmark: {parameters: value}}, NaN wherever there is no value."""
    commit_hash, date = commit
    results = Results({"machine": machine}, {}, commit_hash, date, "3.12", "existing", {})
    for name, values in measured.items():
        params = [list(dict.fromkeys(map(repr, column))) for column in zip(*values, strict=True)]
        known = {tuple(map(repr, key)): value for key, value in values.items()}
        found = [None if name in failed else known.get(key, math.nan) for key in itertools.product(*params)]
        none = [None] * len(found)
        result = BenchmarkResult(found, none, none, 0, "", None)
        results.add_result({"name": name, "version": "1", "params": params}, result)
    results.save(str(folder / "asv"))


def describe(folder, machine, **known):
    file = folder / "asv" / machine / "machine.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"machine": machine, "version": 1, **known}))


def report(folder):
    """Run it; the error that it ends with, or nothing."""
    command = [sys.executable, "-m", "benchmarks.report", "--results", folder, "--readme", folder / "top.md"]
    command += ["--since", "2020-01-01"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "Traceback" not in run.stderr, run.stderr
    return run.stderr if run.returncode else ""


def tables(folder):
    """The rows of all tables on the page, by the heading above and their first cell."""
    found, heading = {}, ""
    for line in (folder / "README.md").read_text().splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        elif line.startswith("|"):
            first, *rest = (cell.strip() for cell in line.strip("|").split(" |"))
            found[heading, first] = rest
    return found


def batches(bandwidths, fractions):
    """Values of gemm.GemmSpeed, by device and n."""
    bandwidths = {(device, "float64", n): bandwidth for (device, n), bandwidth in bandwidths.items()}
    return {
        "gemm.GemmSpeed.track_bandwidth": bandwidths,
        "gemm.GemmSpeed.track_gflops": {key: bandwidth / 4 for key, bandwidth in bandwidths.items()},
        "gemm.GemmSpeed.track_fraction_of_bound": {
            (device, "float64", n): part for (device, n), part in fractions.items()
        },
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A machine with two commits and a GPU, one with results that are not reported, and one without results."""
    folder = tmp_path_factory.mktemp("results")
    describe(folder, "box", cpu="Some CPU", num_cpu="4", ram=str(8 << 30), os="Linux")
    describe(folder, "bare")
    describe(folder, "idle", cpu="Nothing")
    old = batches(
        {("numba:1", 3): 5.0, ("numba:1", 5): 6.0, ("numpy", 5): 3.0},
        {("numba:1", 3): 0.5, ("numba:1", 5): 0.6},
    )
    new = batches(
        {
            ("numba:1", 3): 12.2,
            ("numpy", 3): 1.0,
            ("numpy", 5): 0.1,
            ("mkl:1", 3): 2.0,
            ("opencl:gpu", 3): 4000.0,
            ("cupy", 3): 200.0,
            ("torch", 3): 20.0,
            ("opencl:gpu", 32): 3000.0,
            ("cupy", 32): 3750.0,
        },
        {("numba:1", 3): 0.99, ("opencl:gpu", 3): 1.05, ("opencl:gpu", 32): 0.75},
    )
    new["gemm.GemmSpeed.track_fraction_spread"] = {("opencl:gpu", "float64", 32): 0.021}
    new |= {
        "ceilings.Peak.track_peak": {("numba:1", "float64"): 50.0, ("opencl:gpu", "float64"): 30000.0},
        "ceilings.Bandwidth.track_bandwidth": {
            ("numba:1", "L1", "read"): 400.0,
            ("numba:1", "memory", "axpy"): 12.34,
            ("opencl:gpu", "memory", "copy"): 4277.0,
        },
        "gemm.GemmInCache.track_fraction_of_peak": {("numba:1", "float64", 3): 0.7, ("mkl:1", "float64", 3): 0.3},
        "blocktridiag.Factor.time_call": {
            ("opencl:gpu", "float64", 3): 197e-6,
            ("cupy", "float64", 3): 17.1e-3,
            ("numba:1", "float64", 15): 1.234,
        },
        "blocktridiag.FactorSpeed.track_fraction_of_bound": {
            ("opencl:gpu", "float64", 3): 0.89,
            ("numba:1", "float64", 15): 0.61,
        },
        "blocktridiag.FactorSpeed.track_bandwidth": {
            ("opencl:gpu", "float64", 3): 2610.0,
            ("cupy", "float64", 3): 30.0,
        },
        "torch_linalg.OnGPU.track_time_per_matrix": {
            ("compactla", "eigh", "float64", 32): 218.0,
            ("torch", "eigh", "float64", 32): 872.0,
            ("jax", "eigh", "float64", 32): 654.0,
            ("torch", "inv", "float64", 64): 30.0,
        },
        "torch_linalg.OnGPU.track_fraction_of_bound": {("compactla", "eigh", "float64", 32): 0.02},
        "trsm.TrsmSpeed.track_gflops": {("numba:1", "float64", 3): 1.0},
        "linalg.Stacks.track_time_per_matrix": {
            ("compactla", "inv", 100, 3): 10.0,
            ("numpy", "inv", 100, 3): 200.0,
            ("numpy", "solve", 100, 3): 300.0,
        },
        "precond.Precond.time_apply": {("numba:1", "sherman5"): 41.2e-6, ("numba:1", "grid"): math.inf},
        "precond.Precond.peakmem_setup": {("numba:1", "sherman5"): 250_000_000},
        "precond.Precond.track_iterations": {("numba:1", "sherman5"): 136},
        "precond.Peers.time_scipy_factor": {("sherman5",): 5e-3},
        "dask_blocks.Blocks.track_seconds": {("compactla",): 18.8, ("numpy",): 22.5},
        "dask_blocks.Blocks.track_share": {("compactla",): 0.12},
    }
    # Two ranks lose 6 of 106 ms; 3 of them are 3 times an exchange of .5 ms and 2 sums of .25.
    of_ranks = {"step": (100, 106), "spread": (1, 2), "factor": (7, 8), "iterations": (2, 2)}
    of_ranks |= {"exchange_of_one": (None, 2), "exchange": (None, 500), "reduction": (None, 250)}
    for what, (one, two) in of_ranks.items():
        new[f"weak_scaling.Lines.track_{what}"] = {(1, 16, 64, 3): one, (2, 16, 64, 3): two}
    write(folder, "box", OLD, old)
    write(folder, "box", NEW, new, failed=["trsm.TrsmSpeed.track_gflops"])
    write(folder, "bare", NEW, {"startup.Process.timeraw_import": {(): 1.0}})
    (folder / "top.md").write_text(README)
    assert report(folder) == ""
    return folder


def test_the_tables(written):
    page, rows = (written / "README.md").read_text(), tables(written)
    assert "Some CPU, 4 cores, 8 GB, Linux. Commits `aaaaaaaa` (2023-11-14) and `bbbbbbbb` (2027-01-15)." in page
    one, gpu = "Batches of matrices of order n on numba:1", "Batches of matrices of order n on opencl:gpu"
    assert rows[one, "n"] == ["gemm"] and rows[one, "3"] == ["99%, 6.1x"]  # what was not measured has no column
    assert rows[one, "5"][0] == "60%, 2.0x†"  # of the older commit, both
    assert "Commit `bbbbbbbb` of 2027-01-15, † `aaaaaaaa` of 2023-11-14.\n" in page
    assert rows[gpu, "3"][0] == "105%, 20x"
    assert page.count("Above 100 % and without ±") == 1 and "Above 100 %: no loop" not in page
    assert rows[gpu, "32"][0] == "75±2%, 0.8x"
    assert rows["Lines of 128 blocks on opencl:gpu", "3"] == ["16384", "89%, 87x", ""]
    assert rows["Lines of 128 blocks on numba:1", "15"] == ["1024", "61%", ""]
    of_tensors = "Functions of `compactla.linalg` on matrices of order n: nanoseconds for a matrix, in float64"
    assert rows[of_tensors, ""] == ["32", "64"]
    assert rows[of_tensors, "`eigh`"] == ["218, 2%, 3.0x", ""]
    assert rows["Peak", "`numba:1`"] == ["50.0", ""]
    assert rows["Bandwidth", "`numba:1`, memory"] == ["", "", "", "", "12.3"]
    assert rows["Bandwidth", "`opencl:gpu`, memory"] == ["", "4277", "", "", ""]
    assert "| `numba:1` |  |  | 0.0412 ms | 136 | 250 MB |" in page
    assert "| SciPy SuperLU |  | 5.00 ms |  |  |  |" in page
    assert "| 2 | 49,152 |  | 8.00 |  | 2 | 106±2.00 | 0.94 |" in page
    assert "| 49,152 | 25 | 2.00 | 500 | 0.0492 | 250 |" in page
    # 16 ranks: 4 neighbours and 8 sums, 3 times 4 ms; ten times as long: 120.
    assert "| 16 | 0.87, 0.45 |" in page
    assert "| `linalg.solve` | 18.8 | 12% |" in page
    assert not {"nan", "None", "inf "} & set(page.replace("|", " ").split())


def test_machines_without_results_are_left_out(written):
    page = (written / "README.md").read_text()
    assert "## box" in page and "bare" not in page and "idle" not in page


def test_the_plots(written):
    files = {file.name: file.read_text() for file in written.glob("*.svg")}
    assert files.keys() == {f"box-{plot}.svg" for plot in ("roofline", "sizes", "lines", "linalg", "heat-float64")}
    for name in files:
        assert f"]({name})" in (written / "README.md").read_text()
    assert {"L1 400 GB/s, read", "memory 12 GB/s, axpy", "multiply-adds 30000 GFlop/s"} <= set(
        texts(files["box-roofline.svg"])
    )
    assert {"compactla", "NumPy", "MKL compact", "cuBLAS", "PyTorch"} <= set(texts(files["box-sizes.svg"]))
    assert {"SciPy", "all threads"}.isdisjoint(texts(files["box-sizes.svg"]))
    assert {"inv", "solve", "100 matrices", "20"} <= set(texts(files["box-linalg.svg"]))
    assert {"factor", "solve", "block size b"} <= set(texts(files["box-lines.svg"]))
    assert {"eigh", "2", "3.0", "Some CPU, 2027-01-15"} <= set(texts(files["box-heat-float64.svg"]))


def texts(svg):
    """Text stays text in these files."""
    return [line.split("<")[0] for line in svg.replace("\n", "").split(">") if line.endswith("</text")]


def test_the_readme(written):
    top = (written / "top.md").read_text()
    assert "| 3 | 99%, 6.1x |" in top and "old" not in top
    assert "](box-sizes.svg)" in top
    assert top.startswith("# Title\n") and "\nbetween\n" in top and top.endswith("\nafter\n")


def test_the_same_results_make_the_same_files(written):
    files = [file for file in written.iterdir() if file.is_file()]
    before = {file: file.read_bytes() for file in files}
    assert report(written) == ""
    assert {file: file.read_bytes() for file in files} == before


def test_the_pages_are_of_the_results():
    """Tables on the pages are those that the report makes of the results that are there, and pictures are there."""
    results = ROOT / "benchmarks" / "results"
    machines = report_results.read_machines(results / "asv", benchmarks_report.SINCE)
    tables = {name: text for machine in machines for name, text in benchmarks_report.pieces_of(machine).items()}
    everything = (results / "README.md").read_text()
    assert all(table in everything for table in tables.values())
    pages = [ROOT / "README.md", *(ROOT / "compactla").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    shown = [
        mark for page in pages for mark in re.findall(r"<!-- report: (.*?) -->\n\n(.*?)\n<!--", page.read_text(), re.S)
    ]
    assert shown
    for name, text in shown:
        if name.startswith("plot "):
            _, plot, machine = name.split()
            assert (results / f"{machine}-{plot}.svg").is_file() and f"results/{machine}-{plot}.svg)" in text
        else:
            assert text == tables[name], f"{name}: run `python -m benchmarks.report`"


DISCOVERED = """
import json, sys
from asv_runner.discovery import disc_benchmarks
print(json.dumps({b.name: [b.version, b.params] for b in disc_benchmarks("benchmarks")}))
"""


def test_results_of_the_past_belong_to_benchmarks():
    """Names, versions and parameters are those of the results that are there: the history of each goes on."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", DISCOVERED]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    found = json.loads(run.stdout)
    known = json.loads((ROOT / "benchmarks" / "results" / "asv" / "benchmarks.json").read_text())
    for name, benchmark in known.items():
        if name != "version":
            version, params = found[name]
            assert version == benchmark["version"], name
            assert all({*old} <= {*new} for old, new in zip(benchmark["params"], params, strict=True)), name
    for file in (ROOT / "benchmarks" / "results" / "asv").glob("*/*-existing-*.json"):
        about = json.loads((file.parent / "machine.json").read_text()) | {"python": file.stem.rpartition("py")[2]}
        of_run = {"version": about["version"], **json.loads(file.read_text())["params"]}
        assert of_run == about, f"asv draws a line of its own for the machine of {file.name}"
    for row in routine.names():
        assert {f"{row}.{row.capitalize()}{kind}" for kind in ("", "Speed", "InCache", "Overhead")} <= {
            name.rpartition(".")[0] for name in found
        }


def test_a_table_of_the_cpu(tmp_path):
    """What a machine takes becomes tables and heat maps."""
    describe(tmp_path, "box", cpu="Some CPU", os="Linux", ram="8 GB")
    command = [sys.executable, "-m", "benchmarks.cpu_table", "--functions", "det", "--orders", "2"]
    command += ["--machine", "box", "--results", tmp_path]
    environment = {**os.environ, "COMPACTLA_DEVICES": "numba:1"}
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    (machine,) = report_results.read_machines(tmp_path / "asv")
    pieces = benchmarks_report.pieces_of(machine)
    for dtype in ("float64", "float32"):
        line = rf"^{dtype} det +2: +\S+ ns +\d+% \+- \d+%  numpy \S+( +\w+ \S+)*$"
        assert re.search(line, run.stdout, re.MULTILINE), run.stdout
        table = pieces[f"stacks box {dtype}"]
        assert re.search(r"^\| `det` \| \S+, \d+±\d+%, \S+x \|$", table, re.MULTILINE), table
    drawn = report_plots.draw(machine, tmp_path)
    assert drawn.keys() == {"heat-float64", "heat-float32"}
    shown = {*texts((tmp_path / "box-heat-float64.svg").read_text())}
    assert {"det", "2"} <= shown
    assert any(text.startswith("times as fast as the fastest of NumPy") for text in shown), shown


def test_gains_of_examples(tmp_path, capsys):
    """What an example prints of two ways becomes a row of a table."""
    results = {"ours": lambda: None, "a's b": lambda: None}
    beside.compare(results, rounds=2)
    found = gallery.gains("heat", "something: 3 apart\n" + capsys.readouterr().out)
    ((key, (milliseconds, ratio, spread)),) = found.items()
    assert key == "heat | ours | a's b" and min(milliseconds, ratio) > 0 <= spread
    describe(tmp_path, "box")
    of_key = {"milliseconds": 1.5, "ratio": 20.0, "spread": 0.5}
    write(
        tmp_path,
        "box",
        NEW,
        {f"gallery.Examples.track_{what}": {("heat | ours | NumPy",): x} for what, x in of_key.items()},
    )
    (machine,) = report_results.read_machines(tmp_path / "asv")
    assert "\n| `heat`: ours, 1.50 ms | NumPy | 20.0±0.500 |\n" in benchmarks_report.pieces_of(machine)["gains box"]
    assert "heat" in gallery.examples() and "beside" not in gallery.examples()


def test_benchmarks_in_one_process(tmp_path):
    """Numbers of asv's benchmarks, without asv; of the two sizes one is wanted, and of the devices one is here."""
    measured, pattern = tmp_path / "measured.json", r"^pack\.PackTraffic\.track_.*('numba:1'|opencl).*'float64', 3\)"
    options = {"cwd": ROOT, "check": True, "env": {**os.environ, "COMPACTLA_DEVICES": "numba:1"}}
    subprocess.run([sys.executable, "-m", "benchmarks.one_process", pattern, "--save", measured], **options)
    found = json.loads(measured.read_text())
    assert {*found} == {
        f"pack.PackTraffic.track_{what}" for what in ("bandwidth", "fraction_of_bound", "fraction_spread")
    }
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    describe(tmp_path, "box", cpu="Some CPU", os="Linux", ram="8 GB")
    record.record_each(found, commit, "box", "3.12", tmp_path)
    (machine,) = report_results.read_machines(tmp_path / "asv")
    assert {key[1:] for key in machine.runs[0].values} == {("'numba:1'", "'float64'", "3")}
    assert re.search(
        r"^\| 3 \| \d+±\d+% \|$", benchmarks_report.pieces_of(machine)["fractions box numba:1"], re.MULTILINE
    )


UNKNOWN = "<!-- report: lines box cpu -->\n<!-- end -->\n"
UNFINISHED = "<!-- report: peaks box -->\n\n<!-- report: peaks box -->\n<!-- end -->\n"


@pytest.mark.parametrize(
    "text, error",
    [
        (UNKNOWN, "there is no piece 'lines box cpu', but: peaks box\n"),
        (UNFINISHED, "there is no `<!-- end -->` after `<!-- report: peaks box -->`\n"),
    ],
)
def test_errors_say_what_is_wrong(tmp_path, text, error):
    describe(tmp_path, "box")
    write(tmp_path, "box", NEW, {"ceilings.Peak.track_peak": {("numba:1", "float64"): 50.0}})
    (tmp_path / "top.md").write_text(text)
    assert report(tmp_path) == error
    assert (tmp_path / "top.md").read_text() == text
