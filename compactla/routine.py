"""A routine: one row, which checks, launches, the tuner, the command line, benchmarks and tests all read.

The row of a routine NAME is ``compactla.dense.NAME.ROUTINE``; which there are is what files there are.
"""

import functools
import importlib
import operator
import os
import pkgutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compactla import results
from compactla.calls import memo
from compactla.calls.launch import NOW
from compactla.calls.notes import state
from compactla.checks import (
    check_device_array,
    check_info,
    check_kind,
    check_launch,
    is_device_array,
    is_writeable,
    option,
    stays,
)
from compactla.dtypes import REAL
from compactla.foreign import adopt
from compactla.layout import Pack
from compactla.ordinary import is_stack, stack_views
from compactla.overlap import address, share_memory
from compactla.search import Search
from compactla.types import Events
from compactla.view import View


@functools.cache
def names() -> tuple[str, ...]:
    """All routines: those that have a file."""
    modules = pkgutil.iter_modules([os.fspath(Path(__file__).with_name("dense"))])
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


def in_order() -> list[str]:
    """All routines, as tables list them: products of matrices, solves, factorizations."""
    return sorted(names(), key=lambda name: (-len(named(name).operands), name))


@functools.cache
def named(name: str) -> "Routine":
    """The row of a routine."""
    return importlib.import_module(f"compactla.dense.{name}").ROUTINE


@dataclass(frozen=True)
class Matrix:
    """An operand, as kernels see it.

    Attributes
    ----------
    name : str
        Name of the parameter, or of the result.
    sizes : str
        Two letters, of its rows and of its columns. Equal letters are equal sizes; "1" is one.
    written : bool
        Whether it is overwritten.
    half : bool
        Whether only one triangle of it is touched.
    scaled_by : str
        A scalar; where that is zero the matrix is not read.
    kind : str
        Its contents, if not the numbers of the routine: "real" or "complex" ones of their precision, or "integer" ones
        of 8 bytes on the CPU and of 4 on devices.
    output : bool
        Whether the public function makes it and returns it: such operands first, in their order, then `outputs`. They
        are the last ones, and their layouts follow from the operands that are given and the options compiled in.
    room : bool
        Whether it is an output that is not returned: work space of kernels.
    flat : bool
        Whether it is an output that is returned as an array, (nm, rows) or (nm, columns).
    turned : bool
        Whether it is an output whose columns are contiguous.
    """

    name: str
    sizes: str
    written: bool = False
    half: bool = False
    scaled_by: str = ""
    kind: str = ""
    output: bool = False
    room: bool = False
    flat: bool = False
    turned: bool = False


