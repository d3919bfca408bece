"""Benchmarks of compactla for asv: the cases that they time are those of the package that is measured."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from compactla import bench

ROOT = Path(__file__).resolve().parent.parent


def take_from_this_tree(*names):
    """Have these modules of `compactla.bench` from this tree, whichever commit's package is imported.

    How a commit is timed, and what it is held against, does not come from it.
    """
    for name in names:
        spec = spec_from_file_location(f"{bench.__name__}.{name}", ROOT / "compactla" / "bench" / f"{name}.py")
        sys.modules[spec.name] = module = module_from_spec(spec)
        setattr(bench, name, module)
        spec.loader.exec_module(module)


take_from_this_tree("timing")
