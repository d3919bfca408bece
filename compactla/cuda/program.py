"""Kernels for CUDA: compiled once for a device and its options, kept on disk, and launched in the current stream."""

import contextlib
import ctypes
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from compactla import dump
from compactla.cuda import compile as compiler
from compactla.cuda import driver
from compactla.digests import digest, digest_of_includes
from compactla.opencl_sources import SOURCES
from compactla.types import Queue

CODES = {np.dtype(char): char for char in "fd"} | {np.dtype(np.int32): "i"}
WORD, NULL = "q", 0  # of addresses and integers; what None is
SEAL = len(digest(b""))  # bytes that files begin with: a digest of all others


class Program:
    """Compiled code of a device."""

    def __init__(self, queue: Queue, source: str, dtype: np.dtype, vlen: int, defines: dict[str, Any]) -> None:
        self.index = queue.device.index
        options = compiler.options(dtype, vlen, defines, queue.device.arch)
        self.room = defines.get("CLA_ROOM", 0)
        self.module = driver.load(self.index, compiled(compiler.cuda_source(source), options))

    def kernel(self, name: str, types: Sequence) -> "CudaKernel":
        """A kernel, whose arguments have these types: of numbers those of NumPy, of all others None."""
        return CudaKernel(self.index, driver.function(self.index, self.module, name, self.room), types, self.room)


class CudaKernel:
    """A kernel and room for its arguments, of one thread.

    Attributes
    ----------
    index : int
        Its device.
    function, types
        The kernel of the driver, and the types of its arguments.
    words : memoryview
        Room for arguments, as integers of 8 bytes.
    places : list of int
        Bytes to each of the arguments in it.
    parameters : int
        Address of their addresses.
    room : int
        Bytes of local memory that launches provide.
    """

    def __init__(self, index, function, types, room):
        codes = [WORD if kind is None else CODES.get(np.dtype(kind), WORD) for kind in types]
        self.index, self.function, self.types, self.room = index, function, types, room
        arguments = struct.Struct("@" + "".join(codes))
        size = struct.calcsize(WORD)
        self._pack = arguments.pack_into
        self._memory = ctypes.create_string_buffer(max(-(-arguments.size // size), 1) * size)
        self.words = memoryview(self._memory).cast("B").cast(WORD)
        self.places = []
        for k, code in enumerate(codes):
            self.places.append(struct.calcsize("@" + "".join(codes[: k + 1])) - struct.calcsize(code))
        begin = ctypes.addressof(self._memory)
        self._addresses = (ctypes.c_void_p * len(codes))(*[begin + place for place in self.places])
        self.parameters = ctypes.addressof(self._addresses)

    def start(self, queue, work_items, group, values) -> None:
        """Launch it for so many work-items, of two axes, in the current stream."""
        if work_items[0] and work_items[1]:
            self._put(values)
            grid = work_items[0] // group[0], work_items[1] // group[1]
            stream = queue.library.stream(self.index)
            driver.launch(self.index, self.function, grid, group, stream, self.parameters, self.room)

    def prepared(self, queue, work_items, group, values):
        """A function that launches it so, in what is the current stream then."""
        own = self.copy(values)
        index, function, start, stream = self.index, self.function, driver.launch, queue.library.stream
        grid = work_items[0] // group[0], work_items[1] // group[1]

        def launch():
            if all(grid):
                start(index, function, grid, group, stream(index), own.parameters, own.room)

        return launch

    def copy(self, values) -> "CudaKernel":
        """The kernel with room of its own, for these arguments."""
        own = CudaKernel(self.index, self.function, self.types, self.room)
        own._put(values)
        return own

    def _put(self, values):
        """Write arguments where they are looked for."""
        try:
            self._pack(self._memory, 0, *values)
        except struct.error:  # of None, which is no address
            self._pack(self._memory, 0, *(NULL if value is None else value for value in values))


def folder() -> Path:
    """Where compiled code is kept."""
    return Path(platformdirs.user_cache_dir("compactla")) / "cuda"


def compiled(source, options) -> bytes:
    """Code for a device, from disk if what was compiled before is whole there; that nothing can be kept is no error."""
    parts = source, digest_of_includes(source, SOURCES), options, compiler.version()
    file = folder() / f"{digest(repr(parts).encode())}.cubin"
    if not dump.is_wanted():
        with contextlib.suppress(OSError):
            seal, kept = (content := file.read_bytes())[:SEAL], content[SEAL:]
            if seal == digest(kept).encode():
                return kept
    code = compiler.compile(source, options)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as own:
            new = Path(own) / file.name
            new.write_bytes(digest(code).encode() + code)
            new.replace(file)
    return code
