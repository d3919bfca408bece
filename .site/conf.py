"""The site: `python -m sphinx -c .site . build/site` makes it of the pages in the tree and of the docstrings.

The front page is README.md, and its links to other pages, in their order, are the contents. Below the page of a package
there is a reference of what the package has: what is public and defined in its folder.
"""

import importlib
import inspect
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
project, author, copyright = "compactla", "compactla developers", "compactla developers"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "myst_parser", "numpydoc"]
root_doc = "README"
FOLDERS = "compactla", "opencl", "benchmarks", "tests", ".github"
include_patterns = ["*.md", *(f"{folder}/**.md" for folder in FOLDERS), "build/reference/*"]
exclude_patterns = ["build/site"]
html_theme, html_title = "furo", "compactla"
html_show_sourcelink = False
html_static_path, html_css_files = ["static"], ["narrow.css"]
html_theme_options = {name: {"code-font-size": "12px"} for name in ("light_css_variables", "dark_css_variables")}
myst_heading_anchors = 3
autosummary_generate = False
autodoc_typehints = "none"
default_role = "py:obj"
suppress_warnings = ["ref.python"]  # of names such as `info`, which several classes have
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

MODULES = ["compactla", "compactla.linalg", "compactla.krylov", "compactla.cpu", "compactla.gpu"]
MEMBERS = "   :members:\n   :inherited-members: LinearOperator, BaseException, tuple, object\n"
REFERENCE = ROOT / "build" / "reference"


def public():
    """Public names, by the page of the folder that they are defined in."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            what = getattr(module, name)
            if callable(what) and (inspect.getmodule(what) or module).__name__.startswith("compactla"):
                file = Path(inspect.getsourcefile(inspect.unwrap(what)) or module.__file__)
                page = next((f / "README" for f in file.parents if (f / "README.md").is_file()), None)
                found.setdefault(page.relative_to(ROOT).as_posix(), {})[f"{module.__name__}.{name}"] = what
    return found


def write_reference(app):
    """A page for each public name, with nothing but the directive that reads its docstring."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    names = {name: what for some in public().values() for name, what in some.items()}
    for file in REFERENCE.glob("*.rst"):
        if file.stem not in names:
            file.unlink()
    for name, what in names.items():
        module, _, short = name.rpartition(".")
        kind, options = ("class", MEMBERS) if inspect.isclass(what) else ("function", "")
        text = f"{short}\n{'=' * len(short)}\n\n.. currentmodule:: {module}\n\n.. auto{kind}:: {short}\n{options}"
        file = REFERENCE / f"{name}.rst"
        if not file.is_file() or file.read_text() != text:
            file.write_text(text)


def linked(text):
    """Pages that a page links to, in their order."""
    return dict.fromkeys(re.findall(r"\]\(([^):#]+\.md)[#)]", text))


def add_contents(app, page, text):
    """What the front page links to is the contents; pages of folders have others below them, and a reference."""
    contents = linked(text[0])
    if page != root_doc:
        front = linked((ROOT / "README.md").read_text())
        below = [link for link in contents if page.endswith("/README") and ".." not in link and "/" in link]
        contents = [link for link in below if f"{page.removesuffix('README')}{link}" not in front]
    if names := public().get(page):
        text[0] += "\n## Reference\n\n```{eval-rst}\n.. autosummary::\n   :nosignatures:\n\n"
        text[0] += "".join(f"   ~{name}\n" for name in names) + "```\n"
        at = os.path.relpath(REFERENCE, (ROOT / page).parent)
        contents = [*contents, *(f"{name.rpartition('.')[2]} <{at}/{name}>" for name in names)]
    text[0] += "\n".join(["\n```{toctree}", ":hidden:", "", *contents, "```\n"]) if contents else ""


def outdated(app, env, added, changed, removed):
    """Pages with references are read again: other names may be public now."""
    return public().keys() & env.found_docs


def as_called(app, what, name, obj, options, signature, returns):
    """Kernels are called in Numba functions without the first argument of their definitions."""
    return signature and signature.replace("(code, ", "("), returns


def copy_front_page(app, failure):
    if not failure:
        shutil.copy(app.outdir / "README.html", app.outdir / "index.html")


def setup(app):
    app.connect("builder-inited", write_reference)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-signature", as_called)
    app.connect("build-finished", copy_front_page)
