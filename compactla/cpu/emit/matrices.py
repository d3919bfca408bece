"""Matrices of vectors in memory, and how many vectors the machine's registers hold.

`Matrix` is a matrix of such vectors: one pack, or a view of it. `Elements` is the same while code is emitted, and holds
what there is of addresses.
"""

import functools
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from compactla.cpu.emit.choices import gathers
from compactla.cpu.emit.index import INDEX, Condition, Index, IntOrIndex, once, value_of
from compactla.cpu.emit.machine import machine
from compactla.cpu.emit.vectors import Flags, Lanes, Vector, alike

TALLEST = 6
# LLVM types of numbers in memory that are computed with as wider ones; those of bfloat16 have no type of their own.
HALF, BFLOAT = ir.HalfType(), ir.IntType(16)
BYTE = ir.IntType(8)
BYTES = {ir.DoubleType(): 8, ir.FloatType(): 4, HALF: 2}
STORED = {"float32": ir.FloatType(), "float16": HALF, "bfloat16": BFLOAT}


def native_width(dtype: np.dtype) -> int:
    """Real numbers of this dtype in a vector register."""
    return machine()[0] // (dtype.itemsize // (2 if dtype.kind == "c" else 1))


def tile_size(vector: Vector, m: IntOrIndex, n: IntOrIndex) -> tuple[int, int]:
    """Rows and columns of a register tile of an m x n matrix.

    Its numbers, one of its rows and one more fit the registers, of which one is left for LLVM where it can be.
    Where an extent is not known, code is emitted for every tile up to this size, which has to stay little.
    """
    room = held(vector) - 1
    known = isinstance(m, int) and isinstance(n, int)
    square = next(t for t in range(5 if known else 4, 0, -1) if t == 1 or t * (t + 1) <= room)
    if not known:
        return square, square
    columns = max(n, 1) if n <= square + 1 else square
    return tallest(vector, columns), columns


def held(vector: Vector) -> int:
    """How many vectors of a type the registers hold."""
    return machine()[1] // registers_of(vector)


