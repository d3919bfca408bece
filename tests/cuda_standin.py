"""CUDA without a GPU: a library of arrays whose memory is a buffer of an OpenCL device, and a driver that works there.

Addresses are places in that buffer. Kernels are built by OpenCL from the text that NVRTC would be given, and launched
with the arguments that the CUDA driver would be given, taken from where it would look for them.
"""

import ctypes
import itertools
import json
import re

import numpy as np
import pyopencl as cl

from compactla.calls import recording
from compactla.calls.notes import ALIGNED
from compactla.cuda import compile as compiler
from compactla.cuda import driver, libraries, program
from compactla.gpu import sparse
from compactla.gpu.devices import new_queue
from drivers import unoptimized

SIZE, PAGE = 2**28, 4096
FIRST = 64 * PAGE  # where arrays begin
NULL = 1  # no address, while 0 is where the buffer begins


class Machine:
    """The memory, and what happened in it."""

    def __init__(self, device):
        self.queue = new_queue(device)
        self.fast = unoptimized(device)  # which takes two minutes for some: kernels for GPUs have loops unrolled
        self.buffer = cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, SIZE)
        self.words = itertools.count(PAGE, PAGE)  # in front of all arrays
        self.top, self.live, self.launched, self.is_capturing = FIRST, 0, [], False
        self.current = 7  # the stream

    def allocate(self, nbytes):
        if not self.live:
            self.top = FIRST
        address = self.top
        self.top += -(-max(nbytes, 1) // PAGE) * PAGE
        if self.top > SIZE:
            raise MemoryError(f"{self.live} arrays fill the memory")
        self.live += 1
        return address

    def release(self):
        self.live -= 1

    def write(self, index, target, array, stream):
        cl.enqueue_copy(self.queue, self.buffer, array, dst_offset=int(target))

    def read(self, index, source, array, stream):
        cl.enqueue_copy(self.queue, array, self.buffer, src_offset=int(source))

    def copy(self, index, target, source, nbytes, stream):
        cl.enqueue_copy(
            self.queue, self.buffer, self.buffer, byte_count=nbytes, src_offset=int(source), dst_offset=int(target)
        )

    def fill(self, index, target, word, count, stream):
        cl.enqueue_fill_buffer(self.queue, self.buffer, np.uint32(word), int(target), 4 * count)

    def load(self, index, code):
        source, options = json.loads(code)
        built = cl.Program(self.queue.context, source)  # of a cached one some drivers don't know the arguments
        try:
            return built.build([*options, "-cl-kernel-arg-info", *self.fast], cache_dir=False)
        except cl.RuntimeError as error:  # warps' instructions do not build here
            raise RuntimeError(str(error)) from None

    def launch(self, index, kernel, grid, group, stream, parameters, room=0):
        self.launched.append((kernel.function_name, grid, group, stream))
        count = kernel.num_args
        places, parts = (ctypes.c_void_p * count).from_address(parameters), []  # kernels keep no arguments
        for i in range(count):
            name = kernel.get_arg_info(i, cl.kernel_arg_info.TYPE_NAME)
            if name.endswith("*"):
                address = ctypes.c_int64.from_address(places[i]).value
                if address == NULL:
                    kernel.set_arg(i, None)
                    continue
                parts.append(self.buffer.get_sub_region(address, SIZE - address) if address else self.buffer)
                kernel.set_arg(i, parts[-1])
            else:
                kind = np.dtype({"long": np.int64, "double": np.float64, "float": np.float32, "int": np.int32}[name])
                kernel.set_arg(i, np.frombuffer(ctypes.string_at(places[i], kind.itemsize), kind)[0])
        work_items = tuple(n * k for n, k in zip(grid, group, strict=True))
        cl.enqueue_nd_range_kernel(self.queue, kernel, work_items, group)


class Tensor:
    """An array of the library."""

    def __init__(self, machine, shape, dtype, strides=None, address=None, owner=None):
        self.machine, self.shape, self.dtype, self.owner = machine, tuple(shape), np.dtype(dtype), owner
        nbytes = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        self.strides = np.empty(shape, dtype).strides if strides is None else strides
        self.address = machine.allocate(nbytes) if address is None else address
        self.is_writeable = True

    def __del__(self):
        if self.owner is None:
            self.machine.live -= 1

    def __dlpack_device__(self):
        return 2, 0

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3}

    @property
    def ndim(self):
        return len(self.shape)

    def numpy(self):
        """A copy."""
        a = libraries.library("others").array(self)
        return a.get()

    def _computed(self, other, operation):
        return of(self.machine, operation(self.numpy(), other.numpy() if isinstance(other, Tensor) else other))

    def __mul__(self, other):
        return self._computed(other, np.multiply)

    def __add__(self, other):
        return self._computed(other, np.add)

    def __matmul__(self, other):
        return self._computed(other, np.matmul)

    def __ne__(self, other):
        return self._computed(other, np.not_equal)

    __hash__ = object.__hash__

    def __getitem__(self, index):
        a = libraries.library("others").array(self)[index]
        return Tensor(self.machine, a.shape, a.dtype, a.strides, a.offset, self)

    def reshape(self, *shape):
        a = libraries.library("others").array(self).reshape(*shape)
        return Tensor(self.machine, a.shape, a.dtype, a.strides, a.offset, self)


