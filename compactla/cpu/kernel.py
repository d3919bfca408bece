"""Kernels: compiled for their arguments when they are first called, and kept on disk."""

import hashlib
from pathlib import Path

import numpy as np
from numba import njit, types
from numba.core.registry import cpu_target
from numba.np.numpy_support import as_dtype

INT, INTS = types.int64, types.int64[::1]


def digest(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:7], "little")


# Numba's disk cache watches the file of a kernel only, so every kernel also depends on a digest of all that write it.
HERE = Path(__file__).parent
SOURCES = [*sorted(HERE.glob("*.py")), *(HERE.parent / f"{name}.py" for name in ("view", "checks", "pivots"))]
DIGEST = digest(b"".join(path.read_bytes() for path in SOURCES))
# What the processor is, and which of its instructions are used.
TARGET = cpu_target.target_context.codegen().magic_tuple()


def compiled(make, arguments, *key):
    """The kernel that the factory `make` returns for this key, compiled for these arguments after lo and hi.

    It comes from Numba's cache on disk or goes there, if there is a place for it. Processes that write a file there at
    once can mix up what is in it: every kernel has files of its own, and returns what identifies it.
    """
    identity = digest(repr((make.__name__, key, DIGEST)).encode())
    kernel = make(*key, identity)
    kernel.__qualname__ = f"{make.__name__}.{digest(repr((key, TARGET)).encode()):x}"
    signature = INT(INT, INT, *arguments)
    nothing = [np.zeros(1, as_dtype(kind.dtype)) if isinstance(kind, types.Array) else kind(0) for kind in arguments]
    try:
        cached = njit(signature, cache=True, nogil=True, error_model="numpy")(kernel)
        if cached(0, 0, *nothing) == identity:
            return cached
    except Exception:  # no place, no room, or a broken file: whatever it is, it must not stop us
        pass
    return njit(signature, nogil=True, error_model="numpy")(kernel)
