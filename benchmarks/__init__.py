"""Benchmarks of compactla for asv, and what the cases of `compactla.bench` are held against."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
