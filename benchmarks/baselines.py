"""What the cases of `compactla.bench` are held against: NumPy, SciPy and, where it is installed, Intel MKL."""

import numpy as np
import scipy

from compactla.bench.timing import best
from compactla.cpu.threads.sharing import THREADS

from . import mkl
from .peers import Peer, banded, library_peers


class Baselines:
    """The baselines on this machine.

    Parameters
    ----------
    file : str, optional
        MKL's runtime library, ``libmkl_rt``; default: that of the package mkl, if it is installed.
    """

    def __init__(self, file=None):
        self.library = mkl.load(file)

    def __str__(self):
        version = f"MKL {self.library.version}" if self.library else "no MKL (pip install mkl)"
        return f"numpy {np.__version__}, scipy {scipy.__version__}, {version}, on the CPU"

    def of(self, case) -> list[Peer]:
        """The peers of a case, on the CPU wherever the case runs."""
        return library_peers(case) + (mkl_peers(case, self.library) if self.library else [])

    def in_cache(self, case):
        """Name, rounds and residual of MKL's kernel in a loop of compiled code; None if there is none."""
        if self.library is None or not mkl.suits(case):
            return None
        return mkl.fastest_in_cache(case, self.library)

    def of_lines(self, case) -> Peer:
        """The peer that factors and solves in one call."""
        return banded(case)


def peer(case, name) -> Peer:
    """The fastest peer of one library: "numpy", "scipy" or "mkl"."""
    found = mkl_peers(case, mkl.load()) if name == "mkl" else library_peers(case)
    named = [peer for peer in found if peer.name.lower().startswith(name)]
    return min(named, key=lambda peer: best(peer.call, least=1))


def mkl_peers(case, library) -> list[Peer]:
    """The fastest of MKL's formats, if MKL does such a thing in few enough calls."""
    if not mkl.suits(case):
        return []
    return [Peer(*mkl.fastest(case, library, case.threads.get("threads", THREADS)))]
