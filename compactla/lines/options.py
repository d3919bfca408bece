"""Options of the factorization of lines, which all classes of lines share."""

import math
from dataclasses import InitVar, dataclass

import numpy as np

from compactla.checks import check_size
from compactla.lines.storage import STORAGE
from compactla.scalars import real_scalar

PIVOTS = "report", "raise", "perturb", "shift"


@dataclass(frozen=True)
class Options:
    """Options of `BlockTridiag`, checked for blocks of a dtype.

    Parameters
    ----------
    dtype : numpy.dtype
        Type of the blocks.
    pivots, pivoting, diagnose, storage, refine, tiny
        As for `BlockTridiag`. A `storage` equal to the real type of the dtype becomes None.
    """

    dtype: InitVar[np.dtype]
    pivots: str = "report"
    pivoting: bool = False
    diagnose: bool = False
    storage: str | None = None
    refine: int = 0
    tiny: float = 0.0

    def __post_init__(self, dtype):
        if self.pivots not in PIVOTS:
            raise ValueError(f"pivots is {self.pivots!r}, must be one of {', '.join(map(repr, PIVOTS))}")
        for name in ("pivoting", "diagnose"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} is {getattr(self, name)!r}, must be True or False")
        check_size(self.refine, "refine")
        tiny = float(real_scalar("tiny", self.tiny, np.empty(0, dtype)).real)
        if not 0 <= tiny < math.inf:
            raise ValueError(f"tiny is {self.tiny!r}, must be finite and not negative")
        if tiny and self.pivots in ("perturb", "shift"):
            raise ValueError(f"tiny is {tiny}, must be 0 with pivots={self.pivots!r}, which changes pivots itself")
        object.__setattr__(self, "tiny", tiny)
        names, real = ", ".join(map(repr, STORAGE)), np.finfo(dtype).dtype
        if self.storage is None:
            return
        if not isinstance(self.storage, str):
            raise TypeError(f"storage is {self.storage!r}, must be None or one of {names}")
        if self.storage == real.name:
            object.__setattr__(self, "storage", None)
        elif self.storage not in STORAGE or STORAGE[self.storage].itemsize >= real.itemsize:
            smaller = f"must be None or one of {names}, and smaller than {real.name}"
            raise ValueError(f"storage is {self.storage!r}, {smaller}")

    @property
    def policy(self) -> str:
        """The kind of kernels: "" if they look at zero pivots only, else the policy for each pivot."""
        treatment = "shift" if self.tiny else self.pivots if self.pivots in ("perturb", "shift") else "watch"
        if self.pivoting:
            return f"{treatment} pivoting"
        return treatment if treatment != "watch" or self.diagnose else ""

    @property
    def whole(self) -> str:
        """An option for which lines have to be left whole; "" if there is none."""
        return "pivoting" if self.pivoting else "refine" if self.refine else ""
