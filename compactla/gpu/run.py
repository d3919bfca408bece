"""How a device runs a routine: one launch of one kernel.

The conventions for the kernels of a routine NAME, in NAME.cl, are those of `arguments` and `macros`.
"""

import numpy as np

from compactla.gpu.arrays import download, empty
from compactla.gpu.launch import launch_lanes, launch_plan, plan, plans


def launch(row, views, scalars, conj, option, nm, info, wait_for=()):
    """Run a routine on packs, as `compactla.routine.Routine.run` checked them; the arguments are its.

    Waits only to return a NumPy array.
    """
    last = views[-1]
    queue, lanes = last.queue, last.npack * last.vlen
    general = tuple(x != special for x, special in zip(scalars, row.scalars.values(), strict=True))
    key = row, general, conj, option, *[(A.layout, A.rs, A.cs) for A in views]
    known = plans(queue)
    if key not in known:
        sizes = row.sizes(views)
        known[key] = sizes, plan_for(row, views, sizes, general, conj, option)
    sizes, chosen = known[key]
    output = info
    if row.outputs and info is None:
        output = empty((nm,), np.int32, queue)
    if lanes * min(A.m * A.n for A, operand in zip(views, row.operands, strict=True) if operand.written) == 0:
        if output is not None:
            output.fill(0)
    else:
        start(row, views, scalars, conj, option, nm, output, sizes, chosen, wait_for)
    if output is None or info is not None:
        return output
    return download(output).astype(np.int64)


def plan_for(row, views, sizes, general, conj, option):
    """The kernel for these sizes and strides; None if there is none."""
    last = views[-1]
    if not all(A.layout.strides for A in views):
        return None
    macros = {letter.upper(): size for letter, size in zip(row.letters, sizes, strict=True)}
    for operand, A, flag in zip(row.operands, views, conj or [False] * len(views), strict=True):
        macros |= {f"{operand.name}RS": f"({A.rs})", f"{operand.name}CS": f"({A.cs})", f"{operand.name}CONJ": int(flag)}
    if row.compiled:
        macros[row.compiled.upper()] = row.options[row.compiled].index(option)
    macros |= {scalar.upper(): int(value) for scalar, value in zip(row.scalars, general, strict=True)}
    types = 0, 0, *[0.0, 0.0] * len(row.scalars), *[None, 0, 0] * len(views), *[None] * len(row.outputs)
    return plan(last.queue, row.search, sizes, last.dtype, last.vlen, types, **macros)


def start(row, views, scalars, conj, option, nm, output, sizes, chosen, wait_for):
    """Launch the kernel for known sizes, or that for any, which is the one that reads nothing where alpha is zero."""
    last = views[-1]
    lanes = last.npack * last.vlen
    numbers = [part for x in scalars for part in (float(x.real), float(x.imag))]
    arrays = [A.buffer for A in views] + ([] if output is None else [output])
    outputs = [] if output is None else [output.data]
    if chosen is not None and not (scalars and scalars[0] == 0):
        places = [x for A in views for x in (A.buffer.base_data, A.address, A.ps)]
        launch_plan(last.queue, wait_for, chosen, lanes, arrays, [lanes, nm, *numbers, *places, *outputs])
        return
    options = [row.options[row.compiled].index(option)] if row.compiled else []
    places = [x for A, flag in zip(views, conj or [False] * len(views), strict=True) for x in (A, int(flag))]
    args = lanes, nm, *sizes, *options, *numbers, *places, *([] if output is None else [output])
    file, name = row.search.file, f"{row.name}_batch"
    launch_lanes(last.queue, wait_for, file, name, last.dtype, last.vlen, (lanes, 1), *args, **{name.upper(): 1})
