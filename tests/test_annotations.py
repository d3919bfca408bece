"""All public functions and methods have annotations, and type checkers know the names that are imported late."""

import ast
import inspect
from pathlib import Path

import pytest

import compactla as cla
from compactla import krylov, linalg

NAMES = [
    *((cla, name) for name in cla.__all__),
    *((krylov, name) for name in krylov.__all__),
    *((linalg, name) for name in dir(linalg) if not name.startswith("_")),
]


def functions(found):
    """The function, or the public methods of the class."""
    if inspect.isclass(found):
        for name in dir(found):
            member = inspect.getattr_static(found, name)
            if not name.startswith("_") or name == "__init__":
                yield from functions(member.fget if isinstance(member, property) else getattr(found, name))
    else:
        function = inspect.unwrap(getattr(found, "__func__", found))
        if inspect.isfunction(function) and function.__module__.startswith("compactla"):
            yield function


@pytest.mark.parametrize("module, name", NAMES, ids=[name for _, name in NAMES])
def test_annotations(module, name):
    for function in functions(getattr(module, name)):
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
        bare = [p.name for p in parameters if p.annotation is p.empty]
        assert not bare and signature.return_annotation is not signature.empty, (function.__qualname__, bare)


def test_the_stub_agrees():
    tree = ast.parse(Path(cla.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    for node in imports:
        for alias in node.names:
            assert alias.name in (*cla.__all__, "routine")
            assert node.module == "compactla" or cla._LAZY.get(alias.name, "layout") == node.module.partition(".")[2]
    known = {alias.name for node in imports for alias in node.names}
    assert known >= {*cla.__all__} - {*cla.routine.names()}
