"""How `gemm_blocks.cl` is compiled for matrices of some sizes, types and strides."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compactla.dtypes import REAL
from compactla.search import LOCAL_BYTES
from compactla.strides import Place

VECTOR = 16  # bytes that are moved at a time
LARGEST, OTHERS = 128, 64  # extent of matrices that have a kernel for their sizes on NVIDIA's GPUs, and on others
MIDDLE = 80  # and of complex ones of doubles, if their product is square
WARP = 32  # work-items that go together
GROUP = 64  # work-items of a work-group, at least, where there is local memory for so many
WHOLE, WHOLE_OF_UNITS = 20 * 1024, 40 * 1024  # bytes of local memory for a whole matrix, and for matrix units, at most
PAIRS = 16  # registers of a work-item for C on matrix units, in pairs of doubles
LARGE_OF_UNITS = 36  # blocks of 8 x 8 that a warp has at most
LARGE, USUAL = 136, 64  # elements of floats that a work-item has at most on NVIDIA's GPUs, and on others
READING = 16  # rows or columns of a block whose products take as long as to read one of A or B
UNIT, STEP = 8, 4  # rows and columns of C, and columns of A, that matrix units take at a time
DEPTHS, VECTORS = [8, 16, 32], 128  # columns of A in local memory, which are so many bytes of a row at most
STAGES, WAITING = 4, 1.5  # times of that, at most, and columns that take as long as work-items wait for each other
# Work-items of a compute unit of NVIDIA's for which kernels should spare registers: of doubles on matrix units whose
# sizes are known, of complex ones, and of those with several stages, where C takes many registers, or FEW; and bytes of
# local memory of all of them, and what a work-group takes of it in any case.
OF_UNITS, OF_COMPLEX_UNITS, OF_LARGE, OF_STAGES, FEW = 640, 384, 256, 384, 64
LOCAL_OF_ALL, LOCAL_OF_NONE = 228 * 1024, 1024
FILL = 16  # work-groups of a compute unit of other devices that keep it busy


class Blocks(NamedTuple):
    """How `gemm_blocks` is compiled.

    Attributes
    ----------
    macros : dict
    matrices, group : int
        Matrices of a work-group, and its work-items.
    rows, columns : int
        Of a block.
    lasting : int
        Work-groups of a compute unit, where these have several blocks one after the other; 0 if they do not.
    """

    macros: dict[str, int]
    matrices: int
    group: int
    rows: int
    columns: int
    lasting: int

    def groups(self, nm: int, m: int, n: int, units: int) -> int:
        """Work-groups of a device of so many compute units for so many matrices C of this size."""
        groups = -(-nm // self.matrices) * -(-m // self.rows) * -(-n // self.columns)
        return min(groups, self.lasting * units) if self.lasting else groups


def has_size(m: int, n: int, k: int, dtype: np.dtype, nvidia: bool) -> bool:
    """Whether such matrices have a kernel for their sizes: one whose work-groups have registers for a product."""
    return max(m, n, k) <= (LARGEST if nvidia else OTHERS) and (dtype.itemsize < VECTOR or m * n <= MIDDLE**2)


def common_bytes(numbers: Sequence[int]) -> int:
    """The largest number of bytes, at most VECTOR, of which all numbers are multiples."""
    return int(np.gcd.reduce([*numbers, VECTOR]))


def width(X: Place, item: int, real: int, unit: int) -> int:
    """Numbers of a row that can be moved at a time, where matrices begin at multiples of `unit` bytes."""
    along = [X.n * item] if X.cs == item or X.n == 1 else [item, X.cs]
    return common_bytes([unit, *along, *[X.rs] * (X.m > 1)]) // real


class Operands(NamedTuple):
    """What is multiplied: C <- alpha A B + beta C.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the matrices.
    places : (Place, Place, Place)
        Where A, B and C are, such that rows of C serve better than columns.
    units : (int, int, int)
        Bytes of which the first of them begin at multiples, or all of them if they are scattered.
    conj : (bool, bool)
        Whether A, and B, is conjugated.
    adds : bool
        Whether beta is not zero.
    scattered : bool
        Whether matrices are not evenly far apart.
    """

    dtype: np.dtype
    places: tuple[Place, Place, Place]
    units: tuple[int, ...]
    conj: tuple[bool, bool]
    adds: bool
    scattered: bool

    @property
    def real(self) -> int:
        """Bytes of a real number."""
        return REAL[self.dtype.char].itemsize

    @property
    def own(self) -> list[bool]:
        """Whether there is more than one A, and B."""
        return [self.scattered or X.step != 0 for X in self.places[:2]]

    @property
    def begins(self) -> list[int]:
        """Bytes of which all matrices begin at multiples."""
        pairs = zip(self.places, self.units, strict=True)
        return [unit if self.scattered else common_bytes([unit, X.step]) for X, unit in pairs]


def blocks(
    operands: Operands, local: int, nvidia: bool, sized: bool, matrix_units: bool = True, room: int = 0
) -> Blocks:
    """A choice that suits a device.

    Parameters
    ----------
    operands : Operands
        What is multiplied.
    local : int
        Bytes of local memory of a work-group.
    nvidia : bool
        Whether it is one of NVIDIA's GPUs.
    sized : bool
        Whether the kernel is for these sizes only.
    matrix_units : bool
        Whether NVIDIA's GPU has some, for doubles.
    room : int
        Bytes of local memory of a work-group that launches may provide, if more.
    """
    A, B, C = operands.places
    item, real = operands.dtype.itemsize, operands.real
    parts, vector = item // real, max(VECTOR // item, 1)
    m, n, k = C.m, C.n, A.n
    matrix_units = matrix_units and nvidia and real == 8
    columns = [X.m > 1 and (X.n == 1 or abs(X.rs) < abs(X.cs)) for X in (A, B)]

    def held(depth, rows, across):
        """Pitches of A and B, and bytes of both."""
        lines = (depth, rows) if columns[0] else (rows, depth)
        lines_b = (across, depth) if columns[1] else (depth, across)
        pitches = [
            pitch(length, vector, matrix_units, parts, along)
            for length, along in ((lines[1], not columns[0]), (lines_b[1], columns[1]))
        ]
        return pitches, [lines[0] * pitches[0] * item, lines_b[0] * pitches[1] * item]

    stages, chunk = 1, chunk_of(k, parts) if matrix_units else vector
    step = STEP * chunk if matrix_units else chunk
    depth = -(-k // step) * step
    pitches, sizes = held(depth, m, n)
    whole = sized and sum(sizes) <= min(WHOLE_OF_UNITS if matrix_units else WHOLE, local)
    if matrix_units:
        ti, teami, tj, teamj = of_matrix_units(m, n, parts, sized, whole)
        size, team, registers = UNIT, WARP * teami * teamj, 4 * parts * ti * tj
        most = OF_UNITS if parts == 1 else OF_COMPLEX_UNITS
    else:
        alike = vector if columns[0] else 1, 1 if columns[1] else vector
        ti, teami, tj, teamj = of_registers(
            m, n, vector, (LARGE if nvidia else USUAL) * vector // 4, alike, sized, whole
        )
        size, team, registers = 1, teami * teamj, real // 4 * parts * ti * tj
        most = OF_STAGES
    wides = [
        width(X.T if down else X, item, real, begin)
        for X, down, begin in zip(operands.places, [*columns, False], operands.begins, strict=True)
    ]
    narrow = wides[2] * real < VECTOR or (columns[1] and not matrix_units and vector > 1)
    rows, across = size * ti * teami, size * tj * teamj
    c_rows, c_pitch = (m, n | 1) if whole else (rows, across | 1)
    held_c = c_rows * c_pitch * item
    if not whole:
        most = OF_STAGES if registers <= FEW else OF_LARGE
        groups = max(most // (-(-team // WARP) * WARP), 1)
        local = max(local, min(room, LOCAL_OF_ALL // groups - LOCAL_OF_NONE))
        chunk = 2 if vector == 4 else 1
        fits = [some for some in DEPTHS if some * item <= VECTORS and 2 * sum(held(some, rows, across)[1]) <= local]
        depth = min(fits or DEPTHS[:1], key=lambda some: (-(-k // some) * (some + WAITING) if sized else 0, -some))
        pitches, sizes = held(depth, rows, across)
        stages = max(min(local // sum(sizes), STAGES), 2)
    own = [stages > 1 or mine for mine in operands.own]
    each = sum(size for size, mine in zip(sizes, own, strict=True) if mine)
    matrices = 1
    if stages == 1:
        matrices = max(min(-(-GROUP // team), (local - sum(sizes)) // max(each, 1) + 1), 1)
    staged = narrow and (matrices * held_c <= local if stages == 1 else stages * sum(sizes) + held_c <= local)
    used = stages * sum(sizes) + staged * held_c if stages > 1 else 0
    macros = {"SIZED": sized} | ({"M": m, "N": n, "K": k} if sized else {})
    macros |= {"MATRICES": matrices, "MMA": matrix_units, "TI": ti, "TJ": tj, "TEAMI": teami, "TEAMJ": teamj}
    macros |= {"CHUNK": chunk, "CHUNK_PARTS": chunk * parts, "DEPTH": depth, "STAGES": stages, "WIDTH": VECTOR // real}
    macros |= {"AWIDE": wides[0], "BWIDE": wides[1], "CWIDE": wides[2], "CPITCH": c_pitch, "CSTAGED": staged}
    macros |= {"ACOLUMNS": columns[0], "BCOLUMNS": columns[1], "APITCH": pitches[0], "BPITCH": pitches[1]}
    macros |= {"AOWN": own[0], "BOWN": own[1], "ACONJ": operands.conj[0], "BCONJ": operands.conj[1]}
    macros |= {"BETA": operands.adds, "PLACES": operands.scattered}
    lasting = 0
    if stages > 1 or (matrix_units and parts == 2):
        most //= -(-matrices * team // WARP) * WARP
        of_group = max(used, matrices * sum(sizes)) + LOCAL_OF_NONE
        macros["CLA_GROUPS"] = max(min(most, LOCAL_OF_ALL // of_group), 1)
        if stages > 1 and parts == 1 and (macros["CLA_GROUPS"] == 1 or real == 4):
            lasting = macros["CLA_GROUPS"] if nvidia else FILL
    if used > LOCAL_BYTES:
        macros["CLA_ROOM"] = used
    macros |= {"CLA_WARP": nvidia and team == WARP and all(own) and not staged}
    if matrix_units:
        macros["TALL"] = True
    found = {name: int(value) for name, value in macros.items()}
    return Blocks(found, matrices, matrices * team, rows, across, lasting)


def chunk_of(k, parts):
    """Steps of matrix units for which a work-item has elements of A and B at a time."""
    steps = -(-k // STEP)
    return min(steps, 2) if steps % 4 in (1, 2) or parts == 2 else 4


def of_matrix_units(m, n, parts, sized, whole):
    """Rows of a tile of blocks of 8 x 8, and warps that have one, from row to row; then from column to column."""
    if not sized:
        shapes = [(4, 2, 8, 2), (5, 2, 5, 2), (4, 2, 4, 2)] if parts == 1 else [(4, 2, 4, 2), (3, 2, 3, 2)]
        return least(shapes, UNIT, m, n)
    down, across = -(-m // UNIT), -(-n // UNIT)
    if not whole or (parts == 2 and min(down, across) > 3):
        return of_warps(down, across, (1, 1), LARGE_OF_UNITS // parts, (4, 8))
    most = max((PAIRS if across * UNIT > 32 else PAIRS // 2) // (across * parts), 1)
    teami = -(-down // min(most, 4))
    return -(-down // teami), teami, across, 1


def of_registers(m, n, vector, most, alike, sized, whole):
    """Rows of a tile, and tiles, from row to row; then from column to column: multiples of what is read together."""
    if not sized:
        shapes = [(8, 16, 16, 8), (8, 13, 16, 8), (8, 8, 8, 8), (4, 8, 4, 8)]
        return least([shape for shape in shapes if shape[0] * shape[2] <= most], 1, m, n)
    if not whole:
        return of_warps(m, n, alike, most, (64, 128, 256))
    tj = 4 if max(m, n) <= 32 or n <= 4 or vector < 4 else 8
    return 4, -(-m // 4), tj, -(-n // tj)


def of_warps(m, n, alike, most, teams):
    """Tiles for m x n, of at most so many elements, for that of the teams which has least to do with them."""

    def work(shape):
        ti, teami, tj, teamj = shape
        return teami * teamj * (ti * tj + ti + tj), teami * teamj, abs(ti - tj), ti

    shapes = []
    for team in teams:
        for power in range(team.bit_length()):
            teami, teamj = 2**power, team >> power
            ti, tj = (
                -(-x // (many * unit)) * unit for x, many, unit in zip((m, n), (teami, teamj), alike, strict=True)
            )
            if ti * tj <= most:
                shapes.append((ti, teami, tj, teamj))
    return min(shapes, key=work)


def least(shapes, unit, m, n):
    """Of shapes of blocks, in units, the one that needs least work for m x n; smaller ones read more for as much."""

    def work(shape):
        ti, teami, tj, teamj = shape
        rows, columns = unit * ti * teami, unit * tj * teamj
        return -(-m // rows) * rows * -(-n // columns) * columns * (1 + READING / rows + READING / columns)

    return min(shapes, key=work)


def pitch(length, vector, matrix_units, parts, along):
    """Elements from line to line of so many, such that work-items of a warp read different banks."""
    if not matrix_units:
        units = -(-length // vector)
        return vector * (units + 1 - units % 2)
    rest, unit = (4, 8) if parts == 1 or along else (2, 4)
    return -(-(length - rest) // unit) * unit + rest if length > rest else rest
