"""Lines of blocks: factored and solved, cut into parts, found in sparse matrices, and preconditioners made of them."""
