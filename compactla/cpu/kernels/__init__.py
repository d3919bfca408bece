"""The kernels: one file a routine, from register tiles to a batch."""
