"""Files of asv's results, of what programs measured that take all sizes in one process, as asv does not."""

import json
import platform
import subprocess
from itertools import product
from math import nan
from pathlib import Path

from . import ROOT, common

RESULTS = ROOT / "benchmarks" / "results"


def record(benchmark, params, values, commit, machine, python, folder=RESULTS):
    """Write a file of asv's results, or add to the one of that commit.

    Parameters
    ----------
    benchmark : str
        What the names of benchmarks begin with.
    params : list of list
        All values of each parameter.
    values : dict of str to function
        A number or None for the values of parameters, by the end of the name.
    commit, machine, python : str
        The commit that was measured, a machine that asv knows, and the version of Python.
    """
    numbers = {
        f"{benchmark}.{name}": {
            "params": [[repr(x) for x in column] for column in params],
            "numbers": [value(*key) for key in product(*params)],
            "version": common.Benchmark.version,
        }
        for name, value in values.items()
    }
    record_each(numbers, commit, machine, python, folder)


def record_each(found, commit, machine, python, folder=RESULTS):
    """As `record`, for benchmarks that have parameters, numbers (or None) and versions of their own, by full name."""
    from asv.results import Results
    from asv.runner import BenchmarkResult

    date = int(subprocess.check_output(["git", "show", "--no-patch", "--format=%ct", commit], cwd=ROOT)) * 1000
    about = json.loads((folder / "asv" / machine / "machine.json").read_text())
    known = {name: what for name, what in about.items() if name != "version"} | {"python": python}  # as asv's own runs
    environment = f"existing-py{python}"
    file = folder / "asv" / machine / f"{commit[:8]}-{environment}.json"
    if file.is_file():
        results = Results.load(str(file))
    else:
        results = Results(known, {}, commit, date, python, environment, {})
    for name, measured in found.items():
        numbers = [nan if x is None else common.rounded(x) for x in measured["numbers"]]
        none = [None] * len(numbers)
        described = {"name": name, "version": measured["version"], "params": measured["params"]}
        results.add_result(described, BenchmarkResult(numbers, none, none, 0, "", None))
    results.save(str(folder / "asv"))


def record_here(benchmark, params, values, machine, folder=RESULTS):
    """As `record`, for the commit that is checked out and the Python that runs."""
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    record(benchmark, params, values, commit, machine, ".".join(platform.python_version_tuple()[:2]), folder)


def save_or_record(parser, measure, recorded):
    """Measure with the options of a command, and save what is found; or make asv's results of what was saved.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The command's own options.
    measure : function
        What is found, for JSON, with the options.
    recorded : function
        Writes results of that, for a commit, a machine and a version of Python.
    """
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--commit")
    parser.add_argument("--machine", default="nvidia-h200")
    parser.add_argument("--python", default="3.12")
    options = parser.parse_args()
    if options.record:
        recorded(json.loads(options.record.read_text()), options.commit, options.machine, options.python)
        return
    found = measure(options)
    if options.save:
        options.save.write_text(json.dumps(found))
