"""NumPy's own functions, also where ours have been put in their places in numpy.linalg."""

from numpy.linalg import *  # noqa: F403 - NumPy's names, as they are
