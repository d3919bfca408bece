"""The command line's own: files that it reads, and what it explains."""