def registers_of(vector: Vector) -> int:
    """How many registers a vector fills."""
    return len(vector.parts) * -(-vector.lanes * vector.real.bitwidth // (8 * machine()[0]))


def tallest(vector: Vector, columns: int) -> int:
    """Rows of a register tile that has so many columns."""
    return max(1, min((held(vector) - 2) // columns - 1, TALLEST))


class Matrix(types.Type):
    """An m x n matrix of vectors in memory; sizes and strides are integers where code is for them alone, else None.

    So is the offset `im` of imaginary parts. `stored` says as what its numbers are in memory: "" as what they are, else
    a key of `STORED`. `followed` says that others are likely to follow, to be fetched `ahead`: bytes from this one on.
    """

    def __init__(self, vector, m=None, n=None, rs=None, cs=None, conj=False, stored="", im=None, followed=False):
        self.vector, self.m, self.n, self.rs, self.cs, self.conj = vector, m, n, rs, cs, conj
        self.stored, self.im, self.followed = stored, im, followed
        super().__init__(name=f"Matrix({vector}, {m}, {n}, {rs}, {cs}, {conj}, {stored}, {im}, {followed})")


@register_model(Matrix)
class MatrixModel(models.StructModel):
    def __init__(self, dmm, matrix):
        members = [("base", types.CPointer(matrix.vector.real))]
        members += [(name, types.intp) for name in ("m", "n", "rs", "cs", "im", "ahead")]
        super().__init__(dmm, matrix, members)


OPAQUE = binding.llvm_version_info[0] >= 17  # whether LLVM's pointers don't say what they point to


def shifted(builder: ir.IRBuilder, pointer: Any, offset: IntOrIndex, element: Any, to: Any = None) -> Any:
    """The pointer, by so many numbers of an LLVM type behind; `to` what it points there, by default as before."""
    offset, result = value_of(offset), pointer.type if to is None else pointer_to(to)

    def there():
        if isinstance(offset, ir.Constant) and offset.constant == 0:
            return builder.bitcast(pointer, result)
        if not OPAQUE:
            found = builder.gep(builder.bitcast(pointer, pointer_to(element)), [offset], source_etype=element)
            return builder.bitcast(found, result)
        found = builder.gep(pointer, [offset], source_etype=element)
        found.type = result  # llvmlite tells pointers apart
        return found

    return once(builder, (pointer, offset, element, result), there)


@functools.cache
def pointer_to(kind: Any) -> Any:
    """LLVM type of a pointer to numbers of a type."""
    return kind.as_pointer()


def itemsize(element: Any) -> int:
    """Bytes of a number of an LLVM type."""
    return element.width // 8 if isinstance(element, ir.IntType) else BYTES[element]


def widened(builder, x, part):
    """A vector of stored numbers as one of the type `part`."""
    if x.type.element == BFLOAT:
        wide = ir.VectorType(ir.IntType(32), x.type.count)
        upper = builder.shl(builder.zext(x, wide), ir.Constant(wide, [16] * x.type.count))
        x = builder.bitcast(upper, ir.VectorType(ir.FloatType(), x.type.count))
    return x if x.type == part else builder.fpext(x, part)


def rounded(builder, x, element):
    """A vector as one of stored numbers, each the nearest; to 16 bits by way of 32."""
    count = x.type.count
    single = ir.VectorType(ir.FloatType(), count)
    x = x if x.type == single else builder.fptrunc(x, single)
    if element == HALF:
        return builder.fptrunc(x, ir.VectorType(HALF, count))
    if element == BFLOAT:
        kind = ir.VectorType(ir.IntType(32), count)
        one, most, sixteen = (ir.Constant(kind, [number] * count) for number in (1, 0x7FFF, 16))
        bits = builder.bitcast(x, kind)
        odd = builder.and_(builder.lshr(bits, sixteen), one)
        nearest = builder.add(bits, builder.add(odd, most))
        nearest = builder.select(builder.fcmp_unordered("uno", x, x), bits, nearest)  # NaN stays NaN
        return builder.trunc(builder.lshr(nearest, sixteen), ir.VectorType(BFLOAT, count))
    return x


def splat(builder: ir.IRBuilder, vector: Vector, scalar: Any) -> Any:
    """A vector with the scalar in every lane."""
    first = builder.insert_element(ir.Constant(vector.part, ir.Undefined), scalar, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
    return builder.shuffle_vector(first, ir.Constant(vector.part, ir.Undefined), order)


class Elements:
    """A `Matrix` while code is emitted: strides and the offset `im` of imaginary parts count real numbers.

    Of a `common` one there is one number in memory for all lanes. `packs` says how many packs there are to work on, of
    which this is the first, and how far apart they are; 0 if lines of this one are to be fetched once. `ahead` says how
    many bytes behind it is what comes next, and has to be fetched; 0 if nothing has. `half` is "L" or "U" if only that
    triangle has.
    """

    def __init__(
        self, code: Any, vector: Vector, base: Any, m: IntOrIndex, n: IntOrIndex, rs: IntOrIndex, cs: IntOrIndex,
        im: IntOrIndex, conj: bool = False, stored: str = "", stream: bool = False, common: bool = False,
        packs: tuple = (1, 0), ahead: IntOrIndex = 0, half: str = "",
    ) -> None:  # fmt: skip
        self.code, self.vector, self.base, self.stored, self.common = code, vector, base, stored, common
        self.m, self.n, self.rs, self.cs, self.im = map(code.index, (m, n, rs, cs, im))
        self.conj, self.stream = conj, stream
        self.packs, self.ahead, self.half = packs, code.index(ahead), half

    def _replace(self, **changes):
        fields = dict(self.__dict__)
        fields.update(changes)
        return Elements(**fields)

    @property
    def T(self) -> "Elements":
        return self._replace(m=self.n, n=self.m, rs=self.cs, cs=self.rs)

    @property
    def H(self) -> "Elements":
        return self.T._replace(conj=not self.conj)

    @property
    def rows_reversed(self) -> "Elements":
        return self._replace(base=self._at(self.m - 1, 0), rs=-self.rs)

    @property
    def reversed(self) -> "Elements":
        return self.rows_reversed.T.rows_reversed.T

    @property
    def is_strided(self) -> bool:
        """Whether its size is known and its strides are not."""
        known = [isinstance(x, int) for x in (self.m, self.n, self.rs, self.cs)]
        return known[:2] == [True, True] and not all(known)

    @property
    def contiguous(self) -> "Elements":
        """The matrix with strides that are known, those of contiguous rows."""
        step = self.vector.lanes * len(self.vector.parts)
        return self._replace(rs=self.n * step, cs=step)

    @property
    def is_contiguous(self) -> Condition:
        """Whether its strides are those of `contiguous`."""
        other = self.contiguous
        return (self.code.unknown(self.rs) == other.rs) & (self.code.unknown(self.cs) == other.cs)

    @property
    def lowest(self) -> Any:
        """The lowest address of a matrix of known size and strides."""
        extents = (self.m - 1) * self.rs, (self.n - 1) * self.cs
        return self._replace(rs=1)._at(sum(min(extent, 0) for extent in extents), 0)

    def following(self, stride: IntOrIndex, lane: IntOrIndex, lanes: int) -> "Elements":
        """Places to fetch for the pack that is `stride` real numbers on, while the lanes from `lane` on are at work."""
        stride, lane = map(self.code.index, (stride, lane))
        return self._replace(base=self._shifted(stride + stride // lanes * lane - lane))

    def pack(self, p: IntOrIndex) -> "Elements":
        """The one that is p packs behind this, alone."""
        return self._replace(base=self._shifted(p * self.code.index(self.packs[1])), packs=(1, self.packs[1]))

    def block(self, i: IntOrIndex, j: IntOrIndex, m: IntOrIndex, n: IntOrIndex) -> "Elements":
        return self._replace(base=self._at(i, j), m=m, n=n)

    def _at(self, i, j, im=0, to=None):
        return self._shifted(i * self.rs + j * self.cs + im, to)

    def _shifted(self, offset, to=None):
        """The address of the real number that is so many of them behind the first, of a vector if that is `to`."""
        return shifted(self.code.builder, self.base, offset, self.element, to)

    def pointer(self, i: IntOrIndex, j: IntOrIndex, lane: IntOrIndex) -> Any:
        """The address of a real number: that of a lane of element (i, j)."""
        return self._at(i, j, lane)

    @property
    def element(self) -> Any:
        """LLVM type of a real number in memory."""
        return STORED.get(self.stored, self.vector.part.element)

    def __getitem__(self, ij):
        builder, part = self.code.builder, self.vector.part
        parts = []
        for im in (0, self.im) if self.vector.is_complex else (0,):
            kind = self.element if self.common else ir.VectorType(self.element, part.count) if self.stored else part
            pointer = self._at(*ij, im, to=kind)
            stored = builder.load(pointer, align=itemsize(self.element), typ=kind)
            if self.common:
                stored = splat(builder, self.vector, stored)
            parts.append(widened(builder, stored, part) if self.stored else stored)
        lanes = Lanes(builder, self.vector, *parts)
        return lanes.conjugate() if self.conj else lanes

    def __setitem__(self, ij, lanes):
        builder = self.code.builder
        lanes, _ = alike(lanes, Lanes.zero(builder, self.vector))
        if self.conj:
            lanes = lanes.conjugate()
        for im, value in zip((0, self.im), lanes.parts, strict=False):
            value = rounded(builder, value, self.element) if self.stored else value
            pointer = self._at(*ij, im, to=value.type)
            store = builder.store(value, pointer, align=itemsize(self.element))
            if self.stream:
                store.align *= self.vector.lanes
                store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))

    def masked(self, i: IntOrIndex, j: IntOrIndex, flags: Flags, other: Lanes) -> Lanes:
        """The lanes of element (i, j) where flags are set, else those of `other`; nothing else is read."""
        pairs = zip((0, self.im), other.parts, strict=False)
        return other._new(*(self._masked("load", i, j, im, flags, part) for im, part in pairs))

    def store_masked(self, i: IntOrIndex, j: IntOrIndex, flags: Flags, lanes: Lanes) -> None:
        """Store the lanes where flags are set."""
        for im, part in zip((0, self.im), lanes.parts, strict=False):
            self._masked("store", i, j, im, flags, part)

    def _masked(self, name, i, j, im, flags, part):
        """LLVM's load of a part, or store, of the lanes where flags are set."""
        b, kind = self.code.builder, part.type
        pointer = self._at(i, j, im, to=kind)
        align = ir.IntType(32)(itemsize(self.element))
        load = name == "load"
        args = [pointer, align, flags.value, part] if load else [part, pointer, align, flags.value]
        function = ir.FunctionType(kind if load else ir.VoidType(), [x.type for x in args])
        name = f"llvm.masked.{name}.{self._suffix}.p0"
        return b.call(cgutils.get_or_insert_function(b.module, function, name), args)

    @property
    def _suffix(self):
        """The part of LLVM's names of functions for vectors of its numbers."""
        letter = "i" if isinstance(self.element, ir.IntType) else "f"
        return f"v{self.vector.lanes}{letter}{8 * itemsize(self.element)}"

    def gathered(self, i: IntOrIndex, j: IntOrIndex, offsets: Lanes) -> Lanes:
        """An element of which lane k is `offsets[k]` bytes behind the number at (i, j)."""
        b, part = self.code.builder, self.vector.part
        if not gathers():
            small = ir.IntType(32)
            starts = [b.extract_element(offsets.parts[0], small(lane)) for lane in range(part.count)]
            found = []
            for im in (0, self.im)[: len(self.vector.parts)]:
                base, x = b.bitcast(self._at(i, j, im), BYTE.as_pointer()), ir.Constant(part, ir.Undefined)
                for lane, start in enumerate(starts):
                    there = b.bitcast(b.gep(base, [start], source_etype=BYTE), self.element.as_pointer())
                    x = b.insert_element(x, b.load(there, typ=self.element), small(lane))
                found.append(x)
            return Lanes(b, self.vector, *found)
        flags = ir.Constant(ir.VectorType(ir.IntType(1), part.count), [1] * part.count)
        places = self._places(i, j, offsets)
        parts = [self._apart("gather", part, [where, flags, ir.Constant(part, ir.Undefined)]) for where in places]
        return Lanes(b, self.vector, *parts)

    def scatter(self, i: IntOrIndex, j: IntOrIndex, offsets: Lanes, lanes: Lanes, flags: Flags) -> None:
        """Store lane k `offsets[k]` bytes behind the number at (i, j), where flags are set."""
        for where, part in zip(self._places(i, j, offsets), lanes.parts, strict=False):
            self._apart("scatter", ir.VoidType(), [part, where, flags.value])

    def _places(self, i, j, offsets):
        """The addresses of both parts, so many bytes behind those of element (i, j)."""
        b, places = self.code.builder, []
        for im in (0, self.im)[: len(self.vector.parts)]:
            start = self.code.broadcast(Index(b, b.ptrtoint(self._at(i, j, im), INDEX)), offsets.vector)
            pointers = ir.VectorType(self.element.as_pointer(), self.vector.lanes)
            places.append(b.inttoptr((start + offsets).parts[0], pointers))
        return places

    def _apart(self, name, result, args):
        """LLVM's access to numbers that are apart."""
        at = 1 if name == "scatter" else 0
        args = [*args[: at + 1], ir.IntType(32)(itemsize(self.element)), *args[at + 1 :]]
        function = ir.FunctionType(result, [x.type for x in args])
        name = f"llvm.masked.{name}.{self._suffix}.v{self.vector.lanes}p0"
        return self.code.builder.call(cgutils.get_or_insert_function(self.code.builder.module, function, name), args)
