"""Batches of sparse matrices that share one pattern."""

from compactla.sparse.csr import BatchCSR
from compactla.sparse.lu import BatchLU

__all__ = ["BatchCSR", "BatchLU"]
