"""Systems with band matrices on the CPU."""
