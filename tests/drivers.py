"""Which OpenCL devices work: a driver that is listed may be unable to compile for the processor it runs on.

Run as a script, it names them, and exits with 1 if there is none.
"""

import sys
import warnings

import numpy as np
import pyopencl as cl

SOURCE = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void probe(global double *x)
{
    local double shared[8];
    shared[get_local_id(0)] = sqrt(x[get_global_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = fma(shared[7 - get_local_id(0)], 2.0, 1.0);
}
"""


def works(device):
    """Whether `device` builds and runs a kernel in double precision, and gets its values right."""
    x = np.arange(64.0).reshape(8, 8) ** 2
    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        memory = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        with warnings.catch_warnings():  # some drivers write a log about every program
            warnings.simplefilter("ignore", cl.CompilerWarning)
            probe = cl.Kernel(cl.Program(context, SOURCE).build(cache_dir=False), "probe")
        probe(queue, (64,), (8,), memory)
        result = np.empty_like(x)
        cl.enqueue_copy(queue, result, memory)
    except cl.Error:
        return False
    return np.array_equal(result, 2 * np.arange(64.0).reshape(8, 8)[:, ::-1] + 1)


def working_devices():
    """All OpenCL devices of this machine that work."""
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # no driver at all
        return []
    return [device for platform in platforms for device in platform.get_devices() if works(device)]


if __name__ == "__main__":
    devices = working_devices()
    print("OpenCL devices:", ", ".join(f"{d.name.strip()} ({d.platform.name})" for d in devices) or "none")
    sys.exit(not devices)
