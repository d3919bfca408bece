"""Whole problems, solved: ``python -m compactla.examples.hot_wall``."""
