"""Batches of sparse matrices that share one pattern."""

from compactla.sparse.csr import BatchCSR

__all__ = ["BatchCSR"]
