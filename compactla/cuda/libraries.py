"""Libraries that have arrays in CUDA memory: where these are, which stream is the current one, who allocates.

A library is a class here, found by the name of the module that its arrays are of, and imported only for such arrays.
"""

import abc
import collections
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compactla.calls.notes import ALIGNED
from compactla.cuda import driver
from compactla.cuda.arrays import Array, Memory
from compactla.cuda.queues import Queue
from compactla.locks import Lock


class Source(abc.ABC):
    """What has arrays in CUDA memory."""

    def device(self, x) -> int | None:
        """The index of the CUDA device that an object of it names, which is no array; None of others."""
        return None

    @abc.abstractmethod
    def array(self, x) -> Array:
        """An array, where it lies."""


class Library(Source):
    """A library of arrays.

    Attributes
    ----------
    name : str
        Name of its module.
    module : module
        The module.
    stream : function
        The current stream of a device, of its index.
    """

    name = ""
    stream: Callable[[int], int]

    def __init__(self) -> None:
        self.module = importlib.import_module(self.name)
        self._queues: dict[int, Queue] = {}

    def queue(self, index: int) -> Queue:
        """The queue for a device, of which there is one."""
        if index not in self._queues:
            self._queues.setdefault(index, Queue(self, index))
        return self._queues[index]

    @staticmethod
    def named_queue(name: str, index: int) -> Queue:
        """The queue of a library for a device."""
        return library(name).queue(index)

    @abc.abstractmethod
    def give(self, a: Array) -> Any:
        """The array of the library."""

    @abc.abstractmethod
    def empty(self, shape: Sequence[int], dtype: np.dtype, index: int) -> tuple[Any, int, Any]:
        """A new array, its address, and what owns its memory."""


class Repeated(Library):
    """A library with whose arrays `compactla.repeats` makes calls again.

    Attributes
    ----------
    repeated : tuple of type
        Types of its arrays for which that is so.
    index, address : function
        The device, and the address, of an array.
    """

    repeated: tuple[type, ...]
    index: Callable[[Any], int]
    address: Callable[[Any], int]

    @abc.abstractmethod
    def read(self, x: Any, starts: list[int]) -> Any:
        """What plans of calls depend on, of an array whose address joins `starts`; None if they need to see more."""

    @abc.abstractmethod
    def maker(self, shape: Sequence[int], dtype: np.dtype) -> Callable:
        """A function that makes new arrays on the device of one that it is given."""

    @abc.abstractmethod
    def viewer(self, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype, offset: int) -> Callable:
        """A function that makes views of arrays, so many bytes behind their beginnings."""


