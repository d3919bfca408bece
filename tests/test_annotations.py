"""Functions that are public, or that other folders use, have annotations; type checkers know names imported late."""

import ast
import functools
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


PACKAGE = Path(cla.__file__).parent


@functools.cache
def modules():
    """The syntax trees of all modules, by their names; a package is its ``__init__.py``."""
    trees = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        trees[".".join(parts).removesuffix(".__init__")] = ast.parse(file.read_text(encoding="utf-8"))
    return trees


def folder(module):
    """The folder of a module, which a package itself is in, too."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path if path.is_dir() else path.parent


def device_module(node):
    """The module that a call of `compactla.backends.device_module` returns, if this is one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "device_module":
        return "compactla.gpu." + (node.args[0].value if node.args else "arrays")
    return None


def uses(tree):
    """Modules and their names that a module uses: imports, and attributes of modules that it imports."""
    nodes, known = list(ast.walk(tree)), {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.module, alias.name
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and device_module(node.value):
            known |= {target.id: device_module(node.value) for target in node.targets if isinstance(target, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            module = known.get(node.value.id) if isinstance(node.value, ast.Name) else device_module(node.value)
            if module in modules():
                yield module, node.attr


def definition(module, name):
    """The module that defines a name, and the function or class; None if it is neither."""
    for node in modules()[module].body if module in modules() else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module != module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    return None


@functools.cache
def crossing():
    """Functions and classes that another folder uses, with the modules that define them."""
    found = {}
    for user, tree in modules().items():
        for use in set(uses(tree)):
            module, node = definition(*use) or (user, None)
            if folder(module) != folder(user):
                found[module, node.name] = node
    return found


def test_other_folders_use_functions():
    assert {("compactla.overlap", "address"), ("compactla.gpu.launch", "plans")} <= crossing().keys()


def test_functions_that_cross_folders():
    bare = []
    for (module, name), node in crossing().items():
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for f in (f for f in methods if isinstance(f, ast.FunctionDef)):
            if f is not node and f.name.startswith("_") and f.name != "__init__":
                continue
            a = f.args
            parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            if not all(p.annotation for p in parameters if p.arg not in ("self", "cls")) or not f.returns:
                bare.append(f"{module}.{name}" if f is node else f"{module}.{name}.{f.name}")
    assert not bare


def test_the_stub_agrees():
    tree = ast.parse(Path(cla.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    for node in imports:
        for alias in node.names:
            assert alias.name in (*cla.__all__, "routine")
            assert node.module == "compactla" or cla._LAZY.get(alias.name, "layout") == node.module.partition(".")[2]
    known = {alias.name for node in imports for alias in node.names}
    assert known >= {*cla.__all__} - {*cla.routine.names()}
