"""The sources of compiled code: files and all that they import or include, so that caches go by these alone."""

import functools
import hashlib
import os
import re
from pathlib import Path

PACKAGE = Path(__file__).parent
# `from package.module import name, ...`, where parentheses may hold several lines of names, or `import package.module`.
IMPORT = re.compile(r"^ *(?:from (compactla[.\w]*) import (\([^)]*\)|[^#\n]*)|import (compactla[.\w]*))", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?:["<](.*)[">])?', re.MULTILINE)
INCLUDED_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+(\w+)", re.MULTILINE)
MACRO_OF_FILE = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+"(.*)"', re.MULTILINE)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def closure(first, found_in):
    """`first`, all that is found in these, and in that, and so on; `found_in` returns a set."""
    reached = [*first]
    for one in reached:  # which grows meanwhile
        reached += found_in(one).difference(reached)
    return reached


def modules():
    """The files of this package by the names of their modules, and when each was last changed."""
    files, changed = {}, {}
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        package = folder.removeprefix(os.fspath(PACKAGE.parent))[1:].replace(os.sep, ".")
        for name in names:
            if name.endswith(".py"):
                file = os.path.join(folder, name)
                files[f"{package}.{name[:-3]}".removesuffix(".__init__")] = file
                changed[file] = os.stat(file).st_mtime_ns
    return files, changed


# As they are when this process imports them.
MODULES, CHANGED = modules()


@functools.cache
def content(file: str) -> bytes:
    """The content of a file; an OSError if it has changed since this process imported it."""
    if CHANGED.get(file, changed := os.stat(file).st_mtime_ns) != changed:
        raise OSError(f"{file} was changed since it was imported")
    return Path(file).read_bytes()


@functools.cache
def imported(file: str) -> set[str]:
    """The files of this package that a file of Python imports from, at its head or in functions."""
    found = set()
    for package, names, module in IMPORT.findall(content(file).decode()):
        of_package = MODULES.get(package or module)
        found |= {MODULES.get(f"{package}.{name}", of_package) for name in re.findall(r"(?<! as )\b(?!as\b)\w+", names)}
        found |= {of_package} if module else set()
    return found - {None}


def digest_of_imports(*files: str) -> str:
    """Digest of files of Python and all that they import of this package."""
    return digest(b"".join(content(file) for file in sorted(closure(files, imported))))


def digest_of_includes(source: str, folder: Path) -> str:
    """Digest of the files in a folder that OpenCL C includes: all of them, for macros of others."""
    return digest("".join(sorted(includes(source, folder))).encode())


def digest_of_code(source: str, folder: Path) -> str:
    """Digest of a source and its includes without comments and white space, which change no code."""
    return digest("".join(sorted(map(code, includes(source, folder)))).encode())


def includes(source: str, folder: Path) -> set[str]:
    """The contents of the files in a folder that OpenCL C includes, and that these include."""
    files = {}

    def included(names):
        for file in os.listdir(folder) if "" in names else names:
            path = os.path.join(folder, file)
            if path not in files and os.path.isfile(path):
                status = os.stat(path)
                files[path] = text_and_names(path, status.st_mtime_ns, status.st_size)
                included(files[path][1])

    included(included_names(source))
    return {text for text, _ in files.values()}


@functools.cache
def text_and_names(path: str, changed: int, size: int) -> tuple[str, frozenset[str]]:
    """The content of a file as it was when it was changed last, and the names of those that it includes."""
    text = Path(path).read_text("utf-8", "replace")
    return text, included_names(text)


def included_names(text: str) -> frozenset[str]:
    """The names of files that OpenCL C includes, "" among them if a macro that it does not define says which."""
    names, macros = {*INCLUDE.findall(text)}, MACRO_OF_FILE.findall(text)
    if {*INCLUDED_BY_MACRO.findall(text)} <= {macro for macro, _ in macros}:
        names.discard("")
    return frozenset(names.union(file for _, file in macros))


def code(text: str) -> str:
    """OpenCL C without comments, with single spaces, and without empty lines."""
    text = COMMENT.sub(" ", text.replace("\\\n", " "))
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