@dataclass(frozen=True, eq=False)
class Routine:
    """A row.

    Attributes
    ----------
    name : str
        That of the public function, of the kernels, and of the files that they are in.
    operands : tuple of Matrix
        In the order in which kernels take them.
    madds : function
        Multiply-adds of a matrix, of the sizes by their letters.
    search : Search
        The OpenCL kernels for known sizes.
    options : dict
        Options of the public function, and the letters, or other values, that they may be: the first is the default.
    real : dict
        Letters of options that only real matrices have, by the names of the options.
    compiled : tuple of str
        Those of the options which kernels take; all others make views.
    scalars : dict
        Scalars, and the value of each that OpenCL kernels are compiled for.
    real_scalars : bool
        Whether scalars are real for complex matrices too.
    fixed : frozenset
        Values of all scalars that are compiled into Numba kernels. Where there are some, sizes are compiled in with
        these only.
    free : bool
        Whether sizes are compiled in with all scalars, and those that are fixed only with sizes.
    outputs : tuple of str
        The array of one integer a matrix that is written, if there is one: "info" or "rank".
    implied : dict
        Sizes of operands that follow from the others: by letter, functions of these. The public function checks them.
    static : int, optional
        The largest size that is compiled into Numba kernels; default: that of all routines.
    together : bool
        Whether a Numba kernel takes all packs of a thread at once, as `Elements.packs` says; for rows without outputs.
    paired : range
        The sizes of which a Numba kernel takes two packs at once, each operand as a list of two matrices.
    """

    name: str
    operands: tuple[Matrix, ...]
    madds: Callable[..., float]
    search: Search
    options: dict[str, Sequence] = field(default_factory=dict)
    real: dict[str, str] = field(default_factory=dict)
    compiled: tuple[str, ...] = ()
    scalars: dict[str, float] = field(default_factory=dict)
    real_scalars: bool = False
    fixed: frozenset[tuple[float, ...]] = frozenset()
    free: bool = False
    outputs: tuple[str, ...] = ()
    implied: dict[str, Callable[..., int]] = field(default_factory=dict)
    static: int | None = None
    together: bool = False
    paired: range = range(0)

    @functools.cached_property
    def main(self) -> int:
        """Which operand says what type, vector length, number of matrices and device are: the last that is given."""
        return max(i for i, A in enumerate(self.operands) if not A.output and not A.kind)

    @functools.cached_property
    def inputs(self) -> tuple[Matrix, ...]:
        """The operands that the public function takes."""
        return tuple(A for A in self.operands if not A.output)

    @functools.cached_property
    def function(self) -> Callable:
        """The public function."""
        return getattr(importlib.import_module(f"compactla.dense.{self.name}"), self.name)

    @functools.cached_property
    def scaling(self) -> tuple[str, ...]:
        """The scalars that, where they are zero, spare the reading of what is written."""
        return tuple(A.scaled_by for A in self.operands if A.scaled_by)

    @functools.cached_property
    def letters(self) -> tuple[str, ...]:
        """The sizes: those of the main operand come first."""
        found = self.operands[self.main].sizes + "".join(A.sizes for A in self.operands)
        return tuple(letter for letter in dict.fromkeys(found) if letter != "1" and letter not in self.implied)

    def numbers(self, sizes: Sequence[int]) -> dict[str, int]:
        """The sizes of all letters, with those that are implied and "1"."""
        given = dict(zip(self.letters, sizes, strict=True))
        return given | {letter: size(**given) for letter, size in self.implied.items()} | {"1": 1}

    def sizes(self, matrices: Sequence) -> tuple[int, ...]:
        """The sizes of the letters, from layouts or views of operands that are given, and of others if there are any.

        A ValueError if these do not fit.
        """
        found: dict[str, tuple[int, str]] = {"1": (1, "")}
        for operand, matrix in zip(self.operands, matrices, strict=len(matrices) != self.given):
            name = self._called(operand)
            for letter, size, axis in zip(operand.sizes, (matrix.m, matrix.n), ("rows", "columns"), strict=True):
                if letter in self.implied:
                    continue
                needed, where = found.setdefault(letter, (size, f", as many as there are {axis} of {name}"))
                if size != needed:
                    shape = f"{name} is {matrix.m} x {matrix.n}"
                    raise ValueError(f"{shape}, must have {needed} {axis if needed != 1 else axis[:-1]}{where}")
        return tuple(found[letter][0] for letter in self.letters)

    def _called(self, operand) -> str:
        """The name of an operand in messages; kernels see a transpose where that is an option, "trans" of the first."""
        names = {f"trans{operand.name.lower()}", "trans" if operand is self.operands[0] else ""}
        return f"op({operand.name})" if names & self.options.keys() and not operand.written else operand.name

    def touched(self, sizes: Sequence[int], dtype: np.dtype) -> list[float]:
        """How many elements of `dtype` are as long as what is read or written of each operand of a matrix."""
        number = self.numbers(sizes)
        real = REAL[dtype.char].itemsize / dtype.itemsize
        weights = {"": 1, "real": real, "complex": 2 * real, "integer": 4 / dtype.itemsize}
        found = []
        for A in self.operands:
            m, n = (number[letter] for letter in A.sizes)
            found.append(weights[A.kind] * (m * (n + 1) / 2 if A.half else m * n))
        return found

    def elements(self, sizes: Sequence[int], dtype: np.dtype, unread: Collection[str] = ()) -> float:
        """Elements of `dtype` of all operands of a matrix that are read and that are written; each of both counts."""
        times = [A.written + (not A.output and A.scaled_by not in unread) for A in self.operands]
        return sum(map(operator.mul, self.touched(sizes, dtype), times))

    def work(self, sizes: Sequence[int]) -> float:
        """Multiply-adds of a matrix of these sizes."""
        return self.madds(**dict(zip(self.letters, sizes, strict=True)))

    def chosen(self, *values: Any) -> tuple:
        """The values of all options, letters in upper case."""
        key = values if self._lettered else (values, *map(type, values))  # 1 is equal to True
        try:
            return self._chosen[key]
        except (KeyError, TypeError):
            pairs = zip(self.options.items(), values, strict=True)
            found = tuple(option(name, value, letters) for (name, letters), value in pairs)
            return self._chosen.setdefault(key, found)

    def allowed(self, dtype: Any) -> dict[str, Sequence]:
        """The options, and the values that they may have for matrices of a type."""
        without = self.real if np.dtype(dtype).kind == "c" else {}
        return {name: [x for x in values if x not in without.get(name, ())] for name, values in self.options.items()}

    def refuse(self, name: str, value: Any) -> None:
        """Refuse a value of an option that only real matrices have."""
        letters = " or ".join(map(repr, self.allowed("D")[name]))
        raise ValueError(f"{name} is {value!r}, must be {letters} for complex matrices")

    @functools.cached_property
    def _lettered(self) -> bool:
        """Whether the values of all options are letters."""
        return all(isinstance(letters, str) for letters in self.options.values())

    @functools.cached_property
    def _chosen(self) -> dict[tuple, tuple]:
        """Earlier choices."""
        return {}

    def run(
        self, views: Sequence[View], scalars: tuple = (), conj: tuple | None = None, compiled: tuple = (), nm: int = 0,
        info: Any = None, threads: Any = None, wait_for: Events = None,
    ) -> Any:  # fmt: skip
        """Check what is written, and start the kernel where the operands live.

        Parameters
        ----------
        views : tuple of View
            The operands.
        scalars : tuple of number
            Those of the row.
        conj : tuple of bool, optional
            Which operands are conjugated.
        compiled : tuple
            Values of the options that are compiled in.
        nm : int
            Number of matrices, for outputs.
        info : array, optional
            Where the output goes, instead of to a new NumPy array.
        threads, wait_for
            As of `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array or None
            The output, if there is one.
        """
        last = views[self.main]
        queue = last.queue
        key = None
        repeats = last.lasts and (queue is None or (self._repeats and state.notes is None and stays(last.buffer)))
        if repeats and info is wait_for is None and (threads is None or type(threads) is int):
            key, call = memo.find(self, views, scalars, conj, compiled, threads)
            if call is not None:
                return call()
        launch = self._checked(views, nm, info, threads, wait_for)
        if key is not None:
            call = last.run.again(self, views, scalars, conj, compiled, nm, launch)
            memo.remember(key, call, views, self)
            return call()
        return last.run.start(self, views, scalars, conj, compiled, nm, info, launch)

    def returned(
        self, A: Pack, views: Sequence[View], scalars: tuple = (), conj: tuple | None = None, compiled: tuple = (),
        info: Any = None, threads: Any = None, wait_for: Events = None,
    ) -> Any:  # fmt: skip
        """Do the same with operands that are made beside a pack; returns what the public function does.

        Parameters
        ----------
        A : Pack
            The pack whose view is the last operand that is given, or one like it.
        views : tuple of View
            The operands that are given. For others see `run`.
        """
        key = None
        if A.queue is info is wait_for is None and (threads is None or type(threads) is int):
            key, call = memo.find(self, views, scalars, conj, compiled, threads)
            if call is not None:
                return call()
        made, nm = results.beside(self, A, views), A.nm
        views = *views, *[x.view for x in made]
        launch, run = self._checked(views, nm, info, threads, wait_for), views[self.main].run
        if key is not None:
            call = run.again(self, views, scalars, conj, compiled, nm, launch)
            call = results.again(self, made, call, nm, launch)
            memo.remember(key, call, views, self)
            return call()
        output = run.start(self, views, scalars, conj, compiled, nm, info, launch)
        return results.returned(self, made, output, threads)

    def _checked(self, views, nm, info, threads, wait_for):
        """The launch of a call, whose operands are checked."""
        for i, others in self.written:
            written = views[i]
            if not is_writeable(written.buffer):
                raise ValueError(f"{self.operands[i].name} is read-only, must be writeable")
            if written.repeats:
                has = f"{self.operands[i].name} has strides {written.buffer.strides}"
                raise ValueError(f"{has}, must have memory of its own for every element")
            start, end = written.span
            for j in others:
                first, stop = views[j].span
                if start < stop and first < end and share_memory(written.buffer, views[j].buffer):
                    name, other = self.operands[i].name, self.operands[j].name
                    shares = f"{name} shares memory with {other}"
                    raise ValueError(f"{shares}, must not: it is written while {other} is read")
        queue, launch = views[self.main].queue, NOW
        if queue is not None or threads is not None or wait_for is not None:
            launch = check_launch(threads, wait_for, queue, recorded=True)
        if info is not None:
            info = adopt(info, self.outputs[0])
            check_info(info, nm, queue, *self.outputs)
            for operand, A in zip(self.operands, views, strict=True):
                if share_memory(info, A.buffer):
                    raise ValueError(f"{self.outputs[0]} shares memory with {operand.name}, must not")
        return launch

    @functools.cached_property
    def given(self) -> int:
        """How many operands are given: those that the public function makes come after them."""
        return sum(not A.output for A in self.operands)

    @functools.cached_property
    def made(self) -> tuple[Matrix, ...]:
        """The operands that the public function makes."""
        return self.operands[self.given :]

    @functools.cached_property
    def _repeats(self) -> bool:
        """Whether a call on a device makes nothing."""
        return not self.outputs and self.given == len(self.operands)

    @functools.cached_property
    def written(self) -> list[tuple[int, list[int]]]:
        """Which operands are written, and which are the others."""
        places = [i for i, A in enumerate(self.operands) if not A.output]
        return [(i, [j for j in places if j != i]) for i in places if self.operands[i].written]


