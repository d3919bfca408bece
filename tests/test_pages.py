"""The pages beside the packages: their programs run, and that of compactla.linalg has all functions."""

import inspect
import re
from pathlib import Path

import pytest

import compactla
from compactla import linalg

PAGES = {page.parent.name: page.read_text() for page in sorted(Path(compactla.__file__).parent.glob("*/README.md"))}


SLOW = {"krylov"}  # they take many kernels


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PAGES])
def test_programs(name):
    """Each goes on where those before it stopped; those at the end may need other libraries."""
    known = {}
    for program in re.findall(r"```python\n(.*?)```", PAGES[name], re.DOTALL):
        exec(program, known)


def test_functions():
    rows = re.findall(r"^\| \w+'s \| (.*) \|$", PAGES["linalg"], re.MULTILINE)
    public = {name for name, _ in inspect.getmembers(linalg, inspect.isfunction)}
    assert public <= {*re.findall(r"\w+", " ".join(rows))}
