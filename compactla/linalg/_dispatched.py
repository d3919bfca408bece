"""NumPy's functions, which leave arrays of libraries that have their own to these."""

from numpy.linalg import *  # noqa: F403 - NumPy's names, as they are
