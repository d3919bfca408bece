"""Calls that are not repeated: memos of checked calls, recordings of launches, and prepared calls."""