class Torch(Repeated):
    """PyTorch: the current stream of a device is ``torch.cuda.current_stream``."""

    name = "torch"

    def __init__(self):
        super().__init__()
        torch = self.module
        self.stream = torch._C._cuda_getCurrentRawStream  # which current_stream() calls, 50 times as fast
        names = "float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bool"
        pairs = [(np.dtype(name), getattr(torch, name)) for name in names.split() if hasattr(torch, name)]
        self._torchs, self._numpys = dict(pairs), {theirs: ours for ours, theirs in pairs}
        self._devices = {}
        self.repeated = torch.Tensor, torch.nn.Parameter
        self.index, self.address = torch.Tensor.get_device, torch.Tensor.data_ptr
        # What programs that torch.compile makes call, a third of the time of new_empty_strided: it asks no dispatcher.
        guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        self._empty = getattr(guards, "_empty_strided_cuda", None)
        self._current = torch._C._cuda_getDevice

    def device(self, x):
        if not isinstance(x, self.module.device) or x.type != "cuda":
            return None
        return self.module.cuda.current_device() if x.index is None else x.index

    def array(self, x):
        torch = self.module
        if x.requires_grad and torch.is_grad_enabled():
            raise TypeError("requires gradients, must not: see compactla.torch, or Tensor.detach")
        if x.layout != torch.strided or x.dtype not in self._numpys:
            raise TypeError(f"is {x.layout} of {x.dtype}, must be strided, of a type that NumPy has")
        is_lazy = x.is_conj() or x.is_neg()
        if is_lazy:
            x = x.resolve_conj().resolve_neg()
        dtype = self._numpys[x.dtype]
        strides = tuple(stride * dtype.itemsize for stride in x.stride())
        queue, memory = self.queue(x.get_device()), Memory(0, x)
        a = Array(queue, tuple(x.shape), dtype, strides=strides, data=memory, offset=x.data_ptr(), given=x)
        if is_lazy:  # a copy, which is not what would be written to
            a.place.flags.writeable = False
        return a

    def give(self, a):
        if a.given is None:
            tensor = a.base_data.owner
            dtype, item, storage = self._torchs[a.dtype], a.dtype.itemsize, tensor.untyped_storage()
            new = self.module.empty(0, dtype=dtype, device=tensor.device)
            start = (a.offset - storage.data_ptr()) // item if a.size else 0
            a.given = new.set_(storage, start, a.shape, tuple(stride // item for stride in a.strides))
        return a.given

    def empty(self, shape, dtype, index):
        if index not in self._devices:
            self._devices[index] = self.module.device("cuda", index)
        x = self.module.empty(shape, dtype=self._torchs[dtype], device=self._devices[index])
        return x, x.data_ptr(), x

    def read(self, x, starts):
        index = x.get_device()
        if index < 0 or x.requires_grad or x.is_conj() or x.is_neg():
            return None
        try:
            start, strides = x.data_ptr(), x.stride()
        except RuntimeError:  # is sparse, or traced
            return None
        starts.append(start)
        return index, x.dtype, x.shape, strides, start % ALIGNED

    def maker(self, shape, dtype):
        shape, strides = tuple(shape), tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
        theirs, empty, current = self._torchs[dtype], self._empty, self._current

        def make(x):
            if empty is not None and x.get_device() == current():
                return empty(shape, strides, theirs)
            return x.new_empty_strided(shape, strides, dtype=theirs)

        return make

    def viewer(self, shape, strides, dtype, offset):
        item = dtype.itemsize
        if offset % item:
            raise TypeError(f"offset is {offset}, must be a multiple of {item}")
        strides = [stride // item for stride in strides]

        def view(x):
            return x.as_strided(shape, strides, x.storage_offset() + offset // item)

        return view


class CuPy(Repeated):
    """CuPy: the current stream is ``cupy.cuda.get_current_stream``."""

    name = "cupy"

    def __init__(self):
        super().__init__()
        self.repeated = (self.module.ndarray,)

    def device(self, x):
        cuda = self.module.cuda
        if isinstance(x, cuda.Stream | cuda.ExternalStream):
            return cuda.runtime.getDevice() if x.device_id < 0 else x.device_id
        return x.id if isinstance(x, cuda.Device) else None

    def stream(self, index):
        return self.module.cuda.get_current_stream(index).ptr

    def array(self, x):
        if not isinstance(x, self.module.ndarray):
            raise TypeError(f"is a cupyx {type(x).__name__}, must be a cupy.ndarray")
        queue, memory = self.queue(x.data.device_id), Memory(0, x)
        return Array(queue, x.shape, x.dtype, strides=x.strides, data=memory, offset=x.data.ptr, given=x)

    def give(self, a):
        if a.given is None:
            cuda, index = self.module.cuda, a.queue.device.index
            memory = cuda.UnownedMemory(a.offset, a.nbytes, a.base_data.owner, index)
            a.given = self.module.ndarray(a.shape, a.dtype, cuda.MemoryPointer(memory, 0), a.strides)
        return a.given

    def empty(self, shape, dtype, index):
        with self.module.cuda.Device(index):
            x = self.module.empty(shape, dtype)
        return x, x.data.ptr, x

    def index(self, x):
        return x.data.device_id

    def address(self, x):
        return x.data.ptr

    def read(self, x, starts):
        memory = x.data
        start = memory.ptr
        starts.append(start)
        return memory.device_id, x.dtype, x.shape, x.strides, start % ALIGNED

    def maker(self, shape, dtype):
        ndarray, get_device, device = self.module.ndarray, self.module.cuda.runtime.getDevice, self.module.cuda.Device

        def make(x):
            index = x.data.device_id
            if index == get_device():
                return ndarray(shape, dtype)
            with device(index):
                return ndarray(shape, dtype)

        return make

    def viewer(self, shape, strides, dtype, offset):
        return lambda x: self.module.ndarray(shape, dtype, x.data + offset, strides)


class JAX(Library):
    """JAX: work is done in the stream for arrays of others, for which JAX's own streams wait, and which waits for them.

    Arrays are never written to but those that are made here. JAX may give memory to others as soon as an array is gone:
    arrays are kept until the stream has done what was started before.
    """

    name = "jax"

    def __init__(self):
        super().__init__()
        self._left, self._trimming, self._streams = collections.deque(), Lock(), {}

    def device(self, x):
        return x.local_hardware_id if isinstance(x, self.module.Device) and x.platform == "gpu" else None

    def _device(self, index):
        return next(d for d in self.module.local_devices(backend="gpu") if d.local_hardware_id == index)

    def stream(self, index):
        if index not in self._streams:
            self._streams[index] = self._device(index).get_stream_for_external_ready_events()
        return self._streams[index]

    def array(self, x):
        if len(x.devices()) != 1:
            raise TypeError("is distributed over several devices, must be on one")
        index = next(iter(x.devices())).local_hardware_id
        x.__dlpack__(stream=self.stream(index))  # which waits for the array
        memory = Memory(0, JaxOwner(self, index, x))
        a = Array(self.queue(index), x.shape, np.dtype(x.dtype), data=memory, offset=x.unsafe_buffer_pointer(), given=x)
        a.place.flags.writeable = False
        return a

    def give(self, a):
        if a.given is None or a.place.flags.writeable:
            kept = a.base_data.owner
            if not (a.flags.c_contiguous and a.dtype == kept.array.dtype and a.size == kept.array.size):
                a = a.copy()
                kept = a.base_data.owner
            x = self.module.dlpack.from_dlpack(Exported(kept.array, kept.index, self.stream(kept.index)))
            a.given = x if x.shape == a.shape else x.reshape(a.shape)
        return a.given

    def empty(self, shape, dtype, index):
        with self._trimming:
            while self._left and driver.is_over(index, self._left[0][0]):
                self._left.popleft()
        numpy = self.module.numpy
        with self.module.default_device(self._device(index)):
            x = numpy.empty(shape, dtype)
            if x.dtype != dtype:  # JAX has no double precision unless it is told to
                x = numpy.empty(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, np.uint8)
        x.__dlpack__(stream=self.stream(index))
        return None, x.unsafe_buffer_pointer(), JaxOwner(self, index, x)

    def leave(self, index, x):
        """Keep an array until its device has done all that was started."""
        self._left.append((driver.mark(index, self.stream(index)), x))


class JaxOwner:
    """The owner of an array of JAX."""

    def __init__(self, library, index, array):
        self.library, self.index, self.array = library, index, array

    def __del__(self, is_finalizing=sys.is_finalizing):  # at the end of a process there may be no module any more
        if not is_finalizing():
            self.library.leave(self.index, self.array)


class Exported:
    """An array of JAX as one of others, which becomes a new one that is ready when our stream is done.

    JAX has several streams for arrays of others, and waits for the one that it names here, which need not be ours.
    """

    def __init__(self, x, index, stream):
        self.x, self.index, self.stream = x, index, stream

    def __dlpack__(self, *, stream=None, **keywords):
        if stream is not None and stream != self.stream:
            driver.follow(self.index, stream, self.stream)
        return self.x.__dlpack__(stream=stream, **keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class Others(Source):
    """Other libraries, whose arrays become those of CuPy or PyTorch: the one of these that is installed."""

    def __init__(self):
        self._theirs = next((library(name) for name in ("cupy", "torch") if importlib.util.find_spec(name)), None)

    def array(self, x):
        if self._theirs is None:
            raise TypeError(f"is a {type(x).__name__} in CUDA memory, which needs CuPy or PyTorch beside it")
        module = self._theirs.module
        try:
            theirs = module.from_dlpack(x) if hasattr(x, "__dlpack__") else module.asarray(x)
        except Exception as error:
            raise TypeError(f"is a {type(x).__name__} that {self._theirs.name} does not take: {error!r}") from None
        return self._theirs.array(theirs)


LIBRARIES: dict[str, type[Library]] = {"torch": Torch, "cupy": CuPy, "cupyx": CuPy, "jax": JAX, "jaxlib": JAX}
_made: dict[type[Source], Any] = {}


def library(name: str) -> Any:
    """The `Library` of this name, which is imported, or `Others`."""
    kind = LIBRARIES.get(name, Others)
    if kind not in _made:
        _made[kind] = kind()
    return _made[kind]
