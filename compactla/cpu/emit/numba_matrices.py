"""Matrices of vectors, as Numba functions see them.

In an `@njit` function ``A = matrix(a[p], 8)`` is pack p of `a`, ``A[i, j]`` one vector of its elements, for what is in
`compactla.cpu.emit.numba_vectors`; ``A[i, j] = x`` stores, ``A.T`` and ``A.H`` are views, ``A.m`` and ``A.n`` sizes.
"""

import functools
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import intrinsic, lower_builtin, lower_getattr

from compactla.cpu.emit.code import Code, elements
from compactla.cpu.emit.index import INDEX
from compactla.cpu.emit.matrices import STORED, Matrix, shifted
from compactla.cpu.emit.numba_vectors import fits, lift
from compactla.cpu.emit.prefetch import PAGE
from compactla.cpu.emit.vectors import Vector
from compactla.overlap import DATA

NUMBERS = types.float32, types.float64, types.complex64, types.complex128, types.int32, types.int64
# Bytes of an array from which on what comes next in it is fetched ahead.
LARGE = 2 << 20
KINDS: dict[str, types.Type] = {np.dtype(kind.name).char: kind for kind in NUMBERS}


def matrix_value(context, builder, kind, base, m, n, rs, cs, im, ahead):
    proxy = cgutils.create_struct_proxy(kind)(context, builder)
    proxy.base = builder.bitcast(base, kind.vector.part.element.as_pointer())
    proxy.m, proxy.n, proxy.rs, proxy.cs, proxy.im, proxy.ahead = m, n, rs, cs, im, ahead
    return proxy._getvalue()


