"""Kronecker products and sums of small matrices."""
