"""How a device runs a routine: one launch of one kernel.

For a routine NAME there are in NAME.cl, with operands A, B, ... of sizes m, n, ...:

``NAME_batch``
    For all sizes, one work-item a lane. Arguments: ``long lanes, nm``, of which the first nm lanes hold matrices, and
    outputs are written for these only; the sizes, and the options that are compiled in as their places among their
    letters (0 and 1 are CLA_NONUNIT and CLA_UNIT of tile.h), as longs; two REALs for each scalar; for each operand its
    buffer, of ints for integers, and as longs where it begins, its strides from pack to pack, row to row and column to
    column, and 1 if it is conjugated; buffers of ints for outputs.
``NAME_item``, ``NAME_team`` and others of its `Search`
    For known sizes. Macros: the sizes ``M``, ``N``, ...; ``ARS``, ``ACS``, ``ACONJ``, ``BRS``, ...; the options; for
    each scalar 0 if it is what the row says, else 1. Arguments: lanes and nm, scalars, for each operand its buffer,
    where it begins, and its stride from pack to pack, and outputs.

Sizes above 32 for which packs have no kernel of their own, but ordinary matrices do, which are packs of one lane, are
done on copies: two more passes over memory cost less than one work-item for a matrix.

By ``ACOMMON`` and so on, 0 or 1, they know whether an operand is one ordinary matrix for the whole batch. Strides count
real numbers, or integers. Sizes that are implied are not passed. A kernel is built with its name in capital letters as
a macro; for a build with nothing else, by an editor, known.h and the files have values of all others.
"""

import functools
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compactla.calls.launch import Launch, Recording
from compactla.calls.notes import refuse
from compactla.calls.plans import UNKNOWN
from compactla.checks import stays
from compactla.foreign import hand_back
from compactla.gpu.arrays import bring, empty, ordinary, pack, reused, unpack
from compactla.gpu.launch import KernelPlan, launch_lanes, launch_plan, plan, plans
from compactla.gpu.tuning import choices
from compactla.view import View

NOTHING = KernelPlan(None, 0, 0, {})  # for matrices without elements
COPIES = KernelPlan(None, 0, 1, {})  # for packs that are done on copies
SMALL = 32  # rows and columns of matrices that are not


def start(
    row: Any, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, info: Any, launch: Launch
) -> Any:
    """Run a routine on packs, as `compactla.routine.Routine.run` checked them; the arguments are its.

    Waits for the device only to return a NumPy array, which is done but for arrays in CUDA memory.
    """
    main = views[row.main]
    queue, lanes = main.queue, main.npack * main.vlen
    layouts = tuple([A.layout for A in views])
    general = scalars and tuple(map(operator.ne, scalars, row.scalars.values()))
    key, kept = (row, layouts, general, conj, option), plans(queue)
    special = kept.known.get(key, UNKNOWN)
    if special is UNKNOWN:
        flags = conj or (False,) * len(views)
        is_empty = not any(A.m * A.n for operand, A in zip(row.operands, layouts, strict=True) if operand.written)
        sizes = sizes_of(row, layouts)
        special = NOTHING if is_empty else plan_of(row, views, sizes, general, flags, option)
        if special is None and suits_copies(row, main, sizes):
            special = COPIES
        kept.add(key, special)
    output = empty((nm,), np.int32, queue, reused(main.buffer)) if row.outputs and info is None else info
    outputs = [] if output is None else [output]
    parts = [part for x in scalars for part in (float(x.real), float(x.imag))]
    if lanes == 0 or special is NOTHING:
        for array in outputs:
            launch.do(clear, array)
    elif special is COPIES:
        on_copies(row, views, scalars, conj, option, nm, output, launch)
    elif special and not ("alpha" in row.scalars and scalars[0] == 0):  # then nothing is read
        places = [x for A in views for x in (A.buffer.base_data, A.address, A.ps)]
        values = lanes, nm, *parts, *places, *(array.data for array in outputs)
        launch_plan(queue, launch, special, lanes, [*(A.buffer for A in views), *outputs], values)
    else:
        options = [row.options[name].index(value) for name, value in zip(row.compiled, option, strict=True)]
        flags = conj or (False,) * len(views)
        places = [x for A, flag in zip(views, flags, strict=True) for x in (A, int(flag))]
        args = lanes, nm, *sizes_of(row, layouts), *options, *parts, *places, *outputs
        name = f"{row.name}_batch"
        macros: dict[str, Any] = {name.upper(): 1, **common(row, views)}
        launch_lanes(queue, launch, row.search.file, name, main.dtype, main.vlen, (lanes, 1), *args, **macros)
    if output is None or info is not None:
        return output if output is None else hand_back(output)
    if stays(output):
        return hand_back(output)
    info = np.empty(nm, np.int64)
    launch.run(bring, output, info)
    return info


