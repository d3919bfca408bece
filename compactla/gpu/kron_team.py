"""Kernels that apply Kronecker products in one pass, and how they are chosen for a size."""

import math
from typing import Any, NamedTuple

from compactla.gpu.launch import launch
from compactla.gpu.program import kernel
from compactla.gpu.search import LOCAL_BYTES, REGISTERS
from compactla.gpu.shapes import is_cpu

LARGEST = 64  # extent of an axis, which a work-item has in its registers
AXES = "ABC"  # what kron.cl calls the axes; of two the first and the last are there


class Team(NamedTuple):
    """A kernel that was compiled for some sizes.

    Attributes
    ----------
    kernel : pyopencl.Kernel
    group, lanes : int
        Work-items of a work-group, and items.
    slots : tuple of int or None
        Which axis is A, B and C.
    """

    kernel: Any
    group: int
    lanes: int
    slots: tuple

    def run(self, nm, scalars, x, y, operands, wait_for):
        """Enqueue it."""
        values = [nm, *(part for scalar in scalars for part in (float(scalar.real), float(scalar.imag)))]
        for place in (x, y):
            values += place.array.base_data, place.start, place.step, *along(place, self.slots)
        for k in self.slots:
            F = operands[k or 0]
            values += F.array.base_data, F.start, F.step, *F.strides
        arrays = [place.array for place in (x, y, *operands)]
        groups = -(-nm // self.lanes)
        launch(x.array.queue, wait_for, self.kernel, (groups * self.group,), (self.group,), arrays, values)


def along(place, slots):
    """Strides of the axes A, B and C."""
    return [0 if k is None else place.strides[k] for k in slots]


def team(name, operands, signs, x, y, d, e, adds, interleaved, dtype) -> Team | None:
    """The kernel for some items and operands, as of `compactla.gpu.kron.run`; None if they are not for local memory."""
    device, n = x.array.queue.device, len(d)
    if n > len(AXES) or name == "solve" or is_cpu(device):
        return None
    order = sorted(range(n), key=lambda k: -abs((x if d[k] > 1 else y).strides[k]))
    slots = {1: (None, None, *order), 2: (order[0], None, order[-1]), 3: tuple(order)}[n]
    N, M = ([1 if k is None else sizes[k] for k in slots] for sizes in (d, e))
    own = [k is not None and bool(operands[k].step or operands[k].V > 1) for k in slots]
    wide = 1 if interleaved or dtype.kind == "c" else widest(x, y, slots, N, M, dtype)
    case = Case(n, tuple(N), tuple(M), tuple(own), wide, interleaved, name == "sum", dtype)
    found = case.choice(min(device.local_mem_size, LOCAL_BYTES))
    if found is None:
        return None
    macros = {"KRON_TEAM": 1, "FACTORS": n, "XV": x.V, "YV": y.V, "INTERLEAVED": int(interleaved), "ALPHA": 1}
    macros |= {"BETA": int(adds), "SUM": int(case.sum)}
    for axis, k, rows, columns, is_own in zip(AXES, slots, M, N, own, strict=True):
        F = operands[k or 0]
        macros |= {f"M{axis}": rows, f"N{axis}": columns, f"{axis}V": F.V, f"{axis}OWN": int(is_own)}
        macros |= {f"{axis}CONJ": int(k is not None and signs[k] < 0)}
    place = [None, 0, 0, 0, 0, 0] * 2 + [None, 0, 0, 0, 0] * len(AXES)
    types = [0, *[0.0] * 4, *place]
    try:
        code = kernel(x.array.queue, "kron.cl", "kron_team", dtype, 1, types, **macros, **found)
    except RuntimeError:  # does not build here
        return None
    return Team(code, found["GROUP"], found["LANES"], slots)


def widest(x, y, slots, N, M, dtype):
    """How many numbers along the last axis can be moved at once."""
    count = 16 // dtype.itemsize
    while count > 1:
        apart = [x.start, y.start, x.step, y.step, N[-1], M[-1]]
        apart += [place.strides[k] for place in (x, y) for k in slots[:-1] if k is not None]
        neighbours = x.strides[slots[-1]] == y.strides[slots[-1]] == 1
        if neighbours and not any(number % count for number in apart):
            return count
        count //= 2
    return 1


class Case(NamedTuple):
    """What a kernel is chosen by: number of factors, sizes, which factors are of one item, and how items lie."""

    factors: int
    N: tuple[int, ...]
    M: tuple[int, ...]
    own: tuple[bool, ...]
    wide: int
    interleaved: bool
    sum: bool
    dtype: Any

    def choice(self, limit) -> dict | None:
        """Tunables that kron.cl explains, for so much local memory; None if an item does not fit."""
        largest, item = max(*self.N, *self.M), self.dtype.itemsize
        if largest > LARGEST:
            return None
        columns = self.N[-1]
        direct = self.factors == 2 and not self.sum and columns > 4 and columns * item <= 64
        wide = self.wide
        if wide > 1 and item == 8 and (columns < 10 or direct or (self.factors == 3 and columns >= 16)):
            wide = 1
        elif columns > 4:
            wide = min(wide, 2)
        most = max(self.M)
        rows = max(1 if most == 1 else 4 if 3 <= most <= 4 or (item == 4 and most >= 16) else 2, wide)
        pencils = {1: 4, 2: 2, 4: 1}[wide]
        while pencils > 1 and pencils * wide * (largest + rows) * item // 4 > REGISTERS - 20:
            pencils -= 1
        group = 128 if 8 <= largest <= 12 else 64
        (na, nb, nc), (ma, _, mc) = self.N, self.M
        lines = max(na * nb, nb * mc) if direct else max(nb * nc, ma * nb, ma * mc)
        lanes = max(1, round(group * pencils * wide / lines))
        if self.interleaved:
            lanes = 1 << min(lanes.bit_length() - 1, 6)
        found = {"GROUP": group, "LANES": lanes, "PENCILS": pencils, "ROWS": rows, "WIDE": wide, "DIRECT": int(direct)}
        while self.local_bytes(found) > limit:
            if found["LANES"] == 1:
                return None
            found["LANES"] = found["LANES"] // 2 if self.interleaved else found["LANES"] - 1
        return found

    def local_bytes(self, choice) -> int:
        """Local memory of a work-group."""
        lanes, rows, wide = choice["LANES"], choice["ROWS"], choice["WIDE"]
        extents = [max(sizes) for sizes in zip(self.N, self.M, strict=True)]
        extents[-1] = extents[-1] if self.interleaved else (extents[-1] // wide | 1) * wide
        tiles = (1 + self.sum) * lanes * math.prod(extents)
        used = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}[self.factors]
        matrices = sum((lanes if self.own[k] else 1) * self.N[k] * -(-self.M[k] // rows) * rows for k in used)
        return (tiles + matrices) * self.dtype.itemsize
