"""Arrays on a device, and launches of kernels that work on them.

Every array is a pyopencl Array. A launch waits for the events that it is given, and for those of its arrays, and leaves
its own in the arrays, so queues may run out of order.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from compactla.gpu import shapes
from compactla.gpu.program import built, kernel
from compactla.view import REAL, View

GROUP = 32  # work-items of a work-group: few lines still reach every compute unit
RUN = 16  # elements of a matrix that a work-item moves, more where the device has no place for so many
PLACES = 32768  # work-items along the elements of a matrix; some devices take no more than 65535
FILL = 16  # work-groups of a compute unit that keep it busy

class Plan(NamedTuple):
    """A kernel that was compiled for a size, and how it is launched."""

    kernel: Any
    group: int  # work-items of a work-group
    lanes: int  # matrices or lines of a work-group
    choice: dict


def empty(shape, dtype, queue, allocator=None, values=None):
    """A new array, with these values if there are some; a MemoryError if there is no room."""
    what = f"an array of shape {shape} and {np.dtype(dtype)} does not fit in the memory of {queue.device.name.strip()}"
    if math.prod(shape) * np.dtype(dtype).itemsize > queue.device.global_mem_size:  # some drivers find out too late
        raise MemoryError(what)
    try:
        if values is not None:
            return cla.to_device(queue, values, allocator)
        return cla.empty(queue, shape, dtype, allocator=allocator)
    except (cl.MemoryError, cl.LogicError) as error:
        raise MemoryError(f"{what}: {error}") from None


def upload(a, queue):
    """A C-contiguous copy of a NumPy array on the device."""
    a = np.ascontiguousarray(a)
    return empty(a.shape, a.dtype, queue, values=a)


def download(a) -> np.ndarray:
    """A NumPy copy of a device array, which may have any strides but negative ones; waits for it."""
    if a.size == 0:
        return np.empty(a.shape, a.dtype)
    extent = a.dtype.itemsize + sum((n - 1) * stride for n, stride in zip(a.shape, a.strides, strict=True))
    memory = np.empty(extent, np.uint8)
    cl.enqueue_copy(a.queue, memory, a.base_data, src_offset=a.offset, wait_for=a.events)
    return np.ndarray(a.shape, a.dtype, memory, strides=a.strides)


def broadcast(matrix, nm, queue):
    """`nm` times the same matrix, as a device array with stride 0."""
    a = upload(matrix, queue)
    return cla.Array(
        queue, (nm, *a.shape), a.dtype, strides=(0, *a.strides), data=a.base_data, events=a.events
    )


def ordinary(a) -> View:
    """An ordinary array of three axes as packs of one lane."""
    item = REAL[a.dtype.char].itemsize
    nm, m, n = a.shape
    ps, rs, cs = (stride // item for stride in a.strides)
    return View(a, a.offset // item, nm, m, n, ps, rs, cs, 1, a.dtype, a.queue)


def launch(queue, wait_for, run, work_items, group, arrays, values):
    """Enqueue a kernel; it waits for the events of the arrays too, and its own takes their place."""
    before = list(wait_for)
    for array in arrays:
        before += array.events
    event = run(queue, work_items, group, *values, wait_for=before)
    for array in arrays:
        array.events[:] = (event,)


def launch_lanes(queue, wait_for, file, name, dtype, vlen, size, *args, **defines):
    """Run a kernel on `size` = (lanes, elements of each) work-items; a View is a buffer and four numbers."""
    lanes, elements = size
    if lanes * elements == 0:
        return
    arrays, values = flatten(args)
    run = kernel(queue, file, name, dtype, vlen, values, **defines)
    work_items = -(-lanes // GROUP) * GROUP, min(-(-elements // RUN), PLACES)
    launch(queue, wait_for, run, work_items, (GROUP, 1), arrays, values)


def flatten(args):
    """The arrays among the arguments of a kernel, and what the kernel is given for all of them."""
    arrays, values = [], []
    for arg in args:
        if isinstance(arg, View):
            arrays.append(arg.buffer)
            values += arg.buffer.base_data, arg.address, arg.ps, arg.rs, arg.cs
        elif isinstance(arg, cla.Array):
            arrays.append(arg)
            values.append(arg.data)
        else:
            values.append(arg)
    return arrays, values


def plan(queue, routine, size, dtype, vlen, types, **macros):
    """The kernel for a size, compiled with these macros and the tunables of its choice; None if there is none."""
    return compiled(queue, shapes.choose(queue.device, routine, size, dtype, vlen), routine, size, dtype, vlen,
                    types, **macros)  # fmt: skip


def compiled(queue, chosen, routine, size, dtype, vlen, types, **macros):
    """The plan of a choice; None if the device cannot run it after all."""
    if not chosen:
        return None
    name = str(chosen["kernel"])
    tunables = {tunable: value for tunable, value in chosen.items() if tunable != "kernel"}
    defines = {name.upper(): 1, **macros, **tunables}
    group = shapes.group_size(routine, chosen, size)
    try:
        run = kernel(queue, FILES[routine], name, dtype, vlen, types, **defines)
    except RuntimeError:  # does not build here
        return None
    most = run.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, queue.device)
    if most < group and "NVIDIA" not in queue.device.platform.name:  # it says 256 where more do run
        return None
    return Plan(run, group, chosen.get("LANES", group), chosen)


FILES = {"gemm": "gemm.cl", "trsm": "trsm.cl", "getrfnp": "getrfnp.cl"}
FILES |= {"pack": "pack.cl", "unpack": "pack.cl"}
FILES |= dict.fromkeys(("factor", "factor_few", "solve", "solve_few"), "thomas.cl")


def plans(queue) -> dict:
    """Plans of the calling thread for the context of a queue: kernels are not thread-safe."""
    return built(queue).of_thread.__dict__.setdefault("plans", {})


def launch_plan(queue, wait_for, plan, lanes, arrays, values, columns=1):
    groups = -(-lanes // plan.lanes)
    if "ROUNDS" in plan.choice:
        groups = min(groups, max(-(-groups // plan.choice["ROUNDS"]), FILL * queue.device.max_compute_units))
    launch(queue, wait_for, plan.kernel, (groups * plan.group, columns), (plan.group, 1), arrays, values)
