"""A progress bar on the terminal, where tqdm is installed."""

import sys
from typing import Any


class NoBar:
    """Stands for a bar where there is none."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def set_postfix_str(self, text, refresh):
        pass

    def write(self, text):
        print(text)

    def update(self):
        pass


def progress_bar(total: int, name: str | None = None) -> Any:
    """A bar of so many steps, to be used as a context manager, on the standard error stream."""
    try:
        from tqdm import tqdm
    except ImportError:
        return NoBar()
    if sys.stderr is None:  # closed
        return NoBar()
    return tqdm(total=total, desc=name, leave=False, disable=None)
