"""The call frame of XLA's foreign function interface: where a function that XLA calls finds its arguments.

These are the structures of `xla/ffi/api/c_api.h`, version 0.1, as far as they are read here. Later versions add to
their ends. No header and no compiler is needed.
"""

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, ClassVar

VERSION = 0, 1  # major and minor, of what is read here
METADATA = 1  # type of the extension that asks for version and traits
COMMAND_BUFFER = 1  # the trait of functions that launch the same kernels again and again, and wait for nothing
EXECUTE = 3  # the stage in which there are arguments
INTERNAL = 13  # code of an error
BOOL, STRING, SCALAR = 1, 4, 3  # kinds of attributes


class Extension(ctypes.Structure):
    """What XLA asks beside a call."""


class Version(ctypes.Structure):
    """Version of the interface."""

    _fields_: ClassVar = [("size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int)]


class Metadata(ctypes.Structure):
    """Version and traits of a function."""

    _fields_: ClassVar = [("size", c_size_t), ("version", Version), ("traits", c_uint32)]


Extension._fields_ = [
    ("size", c_size_t),
    ("type", c_int),
    ("next", POINTER(Extension)),
    ("metadata", POINTER(Metadata)),  # of that type
]


class Buffer(ctypes.Structure):
    """An array in memory, contiguous."""

    _fields_: ClassVar = [
        ("size", c_size_t),
        ("extension", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("shape", POINTER(c_int64)),
    ]


class Buffers(ctypes.Structure):
    """Arguments, or results."""

    _fields_: ClassVar = [
        ("size", c_size_t),
        ("extension", c_void_p),
        ("count", c_int64),
        ("types", POINTER(c_int)),
        ("entries", POINTER(POINTER(Buffer))),
    ]


class Text(ctypes.Structure):
    """Characters."""

    _fields_: ClassVar = [("start", POINTER(c_char)), ("length", c_size_t)]


class Scalar(ctypes.Structure):
    """A number."""

    _fields_: ClassVar = [("dtype", c_int), ("value", c_void_p)]


class Attributes(ctypes.Structure):
    """Attributes by name."""

    _fields_: ClassVar = [
        ("size", c_size_t),
        ("extension", c_void_p),
        ("count", c_int64),
        ("types", POINTER(c_int)),
        ("names", POINTER(POINTER(Text))),
        ("entries", POINTER(c_void_p)),
    ]


class ErrorRequest(ctypes.Structure):
    """What an error is made of."""

    _fields_: ClassVar = [("size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int)]


class StreamRequest(ctypes.Structure):
    """Asks for the stream of a call."""

    _fields_: ClassVar = [("size", c_size_t), ("extension", c_void_p), ("context", c_void_p), ("stream", c_void_p)]


MAKE_ERROR = ctypes.CFUNCTYPE(c_void_p, POINTER(ErrorRequest))
GET_STREAM = ctypes.CFUNCTYPE(c_void_p, POINTER(StreamRequest))


class Interface(ctypes.Structure):
    """Functions of XLA."""

    _fields_: ClassVar = [
        ("size", c_size_t),
        ("extension", c_void_p),
        ("version", Version),
        ("internal", c_void_p),
        ("make_error", MAKE_ERROR),
        ("error_message", c_void_p),
        ("destroy_error", c_void_p),
        ("register", c_void_p),
        ("get_stream", GET_STREAM),
    ]


class Frame(ctypes.Structure):
    """A call."""

    _fields_: ClassVar = [
        ("size", c_size_t),
        ("extension", POINTER(Extension)),
        ("interface", POINTER(Interface)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
    ]


HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(Frame))


def offset(structure: Any, *path: str) -> int:
    """Bytes from the beginning of a structure to a field, of a field, and so on."""
    total = 0
    for name in path:
        total += getattr(structure, name).offset
        structure = dict(structure._fields_)[name]
    return total


def text(frame: Frame, name: str) -> str:
    """An attribute that is a string."""
    for i in range(frame.attributes.count):
        if characters(frame.attributes.names[i].contents) == name:
            return characters(ctypes.cast(frame.attributes.entries[i], POINTER(Text)).contents)
    raise KeyError(name)


def characters(span: Text) -> str:
    return ctypes.string_at(span.start, span.length).decode()


def error(frame: Frame, message: str) -> int | None:
    """An error that XLA raises in its caller."""
    request = ErrorRequest(ctypes.sizeof(ErrorRequest), None, message.encode(), INTERNAL)
    return frame.interface.contents.make_error(ctypes.byref(request))


def stream(frame: Frame) -> int:
    """The stream in which a function has to start what it does."""
    request = StreamRequest(ctypes.sizeof(StreamRequest), None, frame.context, None)
    if frame.interface.contents.get_stream(ctypes.byref(request)):
        raise RuntimeError("XLA has no stream for a call")
    return request.stream or 0


def answer(frame: Frame, traits: int) -> bool:
    """Whether a call asks for version and traits, which it is told then."""
    if not frame.extension or frame.extension.contents.type != METADATA:
        return False
    metadata = frame.extension.contents.metadata.contents
    metadata.version.major, metadata.version.minor = VERSION
    metadata.traits = traits
    return True


WORD, HALF = ctypes.sizeof(c_int64), ctypes.sizeof(c_int32)
