"""pack and unpack: from an array into packs that are there, and back."""

from compactla.bench import cases

from . import common

DEVICES = common.OURS + common.NUMPY + common.MKL


class Pack(common.Latency):
    params = (DEVICES, common.DTYPES, common.SLIDES)
    make = cases.Pack


class PackTraffic(common.Traffic):
    params = (DEVICES, common.DTYPES, common.SIZES)
    make = cases.Pack


class Unpack(common.Latency):
    params = (DEVICES, common.DTYPES, common.SLIDES)
    make = cases.Unpack


class UnpackTraffic(common.Traffic):
    params = (DEVICES, common.DTYPES, common.SIZES)
    make = cases.Unpack
