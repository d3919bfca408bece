"""Names of types in annotations of public functions."""

from collections.abc import Sequence
from typing import Any, TypeAlias

# Any array or array_like: of NumPy, pyopencl, or a library of CUDA arrays, whose types are not known here.
Array: TypeAlias = Any
# A pyopencl.CommandQueue, or a CUDA device of a library.
Queue: TypeAlias = Any
# Of pyopencl.Event.
Events: TypeAlias = Sequence[Any] | None
Scalar: TypeAlias = complex
# A sparse matrix or array of SciPy.
Sparse: TypeAlias = Any
