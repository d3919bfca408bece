"""Benchmarks of compactla for asv: the cases that they time are those of the package that is measured."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
