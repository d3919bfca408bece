"""Trial kernels, by which OpenCL drivers show that they work, in a process of their own: a driver's compiler that
gives up may end the process that it runs in.

A driver is tried with one vector type after the other. What worked is kept in the user's cache, for the same driver,
device and processor, so that a process is started once; what failed is tried again by the next process that asks, as
settings may have changed.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

_found: dict[Path, str] = {}  # what this process has found out, by the files of `passed`
SECONDS = 120  # a driver that takes longer hangs
MARK = "compactla.probe"  # lines of the other process that are ours begin with it
ITEMS = 8  # work-items in a work-group
SOURCE = """
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
kernel void probe(global VECTOR *x)
{
    local VECTOR shared[ITEMS];
    shared[get_local_id(0)] = sqrt(x[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = fma(shared[ITEMS - 1 - get_local_id(0)], (VECTOR)2, (VECTOR)1);
}
"""


def fault(device: Any) -> str:
    """Why a device cannot be used, in a sentence that names it and its driver; "" if it works.

    Kernels with numbers in single precision, and in double precision where the device says that it has it, take square
    roots and multiply-adds, local memory and a barrier.
    """
    types = ["float", "double"] if device.double_fp_config else ["float"]
    return next(filter(None, faults(device, types).values()), "")


def widest(device: Any, real: str) -> tuple[int, str]:
    """The longest vectors of "float" or "double" that a device can be given, and why they are not its own longest.

    The reason is a sentence, or "" if they are.
    """
    lanes = max(getattr(device, f"native_vector_width_{real}"), 1)
    reasons = []
    while lanes > 1 and (why := faults(device, [f"{real}{lanes}"])[f"{real}{lanes}"]):
        reasons.append(why)
        lanes //= 2
    return lanes, next(iter(reasons), "")


def faults(device, types) -> dict[str, str]:
    """By type, a scalar or a vector: why a device's driver fails at a kernel of that, or "" if it does not."""
    device = device.parent_device or device
    files = {kind: passed(device, kind) for kind in types}
    unknown = [kind for kind, file in files.items() if file not in _found and not os.path.exists(file)]
    while unknown:
        worked, why = attempt(device, unknown)
        for kind in worked:
            with contextlib.suppress(OSError):  # no room, or no folder
                files[kind].parent.mkdir(parents=True, exist_ok=True)
                files[kind].touch()
        failed = unknown[len(worked)] if why else None
        driver = f"{device.platform.name.strip()}, OpenCL driver {device.driver_version} of {device.name.strip()}"
        for kind in unknown[: len(worked) + 1] if why else unknown:
            _found[files[kind]] = f"{driver}, {why} at a kernel of type {kind}" if kind == failed else ""
        unknown = unknown[len(worked) + 1 :] if why else []
    return {kind: _found.get(file, "") for kind, file in files.items()}


@functools.cache
def passed(device, kind) -> Path:
    """A file that is there if a type has worked on this driver, device and processor."""
    import platformdirs
    import pyopencl as cl

    from compactla.digests import digest

    driver = device.platform.name, device.platform.version, device.name, device.driver_version, cl.VERSION_TEXT
    settings = sorted(item for item in os.environ.items() if item[0].startswith(("POCL_", "CL_", "OCL_")))
    known = repr((driver, processor(), settings, kind, SOURCE))
    return Path(platformdirs.user_cache_dir("compactla")) / "drivers" / digest(known.encode())


@functools.cache
def processor() -> str:
    """The CPU and its instructions, for caches: devices of several kinds may have one name."""
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def attempt(device, types) -> tuple[list[str], str]:
    """The first of these types, those that worked in a process of their own, and why the next one failed, if it did.

    Where there can be no such process, or it sees other devices, none worked and none failed.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # which would start the program once more
        return [], ""
    settings = {**os.environ, "PYOPENCL_NO_CACHE": "1"}
    try:
        where = all_platforms().index(device.platform), device.platform.get_devices().index(device), device.name
        command = [sys.executable, "-P", __file__, *map(str, where), *types]
        tried = subprocess.run(command, env=settings, capture_output=True, timeout=SECONDS)
        output, end = tried.stdout, ending(tried)
    except subprocess.TimeoutExpired as error:
        output, end = error.stdout or b"", f"does not end within {SECONDS} seconds"
    except (OSError, ValueError):
        return [], ""
    lines = output.decode(errors="replace").splitlines()
    said = [line.split(maxsplit=2)[1:] for line in lines if line.startswith(MARK)]
    worked = [kind for kind, *wrong in filter(None, said) if not wrong]
    if len(worked) == len(types):
        return worked, ""
    return worked, said[-1][1] if said and len(said[-1]) == 2 else end


def ending(process) -> str:
    """How a process ended that did not say why, with what its driver printed last; "" if it gave up by itself."""
    code = process.returncode
    if code == 0 or (code > 0 and MARK.encode() not in process.stdout):
        return ""
    name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    last = "".join(process.stderr.decode(errors="replace").strip().splitlines()[-1:])[:200]
    return f"ends the process ({name}{': ' if last else ''}{last})"


def all_platforms():
    import pyopencl as cl

    return cl.get_platforms()


def works(queue, kind) -> bool:
    """Whether the trial kernel of a type gets its values right, in this process."""
    import pyopencl as cl

    real = kind.rstrip("0123456789")
    x = np.arange(8.0 * ITEMS * int(kind[len(real) :] or 1)).reshape(8, ITEMS, -1).astype(real[0])
    memory = cl.Buffer(queue.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    fresh = f"{SOURCE}// {os.urandom(8).hex()}\n"  # not from a cache, which a driver that fails may leave broken
    options = [f"-DVECTOR={kind}", f"-DDOUBLE={int(real == 'double')}", f"-DITEMS={ITEMS}"]
    with warnings.catch_warnings(action="ignore"):  # some drivers write a log about every program
        program = cl.Program(queue.context, fresh).build(options)
    cl.Kernel(program, "probe")(queue, (8 * ITEMS,), (ITEMS,), memory)
    result = np.empty_like(x)
    cl.enqueue_copy(queue, result, memory)
    return np.allclose(result, 2 * np.sqrt(x[:, ::-1]) + 1, rtol=1e-5)


def main(platform, device, name, *types) -> None:
    """Try types one after the other, in a process of its own, which says of each whether it worked.

    A device that cannot be opened, as it may be another process's alone, is not tried.
    """
    import pyopencl as cl

    found = all_platforms()[int(platform)].get_devices()[int(device)]
    if found.name != name:
        return
    context = cl.Context([found])
    queue = cl.CommandQueue(context)
    print(MARK, flush=True)
    for kind in types:
        try:
            wrong = "" if works(queue, kind) else "gives wrong numbers"
        except cl.MemoryError:
            return
        except cl.Error as error:
            wrong = "fails with " + str(error).strip().splitlines()[0]
        print(MARK, kind, wrong, flush=True)
        if wrong:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