def again(row: Any, views: Sequence[View], scalars: Any, conj: Any, option: Any, nm: int, launch: Launch) -> Any:
    """A function that makes a call again which has no output, of packs in CUDA memory."""
    recording = Recording(events=launch.events)
    start(row, views, scalars, conj, option, nm, None, recording)
    if len(recording.steps) > 1:  # with work space, which need not be kept
        return functools.partial(start, row, views, scalars, conj, option, nm, None, launch)
    return recording.steps[0] if recording.steps else nothing


def suits_copies(row, main, sizes):
    """Whether ordinary matrices of these sizes have a kernel."""
    if main.vlen == 1 or max(sizes) <= SMALL:
        return False
    return bool(choices.choose(main.queue.device, row.search, sizes, main.dtype, 1))


def on_copies(row, views, scalars, conj, option, nm, output, launch):
    """Run a routine on copies of packs as ordinary matrices, of all lanes."""
    copies = []
    for operand, A in zip(row.operands, views, strict=True):
        if A.dtype.kind == "i":  # of as many bytes
            A = replace(A, dtype=np.dtype(np.float32))
        if not A.common:
            copy = empty((A.npack * A.vlen, A.m, A.n), A.dtype, A.queue, reused(A.buffer))
            if not operand.output:
                unpack(A, len(copy), copy, launch)
            copies.append((A, ordinary(copy)))
        else:
            copies.append((A, replace(A, vlen=1)))
    start(row, [copy for _, copy in copies], scalars, conj, option, nm, output, launch)
    for operand, (A, copy) in zip(row.operands, copies, strict=True):
        if operand.written:
            pack(copy.buffer, A, copy.npack, 1, 0, launch)


def nothing():
    """The work for matrices without elements."""


def clear(array, launch):
    """array <- 0"""
    refuse()
    array.fill(0, wait_for=[*launch.events, *array.events])


@functools.cache
def sizes_of(row, layouts):
    return row.sizes(layouts)


def plan_of(row, views, sizes, general, conj, option):
    """The kernel for these sizes and strides; None if there is none."""
    main = views[row.main]
    if not all(A.layout.strides for A in views):
        return None
    macros = {letter.upper(): size for letter, size in zip(row.letters, sizes, strict=True)}
    for operand, A, flag in zip(row.operands, views, conj, strict=True):
        name = operand.name.upper()
        macros |= {f"{name}RS": f"({A.rs})", f"{name}CS": f"({A.cs})", f"{name}CONJ": int(flag)}
    macros |= common(row, views)
    for name, value in zip(row.compiled, option, strict=True):
        macros[name.upper()] = row.options[name].index(value)
    macros |= {name.upper(): int(flag) for name, flag in zip(row.scalars, general, strict=True)}
    types = 0, 0, *[0.0, 0.0] * len(row.scalars), *[None, 0, 0] * len(views), *[None] * len(row.outputs)
    variant = "beta" if macros.get("BETA") else ""
    return plan(main.queue, row.search, sizes, main.dtype, main.vlen, types, variant, **macros)


def common(row, views):
    """Macros that say which operands are one ordinary matrix for the whole batch."""
    return {f"{A.name.upper()}COMMON": int(view.common) for A, view in zip(row.operands, views, strict=True)}
