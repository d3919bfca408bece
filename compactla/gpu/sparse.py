"""How devices multiply with sparse batches: one launch for each. The names are those of `compactla.cpu.sparse`.

Arguments are as there, but for `wait_for`, events, in place of `threads`, and packs may have any strides.
"""

import weakref

import numpy as np

from compactla.gpu.arrays import upload
from compactla.gpu.launch import GROUP, MOST, flatten, launch
from compactla.gpu.program import kernel

# What devices have of patterns, by the context and a name: it goes when the pattern does.
_patterns: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def on_device(pattern, queue, name, make):
    """What `make` returns, arrays of int64 that begin rows and others of small integers, as buffers of a device."""
    kept = _patterns.setdefault(pattern, {})
    key = queue.context, name
    if key not in kept:
        arrays = (np.asarray(a, np.int64 if k == 0 else np.int32) for k, a in enumerate(make()))
        kept[key] = [upload(a, queue) for a in arrays]  # which has been done when it returns
    return [a.data for a in kept[key]]


def rows_of(pattern, queue, trans):
    """indptr, indices, and places in the values, of the matrices or their transposes."""
    if trans != "N":
        return on_device(pattern, queue, "transposed", lambda: pattern.transposed)
    return [*on_device(pattern, queue, "own", lambda: (pattern.indptr, pattern.indices)), None]


def multiply(values, pattern, X, Y, trans="N", scalars=None, wait_for=()):
    """Y <- op(A) X, or alpha op(A) X + beta Y with packs of both in `scalars`."""
    places = rows_of(pattern, X.queue, trans)
    packs = (P.view for P in (values if scalars is None else scalars, values, X, Y))
    macros = {"CSRMM_BATCH": 1, "TRANS": "NTC".index(trans), "SCALED": int(scalars is not None)}
    start("csrmm.cl", "csrmm_batch", Y, Y.m, (X.n, *places), packs, wait_for, **macros)


def take(values, places, Y, wait_for=()):
    """Rows of Y, of one column, <- rows of `values` in these places: -1 stands for 0, -2 for 1."""
    places = upload(places.astype(np.int32), Y.queue)
    start("csrmm.cl", "take_rows", Y, Y.m, (places,), (values.view, Y.view), wait_for, TAKE_ROWS=1)


def start(file, name, Y, rows, values, packs, wait_for, **macros):
    """Launch a kernel for all lanes of Y, with work-items for each row of so many, up to a limit."""
    lanes = Y.view.npack * Y.vlen
    if not lanes * rows * Y.n:
        return
    arrays, args = flatten((lanes, rows, *values, *packs))
    run = kernel(Y.queue, file, name, Y.dtype, Y.vlen, args, **macros)
    launch(Y.queue, wait_for, run, (-(-lanes // GROUP) * GROUP, min(rows, MOST)), (GROUP, 1), arrays, args)
