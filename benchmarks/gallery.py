"""What the examples gain, for the report: ``python -m benchmarks.gallery --machine NAME``.

Each example that compares ways to do the same runs in a process of its own, as readers start it, and what it prints of
them is added to asv's results of a machine, for the commit that is checked out: milliseconds of compactla, and how many
times as long the others take, with half the distance between quartiles. Examples whose libraries are not here are left
out.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import compactla.examples

from .record import RESULTS, record_here

# As `compactla.examples.beside.compare` prints it.
OURS, OTHERS = r"(.+): (\S+) ms, on \d+ threads .*", r"(.+): \S+ ms, (\S+) \+- (\S+) times as long"


def examples():
    """Names of the examples that compare ways to do the same."""
    files = sorted(Path(compactla.examples.__file__).parent.glob("*.py"))
    return [file.stem for file in files if re.search(r"import .*\b(compare|beside_numpy)\b", file.read_text())]


def gains(example, text):
    """Milliseconds, ratio and spread by what was compared: the example, compactla's way, and the other."""
    found = {}
    for line in text.splitlines():
        if ours := re.fullmatch(OURS, line):
            way, milliseconds = ours.groups()
        elif other := re.fullmatch(OTHERS, line):
            name, ratio, spread = other.groups()
            found[f"{example} | {way} | {name}"] = [float(x) for x in (milliseconds, ratio, spread)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", nargs="+", default=examples(), choices=examples(), metavar="NAME")
    parser.add_argument("--machine", metavar="NAME", help="add the results to those of this machine")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    options, found = parser.parse_args(), {}
    for name in options.examples:
        run = subprocess.run([sys.executable, "-m", f"compactla.examples.{name}"], capture_output=True, text=True)
        found |= gains(name, run.stdout)
        print(f"{name}:\n{run.stdout}" if run.returncode == 0 else f"{name}: {run.stderr.splitlines()[-1]}", flush=True)
    if options.machine:
        values = {
            f"track_{what}": lambda key, place=place: found[key][place]
            for place, what in enumerate(("milliseconds", "ratio", "spread"))
        }
        record_here("gallery.Examples", [[*found]], values, options.machine, options.results)


if __name__ == "__main__":
    main()
