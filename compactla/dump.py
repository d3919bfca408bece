"""Compiled code for people to read: what was emitted for the CPU, and what was built for devices.

The environment variable COMPACTLA_DUMP names a folder that all of it goes to, in files of these endings:

.ll, .s    LLVM's module of a kernel for the CPU, after its passes, and the assembly
.cl, .log  a program of OpenCL C with its macros, and the compiler's log
.cu, .log  the same in CUDA C++
.ptx       the assembly of NVIDIA's compilers, and .cubin machine code

Caches on disk hold machine code alone: they are not read while somebody wants to see code.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compactla.digests import digest

VARIABLE = "COMPACTLA_DUMP"
listeners: list[list["DumpedCode"]] = []


class DumpedCode(NamedTuple):
    """The code of a kernel, or of a program.

    Attributes
    ----------
    name : str
        The function that made it, or the file of `opencl/`.
    key : str
        What it was specialised for.
    texts : dict
        Its forms, by the endings of files.
    """

    name: str
    key: str
    texts: dict[str, str | bytes]


def is_wanted() -> bool:
    """Whether somebody wants to see code that is compiled now."""
    return bool(listeners or os.environ.get(VARIABLE))


@contextlib.contextmanager
def collected() -> Iterator[list[DumpedCode]]:
    """The list of all that is compiled within the context, in any thread, in the order of compilation."""
    found: list[DumpedCode] = []
    listeners.append(found)
    try:
        yield found
    finally:
        listeners[:] = [other for other in listeners if other is not found]


def keep(name: str, key: str, **texts: str | bytes) -> None:
    """Show code to those who want to see it; empty texts are left out."""
    code = DumpedCode(name, key, {ending: text for ending, text in texts.items() if text})
    for found in listeners:
        found.append(code)
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    stem = re.sub(r"[^\w.]", "", name)[:100] + "." + digest(repr((name, key)).encode())
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for ending, text in code.texts.items():
            file = Path(folder, f"{stem}.{ending}")
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
    except OSError as error:
        raise ValueError(f"{VARIABLE} is {folder!r}, must be a folder that can be written: {error}") from error


def program(source: str, options: list[str]) -> tuple[str, str]:
    """The name of a program, and its text with the macros among its options: it compiles with the others alone."""
    files = re.findall(r'#include "(\w+)\.cl"', source)
    macros = [option.removeprefix("-D").replace("=", " ", 1) for option in options if option.startswith("-D")]
    others = " ".join(option for option in options if not option.startswith("-D"))
    head = [f"// {others}", *(f"#define {macro}" for macro in macros)]
    return files[-1] if len(files) == 1 else "program", "\n".join([*head, source])
