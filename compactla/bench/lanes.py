"""Vector utilisation on the CPU: the useful lanes and operations, of all that a call executes.

That is the measure of Kim et al., "Designing Vector-Friendly Compact BLAS and LAPACK Kernels" (SC17), who took it from
counters of the processor. Here LLVM's code of kernels counts what it executes: each block of it adds its floating-point
operations to counters, after all passes. So kernels are compiled in a process of their own, which keeps no code.
"""

import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from compactla.cpu import compile
from compactla.cpu.emit.machine import machine
from compactla.cpu.pipeline import Library

# Operations on floating-point numbers, and how many of them an instruction does to each lane.
DIRECT = re.compile(r"\s+%\S+ = (?:fadd|fsub|fmul|fdiv|frem) (.*)")
CALLED = re.compile(r"\s+%\S+ = .*?call (.*)@llvm\.(fma|fmuladd|sqrt)\.")
TYPE = re.compile(r"(?:<(\d+) x )?(half|bfloat|float|double)\b")
SIZE = {"half": 2, "bfloat": 2, "float": 4, "double": 8}
TWICE = "fma", "fmuladd"
END = re.compile(r"\s+(?:br|ret|switch|unreachable|indirectbr|resume|(?:%\S+ = )?invoke)\b")
COUNTERS = 3


class Utilisation(NamedTuple):
    """What a call executes.

    Attributes
    ----------
    instructions : int
        Floating-point instructions on whole registers or parts of them.
    lanes : float
        Lanes that these work on, on average.
    width : int
        Lanes of a register.
    filled : float
        How many of the lanes of packs hold a matrix of the batch.
    operations : int
        Operations in all lanes; a multiply-add is two.
    needed : float
        Operations that the routine takes, as BLAS and LAPACK count them.
    """

    instructions: int
    lanes: float
    width: int
    filled: float
    operations: int
    needed: float

    @property
    def useful(self) -> float:
        """Lanes with a matrix of the batch, on average."""
        return self.lanes * self.filled

    @property
    def share(self) -> float:
        """The useful part of the operations."""
        return self.needed / self.operations if self.operations else 0.0


def utilisation(make: Callable, n: int, nm: int, **options: Any) -> Utilisation:
    """Vector utilisation of the case that ``make(n, nm, **options)`` makes, on the CPU."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(counted, make, n, nm, options).result()


def counted(make, n, nm, options) -> Utilisation:
    """What a call executes; kernels of this process count from now on."""
    found = np.zeros(COUNTERS, np.int64)
    count_in(found)
    case = make(n, nm, **options)
    case.call()  # which compiles
    found[:] = 0
    case.call()
    instructions, lanes, operations = found.tolist()
    width = machine()[0] // (case.dtype.itemsize // (2 if case.dtype.kind == "c" else 1))
    filled = case.nm / (case.npack * case.vlen)
    return Utilisation(instructions, lanes / max(instructions, 1), width, filled, operations, case.flops)


def count_in(counters: np.ndarray) -> None:
    """Let the code that is compiled from now on count what it executes, and keep none of it on disk."""
    optimize: Any = Library._optimize_final_module
    register, places = machine()[0], [counters.ctypes.data + counters.itemsize * i for i in range(COUNTERS)]

    def optimized(library):
        optimize(library)
        library._final_module = llvm.parse_assembly(counting(str(library._final_module), places, register))

    of_kernels: Any = Library
    of_kernels._optimize_final_module = optimized
    of_disk: Any = compile
    of_disk.place = lambda: None


def counting(module: str, places: list[int], register: int) -> str:
    """LLVM's module with blocks that add their instructions, lanes and operations to the numbers at these places."""
    lines, totals, number = [], [0] * COUNTERS, 0
    pointer = "{} to ptr" if re.search(r"\bptr\b", module) else "{} to i64*"
    for line in module.splitlines():
        if END.match(line) and any(totals):
            for place, total in zip(places, totals, strict=True):
                target = f"inttoptr (i64 {pointer.format(place)})"
                kind = "ptr" if pointer.endswith("ptr") else "i64*"
                lines.append(f"  %cla.count.{number} = atomicrmw add {kind} {target}, i64 {total} monotonic")
                number += 1
            totals = [0] * COUNTERS
        lines.append(line)
        for i, count in enumerate(counts_of(line, register)):
            totals[i] += count
    return "\n".join(lines)


def counts_of(line: str, register: int) -> tuple[int, int, int]:
    """Instructions, lanes and operations of a line of LLVM's code, for registers of so many bytes."""
    called = CALLED.match(line)
    found = called or DIRECT.match(line)
    kind = found and TYPE.search(found[1])
    if not kind:
        return 0, 0, 0
    lanes = int(kind[1] or 1)
    registers = max(-(-lanes * SIZE[kind[2]] // register), 1)
    return registers, lanes, lanes * (2 if called and called[2] in TWICE else 1)