def of(machine, values):
    """A tensor of numbers of NumPy."""
    values = np.ascontiguousarray(values)
    x = Tensor(machine, values.shape, values.dtype)
    if values.size:
        machine.write(0, x.address, values, 0)
    return x


class StandIn(libraries.Repeated):
    """The library."""

    name = "others"
    machine: Machine
    repeated = (Tensor,)

    def __init__(self):
        self._queues = {}

    def array(self, x):
        memory = libraries.Memory(0, x)
        a = libraries.Array(self.queue(0), x.shape, x.dtype, strides=x.strides, data=memory, offset=x.address, given=x)
        a.place.flags.writeable = x.is_writeable
        return a

    def give(self, a):
        if a.given is None:
            a.given = Tensor(self.machine, a.shape, a.dtype, a.strides, a.offset, a.base_data.owner)
        return a.given

    def empty(self, shape, dtype, index):
        x = Tensor(self.machine, shape, dtype)
        return x, x.address, x

    def stream(self, index):
        return self.machine.current

    def read(self, x, starts):
        starts.append(x.address)
        return (x.dtype, x.shape, x.strides, x.address % ALIGNED) if x.is_writeable else None

    def index(self, x):
        return 0

    def address(self, x):
        return x.address

    def maker(self, shape, dtype):
        return lambda x: Tensor(self.machine, shape, dtype)

    def viewer(self, shape, strides, dtype, offset):
        return lambda x: Tensor(self.machine, shape, dtype, strides, x.address + offset, x)


class Word:
    """An integer that kernels may write to."""

    def __init__(self, index):
        machine = StandIn.machine
        self.address, self.machine = next(machine.words), machine
        machine.fill(index, self.address, 0, 1, 0)

    def take(self, stream):
        found = np.empty(1, np.int32)
        self.machine.read(0, self.address, found, stream)
        self.machine.fill(0, self.address, 0, 1, stream)
        return int(found[0])


def install(monkeypatch, device) -> Machine:
    """Put the library and the driver in the places of those of CUDA."""
    machine = Machine(device)
    StandIn.machine = machine
    about = {"major": 9, "minor": 0, "units": 4, "group": 1024, "local": 49152, "room": 232448, "memory": SIZE}
    found = {
        "describe": lambda index: about | {"name": "stand-in", "version": "0"},
        "load": machine.load,
        "function": lambda index, module, name, room: cl.Kernel(module, name),
        "device_of": lambda address: 0,
        "allocate": lambda index, nbytes, stream: machine.allocate(nbytes),
        "free": lambda index, address, stream: machine.release(),
        "is_capturing": lambda index, stream: machine.is_capturing,
        "synchronize": lambda index, stream: machine.queue.finish(),
    }
    monkeypatch.setattr(driver, "Word", Word)
    monkeypatch.setattr(recording, "_kinds", {})
    for name in ("write", "read", "copy", "fill", "launch"):
        found[name] = getattr(machine, name)
    for name, function in found.items():
        monkeypatch.setattr(driver, name, function)
    monkeypatch.setitem(libraries.LIBRARIES, "others", StandIn)
    monkeypatch.setitem(libraries._made, StandIn, StandIn())
    monkeypatch.setattr(compiler, "cuda_source", lambda source: source)
    monkeypatch.setattr(compiler, "options", cl_options)
    monkeypatch.setattr(sparse, "MEMBERS", 1)  # PoCL takes minutes to compile teams
    monkeypatch.setattr(program, "NULL", NULL)
    monkeypatch.setattr(program, "compiled", lambda source, options: json.dumps([source, options]).encode())
    return machine


def cl_options(dtype, vlen, defines, arch):
    from compactla.gpu.program import SOURCES, definitions

    assert re.fullmatch(r"sm_\d+", arch)
    return ["-cl-std=CL1.2", "-I", str(SOURCES), *definitions(dtype, vlen, defines)]
