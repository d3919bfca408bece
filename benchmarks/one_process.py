"""asv's benchmarks, one after the other in one process.

``python -m benchmarks.one_process PATTERN... --save FILE`` measures the benchmarks whose names and parameters, such as
"gemm.GemmSpeed.track_gflops('numba:1', 'float64', 3)", have a match of a regular expression, those of the first pattern
first. ``--record FILE --commit HASH --machine NAME`` makes a file of asv's results of that. asv itself starts a process
for each number, which imports everything, compiles, and starts a GPU again. Peak memory, which needs that, is left out.
"""

import argparse
import contextlib
import gc
import re
import tempfile
import time
from itertools import product
from math import isfinite

import numpy as np
from asv_runner.discovery import disc_benchmarks

from . import ROOT
from .record import record_each, save_or_record


def chosen(patterns):
    """Benchmarks of asv, and the places of the parameters that are wanted of each."""
    known = [benchmark for benchmark in disc_benchmarks(str(ROOT / "benchmarks")) if benchmark.type != "peakmemory"]
    for pattern in patterns:
        for benchmark in known:
            shown = [f"{benchmark.name}({', '.join(key)})" for key in product(*benchmark.params)]
            wanted = [place for place, text in enumerate(shown) if re.search(pattern, text)]
            if wanted:
                yield benchmark, wanted


def number(benchmark, place):
    """What asv would find for parameters, or None if they are skipped."""
    benchmark.set_param_idx(place)
    try:
        with contextlib.redirect_stdout(None):  # it tells what is skipped
            skipped = benchmark.do_setup()
        found = None if skipped else benchmark.do_run()
        benchmark.do_teardown()
    finally:
        vars(benchmark.func.__self__).clear()  # asv starts another process, and setups keep what they make
    return float(np.median(found["samples"])) if isinstance(found, dict) else found


def measure(options):
    """Numbers of benchmarks by their names, with their parameters and versions."""
    found, caches, end = {}, {}, time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where one measurement is for several
        for benchmark, places in chosen(options.patterns):
            key = benchmark.setup_cache_key
            if key and key not in caches:
                caches[key] = benchmark.do_setup_cache()
            benchmark.set_cache(caches.get(key))
            numbers = [None] * len([*product(*benchmark.params)])
            kept = found.setdefault(benchmark.name, {"params": benchmark.params, "numbers": numbers})
            kept["version"] = benchmark.version
            gc.collect()
            for place in places:
                if time.monotonic() > end:
                    print(f"out of time at {benchmark.name}", flush=True)
                    return found
                start = time.monotonic()
                try:
                    value = number(benchmark, place)
                except NotImplementedError:  # skipped while it ran
                    continue
                except Exception as error:  # of one number
                    print(f"{benchmark.name}, {place}: {type(error).__name__}: {error}"[:200], flush=True)
                    continue
                if value is not None and isfinite(value):
                    kept["numbers"][place] = value
                    where = ", ".join([*product(*benchmark.params)][place])
                    print(f"{benchmark.name}({where}): {value:.4g}, {time.monotonic() - start:.1f} s", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--seconds", type=float, default=840, help="nothing more is begun after so many (default: 840)")
    save_or_record(parser, measure, record_each)


if __name__ == "__main__":
    main()
