"""Limits of the machine, as benchmarks: their history shows when it is the machine that changed.

`python -m benchmarks.ceilings` measures them and prints them as JSON.
"""

import json
import subprocess
import sys

from asv_runner.benchmarks.mark import SkipNotImplemented

from . import ROOT, common


class Measured(common.Benchmark):
    """The ceilings of a run, which are measured once, before all other benchmarks."""

    def setup_cache(self):
        """The ceilings of every device: {device: {dtype: [dict of a `compactla.bench.ceilings.Ceiling`]}}.

        Another process measures them, with the package of this tree, so that a commit is not measured against itself.
        """
        command = [sys.executable, "-m", "benchmarks.ceilings"]
        return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


class Peak(Measured):
    """Multiply-adds in registers"""

    params = (common.OURS, common.DTYPES)
    param_names = ("device", "dtype")

    def setup(self, ceilings, device, dtype):
        common.require(device)
        if dtype not in ceilings[device]:
            raise SkipNotImplemented(f"{device} has no {dtype}")

    def track_peak(self, ceilings, device, dtype):
        return common.rounded(ceilings[device][dtype][0]["peak"] / 1e9)

    track_peak.unit = "GFlop/s"


class Bandwidth(Measured):
    """Plain loops over as much as half fills a cache, or over four times as much as the largest holds"""

    params = (common.OURS, ["L1", "L2", "L3", "memory", "device"], ["read", "copy", "streamed copy", "update", "axpy"])
    param_names = ("device", "level", "loop")

    def setup(self, ceilings, device, level, loop):
        common.require(device)
        levels = {roof["level"]: roof["bandwidth"] for roof in ceilings[device]["float32"]}
        if loop not in levels.get(level, {}):
            raise SkipNotImplemented(f"{device} has no {loop} in {level}")
        self.rate = levels[level][loop]

    def track_bandwidth(self, *_):
        return common.rounded(self.rate / 1e9)

    track_bandwidth.unit = "GB/s"


def measure():
    from compactla.bench.ceilings import roofs

    found = {}
    for device in common.OURS:
        if device in common.HERE:
            queue, threads = common.open_queue(device), common.threads_of(device)
            fp64 = queue is None or queue.device.double_fp_config
            types = common.DTYPES if fp64 else ["float32"]
            found[device] = {dtype: [roof._asdict() for roof in roofs(dtype, queue, threads)] for dtype in types}
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), default=float))
