"""The pages beside the packages: programs on them run, links lead somewhere, and the front page is short."""

import importlib.util
import inspect
import re
import shlex
from pathlib import Path

import pytest

from compactla import linalg

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = "compactla", "opencl", "benchmarks", "tests", ".github"
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text()
    for page in [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md")))]
}
FAST = {"README.md", "compactla/README.md", "compactla/cpu/README.md", "opencl/README.md"}  # others take many kernels


def blocks(page):
    """Programs in Python and parts of programs in OpenCL C, with their languages."""
    return re.findall(r"^```(python|c)\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


def prose(page):
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def headings(page):
    """The anchors of a page, as GitHub and the site have them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


TYPED = re.compile(
    r"^\|.*\| *\d[\d.]*(±\d+)? ?(%|x|s)? *\||\d ?(ns|us|ms|GB/s|GFlop/s)\b|\d times as (fast|long)"
    r"|\d ?% (faster|slower)|(half|third|quarter|fifth|eighth|ninth|tenth|twentieth|hundredth)s? of the time",
    re.MULTILINE,
)
FREE = "compactla/CHANGELOG.md", "benchmarks/README.md", "benchmarks/results/README.md"  # of old times, of definitions


@pytest.mark.parametrize("page", sorted({*PAGES} - {*FREE}))
def test_no_figure_is_typed(page):
    """What was measured stands between the marks of `benchmarks.report`, in tables and in sentences."""
    typed = re.sub(r"<!-- report: .*?<!-- end -->", "", PAGES[page], flags=re.DOTALL)
    assert not [found[0] for found in TYPED.finditer(typed)]


PROGRAMS = [pytest.param(page, marks=[pytest.mark.slow] * (page not in FAST)) for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", PROGRAMS)
def test_programs(page, monkeypatch):
    """Each program goes on where the one before it stopped; OpenCL C is their SOURCE."""
    monkeypatch.chdir(ROOT)
    known = {}
    for language, text in blocks(page):
        if language == "c":
            known["SOURCE"] = text
        else:
            exec(text, known)


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not target.startswith("https://"):
            name, _, anchor = target.partition("#")
            file = (ROOT / page).parent / name if name else ROOT / page
            assert file.is_file(), target
            assert not anchor or anchor in headings(file.resolve().relative_to(ROOT).as_posix()), target


def commands():
    """Commands that start modules, on lines of their own or in the text, by module."""
    for page in PAGES:
        for module, rest in re.findall(r"python3? -m ((?:compactla|benchmarks)[\w.]*)([^`\n#]*)", PAGES[page]):
            yield page, module, rest


def test_commands():
    """Modules are there, and programs among the examples have the options that they are started with."""
    for page, module, rest in commands():
        found = importlib.util.find_spec(module)
        assert found, (page, module)
        if module.startswith("compactla.examples."):
            options = {word for word in shlex.split(rest) if word.startswith("--")}
            known = Path(found.origin).read_text() + Path(found.origin).with_name("beside.py").read_text()
            assert all(f'"{option}"' in known for option in options), (page, module, rest)


def test_the_front_page_is_short():
    assert len(PAGES["README.md"].splitlines()) <= 110


def test_gallery():
    """Each program is there, with its picture."""
    page = PAGES["compactla/examples/README.md"]
    programs = [path for path in (ROOT / "compactla" / "examples").glob("*.py") if "__main__" in path.read_text()]
    for program in programs:
        assert {f"]({program.name})", f"]({program.stem}.png)"} <= {*re.findall(r"\]\([^)]*\)", page)}


def test_functions():
    rows = re.findall(r"^\| \w+'s \| (.*) \|$", PAGES["compactla/linalg/README.md"], re.MULTILINE)
    public = {name for name, _ in inspect.getmembers(linalg, inspect.isfunction)}
    assert public <= {*re.findall(r"\w+", " ".join(rows))}
