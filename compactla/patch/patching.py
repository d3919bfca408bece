"""patch_numpy and unpatch_numpy: numpy.linalg's and scipy.linalg's functions become ours where those gain."""

import functools
from collections.abc import Callable
from types import CodeType, TracebackType

from compactla.locks import Lock
from compactla.patch.codes import choosing
from compactla.patch.targets import Target, targets

Watched = Callable[[Target], Target] | None


class Patch:
    """What `patch_numpy` returns: a context manager, at the end of whose block the patch is undone."""

    def __enter__(self) -> "Patch":
        with _lock:
            _outside.discard(self)
            _blocks.append(self)
            settle()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _lock:
            if self in _blocks:  # the module was not loaded once more
                _blocks.remove(self)
            settle()


def patch_numpy() -> Patch:
    """Let programs that call numpy.linalg and scipy.linalg have compactla's functions where those gain.

    From then on, functions of `numpy.linalg` and `scipy.linalg` compute stacks of small matrices as those of
    `compactla.linalg` do. Every other call is NumPy's or SciPy's own. Results differ by rounding, and by signs of
    eigenvectors and singular vectors; types, exceptions and named tuples are the same. `eig` and `eigvals` of NumPy
    before 2.5 have complex results where an eigenvalue is complex: for one that is repeated, rounding decides that.

    Returns
    -------
    Patch
        A context manager. The patch is undone at the end of a ``with`` block, or else by `unpatch_numpy`.

    See Also
    --------
    unpatch_numpy : Undoes it.
    compactla.linalg : The functions, with more arguments.

    Notes
    -----
    The functions stay the same objects: they get other code. So it does not matter when, where and under which name a
    program has imported them. What a process of its own computes that is not forked is not patched. Blocks may be
    nested, and overlap in several threads: the patch is in force until the last one ends, in all threads.

    Examples
    --------
    >>> import numpy as np
    >>> import compactla
    >>> with compactla.patch_numpy():
    ...     np.linalg.solve(np.array([[[3.0, 1.0], [1.0, 2.0]]]), np.array([9.0, 8.0]))
    array([[2., 3.]])
    """
    patch = Patch()
    with _lock:
        _outside.add(patch)
        settle()
    return patch


def unpatch_numpy() -> None:
    """Undo all calls of `patch_numpy`, but those of blocks, which end at their ends.

    See Also
    --------
    patch_numpy : For one block.
    """
    with _lock:
        _outside.clear()
        settle()


def settle() -> None:
    """Give all functions the code that they should have now."""
    for target in targets():
        code = code_of(target, _watched) if _outside or _blocks else target.theirs.__code__
        if target.function.__code__ is not code:
            target.function.__code__ = code


@functools.cache
def code_of(target: Target, watched: Watched) -> CodeType:
    """Code that calls ours or theirs, as they are or as they are watched."""
    seen = watched(target) if watched else target
    return choosing(target.function, target.condition, seen.ours, seen.theirs, target.choose)


def watch(watched: Watched) -> None:
    """Let functions be watched: a function makes other targets of them; None for an end of that."""
    global _watched
    with _lock:
        _watched = watched
        settle()


_watched: Watched = None
_lock = Lock()
_outside: set[Patch] = set()  # patches that no block ends
_blocks: list[Patch] = []
