"""Costs of smaller storage of factors and of watching pivots: `python -m benchmarks.storage --help`.

Times are the least of several, in milliseconds, of all variants in turns; what they are to that of the first follows.
"""

import argparse
import functools
import time

import numpy as np

import compactla as cla

STORAGE = {"float64": {}, "float32": {"storage": "float32"}, "float16": {"storage": "float16"}}
STORAGE |= {"bfloat16": {"storage": "bfloat16"}, "float32, 1 refinement": {"storage": "float32", "refine": 1}}
PIVOTS = {"report": {}, "diagnose": {"diagnose": True}, "perturb": {"pivots": "perturb"}}
PIVOTS |= {"shift": {"pivots": "shift"}, "pivoting": {"pivoting": True}}
DISTINCT = 64  # slots; the others repeat them


class Lines:
    """Lines of K blocks of b x b in a number of variants, which share what they are made of."""

    def __init__(self, queue, lines, K, b, variants):
        from compactla.backends import backend  # asv imports this file too, with commits that have no such module

        self.run, self.queue = backend(queue), queue
        V = self.run.default_vlen(np.dtype(np.float64), queue)
        npack = lines // V
        rng = np.random.default_rng(0)
        some = rng.uniform(-1, 1, (DISTINCT, b, b, V))
        dominant = some + 6 * b * np.eye(b)[:, :, None]
        pieces = ((some, npack * (K - 1)), (dominant, npack * K), (some, npack * (K - 1)))
        self.blocks = [np.resize(piece, (count, b, b, V)) for piece, count in pieces]
        line = np.arange(npack * V).reshape(npack, 1, V)
        rows = (line * K + np.arange(K).reshape(1, K, 1)).reshape(-1, V)
        where = np.arange(npack + 1) * K, rows, npack * V
        self.packed = [self.run.upload(a, queue) if queue else a.copy() for a in self.blocks]
        made = functools.partial(cla.BlockTridiag.from_packed, *self.packed, *where, queue=queue)
        self.lines = {name: made(**options) for name, options in variants.items()}
        self.rhs = self.run.upload(rng.uniform(-1, 1, (npack * V * K, b, 1)), queue)
        self.x = self.run.empty(self.rhs.shape, self.rhs.dtype, queue)

    def restore(self):
        for source, target in zip(self.blocks, self.packed, strict=True):
            if self.queue:
                target.set(source)
            else:
                target[...] = source

    def timed(self, call, *args, **options):
        start = time.perf_counter()
        call(*args, **options)
        if self.queue:
            self.queue.finish()
        return 1e3 * (time.perf_counter() - start)

    def factor(self, T, threads):
        self.restore()
        return self.timed(T.refactor, threads=threads)

    def solve(self, T, threads):
        if T.info is None:
            self.factor(T, threads)
        return self.timed(T.solve_rows, self.rhs, self.x, threads=threads)

    def table(self, measure, repeat, threads):
        """The least time of each variant; the first round, in which kernels are compiled, does not count."""
        least = dict.fromkeys(self.lines, np.inf)
        for i in range(repeat + 1):
            for name, T in self.lines.items():
                took = measure(T, threads)
                least[name] = min(least[name], took) if i else np.inf
        first = next(iter(least.values()))
        return ", ".join(f"{name} {took:.3f} ({took / first:.2f})" for name, took in least.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "opencl"])
    parser.add_argument("-N", type=int, default=4096, metavar="LINES")
    parser.add_argument("-L", type=int, default=128, metavar="BLOCKS")
    parser.add_argument("-B", type=int, nargs="+", default=[5, 10], metavar="SIZE")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repeat", type=int, default=10)
    given = parser.parse_args()
    from compactla.gpu.devices import queue_on

    queue = queue_on(given.device, "--device")
    for b in given.B:
        for routine, variants in (("solve", STORAGE), ("factor", PIVOTS)):
            lines = Lines(queue, given.N, given.L, b, variants)
            print(f"{routine} b={b}:", lines.table(getattr(lines, routine), given.repeat, given.threads), flush=True)


if __name__ == "__main__":
    main()
