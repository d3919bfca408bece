"""How `gemm_blocks.cl` is compiled for matrices of some sizes, types and strides."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compactla.dtypes import REAL
from compactla.strides import Place

VECTOR = 16  # bytes that are moved at a time
LARGEST = 64  # extent of matrices that have a kernel for their sizes, and of blocks of larger ones
WARP = 32  # work-items that go together
GROUP = 64  # work-items of a work-group, at least, where there is local memory for so many
WHOLE, WHOLE_OF_UNITS = 20 * 1024, 40 * 1024  # bytes of local memory for a whole matrix, and for matrix units, at most
PAIRS = 16  # registers of a work-item for C on matrix units, in pairs of doubles
UNIT, STEP = 8, 4  # rows and columns of C, and columns of A, that matrix units take at a time
DEPTH, STAGES = 128, 3  # bytes of a row of A that is in local memory by parts, and parts, at most
# Work-items of a compute unit of NVIDIA's for which kernels should spare registers: of doubles on matrix units whose
# sizes are known, of complex ones, and of all others; and bytes of local memory of all of them.
OF_UNITS, OF_COMPLEX_UNITS, OF_OTHERS = 640, 384, 512
LOCAL_OF_ALL = 227 * 1024


class Blocks(NamedTuple):
    """How `gemm_blocks` is compiled.

    Attributes
    ----------
    macros : dict
    matrices, group : int
        Matrices of a work-group, and its work-items.
    rows, columns : int
        Of a block.
    """

    macros: dict[str, int]
    matrices: int
    group: int
    rows: int
    columns: int

    def groups(self, nm: int, m: int, n: int) -> int:
        """Work-groups for so many matrices C of this size."""
        return -(-nm // self.matrices) * -(-m // self.rows) * -(-n // self.columns)


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


def blocks(operands: Operands, local: int, nvidia: bool, sized: bool, matrix_units: bool = True) -> Blocks:
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
    """
    A, B, C = operands.places
    item, real = operands.dtype.itemsize, operands.real
    parts, vector = item // real, max(VECTOR // item, 1)
    m, n, k = C.m, C.n, A.n
    matrix_units = matrix_units and nvidia and real == 8
    if matrix_units:
        ti, teami, tj, teamj = of_matrix_units(m, n, parts, sized)
        size, team, step = UNIT, WARP * teami * teamj, STEP
    else:
        ti, teami, tj, teamj = of_registers(m, n, vector, sized)
        size, team, step = 1, teami * teamj, vector
    rows, across = size * ti * teami, size * tj * teamj
    columns = [X.m > 1 and (X.n == 1 or abs(X.rs) < abs(X.cs)) for X in (A, B)]
    held_rows, held_columns = (m, n) if sized else (rows, across)

    def held(depth):
        """Pitches of A and B, and bytes of both."""
        lines = (depth, held_rows) if columns[0] else (held_rows, depth)
        lines_b = (held_columns, depth) if columns[1] else (depth, held_columns)
        pitches = [
            pitch(length, vector, matrix_units, parts, along)
            for length, along in ((lines[1], not columns[0]), (lines_b[1], columns[1]))
        ]
        return pitches, [lines[0] * pitches[0] * item, lines_b[0] * pitches[1] * item]

    large = matrix_units and parts == 1 and not sized
    stages, chunk = 1, chunk_of(k, parts) if matrix_units else 1
    depth = -(-k // (step * chunk)) * step * chunk
    pitches, sizes = held(depth)
    if not sized or sum(sizes) > min(WHOLE_OF_UNITS if matrix_units else WHOLE, local):
        chunk, depth = 2 if large else 1, DEPTH // item
        while 2 * sum(held(depth)[1]) >= local and depth >= 2 * step * chunk:
            depth //= 2
        pitches, sizes = held(depth)
        stages = max(min(local // sum(sizes), STAGES), 2)
    own = [stages > 1 or mine for mine in operands.own]
    each = sum(size for size, mine in zip(sizes, own, strict=True) if mine)
    matrices = 1
    if stages == 1:
        matrices = max(min(-(-GROUP // team), (local - sum(sizes)) // max(each, 1) + 1), 1)
    wides = [
        width(X.T if down else X, item, real, begin)
        for X, down, begin in zip(operands.places, [*columns, False], operands.begins, strict=True)
    ]
    c_pitch = held_columns | 1
    narrow = wides[2] * real < VECTOR or (columns[1] and not matrix_units and vector > 1)
    staged = narrow and matrices * held_rows * c_pitch * item <= local
    macros = {"SIZED": sized} | ({"M": m, "N": n, "K": k} if sized else {})
    macros |= {"MATRICES": matrices, "MMA": matrix_units, "TI": ti, "TJ": tj, "TEAMI": teami, "TEAMJ": teamj}
    macros |= {"CHUNK": chunk, "DEPTH": depth, "STAGES": stages, "WIDTH": VECTOR // real}
    macros |= {"AWIDE": wides[0], "BWIDE": wides[1], "CWIDE": wides[2], "CPITCH": c_pitch, "CSTAGED": staged}
    macros |= {"ACOLUMNS": columns[0], "BCOLUMNS": columns[1], "APITCH": pitches[0], "BPITCH": pitches[1]}
    macros |= {"AOWN": own[0], "BOWN": own[1], "ACONJ": operands.conj[0], "BCONJ": operands.conj[1]}
    macros |= {"BETA": operands.adds, "PLACES": operands.scattered}
    if stages > 1 or (matrix_units and parts == 2):
        most = OF_OTHERS if large or not matrix_units else OF_UNITS if parts == 1 else OF_COMPLEX_UNITS
        most //= -(-matrices * team // WARP) * WARP
        macros["CLA_GROUPS"] = max(min(most, LOCAL_OF_ALL // (stages * matrices * sum(sizes))), 1)
    macros |= {"CLA_WARP": nvidia and team == WARP and all(own) and not staged}
    if matrix_units:
        macros["TALL"] = True
    return Blocks({name: int(value) for name, value in macros.items()}, matrices, matrices * team, rows, across)


def chunk_of(k, parts):
    """Steps of matrix units for which a work-item has elements of A and B at a time."""
    steps = -(-k // STEP)
    return min(steps, 2) if steps % 4 in (1, 2) or parts == 2 else 4


def of_matrix_units(m, n, parts, sized):
    """Rows of a tile of blocks of 8 x 8, and warps that have one, from row to row; then from column to column."""
    if not sized:
        shapes = [(4, 2, 4, 2), (2, 3, 6, 1), (2, 2, 4, 1)] if parts == 1 else [(2, 4, 4, 1), (2, 3, 3, 1)]
        return least(shapes, UNIT, m, n)
    down, across = -(-m // UNIT), -(-n // UNIT)
    most = max((PAIRS if across * UNIT > 32 else PAIRS // 2) // (across * parts), 1)
    teami = -(-down // min(most, 4))
    return -(-down // teami), teami, across, 1


def of_registers(m, n, vector, sized):
    """Rows of a tile, and tiles, from row to row; then from column to column."""
    if not sized:
        shapes = [(8, 8, 8, 8), (4, 8, 8, 12), (4, 8, 4, 8)] if vector == 4 else [(4, 8, 4, 8)]
        return least(shapes, 1, m, n)
    largest = max(m, n)
    ti, tj = (4, 4) if largest <= 32 or vector < 4 or n <= 4 else (4, 8) if largest <= 48 else (8, 8)
    return ti, -(-m // ti), tj, -(-n // tj)


def least(shapes, unit, m, n):
    """Of shapes of blocks, in units, the one that needs least numbers for m x n, the first of several."""

    def numbers(shape):
        ti, teami, tj, teamj = shape
        rows, columns = unit * ti * teami, unit * tj * teamj
        return -(-m // rows) * rows * -(-n // columns) * columns

    return min(shapes, key=numbers)


def pitch(length, vector, matrix_units, parts, along):
    """Elements from line to line of so many, such that work-items of a warp read different banks."""
    if not matrix_units:
        units = -(-length // vector)
        return vector * (units + 1 - units % 2)
    rest, unit = (4, 8) if parts == 1 or along else (2, 4)
    return -(-(length - rest) // unit) * unit + rest if length > rest else rest