def check_packs(**packs: Any) -> None:
    """Refuse packs that do not agree with the last of them."""
    for name, P in packs.items():
        if not isinstance(P, Pack):
            raise TypeError(f"{name} is a {type(P).__name__}, must be a Pack (see compactla.pack)")
    last, reference = next(reversed(packs.items()))
    for name, P in packs.items():
        if P.kind == reference.kind:
            continue
        if P.dtype != reference.dtype:
            raise TypeError(f"{name} is of {P.dtype}, must be of {reference.dtype} as {last}")
        if P.vlen != reference.vlen:
            raise ValueError(f"{name} has vector length {P.vlen}, must have {reference.vlen} as {last}")
        if P.nm != reference.nm:
            raise ValueError(f"{name} has {P.nm} matrices, must have {reference.nm} as {last}")
        if P.device == reference.device:
            raise ValueError(f"{name} lives in another OpenCL context than {last}, must live in the same: see Pack.to")
        raise ValueError(f"{name} lives on {P.device!s}, must live on {reference.device!s} as {last}: see Pack.to")


def views(**operands: Any) -> list[View]:
    """Views of packs, and of ordinary matrices that stand for packs before the last: one for the batch.

    Or of ordinary arrays, if there are no packs.
    """
    last, C = next(reversed(operands.items()))
    if are_ordinary(operands, C):
        return stack_views(**operands)
    operands = {name: A if type(A) in (Pack, np.ndarray) else adopt(A, name) for name, A in operands.items()}
    packs = {name: A for name, A in operands.items() if name == last or not is_matrix(A)}
    check_packs(**packs)
    return [A.view if name in packs else common_view(A, name, C, last) for name, A in operands.items()]


