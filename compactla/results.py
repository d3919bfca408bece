"""Results of routines: operands that a call makes beside those that are given, and what it returns of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.calls.launch import Launch
from compactla.checks import is_device_array, on_host, stays
from compactla.foreign import adopt
from compactla.integers import Integers, rows
from compactla.layout import Pack
from compactla.types import Array
from compactla.view import View


def beside(row: Any, A: Pack, views: Sequence[View]) -> list:
    """New operands of a routine, for those that are given, which are views of a pack and of others like it."""
    numbers = row.numbers(row.sizes(views))
    found: list = []
    for operand in row.made:
        m, n = (numbers[letter] for letter in operand.sizes)
        if operand.kind == "integer":
            found.append(Integers.beside(A, m))
        elif operand.turned:
            found.append(A.beside(n, m).T)
        else:
            found.append(A.beside(m, n, real=operand.kind == "real", twin=operand.kind == "complex"))
    return found


def returned(row: Any, made: Sequence, output: Any, threads: Any) -> Any:
    """What a call returns of the operands that it made, and its output."""
    pairs = [(operand, x) for operand, x in zip(row.made, made, strict=True) if not operand.room]
    found = [rows(x, threads) if operand.flat else x for operand, x in pairs]
    if row.outputs:
        found.append(output)
    return found[0] if len(found) == 1 else tuple(found)


def again(row: Any, made: Sequence, call: Callable, nm: int, launch: Launch) -> Callable[[], Any]:
    """A function that makes operands like these, calls a function of where they are, and returns what `returned` does.

    It is for the CPU. It keeps none of these operands.
    """
    host: Any = backend(None)
    makers = [host.maker(x.view.buffer) for x in made]
    finishers = [finisher(operand, x.view, nm, launch) for operand, x in zip(row.made, made, strict=True)]
    single = sum(finish is not None for finish in finishers) + len(row.outputs) == 1
    if len(made) == 1 and finishers[0] is not None:  # as in most
        (make,), (finish,) = makers, finishers

        def one():
            data, start = make()
            output = call(start)
            found = finish(data, start)
            return found if single else (found, output)

        return one

    def some():
        made = [make() for make in makers]
        output = call(*[start for _, start in made])
        found = [finish(*x) for finish, x in zip(finishers, made, strict=True) if finish is not None]
        if row.outputs:
            found.append(output)
        return found[0] if single else tuple(found)

    return some


def finisher(operand: Any, view: View, nm: int, launch: Launch) -> Callable[[Any, int], Any] | None:
    """A function of memory and its address that makes of an operand what is returned; None if that is nothing."""
    if operand.room:
        return None
    if operand.flat:
        host: Any = backend(None)
        return host.rows(view, nm, launch)
    of_view: Any = Integers.of_view if operand.kind == "integer" else Pack.of_view
    npack, m, n, (_, ps, rs, cs), V, dtype = view.npack, view.m, view.n, view.place, view.vlen, view.dtype

    def finish(data, start):
        return of_view(View(data, start, npack, m, n, ps, rs, cs, V, dtype, None), nm)

    return finish


def unpacked(row: Any, arrays: Sequence[Array], returned: Any) -> tuple[list, object]:
    """The results of a call: every operand as an array (nm, rows, columns), or None, and the output, or None.

    Parameters
    ----------
    row : Routine
        That of the call.
    arrays : sequence
        The arguments: packs and what stands beside them, or arrays of this shape.
    returned : object
        What the public function returned.
    """
    made = [A for A in row.made if not A.room]
    if made or row.outputs:
        found = list(returned if len(made) + len(row.outputs) > 1 else [returned])
    else:
        found = []
    output = adopt(found.pop(), row.outputs[0]) if row.outputs else None
    output = on_host(output).astype(np.int64) if stays(output) else output
    given, new = iter(arrays), iter(found)
    after = [None if A.room else next(new if A.output else given) for A in row.operands]
    return list(map(operand_unpacked, row.operands, after)), output


def operand_unpacked(operand, x):
    """An operand after a call as an array (nm, rows, columns)."""
    if x is None or isinstance(x, Pack):
        return None if x is None else x.to("cpu").unpack()
    x = adopt(x, operand.name)
    x = backend(x.queue).download(x) if is_device_array(x) else np.asarray(x)
    if x.ndim == 3:
        return x
    return x[:, None, :] if operand.sizes[0] == "1" else x[:, :, None]
