"""getrfnp: batches of the SC17 slides on every device and in every library, its kernel in cache, what a call costs."""

from compactla.bench import cases

from . import common

DEVICES = common.OURS + common.NUMPY + common.SCIPY + common.MKL + common.CUDA


class Getrfnp(common.Latency):
    """A <- L\\U, without pivoting"""

    params = (DEVICES, common.DTYPES, common.SLIDES)
    make = cases.Getrfnp


class GetrfnpSpeed(common.Speed):
    """A <- L\\U, without pivoting"""

    params = (DEVICES, common.DTYPES, common.SIZES)
    make = cases.Getrfnp


class GetrfnpInCache(common.InCache):
    make = cases.Getrfnp


class GetrfnpOverhead(common.Overhead):
    make = cases.Getrfnp