def plain_views(**operands: Any) -> list[View]:
    """Views of packs, or of ordinary arrays if there are no packs."""
    if are_ordinary(operands, next(reversed(operands.values()))):
        return stack_views(**operands)
    check_packs(**operands)
    return [A.view for A in operands.values()]


def are_ordinary(operands, C):
    """Whether operands, of which C is the last, are ordinary arrays."""
    return is_stack(C) and not any(type(A) is Pack for A in operands.values())


def is_matrix(a: Any) -> bool:
    """Whether `a` is an ordinary array of two axes, wherever it lives."""
    return type(a) is not Pack and (isinstance(a, np.ndarray) or is_device_array(a)) and a.ndim == 2


def common_view(a, name, C, last) -> View:
    """View of one matrix for all of those of C, which messages call `last`; it may have any strides."""
    check_kind(a, C.queue, name)
    if a.dtype != C.dtype:
        raise TypeError(f"{name} is of {a.dtype}, must be of {C.dtype} as {last}")
    item, source = REAL[C.dtype.char].itemsize, None
    if C.queue is not None:
        check_device_array(a, C.queue, name)
        start = a.offset // item
    else:
        if not a.flags.forc or not a.flags.aligned:
            if share_memory(a, C.view.buffer):
                raise ValueError(f"{last} shares memory with {name}, must not: it is written while {name} is read")
            source, a = a, a.copy()
        start = address(a)
    (m, n), (rs, cs) = a.shape, a.strides
    return View(a, start, C.view.npack, m, n, 0, rs // item, cs // item, C.vlen, C.dtype, C.queue, True, source)


def check_side(A: Any, B: Any, name: str, side: str) -> None:
    """Refuse an A that cannot stand on this side of B, which messages call `name`."""
    size = B.m if side == "L" else B.n
    if (A.m, A.n) != (size, size):
        shape = f"A is {A.m} x {A.n}, must be {size} x {size}"
        raise ValueError(f"{shape}: {name} is {B.m} x {B.n} and side is {side!r}")
