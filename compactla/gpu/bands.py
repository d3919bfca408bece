"""How a device factors systems with band matrices and solves with them; one work-item for each system."""

import math
from typing import NamedTuple

import numpy as np
import pyopencl.array as cla

from compactla.bands.form import Form
from compactla.gpu.arrays import default_vlen, download, empty
from compactla.gpu.launch import launch_lanes
from compactla.gpu.ordinary import pack, spread, unpack
from compactla.layout import Pack
from compactla.view import REAL, packed_dtype


class Factors(NamedTuple):
    """Factors of so many matrices in packs, as gbtrf.cl makes them, and how rows were swapped."""

    F: cla.Array
    swaps: cla.Array
    nsys: int


def moved(a, axis):
    """A view of an array with this axis as the last one."""
    order = [k for k in range(a.ndim) if k != axis] + [axis]
    return seen_as(a, [a.shape[k] for k in order], [a.strides[k] for k in order])


def seen_as(a, shape, strides):
    """A view of an array of other axes."""
    return cla.Array(
        a.queue, tuple(shape), a.dtype, strides=tuple(strides), data=a.base_data, offset=a.offset, events=a.events
    )


def rows(a):
    """A view of vectors (..., n) as matrices (..., 1, n)."""
    return seen_as(a, (*a.shape[:-1], 1, a.shape[-1]), (*a.strides[:-1], 0, a.strides[-1]))


def columns(a):
    """A view of vectors (..., n) as matrices (..., n, 1)."""
    return seen_as(a, (*a.shape, 1), (*a.strides, a.dtype.itemsize))


def source(form: Form):
    """What gbtrf.cl calls the form of the matrices."""
    return {"banded": 0, "tridiag": 1, "ring": 2, "spd": 3 if form.lower else 4}[form.name]


def factor(form: Form, n, matrix, lead, queue, wait_for=()):
    """`Factors` and info of matrices (..., m, n) on the device."""
    dtype, nsys = matrix[0].dtype, math.prod(lead)
    if not nsys:
        return None, np.zeros(0, np.int64)
    V, width = default_vlen(dtype, queue), form.kl + form.reach + 1
    npack, tail = -(-nsys // V), (2,) if dtype.kind == "c" else ()
    packs = [(pack(a, lead, dtype) if a.size else empty_pack(nsys, dtype, queue)).data for a in matrix]
    F = empty((npack, n, width, *tail, V), REAL[dtype.char], queue)
    swaps = empty((npack, n if form.pivoting else 1, V), np.int32, queue)
    info = empty((npack * V,), np.int32, queue)
    args = npack * V, n, *(packs * 3)[:3], F, swaps, info
    macros = macros_of(form) | {"SOURCE": source(form)}
    launch_lanes(queue, wait_for, "gbtrf.cl", "gbtrf_batch", dtype, V, (npack * V, 1), *args, GBTRF_BATCH=1, **macros)
    return Factors(F, swaps, nsys), download(info)[:nsys].astype(np.int64)


def empty_pack(nm, dtype, queue):
    """A pack of one number each, for what is not read."""
    return Pack.empty(nm, 1, 1, dtype=dtype, queue=queue)


def macros_of(form: Form):
    return {"KL": form.kl, "KU": form.ku, "REACH": form.reach, "PIVOTING": int(form.pivoting)}


def solve(form: Form, n, factors: Factors, rhs, axis, out, common, wait_for=()):
    """`out`, or a new array: the solutions for an array of any strides, with systems along an axis or the last but one.
    """
    dtype = packed_dtype(factors.F)
    B = rhs if axis is None else columns(moved(rhs, axis))
    lead = B.shape[:-2]
    P = pack(B, lead, dtype)
    queue, lanes, r = rhs.queue, P.data.shape[0] * P.vlen, B.shape[-1]
    args = lanes, n, r, factors.F, factors.swaps, P.data
    macros = macros_of(form) | {"COMMON": int(common), "FOLD": int(form.name == "ring")}
    launch_lanes(queue, wait_for, "gbtrs.cl", "gbtrs_batch", dtype, P.vlen, (lanes, 1), *args, GBTRS_BATCH=1, **macros)
    x = unpack(P, rhs.allocator)  # (nsys, n, r)
    if axis is not None:
        rest = [k for k in range(rhs.ndim) if k != axis]
        strides, step = [0] * rhs.ndim, n * dtype.itemsize
        strides[axis] = dtype.itemsize
        for k in reversed(rest):
            strides[k], step = step, step * rhs.shape[k]
        x = x.reshape(rhs.shape) if axis == rhs.ndim - 1 else spread(x, rhs.shape, strides, dtype)
    if out is None:
        return x
    out[...] = x
    return out
