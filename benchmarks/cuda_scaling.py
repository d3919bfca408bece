"""Weak scaling of lines on several NVIDIA GPUs, from one process: as many lines on each GPU.

``python -m benchmarks.cuda_scaling --save FILE`` prints and writes the times of a step on one GPU, and on all: factors
of new blocks and ten solves, in ms, the median of five after a first one. ``--record FILE --commit HASH`` makes a file
of asv's results of that, for `benchmarks.report`.
"""

import argparse
import statistics
import time

import compactla as cla

from .record import record, save_or_record

try:
    import torch
except ImportError:  # asv imports all files here
    torch = None

LINES, LENGTH, BLOCK = [256, 1024, 4096, 65536], 64, 3
SOLVES, ROUNDS = 10, 6


class Device:
    """Lines on a GPU."""

    def __init__(self, index, lines):
        self.index = index
        generator = torch.Generator(f"cuda:{index}").manual_seed(lines)
        options = {"device": f"cuda:{index}", "dtype": torch.float64, "generator": generator}
        lower, diag, upper = (torch.randn(lines, LENGTH - k, BLOCK, BLOCK, **options) for k in (1, 0, 1))
        self.rhs = torch.randn(lines, LENGTH, BLOCK, **options)
        self.out = torch.empty_like(self.rhs)
        diag += 12 * torch.eye(BLOCK, device=diag.device, dtype=diag.dtype)
        self.matrix = lower, diag, upper
        self.T = cla.BlockTridiag(*self.matrix)
        self.blocks = [(x, x.clone()) for x in (self.T.lower, self.T.diag, self.T.upper)]
        self.compute()  # which compiles
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=torch.cuda.Stream()):  # whose own is on the first GPU
            self.compute()
        self.out.fill_(torch.nan)

    def compute(self):
        """New blocks, factors of them, and solves."""
        for x, new in self.blocks:
            x.copy_(new)
        self.T.refactor()
        for _ in range(SOLVES):
            self.T.solve(self.rhs, out=self.out)

    def residual(self):
        """The largest scaled residual."""
        x, (lower, diag, upper) = self.out, self.matrix
        r = self.rhs - torch.einsum("lkij,lkj->lki", diag, x)
        r[:, 1:] -= torch.einsum("lkij,lkj->lki", lower, x[:, :-1])
        r[:, :-1] -= torch.einsum("lkij,lkj->lki", upper, x[:, 1:])
        return float(abs(r).max() / (12 * abs(x).max()))


def measure(devices):
    """Milliseconds of a step on all of these at once: the median."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for device in devices:
            with torch.cuda.device(device.index):
                device.graph.replay()
        for device in devices:
            torch.cuda.synchronize(device.index)
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[1:])


def table():
    """Times by GPUs and lines, printed."""
    found = {}
    for lines in LINES:
        devices = []
        for index in range(torch.cuda.device_count()):
            with torch.cuda.device(index):
                devices.append(Device(index, lines))
        for count in sorted({1, len(devices)}):
            found[f"{count}|{lines}"] = measure(devices[:count])
            print(f"{count} GPUs, {lines} lines each: {found[f'{count}|{lines}']:.3f} ms", flush=True)
        worst = max(device.residual() for device in devices)
        if not worst < 1e-14:
            raise RuntimeError(f"the residual is {worst}")
    return found


def recorded(found, commit, machine, python):
    """Write a file of asv's results."""
    counts, lines = (sorted({int(key.split("|")[i]) for key in found}) for i in (0, 1))
    values = {"track_step": lambda count, lines: found.get(f"{count}|{lines}")}
    record("cuda_scaling.Lines", [counts, lines], values, commit, machine, python)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    save_or_record(parser, lambda options: table(), recorded)


if __name__ == "__main__":
    main()
