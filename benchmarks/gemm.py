"""gemm: batches of the SC17 slides on every device and in every library, its kernel in cache, what a call costs."""

import functools

from compactla.bench import cases

from . import common

DEVICES = common.OURS + common.NUMPY + common.MKL + common.CUDA


class Gemm(common.Latency):
    """C <- A B + C"""

    params = (DEVICES, common.DTYPES, common.SLIDES)
    make = cases.Gemm


class GemmSpeed(common.Speed):
    """C <- A B + C"""

    params = (DEVICES, common.DTYPES, common.SIZES)
    make = cases.Gemm


class GemmProductSpeed(common.Speed):
    """C <- A B"""

    params = (DEVICES, common.DTYPES, common.SIZES)
    make = staticmethod(functools.partial(cases.Gemm, beta=0))


class GemmInCache(common.InCache):
    make = staticmethod(functools.partial(cases.Gemm, beta=0))


class GemmOverhead(common.Overhead):
    make = cases.Gemm
