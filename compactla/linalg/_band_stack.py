"""Functions of band matrices: limits of their kernels."""

import operator
from dataclasses import replace

from compactla.linalg.stacks import Limits, Stacked

WIDEST = 9  # diagonals that kernels have in registers
ROOM = 32768  # real numbers of a matrix and its right-hand sides, which are on the stack for V at a time
FEW = 4  # right-hand sides that are compiled in


class BandedStack:
    """A function of band matrices: `Stacked`, or SciPy's alone, for matrices that are too large for its kernel."""

    def __init__(self, *args, **keywords):
        self.kernel = Stacked(*args, **keywords, limits=Limits(largest=ROOM))
        self.others = replace(self.kernel, limits=Limits(largest=0))

    def __call__(self, ab, b, diagonals, options, on_error, compute, threads):
        """Solutions for matrices of so many diagonals and right-hand sides, which may be vectors."""
        right = b[:, None] if b.ndim == 1 else b
        columns = right.shape[-1]
        count = (2 if "c" in (ab.dtype.kind, b.dtype.kind) else 1) * (2 * diagonals + columns) * right.shape[-2]
        function = self.kernel if diagonals <= WIDEST and count <= ROOM else self.others
        keywords = {**options, "columns": columns if columns <= FEW else 0}
        values = tuple(keywords[name] for name in function.options)
        (x,) = function((ab, right), values, on_error, compute, threads)
        return x[..., 0] if b.ndim == 1 else x


def is_index(x):
    """Whether something is an integer."""
    try:
        return operator.index(x) >= 0
    except TypeError:
        return False
