"""numpy.linalg and scipy.linalg in programs that are not changed: their functions, with what is ours inside.

NumPy's functions stay the objects that they are. While the patch is in force, they have other code, which looks at
their arguments and calls ours or NumPy's. So everybody has it who has a function, however it came there.
"""
