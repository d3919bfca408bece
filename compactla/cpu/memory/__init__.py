"""Ordinary memory: transposing copies, packing, and products by rows."""
