"""Functions of `compactla.linalg` on the CPU."""
