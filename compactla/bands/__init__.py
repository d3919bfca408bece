"""Systems with tridiagonal and banded matrices: factored once and solved many times, or both at once."""
