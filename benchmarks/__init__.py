"""Benchmarks of compactla for asv: the cases that they time are those of this tree, whichever commit is measured."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import compactla

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "compactla" / "bench"


def take_cases_from_here():
    """Let `compactla.bench` be that of this tree in front of the package that is measured."""
    spec = spec_from_file_location("compactla.bench", BENCH / "__init__.py", submodule_search_locations=[str(BENCH)])
    compactla.bench = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(compactla.bench)


take_cases_from_here()
