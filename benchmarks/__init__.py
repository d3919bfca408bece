"""Benchmarks for asv: one file a routine."""
