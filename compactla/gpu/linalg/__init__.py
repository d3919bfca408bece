"""Functions of `compactla.linalg` on devices."""
