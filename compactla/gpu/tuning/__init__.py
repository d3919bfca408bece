"""The choice of kernels for devices, and the results of tuning that it goes by."""
