"""Kronecker products on the CPU: the choice of a kernel, and kernels side by side in lanes or row by row."""

from compactla.cpu.kron.apply import needed, run, scale, values

__all__ = ["needed", "run", "scale", "values"]
