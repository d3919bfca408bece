"""Each routine that has a row: batches of the SC17 slides on every device and in every library, its kernel in cache,
and what a call costs.

The benchmarks of a routine NAME are called NAME.Name, NAME.NameSpeed, NAME.NameInCache and NAME.NameOverhead, as if it
had a file. Where beta = 0 spares the reading of what is written there is NAME.NameProductSpeed as well, and kernels in
cache run with it; all else has beta = 1.
"""

import functools
import types

from compactla import routine
from compactla.bench import cases

from . import common


def benchmarks(row):
    """The classes for a routine, by the names that asv knows them by."""
    name, devices = row.name, common.OURS + common.peers(row.name)
    make = functools.partial(cases.Dense, name)
    product = functools.partial(make, **dict.fromkeys(row.scaling, 0))
    latency, speed = (devices, common.DTYPES, common.SLIDES), (devices, common.DTYPES, common.SIZES)
    in_cache = ["numba:1", *(device for device in devices if device in common.MKL)], *speed[1:]
    found = {
        "": (common.Latency, make, latency),
        "Speed": (common.Speed, make, speed),
        "ProductSpeed": (common.Speed, product, speed),
        "InCache": (common.InCache, product, in_cache),
        "Overhead": (common.Overhead, make, ()),
    }
    if not row.scaling:
        del found["ProductSpeed"]
    return {name.capitalize() + kind: derived(name, kind, *of) for kind, of in found.items()}


def derived(name, kind, base, make, params):
    """A class of benchmarks, whose functions say that they are of a file of the routine's."""
    found = type(name.capitalize() + kind, (base,), {"make": staticmethod(make), "params": params})
    for attribute in dir(base):
        function = getattr(base, attribute)
        if attribute.startswith(("time_", "track_")):
            own = types.FunctionType(function.__code__, function.__globals__)
            functools.update_wrapper(own, function).benchmark_name = f"{name}.{found.__name__}.{attribute}"
            setattr(found, attribute, own)
    return found


for _name in routine.names():
    globals().update(benchmarks(routine.named(_name)))
