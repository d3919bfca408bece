"""Kernels: compiled for their arguments when they are first called, and kept on disk."""

import functools
import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba import njit, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from compactla import dump
from compactla.cpu.emit.choices import emitted
from compactla.cpu.pipeline import KernelPipeline, Pipeline
from compactla.digests import MODULES, digest, digest_of_imports

if sys.platform != "win32":
    import grp
    import pwd

INT, INTS = types.int64, types.int64[::1]
SEAL = 32  # bytes
REORDERED = {"reassoc", "contract", "nsz"}  # infinities and NaNs are as ever
HERE = Path(__file__).parent
# What the processor is, and which of its instructions are used.
TARGET = cpu_target.target_context.codegen().magic_tuple()
# Numba's settings that change machine code; not every version has them all.
SETTINGS = (
    *("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS"),
    *("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "EXTEND_VARIABLE_LIFETIMES"),
)


@functools.cache
def compiled(make: Callable, arguments: Sequence, *key: Any, source: str | None = None, reordered: bool = False) -> Any:
    """The kernel that the factory `make` returns for this key, compiled for these arguments after lo and hi, once.

    Its `entry` is the same for callers who know these types, which are not looked at. Where it is `reordered`, which
    depends on the key alone, sums are taken in any order, and products are fused with them. `source` is that of
    `CodeOnDisk`.
    """
    if vars(numba.config)["DISABLE_JIT"]:
        raise RuntimeError("NUMBA_DISABLE_JIT is set, must not be: kernels for the CPU run only as compiled code")
    kernel = make(*key)
    kernel.__qualname__ = make.__qualname__
    fastmath = REORDERED if reordered else False
    options = {"error_model": "numpy", "fastmath": fastmath, "pipeline_class": KernelPipeline}
    dispatcher = compiled_once(kernel, *key, source=source, **options)
    dispatcher.compile(types.void(INT, INT, *arguments))
    dispatcher.disable_compile()
    (found,) = dispatcher.overloads.values()
    dispatcher.entry = found.entry_point
    return dispatcher


def compiled_once(function: Callable, *key: Any, source: str | None = None, **options: Any) -> Any:
    """`function` compiled by Numba for the types that it is called with, and kept on disk where there is a place.

    The key tells apart functions that are made in one place. For `source` see `CodeOnDisk`.
    """
    function.__qualname__ += "." + digest(repr((function.__module__, key)).encode())
    dispatcher: Any = njit(nogil=True, **{"pipeline_class": Pipeline} | options)(function)
    dispatcher._cache = CodeOnDisk(function, key, source)
    return dispatcher


class CodeOnDisk(NullCache):
    """The machine code of a function on disk: a file for each signature and processor.

    It begins with a digest of itself and of what it was made of: what is old, broken or mixed up is compiled anew.
    Nothing that goes wrong with files stops a call.

    It is made of this module, the file of the function, the module `source`, which is for one that writes its code but
    is imported by a name that is known late, and of all that these import of this package.
    """

    def __init__(self, function, key, source=None):
        self.function, self.key = function, key
        self.files = [MODULES[__name__], function.__code__.co_filename]
        if source is not None:
            self.files.append(MODULES[source])

    def load_overload(self, signature, target_context):
        if dump.is_wanted() or (folder := place()) is None:
            return None
        try:
            target_context.refresh()
            name, identity = self.identify(signature)
            with (folder / name).open("rb") as file:
                seal, code = file.read(SEAL), file.read()
                if seal == sealed(identity, code) and not strangers(os.fstat(file.fileno())):
                    return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # whatever it is: it can be compiled
            pass
        return None

    def save_overload(self, signature, result):
        if dump.is_wanted():
            key = " ".join(map(str, self.key))
            name = f"{self.function.__module__}.{self.function.__name__}.{digest(repr((key, signature)).encode())}"
            dump.keep(name, key, ll=result.library.get_llvm_str(), s=result.library.get_asm_str())
        if (folder := place()) is None or result.library.has_dynamic_globals:
            return
        try:
            name, identity = self.identify(signature)
            code = dumps(result._reduce())
            write(folder / name, sealed(identity, code) + code)
        except Exception:  # no room, or no folder any more
            pass

    def identify(self, signature):
        """Name of the file, and all that the code depends on."""
        name = f"{self.function.__module__}.{self.function.__qualname__}"
        versions = numba.__version__, sys.implementation.cache_tag
        settings = [vars(numba.config).get(setting) for setting in SETTINGS]
        kind = repr((name, self.key, signature, TARGET, settings, versions, emitted())).encode()
        file = re.sub(r"[^\w.]", "", name)  # functions in others have "<locals>" there, which Windows takes in no file
        return f"{file}.{digest(kind)}.nbc", kind + digest_of_imports(*self.files).encode()


def sealed(identity, code):
    return hashlib.sha256(identity + code).digest()


def write(path, data):
    """Write a file such that it is there as a whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@functools.cache
def place():
    """The folder to keep code in; None if there is none, or others could put code there for us to run.

    It is looked for where Numba looks. The package's own folder is passed over for the user's.
    """
    own = f"{HERE.name}_{digest(os.fsencode(HERE))}"
    given = vars(numba.config)["CACHE_DIR"]
    if given and can_write(folder := Path(given).absolute() / own):
        return unless_shared(folder)
    if can_write(folder := HERE / "__pycache__") and not shared(folder):
        return folder
    folder = Path(platformdirs.user_cache_dir("compactla")) / own
    return unless_shared(folder) if can_write(folder) else None


def can_write(folder):
    """Whether a folder is there, or could be made, and files can be made in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def unless_shared(folder):
    """The folder, or None and a warning if others can write it."""
    if why := shared(folder):
        safe = "NUMBA_CACHE_DIR must be a folder that only you can write"
        warnings.warn(f"{why}: compiled code is not kept there, {safe}", RuntimeWarning, stacklevel=3)
        return None
    return folder


def shared(folder):
    """Which of a folder and the one that it is in others can write, and who; "" if nobody can."""
    reasons = ((path, strangers(path.stat())) for path in (folder, folder.parent))
    return next((f"{path} {reason}" for path, reason in reasons if reason), "")


def strangers(status):
    """Who can write a file or folder but the user, root and the package's owner, who can have us run anything anyway.

    "" if nobody can. A group that is its owner's alone, as where folders are made with umask 002, is nobody.
    """
    if sys.platform == "win32":  # no such modes
        return ""
    if status.st_uid not in (0, os.geteuid(), HERE.stat().st_uid):
        return f"belongs to user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & stat.S_IWGRP and not is_private(status.st_gid, status.st_uid):
        return f"can be written by group {status.st_gid}"
    return ""


def is_private(group, user):
    """Whether a group is the user's own: it is their first, has their name, and no other members."""
    try:
        entry, owner = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return (owner.pw_gid, owner.pw_name) == (group, entry.gr_name) and {*entry.gr_mem} <= {owner.pw_name}
