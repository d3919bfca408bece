"""Functions on stacks of small matrices in one launch, which reads ordinary arrays, and writes results, once.

In `fused.cl` one work-item has a matrix, in the kernels of `grid` and `spectra` a team of them has a larger one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from compactla.calls.launch import NOW
from compactla.dtypes import REAL
from compactla.gpu.arrays import constant, download, empty, flag_for, is_set, reused, upload
from compactla.gpu.launch import enqueue
from compactla.gpu.linalg.arrays import C_NAMES, c_name
from compactla.gpu.linalg.grid import GRIDS, grid, numbers
from compactla.gpu.linalg.spectra import SPECTRA, spectrum, work_bytes
from compactla.gpu.linalg.triangular import FILE as TRIANGULAR
from compactla.gpu.linalg.triangular import FUNCTIONS as SOLUTIONS
from compactla.gpu.linalg.triangular import triangular
from compactla.gpu.program import kernel
from compactla.gpu.tuning import choices
from compactla.search import LOCAL_BYTES, registers
from compactla.strides import in_stack

# Elements that a work-item has in registers, of the sizes, and 4-byte registers for them.
ELEMENTS: dict[str, Callable[..., int]] = {
    "solve": lambda n, r, **_: n * (n + r),
    "inv": lambda n, **_: n * (n + 2),
    "det": lambda n, **_: n * n,
    "slogdet": lambda n, **_: n * n,
    "cholesky": lambda n, **_: n * (n + 1) // 2,
    "qr": lambda m, n, mode, **_: 2 * m * (max(m, n) if mode == "complete" else n),
}
REGISTERS, MOST = 200, 150  # these, and elements, at most: teams are faster with more
GROUP = 32  # work-items of a work-group
ROOM = 26 * 1024  # bytes of local memory, at most: with more, a compute unit has few work-groups
LARGEST_ON_CPU = 4  # whose compilers take long for code that is written out
AT_A_TIME = 2048  # matrices for which there is room in global memory
TOGETHER = {4: 3, 8: 4}  # rows to which one kernel finds singular values as fast as several, by bytes of real numbers
FEW = {4: 64, 8: 32}  # matrices of a compute unit of which bisection finds singular values faster, by those bytes
BISECTED = 256  # work-items of a work-group, a value each
BETWEEN = 32  # matrices whose numbers are next to each other between two kernels
NOBODY, ANY, EACH = range(3)  # who wants to know of failures


class Before(NamedTuple):
    """A kernel that is launched before another, with the same arguments: see `Fused`."""

    kernel: Any
    group: int
    matrices: int


@dataclass(frozen=True)
class Fused:
    """A kernel for arrays of some types, shapes and strides.

    Attributes
    ----------
    kernel : pyopencl.Kernel
    fit : compactla.linalg.stacks.Fit
        Sizes and types.
    steps : list of int
        Strides from matrix to matrix, in numbers.
    sizes : list of int
        Bytes of the numbers of operands.
    group, matrices : int
        Work-items of a work-group, and the matrices that they have.
    work : int
        Bytes for each matrix to be worked on, by a work-group of its own; 0 if there is room for it in local memory.
    before : list of Before
        Kernels that are launched before it.
    between : int
        Bytes of what these leave for BETWEEN matrices.
    """

    kernel: Any
    fit: Any
    steps: list[int]
    sizes: list[int]
    group: int
    matrices: int
    work: int
    before: list[Before]
    between: int

    def launch(self, arrays, results, told=NOBODY, failed=None):
        """Start the kernel, which tells of failures in an array of integers."""
        nm, told_in = self.fit.nm, [] if failed is None else [failed]
        values = [nm, told, None if failed is None else failed.data]
        for a, step, size in zip(arrays, self.steps, self.sizes, strict=True):
            values += a.base_data, a.offset // size, step
        values += [x.data for x in results]
        queue, used = arrays[0].queue, [*arrays, *results, *told_in]
        if self.before:
            numbers = empty((-(-nm // BETWEEN) * self.between,), np.uint8, queue, reused(arrays[0]))
            used, values = [*used, numbers], [*values, numbers.data]
        for code, group, matrices in self.before:
            enqueue(queue, NOW, code, (-(-nm // matrices) * group, 1), (group, 1), used, values)
        if self.work:
            room = empty((min(nm, AT_A_TIME) * self.work,), np.uint8, queue, reused(arrays[0]))
            for begin in range(0, nm, AT_A_TIME):
                work_items = min(nm - begin, AT_A_TIME) * self.group, 1
                enqueue(
                    queue, NOW, self.kernel, work_items, (self.group, 1), [*used, room], [*values, room.data, begin]
                )
            return
        work_items = -(-nm // self.matrices) * self.group, 1
        enqueue(queue, NOW, self.kernel, work_items, (self.group, 1), used, values)

    def run(self, arrays, wait):
        """Compute results, and flags of the matrices that failed; None if none did, or nobody is to `wait` for that."""
        queue, allocator = arrays[0].queue, arrays[0].allocator
        arrays = [constant(a, queue) if type(a) is np.ndarray else a for a in arrays]
        results = [empty(shape, dtype, queue, allocator) for shape, dtype in self.fit.made]
        if not wait:
            self.launch(arrays, results)
            return results, None
        flag = flag_for(queue)
        self.launch(arrays, results, ANY, flag.array)
        if not is_set(flag):
            return results, None
        failed = upload(np.zeros(self.fit.nm, np.int32), queue)
        self.launch(arrays, results, EACH, failed)
        return results, download(failed)


def fused(function, options, arrays, fit):
    """The kernel for some arrays; None if there is none.

    Parameters
    ----------
    function, options, arrays, fit
        As of `compactla.gpu.linalg.stacks.kernel`.
    """
    queue, number, computed = arrays[0].queue, fit.number, fit.computed
    if function.name not in {*ELEMENTS, *GRIDS, *SOLUTIONS, *SPECTRA}:
        return None
    macros: dict[str, object] = {letter.upper(): size for letter, size in number.items() if letter != "1"}
    steps, sizes, whole = [], [], []
    names = iter("AB")
    for letters, a in zip(function.inputs.values(), arrays, strict=True):
        name = "P" if letters[2:] else "RCOND" if letters == "11" else next(names)  # of pivots, of a number
        if type(a) is np.ndarray:  # is uploaded as it is when it is contiguous
            a = np.ascontiguousarray(a)
        m, n = a.shape[-2:]
        strides, step = in_stack(a, fit.lead)
        real = REAL.get(a.dtype.char, a.dtype)
        if name == "P" and a.dtype.kind not in "iu":
            return None
        if step is None or getattr(a, "offset", 0) % real.itemsize or any(stride % real.itemsize for stride in strides):
            return None
        item, ends = a.dtype.itemsize, strides[-2:]
        whole.append(step == m * n * item and (ends == (n * item, item) or ends == (item, m * item)))
        macros |= {f"{name}TYPE": c_name(real), f"{name}PARTS": item // real.itemsize}
        macros |= {f"{name}SAME": int(a.dtype == computed)}
        macros |= {f"{name}RS": f"({ends[0] // real.itemsize})", f"{name}CS": f"({ends[1] // real.itemsize})"}
        steps.append(step // real.itemsize)
        sizes.append(real.itemsize)
    macros |= {"TARGET": C_NAMES[REAL[fit.common.char].str[1:]]}
    found = shape(function, options, arrays, fit, whole)
    if found is None:
        return None
    types = [0, 0, None, *[None, 0, 0] * len(arrays), *[None] * len(function.outputs), *[None] * bool(found.before)]
    codes = []
    for part in *found.before, found:
        of_part = types + [None, 0] * (part.work > 0)
        code = built(queue, part, computed, of_part, macros)
        if code is None:
            return None
        codes.append(code)
    before = [Before(code, part.group, part.matrices) for code, part in zip(codes, found.before, strict=False)]
    between = BETWEEN * found.between * REAL[computed.char].itemsize
    return Fused(codes[-1], fit, steps, sizes, found.group, found.matrices, found.work, before, between)


def built(queue, part, computed, types, macros):
    """The kernel of a `Shape`; None if it does not build here."""
    more = part.macros
    while True:
        try:
            return kernel(queue, part.file, part.name, computed, 1, types, **macros | more)
        except RuntimeError:  # GPUs before compute capability 8.0 lack what CLA_WARP 2 takes
            if not more.get("CLA_WARP"):
                return None
            more["CLA_WARP"] -= 1


class Shape(NamedTuple):
    """A kernel by its file and name, what it is compiled with, and how it is launched: see `Fused`.

    `between` is how many real numbers of a matrix those `before` it leave.
    """

    file: str
    name: str
    macros: dict[str, int]
    group: int
    matrices: int
    work: int = 0
    before: tuple["Shape", ...] = ()
    between: int = 0


def shape(function, options, arrays, fit, whole) -> Shape | None:
    """What has a matrix of these sizes: a work-item, or a team of some kind."""
    name, device, number, computed = function.name, arrays[0].queue.device, fit.number, fit.computed
    if macros := alone(function, options, arrays, fit, whole):
        return Shape("fused.cl", f"fused_{name}", macros, GROUP, GROUP)
    if name in SPECTRA:
        macros = spectrum(function, options, device, number, computed, fit.nm)
        if not macros:
            return None
        kind, teams = SPECTRA[name].kernel, macros["TEAMS"]
        work = work_bytes(function, number, computed) if macros["IN_GLOBAL"] else 0
        found = Shape(f"{kind}.cl", kind, macros, teams * macros["MEMBERS"], teams, work)
        return chained(function, options, device, fit, found)
    if name in GRIDS:
        file, macros = GRIDS[name].file, grid(function, options, device, number, computed)
    else:
        file, macros = TRIANGULAR, triangular(function, options, arrays, fit)
    if macros:
        teams = macros["TEAMS"]
        return Shape(file, f"grid_{name}", macros, teams * macros["P"] * macros["Q"], teams)
    return None


def chained(function, options, device, fit, found) -> Shape:
    """Kernels for singular values without vectors, with what was `found` after them for least squares, or that."""
    outcome, number, computed = found.macros.get("OUTCOME"), fit.number, fit.computed
    m, n = number.get("m", 0), number["n"]
    item = REAL[computed.char].itemsize
    gains = max(m, n) > TOGETHER[item] and (outcome == 1 or (outcome == 3 and m >= n))
    teams = grid(function, options, device, number, computed) if gains else {}
    if not teams:
        return found
    thin, sizes = min(m, n), {"OUTCOME": outcome, "M": max(m, n), "N": min(m, n)}
    between = 2 * thin + 2
    teams |= sizes | {"WIDE": int(m < n)}
    first = Shape(
        "grid_bidiagonal.cl", "grid_bidiagonal", teams, teams["TEAMS"] * teams["P"] * teams["Q"], teams["TEAMS"]
    )
    second = values_of(fit.nm, device, thin, item, sizes, teams["CLA_WARP"])
    if outcome == 1:
        return second._replace(before=(first,), between=between)
    return found._replace(macros=found.macros | {"CHAINED": 1}, before=(first, second), between=between)


def values_of(nm, device, n, item, macros, warp) -> Shape:
    """The kernel for singular values of bidiagonal matrices of n rows, whose real numbers have so many bytes."""
    if nm <= FEW[item] * device.max_compute_units and n <= BISECTED:
        matrices = min(range(1, BISECTED // n + 1), key=lambda count: (-count * n % GROUP / count, count))
        values = macros | {"MATRICES": matrices, "CLA_WARP": warp}
        return Shape("singular_bisection.cl", "singular_bisection", values, matrices * n, matrices)
    matrices = next(count for count in (32, 16, 8) if count * (2 * n + 1) * item <= LOCAL_BYTES)
    values = macros | {"MATRICES": matrices, "CLA_WARP": int(warp > 0)}
    return Shape("singular_values.cl", "singular_values", values, matrices, matrices)


def alone(function, options, arrays, fit, whole) -> dict[str, int]:
    """Macros of `fused.cl`, of operands of which some are `whole`, without gaps; none if it takes too much."""
    device, count = arrays[0].queue.device, ELEMENTS.get(function.name)
    if count is None:
        return {}
    held = count(**fit.number | options)
    if held > MOST or registers(held, fit.computed) > REGISTERS or suits_teams(function.name, fit):
        return {}
    if choices.is_cpu(device) and max(fit.number.values()) > LARGEST_ON_CPU:
        return {}
    elements = [math.prod(a.shape[-2:]) for a in arrays]
    shared = [staged(device) and ready and count > 1 for count, ready in zip(elements, whole, strict=True)]
    largest = max((count for count, share in zip(elements, shared, strict=True) if share), default=0)
    if staged(device):
        largest = max(largest, *(math.prod(fit.number[letter] for letter in x.sizes) for x in function.outputs), 1)
    line = largest + 1 - largest % 2 if largest else 0
    if line * GROUP * fit.computed.itemsize > ROOM:
        return {}
    macros = numbers(options) | {f"{name}STAGED": int(share) for name, share in zip("AB", shared, strict=False)}
    return macros | {f"FUSED_{function.name.upper()}": 1, "LINE": line, "GROUP": GROUP}


def suits_teams(name, fit):
    """Whether teams are faster than one work-item which has registers for it."""
    single = REAL[fit.computed.char].itemsize == 4
    return fit.number["n"] >= 8 and (name == "inv" or (name == "solve" and single and fit.number["r"] == 1))


def staged(device):
    """Whether matrices go through local memory, so that neighbours read neighbours."""
    return not choices.is_cpu(device)
