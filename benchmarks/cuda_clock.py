"""Times by the clock of an NVIDIA GPU: of calls in OpenCL and in CUDA, and of a copy."""

import pyopencl as cl

from compactla.gpu.devices import devices

try:
    import cupy
except ImportError:
    cupy = None
try:
    import torch
except ImportError:  # asv imports all files here
    torch = None

REPEATS = 5


def opencl_seconds(call, repeats=REPEATS) -> float:
    """Least time of a call that returns an event, that of its last launch."""
    times = []
    for _ in range(repeats):
        event = call()
        event.wait()
        times.append((event.profile.end - event.profile.start) * 1e-9)
    return min(times)


def cuda_seconds(call, times=1) -> float:
    """Time of a call, of so many in a row, in CuPy's current stream, or in PyTorch's where there is no CuPy."""
    start, end = (cupy.cuda.Event() if cupy else torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(times):
        call()
    end.record()
    end.synchronize()
    milliseconds = cupy.cuda.get_elapsed_time(start, end) if cupy else start.elapsed_time(end)
    return milliseconds * 1e-3 / times


def copy_speed(queue, size):
    """Bytes that a copy reads and writes a second."""
    a, b = (cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
    return 2 * size / opencl_seconds(lambda: cl.enqueue_copy(queue, b, a, byte_count=size), 3 * REPEATS)


def open_gpu():
    """A queue on the first GPU, and the speed of a copy there, which is printed."""
    gpu = next(d for d in devices() if d.type & cl.device_type.GPU)
    queue = cl.CommandQueue(cl.Context([gpu]), properties=cl.command_queue_properties.PROFILING_ENABLE)
    speed = copy_speed(queue, 2**30)
    print(f"{gpu.name.strip()}: copy {speed * 1e-9:.0f} GB/s")
    return queue, speed
