"""Choices of kernels by hand."""

import contextlib
from collections.abc import Iterator
from typing import Any

from compactla.checks import check_queue
from compactla.gpu.launch import plans
from compactla.gpu.tuning import choices
from compactla.gpu.tuning.lines import SEARCHES


@contextlib.contextmanager
def override(queue: Any, name: str, choice: choices.Choice) -> Iterator[None]:
    """Have a device run a kernel of your choice, instead of the one that tuning found.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        A queue on the device.
    name : str
        That of a routine, such as "gemm", or another name that ``python -m compactla tune`` knows.
    choice : dict
        The name of a kernel, as "kernel", and all of its tunables, which are explained at the top of its file in
        `opencl/`; ``{}`` is the kernel that takes any size, if there is one.

    Raises
    ------
    ValueError
        If there is no such name, or it has no such kernel, or the tunables are not those of the kernel. For "factor",
        "solve" and their variants, whose kernels have to agree with each other, and for CUDA memory.

    Notes
    -----
    It is for tests and measurements, from one thread: others that have run the routine before go on as they were. Sizes
    that the choice is not for, or that it does not fit, run what they would run without it.

    Examples
    --------
    >>> import compactla as cla, numpy as np, pyopencl as cl
    >>> from compactla.gpu import override
    >>> queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    >>> A = cla.pack(np.ones((100, 3, 3)), queue=queue)
    >>> with override(queue, "gemm", {"kernel": "gemm_item", "GROUP": 16}):
    ...     C = cla.gemm(A, A, cla.Pack.zeros(100, 3, 3, queue=queue))
    """
    check_queue(queue, "queue")
    if not type(queue).__module__.startswith("pyopencl"):
        raise ValueError(
            f"queue is {queue!r}, must be a pyopencl CommandQueue: calls with CUDA memory keep their kernels"
        )
    known = {key: search for key, search in choices.searches().items() if search.name not in SEARCHES}
    search = known.get(name)
    if search is None:
        raise ValueError(f"name is {name!r}, must be one of {', '.join(known)}")
    if not search.has_kernel(choice):
        kernels = "; ".join(f"{kernel} with {', '.join(x.tunables)}" for kernel, x in search.kernels.items())
        raise ValueError(f"choice is {choice}, must be {{}} or a kernel of {name}: {kernels or 'there is none'}")
    with forced(queue, name, choice):
        yield


@contextlib.contextmanager
def forced(queue: Any, name: str, choice: choices.Choice) -> Iterator[None]:
    """Have a device run a kernel, as `override` does without its checks; lines must be factored and solved within."""
    key = queue.device, name
    before = choices.overrides.get(key)
    choices.overrides[key] = dict(choice)
    plans(queue).known.clear()
    try:
        yield
    finally:
        if before is None:
            del choices.overrides[key]
        else:
            choices.overrides[key] = before
        plans(queue).known.clear()
