"""trsm: batches of the SC17 slides on every device and in every library, its kernel in cache, what a call costs."""

from compactla.bench import cases

from . import common

DEVICES = common.OURS + common.NUMPY + common.SCIPY + common.MKL + common.CUDA


class Trsm(common.Latency):
    """B <- inv(L) B"""

    params = (DEVICES, common.DTYPES, common.SLIDES)
    make = cases.Trsm


class TrsmSpeed(common.Speed):
    """B <- inv(L) B"""

    params = (DEVICES, common.DTYPES, common.SIZES)
    make = cases.Trsm


class TrsmInCache(common.InCache):
    make = cases.Trsm


class TrsmOverhead(common.Overhead):
    make = cases.Trsm
