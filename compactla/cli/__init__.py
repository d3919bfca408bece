"""The command line's own: files that it reads, progress bars, and the command `explain`."""
