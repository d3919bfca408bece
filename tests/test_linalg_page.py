"""The page about compactla.linalg: its programs run, and it has all functions."""

import inspect
import re
from pathlib import Path

import compactla
from compactla import linalg

PAGE = (Path(compactla.__file__).parent / "linalg" / "README.md").read_text()


def test_programs():
    """Each goes on where those before it stopped; those at the end need other libraries."""
    known = {}
    for program in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(program, known)


def test_functions():
    rows = re.findall(r"^\| \w+'s \| (.*) \|$", PAGE, re.MULTILINE)
    public = {name for name, _ in inspect.getmembers(linalg, inspect.isfunction)}
    assert public <= {*re.findall(r"\w+", " ".join(rows))}
