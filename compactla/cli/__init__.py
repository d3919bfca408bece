"""The command line's own: files that it reads, and progress bars."""
