"""OpenCL C for NVIDIA's runtime compiler: `opencl/cuda.h` makes it CUDA C++."""

import contextlib
import functools
from importlib import metadata

from compactla import dump
from compactla.opencl_sources import SOURCES, definitions

MISSING = "kernels for arrays in CUDA memory need NVIDIA's compiler: pip install cuda-bindings nvidia-cuda-nvrtc"


def cuda_source(source: str) -> str:
    """OpenCL C that may include files of `opencl/`, as CUDA C++; lines keep their numbers."""
    return f'#include "cuda.h"\n#line 1\n{source}'


def options(dtype, vlen, defines, arch) -> list[str]:
    """Options of the compiler for a GPU.

    Parameters
    ----------
    dtype, vlen, defines
        As of `compactla.gpu.build`.
    arch : str
        Its architecture, such as "sm_90", or a virtual one such as "compute_90".

    Notes
    -----
    Products and sums are contracted, as OpenCL compilers do by default; divisions and square roots are IEEE's.
    """
    return [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "--device-as-default-execution-space",
        "--disable-warnings",
        f"--include-path={SOURCES}",
        *definitions(dtype, vlen, defines),
    ]


def compile(source, options) -> bytes:
    """The cubin of a program, or for a virtual architecture its PTX.

    Raises
    ------
    RuntimeError
        If it does not compile; the message has the compiler's log.
    ImportError
        If there is no compiler.
    """
    nvrtc, _ = _compiler()
    if dump.is_wanted():
        options = [*options, "--ptxas-options=--verbose"]  # the log says what is in registers and what in memory
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"program.cu", 0, [], [])
    _check(nvrtc, error)
    try:
        (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = _text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if failed:
            message = log.rstrip(b"\0\n").decode(errors="replace") or failed.name
            raise RuntimeError(f"CUDA program does not compile with {' '.join(options)}:\n{message}")
        cubin = _text(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        ptx = _text(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        if dump.is_wanted():
            name, text = dump.program(source, options)
            dump.keep(name, text, cu=text, log=log.rstrip(b"\0"), ptx=ptx.rstrip(b"\0"), cubin=cubin)
        return cubin or ptx
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(nvrtc, program, size_of, get) -> bytes:
    """The log of the compiler about a program."""
    error, size = size_of(program)
    _check(nvrtc, error)
    text = bytes(size)
    _check(nvrtc, *get(program, text))
    return text


def _check(nvrtc, error) -> None:
    if error:
        raise RuntimeError(f"NVIDIA's compiler: {error.name}")


def _compiler():
    """The compiler and its version; an ImportError if the bindings or the library are missing."""
    try:
        from cuda.bindings import nvrtc

        error, *version = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as missing:
        raise ImportError(f"{MISSING} ({missing})") from None
    _check(nvrtc, error)
    return nvrtc, tuple(version)


@functools.cache
def version() -> tuple[int | str, ...]:
    """The version of the compiler; an ImportError if there is none.

    Its package says it, if there is one: to load the compiler takes longer than all else of a first call.
    """
    with contextlib.suppress(ImportError, AttributeError):
        from cuda import bindings

        major = int(bindings.__version__.split(".")[0])
        name = "nvidia-cuda-nvrtc" if major > 12 else f"nvidia-cuda-nvrtc-cu{major}"
        return name, metadata.version(name)  # an ImportError if there is no such package
    return _compiler()[1]
