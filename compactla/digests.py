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
    """Digest of what OpenCL C includes of the files in a folder: of all of them, where a macro says which."""
    return digest("".join(sorted(includes(source, folder))).encode())


def digest_of_code(source: str, folder: Path) -> str:
    """Digest of a source and its includes without comments and white space, which change no code."""
    return digest("".join(sorted(map(code, includes(source, folder)))).encode())


def includes(source: str, folder: Path) -> list[str]:
    """The contents of the files in a folder that OpenCL C includes, and that these include."""

    def included(text):
        names = INCLUDE.findall(text)
        files = folder.iterdir() if "" in names else map(folder.joinpath, names)
        return {file.read_text("utf-8", "replace") for file in files if file.is_file()}

    return closure([source], included)[1:]


def code(text: str) -> str:
    """OpenCL C without comments, with single spaces, and without empty lines."""
    text = COMMENT.sub(" ", text.replace("\\\n", " "))
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
