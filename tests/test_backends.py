"""The CPU and devices offer the functions of `compactla.protocols`, with the same parameters, which have annotations.

mypy, which reads this file, holds each module against its protocol; the tests compare names, order and defaults.
"""

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, get_args, get_overloads, get_type_hints

import pytest

from compactla import protocols
from compactla.backends import backend

HINTS = map(get_type_hints, get_overloads(backend))
PROTOCOLS = {get_args(hints["name"])[0]: hints["return"] for hints in HINTS}  # by the names of modules

if TYPE_CHECKING:
    import compactla.cpu.arrays
    import compactla.cpu.kron
    import compactla.cpu.krylov
    import compactla.cpu.lines
    import compactla.cpu.run
    import compactla.cpu.sparse
    import compactla.cpu.storage
    import compactla.cpu.sweeps
    import compactla.gpu.arrays
    import compactla.gpu.kron
    import compactla.gpu.krylov
    import compactla.gpu.lines
    import compactla.gpu.run
    import compactla.gpu.sparse
    import compactla.gpu.storage
    import compactla.gpu.sweeps

    arrays: list[protocols.Arrays] = [compactla.cpu.arrays, compactla.gpu.arrays]
    kron: list[protocols.Kron] = [compactla.cpu.kron, compactla.gpu.kron]
    krylov: list[protocols.Krylov] = [compactla.cpu.krylov, compactla.gpu.krylov]
    lines: list[protocols.Lines] = [compactla.cpu.lines, compactla.gpu.lines]
    runs: list[protocols.Runs] = [compactla.cpu.run, compactla.gpu.run]
    sparse: list[protocols.Sparse] = [compactla.cpu.sparse, compactla.gpu.sparse]
    storage: list[protocols.Storage] = [compactla.cpu.storage, compactla.gpu.storage]
    sweeps: list[protocols.Sweeps] = [compactla.cpu.sweeps, compactla.gpu.sweeps]


def functions(protocol):
    """Names of the functions of a protocol."""
    return [name for name, found in vars(protocol).items() if inspect.isfunction(found) and not name.startswith("_")]


def parameters(function):
    """Names, kinds and defaults of the parameters, in order."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values() if p.name != "self"]


def bare(function):
    """Names of the parameters without annotations, of a function or of a class."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.annotation is p.empty]


def check_parameters(function, expected):
    """Compare with the parameters of a protocol's function, whose default ``...`` stands for any."""
    found = parameters(function)
    for place, ((name, kind, default), (_, _, stated)) in enumerate(zip(found, expected, strict=False)):
        if stated is ... and default is not inspect.Parameter.empty:
            found[place] = name, kind, ...
    assert found == expected


@pytest.mark.parametrize("name, function", [(name, f) for name, P in PROTOCOLS.items() for f in functions(P)])
def test_parameters(name, function):
    expected = parameters(getattr(PROTOCOLS[name], function))
    sides = [getattr(import_module(f"compactla.{side}.{name}"), function) for side in ("cpu", "gpu")]
    for side in sides:
        check_parameters(side, expected)
        assert not bare(side)
    assert parameters(sides[0]) == parameters(sides[1])


@pytest.mark.parametrize("side", ["cpu", "gpu"])
@pytest.mark.parametrize("of, made", [(protocols.Vectors, "krylov.Rows"), (protocols.Scratch, "lines.LineScratch")])
def test_methods(side, of, made):
    module, _, name = made.rpartition(".")
    for method in functions(of):
        check_parameters(getattr(getattr(import_module(f"compactla.{side}.{module}"), name), method),
                         parameters(getattr(of, method)))  # fmt: skip


def test_every_protocol_has_a_module():
    classes = {found for found in vars(protocols).values() if getattr(found, "_is_protocol", False)}
    assert classes - {protocols.Protocol, protocols.Vectors, protocols.Scratch} == {*PROTOCOLS.values()}
