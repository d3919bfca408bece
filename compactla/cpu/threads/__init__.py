"""Threads: the pool, and how work is shared among them."""