@intrinsic(prefer_literal=True)
def matrix(typing_context: Any, a: Any, V: Any, m: Any = None, n: Any = None) -> Any:
    """The V matrices in `a`, an array of shape (m, n, V), or (m, n, 2, V) for complex numbers; or of integers.

    `V` is a compile-time constant. So are `m` and `n` if they are given, which have to be the array's: kernels are then
    compiled for this size. An array that does not fit raises a ValueError; indices are not checked.

    Routines fetch what lies behind a matrix of a page or more ahead, if it is a part of a NumPy array of more than
    `LARGE` bytes: in a loop over the matrices of an array that comes next.
    """
    # Refuse what is no array of vectors, and sizes that are no constants.
    integers = isinstance(a, types.Array) and a.ndim == 3 and a.dtype in (types.int32, types.int64)
    floats = isinstance(a, types.Array) and a.ndim in (3, 4) and a.dtype in (types.float32, types.float64)
    if not (integers or floats):
        expected = "(m, n, V) or (m, n, 2, V) of float32 or float64, or (m, n, V) of int32 or int64"
        raise errors.TypingError(f"a is {a}, must be an array {expected}")
    absent = types.Omitted | types.NoneType
    sizes = [None if size is None or isinstance(size, absent) else size for size in (m, n)]
    if not all(isinstance(size, types.IntegerLiteral) for size in (V, *(size for size in sizes if size is not None))):
        raise errors.TypingError("V, m and n must be compile-time constants")
    sizes = [None if size is None else size.literal_value for size in sizes]
    # What is known of the matrix: sizes that are given, and strides of contiguous arrays.
    lanes = V.literal_value
    column = lanes * (a.ndim - 2)
    strides = (None if sizes[1] is None else sizes[1] * column, column) if a.layout == "C" else (None, None)
    dtype = a.dtype if a.ndim == 3 else types.Complex(f"complex{2 * a.dtype.bitwidth}", a.dtype)
    known = [size for size in (*sizes, *strides[:1]) if size is not None]
    nbytes = known[0] * known[2] * (a.dtype.bitwidth // 8) if len(known) == 3 else 0
    followed = nbytes >= PAGE
    result = Matrix(Vector(dtype, lanes), *sizes, *strides, im=lanes, followed=followed)  # type: ignore[misc] # Numba's
    arguments = [types.Omitted(None) if kind is None else kind for kind in (m, n)]

    def lower(context, builder, signature, args):
        # The array must be as its type promises; where it is not, raise an error.
        array = context.make_array(a)(context, builder, args[0])
        shape, steps = (cgutils.unpack_tuple(builder, t) for t in (array.shape, array.strides))
        item = a.dtype.bitwidth // 8
        needed = [*zip(shape, (*sizes, *[2, lanes][4 - a.ndim :]), strict=True)]
        # NumPy gives any strides to an array without elements.
        empty = builder.icmp_unsigned("==", array.nitems, INDEX(0))
        apart = [(steps[-1], item)] if lanes > 1 else []
        apart += [(steps[2], item * lanes)] if a.ndim == 4 else []
        needed += [(builder.select(empty, INDEX(known), value), known) for value, known in apart]
        for value, known in needed:
            if known is not None:
                with builder.if_then(builder.icmp_unsigned("!=", value, INDEX(known)), likely=False):
                    message = f"array must have vectors of {lanes} contiguous lanes, and the given m and n"
                    context.call_conv.return_user_exc(builder, ValueError, (message,))
        rs, cs = (builder.sdiv(step, INDEX(item)) for step in steps[:2])
        ahead = INDEX(0)
        if followed:
            is_large = builder.icmp_signed(">", whole_extent(builder, array), INDEX(LARGE))
            ahead = builder.select(is_large, INDEX(nbytes), ahead)
        return matrix_value(context, builder, result, array.data, *shape[:2], rs, cs, INDEX(lanes), ahead)

    return result(a, V, *arguments), lower


def whole_extent(builder, array):
    """Bytes along the first axis of the NumPy array that an array of Numba's is a part of; 0 if there is none."""
    whole, extent = array.parent, cgutils.alloca_once_value(builder, INDEX(0))
    with builder.if_then(cgutils.is_not_null(builder, whole)):
        fields = builder.bitcast(whole, INDEX.as_pointer())

        def at(pointer, byte):
            return builder.load(builder.gep(pointer, [INDEX(byte // 8)], source_etype=INDEX), typ=INDEX)

        shape, strides = (builder.inttoptr(at(fields, DATA + byte), INDEX.as_pointer()) for byte in (16, 24))
        builder.store(builder.mul(at(shape, 0), at(strides, 0)), extent)
    return builder.load(extent, typ=INDEX)


def form(
    dtype: np.dtype, width: int, m: int | None = None, n: int | None = None,
    strides: Any = (None, None), conj: bool = False, stored: str = "",
) -> str:  # fmt: skip
    """The properties of a matrix at compile time, as a string for `at`: "D8 3,3,48,16 conj", "?" for the unknown.

    It ends with what its numbers are `stored` as, if that is a narrower type.
    """
    known = ["?" if x is None else str(x) for x in (m, n, *strides)]
    return " ".join(filter(None, [f"{dtype.char}{width}", ",".join(known), "conj" * conj, stored]))


def parse_form(text: str) -> Matrix:
    vector, known, *rest = text.split()
    m, n, rs, cs = (None if x == "?" else int(x) for x in known.split(","))
    stored = next((word for word in rest if word in STORED), "")
    return Matrix(Vector(KINDS[vector[0]], int(vector[1:])), m, n, rs, cs, "conj" in rest, stored)


def lanes_of(form: str) -> int:
    """Lanes that are computed with at a time."""
    return parse_form(form).vector.lanes


def parts_of(form: str) -> int:
    """Real numbers in an element: 1, or 2 if it is complex."""
    return len(parse_form(form).vector.parts)


def itemsize_of(form: str) -> int:
    """Bytes of a real number."""
    return parse_form(form).vector.real.bitwidth // 8


@intrinsic(prefer_literal=True)
def at(typing_context: Any, address: Any, offset: Any, m: Any, n: Any, rs: Any, cs: Any, im: Any, form: Any) -> Any:
    """Matrix at `offset` real numbers from an address in bytes; see `form`."""
    result = parse_form(form.literal_value)

    def lower(context, builder, signature, args):
        return matrix_at(context, builder, result, *args[:7])

    return result(*[types.intp] * 7, form), lower


@intrinsic(prefer_literal=True)
def slot_at(typing_context: Any, address: Any, slot: Any, v: Any, lie: Any, form: Any) -> Any:
    """Matrix in the lanes from v on of a slot of an array, at an address in bytes; see `form`.

    `lie` says how slots lie: their lanes, how many real numbers one has, and the m, n, rs and cs of its matrices.
    """
    result = parse_form(form.literal_value)

    def lower(context, builder, signature, args):
        address, slot, v, lie, _ = args
        V, size, *shape = cgutils.unpack_tuple(builder, lie, 6)
        offset = builder.add(builder.mul(slot, size, flags=["nsw"]), v, flags=["nsw"])
        return matrix_at(context, builder, result, address, offset, *shape, V)

    return result(*[types.intp] * 3, types.UniTuple(types.intp, 6), form), lower


@intrinsic(prefer_literal=True)
def pack_at(typing_context: Any, address: Any, p: Any, v: Any, V: Any, m: Any, n: Any, form: Any) -> Any:
    """Matrix in the lanes from v on of pack p, of V lanes, of contiguous m x n packs at an address in bytes."""
    result = parse_form(form.literal_value)

    def lower(context, builder, signature, args):
        address, p, v, V, m, n, _ = args

        def times(*factors):
            return functools.reduce(lambda x, y: builder.mul(x, y, flags=["nsw"]), factors)

        step = times(V, INDEX(len(result.vector.parts)))
        offset = builder.add(times(p, m, n, step), v, flags=["nsw"])
        return matrix_at(context, builder, result, address, offset, m, n, times(n, step), step, V)

    return result(*[types.intp] * 6, form), lower


def matrix_at(context, builder, kind, address, offset, m, n, rs, cs, im):
    """The value of a matrix that is `offset` real numbers behind an address in bytes."""
    element = kind.vector.part.element
    start = builder.inttoptr(address, element.as_pointer())
    base = shifted(builder, start, offset, STORED.get(kind.stored, element))
    return matrix_value(context, builder, kind, base, m, n, rs, cs, im, INDEX(0))


# Elements of matrices.


@infer_global(operator.getitem)
class GetItem(AbstractTemplate):
    def generic(self, args, kws):
        A, _ = args
        if isinstance(A, Matrix):
            return signature(A.vector, A, types.UniTuple(types.intp, 2))


@infer_global(operator.setitem)
class SetItem(AbstractTemplate):
    def generic(self, args, kws):
        A, _, x = args
        if isinstance(A, Matrix) and fits(x, A.vector):
            return signature(types.none, A, types.UniTuple(types.intp, 2), x)


@lower_builtin(operator.getitem, Matrix, types.UniTuple)
def lower_getitem(context, builder, signature, args):
    code = Code(builder)
    A = elements(context, code, signature.args[0], args[0])
    return A[tuple(map(code.index, cgutils.unpack_tuple(builder, args[1], 2)))].wrap()


@lower_builtin(operator.setitem, Matrix, types.UniTuple, Vector)
@lower_builtin(operator.setitem, Matrix, types.UniTuple, types.Number)
def lower_setitem(context, builder, signature, args):
    code = Code(builder)
    A = elements(context, code, signature.args[0], args[0])
    x = lift(context, builder, signature.args[2], args[2], A.vector)
    A[tuple(map(code.index, cgutils.unpack_tuple(builder, args[1], 2)))] = x
    return context.get_dummy_value()


@infer_getattr
class MatrixAttributes(AttributeTemplate):
    key = Matrix

    def resolve_m(self, A):
        return types.intp

    resolve_n = resolve_m

    def resolve_T(self, A):
        return Matrix(A.vector, A.n, A.m, A.cs, A.rs, A.conj, A.stored, A.im, A.followed)

    def resolve_H(self, A):
        return Matrix(A.vector, A.n, A.m, A.cs, A.rs, not A.conj, A.stored, A.im, A.followed)


@lower_getattr(Matrix, "m")
def lower_m(context, builder, kind, value):
    return cgutils.create_struct_proxy(kind)(context, builder, value).m


@lower_getattr(Matrix, "n")
def lower_n(context, builder, kind, value):
    return cgutils.create_struct_proxy(kind)(context, builder, value).n


@lower_getattr(Matrix, "T")
def lower_T(context, builder, kind, value):
    A = cgutils.create_struct_proxy(kind)(context, builder, value)
    return matrix_value(context, builder, Matrix(kind.vector), A.base, A.n, A.m, A.cs, A.rs, A.im, A.ahead)


lower_getattr(Matrix, "H")(lower_T)


@intrinsic
def fence(typing_context: Any) -> Any:
    """Let other threads see what was stored past the caches no later than what is stored from now on."""

    def lower(context, builder, signature, args):
        if builder.module.triple.startswith(("x86_64", "i686")):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])
        else:
            builder.fence("release")
        return context.get_dummy_value()

    return types.void(), lower
