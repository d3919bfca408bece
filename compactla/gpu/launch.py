"""Launches of kernels: each waits for the events that it is given, and for those of its arrays, and leaves its own.

Queues may run out of order. Sizes that a `Search` has, in packs without gaps, have kernels that are compiled for them,
in the shape that `choices` knows to be good; all others run one work-item for each lane.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from compactla.calls.launch import Launch
from compactla.calls.notes import state
from compactla.calls.plans import Plans
from compactla.checks import is_device_array
from compactla.gpu.program import built, kernel, repeatable
from compactla.gpu.tuning import choices
from compactla.search import WARP
from compactla.types import Array, Queue
from compactla.view import View

GROUP = 32  # work-items of a work-group: few lines still reach every compute unit
RUN = 16  # elements of a matrix that a work-item moves, more where the device has no place for so many
MOST = 32768  # work-items along the elements of a matrix; some devices take no more than 65535
FILL = 16  # work-groups of a compute unit that keep it busy


class KernelPlan(NamedTuple):
    """A kernel that was compiled for a size, and how it is launched."""

    kernel: Any
    group: int  # work-items of a work-group
    lanes: int  # matrices or lines of a work-group
    choice: dict


def enqueue(
    queue: Queue, launch: Launch, run: Any, work_items: tuple[int, int], group: tuple[int, int],
    arrays: Sequence[Array], values: Any,
) -> None:  # fmt: skip
    """Enqueue a kernel; it waits for the events of the arrays too, and its own takes their place."""
    if state.notes is not None:
        state.notes.launch(queue, run, work_items, group, arrays, values)
    if launch.recorded:
        launch.keep(list(arrays))
        launch.alone()
    if not isinstance(run, cl.Kernel):  # of CUDA, whose streams keep the order
        if launch.recorded:
            launch.run(run.prepared(queue, work_items, group, values))
        else:
            run.start(queue, work_items, group, values)
    elif launch.recorded:
        launch.run(enqueue_after, launch.events, repeatable(run, queue, work_items, group, values), list(arrays))
    else:
        enqueue_after(launch.events, functools.partial(run, queue, work_items, group, *values), arrays)


def enqueue_after(events, run, arrays):
    """Enqueue what ``run(wait_for=events)`` does, after events and those of the arrays, which get its own."""
    before = list(events)
    for array in arrays:
        before += array.events
    event = run(wait_for=before)
    for array in arrays:
        array.events[:] = (event,)


def launch_lanes(
    queue: Queue, launch: Launch, file: str, name: str, dtype: np.dtype, vlen: int, size: tuple[int, int], *args: Any,
    **defines: Any,
) -> None:  # fmt: skip
    """Run a kernel on `size` = (lanes, elements of each) work-items; a View is a buffer and four numbers."""
    lanes, elements = size
    if lanes * elements == 0:
        return
    arrays, values = flatten(args)
    run = kernel(queue, file, name, dtype, vlen, values, **defines)
    work_items = -(-lanes // GROUP) * GROUP, min(-(-elements // RUN), MOST)
    enqueue(queue, launch, run, work_items, (GROUP, 1), arrays, values)


def flatten(args: Any) -> tuple[list, list]:
    """The arrays among the arguments of a kernel, and what the kernel is given for all of them."""
    arrays: list[Array] = []
    values: list = []
    for arg in args:
        if isinstance(arg, View):
            arrays.append(arg.buffer)
            values += arg.buffer.base_data, arg.address, arg.ps, arg.rs, arg.cs
        elif is_device_array(arg):
            arrays.append(arg)
            values.append(arg.data)
        else:
            values.append(arg)
    return arrays, values


def plan(queue, search, size, dtype, vlen, types, variant="", **macros):
    """The kernel for a size, compiled with these macros and the tunables of its choice; None if there is none."""
    chosen = choices.choose(queue.device, search, size, dtype, vlen, variant)
    return compiled(queue, chosen, search, size, dtype, vlen, types, **macros)


def compiled(queue, chosen, search, size, dtype, vlen, types, **macros):
    """The plan of a choice; None if the device cannot run it after all."""
    if not chosen:
        return None
    name = str(chosen["kernel"])
    macros |= search.room(chosen, size, dtype)
    tunables = {tunable: value for tunable, value in chosen.items() if tunable != "kernel"}
    defines = {name.upper(): 1, **macros, **tunables}
    of_kernel = search.kernels[name]
    group, nvidia = search.group_size(chosen, size), "NVIDIA" in queue.device.platform.name
    warps = {}
    if of_kernel.warps or of_kernel.in_warps:  # what a warp does together where it has whole matrices, or is the group
        whole = of_kernel.in_warps or chosen["LANES"] == 1
        most = 2 * (whole and group % WARP == 0) or int(group == WARP and not of_kernel.in_warps)
        warps = {"CLA_WARP": most * nvidia}
    while True:
        try:
            run = kernel(queue, search.file_of(chosen), name, dtype, vlen, types, **defines, **warps)
            break
        except RuntimeError:  # does not build here: GPUs before compute capability 8.0 lack what CLA_WARP 2 takes
            if not warps.get("CLA_WARP"):
                return None
            warps["CLA_WARP"] -= 1
    if not nvidia:  # which says 256 where more do run
        most = run.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, queue.device)
        if most < group:
            return None
    return KernelPlan(run, group, chosen.get("LANES", group), chosen)


class DevicePlans(Plans):
    """Plans for a context, and calls that are made again with them.

    Attributes
    ----------
    calls : Plans
        Those calls: see `compactla.repeats`.
    """

    __slots__ = ("calls",)

    def __init__(self) -> None:
        super().__init__()
        self.calls = Plans()
        self.known = Chosen(self.calls)


class Chosen(dict):
    """Plans of a context. If they are cleared, so are the calls that run what they chose."""

    def __init__(self, calls: Plans) -> None:
        super().__init__()
        self._calls = calls

    def clear(self) -> None:
        super().clear()
        self._calls.known.clear()


def plans(queue: Queue) -> DevicePlans:
    """Plans of the calling thread for the context of a queue: kernels are not thread-safe."""
    of_thread = built(queue).of_thread.__dict__
    return of_thread.get("plans") or of_thread.setdefault("plans", DevicePlans())


def repeated_calls(queue: Queue) -> Plans:
    """Calls of the calling thread that are made again."""
    return plans(queue).calls


def launch_plan(queue, launch, plan, lanes, arrays, values, columns=1):
    groups = -(-lanes // plan.lanes)
    if "ROUNDS" in plan.choice:
        groups = min(groups, max(-(-groups // plan.choice["ROUNDS"]), FILL * queue.device.max_compute_units))
    enqueue(queue, launch, plan.kernel, (groups * plan.group, columns), (plan.group, 1), arrays, values)
