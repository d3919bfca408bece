"""Calls with arrays on a device that are made again by their launches alone: how, for each kind of memory."""
