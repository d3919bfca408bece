"""Two trees of compactla in turns: ``python -m benchmarks.compare ../older gemm potrf linalg.solve line.factor``.

A process of each tree makes the same call in bursts of some milliseconds, one after the other, so that whatever else
the machine does slows both. The ratio is the median over rounds of the time in this tree divided by that in the older
one, with half the distance between the quartiles: what is below 1 has become faster.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from . import ROOT

SERVER = """
import functools, inspect, json, sys
import numpy as np
from compactla.bench import cases, lines, timing

def calls(name, n, nm, dtype, threads):
    package, _, function = name.rpartition(".")
    if package == "linalg":
        from compactla import linalg
        found, rng = getattr(linalg, function), np.random.default_rng(n)
        parameters = inspect.signature(found).parameters.values()
        x, b = (rng.standard_normal((nm, n, k)).astype(dtype) for k in (n, 1))
        a = x @ x.swapaxes(1, 2) + n * np.eye(n, dtype=dtype)  # positive definite, for all functions
        arrays = (a, b)[: sum(p.default is p.empty and p.kind < p.VAR_POSITIONAL for p in parameters)]
        return timing.repetitions(functools.partial(found, *arrays, threads=threads))
    make = getattr(lines, function.capitalize()) if package == "line" else functools.partial(cases.Dense, name)
    case = make(n, nm, dtype=dtype, threads=threads)
    return timing.calls_of(case)

for line in sys.stdin:
    if line.strip():
        burst = timing.burst(calls(*json.loads(line)), timing.DURATION)
    print(burst(), flush=True)
"""


class Tree:
    """A process that measures with the package of a tree."""

    def __init__(self, folder):
        if not (folder / "compactla" / "bench").is_dir():
            sys.exit(f"{folder} has no folder compactla/bench: it has to be a clone or a worktree of compactla")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder.resolve().anchor,
            env={**os.environ, "PYTHONPATH": str(folder.resolve())},
        )

    def seconds(self, call=""):
        """Seconds of a call, which is prepared before if it is given."""
        self.process.stdin.write(f"{call}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("a tree failed: what is above says why")
        return float(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path, help="the other tree, such as of `git worktree add ../older COMMIT`")
    parser.add_argument(
        "calls", nargs="+", help="routines, `line.factor`, `line.solve`, functions such as `linalg.inv`"
    )
    parser.add_argument("--n", type=int, nargs="+", default=[3, 8, 16], help="orders (default: 3 8 16)")
    parser.add_argument("--nm", type=int, default=16384, help="matrices or lines (default: 16384)")
    parser.add_argument("--dtype", default="float64", help="(default: float64)")
    parser.add_argument("--threads", type=int, default=1, help="(default: 1)")
    parser.add_argument("--rounds", type=int, default=25, help="(default: 25)")
    args = parser.parse_args()
    trees = Tree(args.older), Tree(ROOT)
    for name in args.calls:
        for n in args.n:
            call = json.dumps([name, n, args.nm, args.dtype, args.threads])
            for tree in trees:
                tree.seconds(call)  # compiles, or loads
            older, ours = np.array([[tree.seconds() for tree in trees] for _ in range(args.rounds)]).T
            low, ratio, high = np.quantile(ours / older, (0.25, 0.5, 0.75))
            told = f"{1e6 * np.median(older):.4g} us before, {1e6 * np.median(ours):.4g} us now"
            print(f"{name}, n = {n}: {told}, {ratio:.3f} +- {(high - low) / 2:.3f}", flush=True)


if __name__ == "__main__":
    main()
