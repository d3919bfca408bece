"""Measurements: what the machine can do, what the routines and their peers reach, and the command that prints it."""
