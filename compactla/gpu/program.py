"""OpenCL sources, programs and kernels: each is built once for a context and its options."""

import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from compactla import dump
from compactla.checks import check_dtype, check_size
from compactla.digests import digest, digest_of_includes
from compactla.dtypes import REAL
from compactla.gpu.probe import fault, processor
from compactla.locks import Lock
from compactla.opencl_sources import SOURCES, definitions
from compactla.types import Queue

_build_lock = Lock()


class Built:
    """Programs of a context. Its queues keep it, and programs that were handed out, so that it goes when they do.

    Attributes
    ----------
    programs : dict
    of_thread : threading.local
        What one thread made of them: kernels are not thread-safe.
    """

    def __init__(self):
        self.programs, self.of_thread = {}, threading.local()

    def program(self, context, source, dtype, vlen, defines):
        """A program of OpenCL."""
        options = build_options(context, dtype, vlen, defines)
        if why := next(filter(None, map(fault, context.devices)), ""):
            raise RuntimeError(why)
        try:
            with warnings.catch_warnings():  # of a log that is not empty, which NVIDIA's never is
                warnings.simplefilter("ignore", cl.CompilerWarning)
                cache = {"cache_dir": False} if dump.is_wanted() else {}
                made = cl.Program(context, source).build(options, **cache)
        except cl.RuntimeError as error:
            message = f"OpenCL program does not build with {' '.join(options)}:\n{error}"
            if dump.is_wanted():
                show(source, options, message)
            raise RuntimeError(message) from None
        if dump.is_wanted():
            show(source, options, build_log(made), made)
        return made

    def kernel(self, program, name, types):
        """A kernel whose arguments are numbers of these types, or buffers where that is None."""
        found = cl.Kernel(program, name)
        found.set_scalar_arg_dtypes(types)
        found._compactla = types
        return found


class BuiltForCuda(Built):
    """Programs of a CUDA device."""

    def program(self, context, source, dtype, vlen, defines):
        from compactla.cuda.program import Program

        return Program(context, source, dtype, vlen, defines)

    def kernel(self, program, name, types):
        return program.kernel(name, types)


# By contexts, which live as long: queues of some drivers do not keep theirs.
_built: weakref.WeakValueDictionary[Any, Built] = weakref.WeakValueDictionary()


def built(queue) -> Built:
    """Programs of the context of a queue."""
    try:
        return queue._compactla
    except AttributeError:
        queue._compactla = _built_for(queue.context)
        return queue._compactla


def _built_for(context) -> Built:
    kind = BuiltForCuda if type(context).__module__ == "compactla.cuda.queues" else Built
    with _build_lock:
        return _built.setdefault(context, kind())


def build(context: Any, source: str, dtype: Any, vlen: int = 32, **defines: Any) -> Any:
    """Build OpenCL C that may include the sources of this package.

    Parameters
    ----------
    context : pyopencl.Context
        What to build for.
    source : str
        The program. ``#include "gemm.cl"`` gives it the pack-level function `cla_gemm`, and so on for all routines, and
        ``"lane.h"`` the lane type; those files document them.
    dtype : dtype
        float32, float64, complex64 or complex128: the type of a `cla_lane`.
    vlen : int
        Vector length of the packs that the kernels are given.
    **defines : int or str
        Further macros, such as ``CLA_TILE=4``, the rows and columns of a register tile.

    Returns
    -------
    pyopencl.Program
        The same object for the same arguments, also from several threads.

    Raises
    ------
    TypeError, ValueError
        If the dtype or the vector length is not one of the above, or a device has no double precision.
    RuntimeError
        If the program does not compile; the message has the compiler's log. If a device's driver fails at small trial
        kernels, which run first in a process of their own: the message says how.
    """
    dtype = check_dtype(dtype, "dtype")
    if check_size(vlen, "vlen") < 1:
        raise ValueError(f"vlen is {vlen}, must be at least 1")
    found = _built_for(context)
    program = _program(found, context, source, dtype, vlen, defines)
    program._compactla = found
    return program


def _program(found, context, source, dtype, vlen, defines):
    """The program among what was found to be built, or else a new one."""
    key = source, dtype, vlen, tuple(defines.items())
    with _build_lock:
        if key not in found.programs:
            # drivers' caches look at a source but not at what it includes
            included = {"CLA_SOURCES": f"0x{digest_of_includes(source, SOURCES)}"}
            found.programs[key] = found.program(context, source, dtype, vlen, defines | included)
        return found.programs[key]


def build_options(context, dtype, vlen, defines) -> list[str]:
    """Options of the compiler; a ValueError if a device has no double precision where that is asked for."""
    real = REAL[dtype.char]
    for device in context.devices:
        if real == np.float64 and "cl_khr_fp64" not in device.extensions:
            raise ValueError(f"dtype is {dtype}, must be single precision: {device.name} has no double")
    options = definitions(dtype, vlen, defines)
    if all("NVIDIA" in device.platform.name for device in context.devices):
        options.append("-cl-nv-verbose")  # the log says what is in registers and what in memory
    if any(device.type & cl.device_type.CPU for device in context.devices):
        options.append(f"-DCLA_CPU=0x{digest(processor().encode())}")  # pyopencl keeps programs by a device's name
    return ["-cl-std=CL1.2", "-I", str(SOURCES), *options]


def build_log(program: Any) -> str:
    """The compiler's log about a program."""
    devices = program.get_info(cl.program_info.DEVICES)
    return "".join(program.get_build_info(device, cl.program_build_info.LOG) for device in devices)


def show(source, options, log, program=None) -> None:
    """Show a program to those who want to see it, with its assembly where that is what the driver keeps."""
    binaries = [] if program is None else program.get_info(cl.program_info.BINARIES)
    ptx = b"".join(binary for binary in binaries if b".version" in binary[:1000])  # NVIDIA's
    name, text = dump.program(source, options)
    dump.keep(name, text, cl=text, log=log, ptx=ptx.rstrip(b"\0"))


def kernel(queue: Queue, file: str, name: str, dtype: np.dtype, vlen: int, args: Sequence, **defines: Any) -> Any:
    """The kernel `name` of a source file, of the calling thread alone: setting arguments is not thread-safe.

    Every int among `args`, the arguments of a first call, is a long of the kernel's, and every float a CLA_REAL.
    """
    found = built(queue)
    kernels = found.of_thread.__dict__.setdefault("kernels", {})
    key = name, dtype, vlen, tuple(defines.items())
    if key not in kernels:
        program = _program(found, queue.context, f'#include "{file}"\n', dtype, vlen, defines)
        numbers = ((int, np.int64), (float, REAL[dtype.char].type))
        types = [next((number for kind, number in numbers if isinstance(arg, kind)), None) for arg in args]
        kernels[key] = found.kernel(program, name, types)
    return kernels[key]


def repeatable(run, queue, work_items, group, values):
    """The launch of a kernel of OpenCL with these values as a function of ``wait_for``, for one call at a time.

    Kernels keep the values that they are given: it is one of its own.
    """
    own = cl.Kernel(run.program, run.function_name)
    own.set_scalar_arg_dtypes(run._compactla)
    own.set_args(*values)

    def start(wait_for, values=values):  # buffers, which have to live as long
        return cl.enqueue_nd_range_kernel(queue, own, work_items, group, wait_for=wait_for)

    return start


def forget(queue: Queue) -> None:
    """Drop all programs of a context, and the calling thread's kernels, of which devices hold only so many."""
    found = built(queue)
    with _build_lock:
        found.programs.clear()
    found.of_thread.__dict__.pop("kernels", None)
