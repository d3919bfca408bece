"""The routines on batches of dense matrices: a file for each, with its row and its public function."""
