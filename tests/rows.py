"""Calls of any routine, as its row and its oracle say: what the tests of all routines are written with."""

from itertools import product

import numpy as np
import pytest

import compactla as cla
from cases import exhaustive, random, same_bits, scalars, slow
from compactla import oracle, routine
from compactla.cpu.cost import STATIC
from compactla.cpu.emit.matrices import native_width, tile_size
from compactla.cpu.emit.numba_matrices import KINDS
from compactla.cpu.emit.vectors import Vector
from compactla.results import unpacked

ROUTINES = routine.names()
BATCH = 37  # a whole pack at least, and a partial one, for every default vector length


def known(row):
    """Sizes that kernels are compiled for, on the tests' devices too."""
    return (3,) * len(row.letters)


def unknown(row):
    """Sizes that kernels learn when they run."""
    return (5, 4, 6)[: len(row.letters)] if len(row.letters) > 1 else (STATIC + 1,)


def tile(char):
    """Rows and columns of a register tile on the CPU, where sizes are compiled in."""
    return tile_size(Vector(KINDS[char], native_width(np.dtype(char))), STATIC, STATIC)[0]


def structural(char):
    """Sizes that differ in structure: of no tile, one and several, whole or not, to the last compiled in, and above."""
    t = tile(char)
    return sorted({0, 1, 3, t - 1, t, t + 1, 2 * t + 1, 9, 17, STATIC, STATIC + 1})


# Compiling takes most of the time of the tests. What all routines share is tried with a few of them, `MODELS`, with one
# type always and with another by `.ci/run`. Of every other routine `.ci/run` tries one size that is compiled in,
# all others, and failures, with a type of its own; all of everything is exhaustive.
MODELS = "gemm", "getrfnp", "potrf"
OTHER = {"d": "F", "F": "d", "f": "D", "D": "f"}


def own(name):
    """The type that a routine is tried with first."""
    return np.dtype("dFfD"[sum(map(ord, name)) % 4])


def each(names):
    """Routines, of which the models are tried always."""
    return pytest.mark.parametrize("name", [name if name in MODELS else exhaustive(name) for name in names])


def with_types(names, mark=exhaustive):
    """Routines and types; `mark` is that of a routine's own type, if it is no model."""
    cases = []
    for name in names:
        first = own(name).char
        cases.append((name, np.dtype(first)) if name in MODELS else mark(name, np.dtype(first)))
        cases.append((slow if name in MODELS else exhaustive)(name, np.dtype(OTHER[first])))
        cases += [exhaustive(name, np.dtype(char)) for char in "fdFD" if char not in (first, OTHER[first])]
    return pytest.mark.parametrize(("name", "dtype"), cases)


def with_sizes(names):
    """Routines, orders of square matrices, and types."""
    cases = []
    for name in names:
        first = own(name).char
        for kind in (first, OTHER[first]):
            for n in structural(kind.lower()):
                seldom = n in (0, 1, 3, tile(kind) + 1, 9, 17, STATIC + 1) if name in MODELS else n in (3, STATIC + 1)
                always = kind == first and (n == 3 or (name in MODELS and seldom))
                case = name, n, np.dtype(kind)
                rare = slow if seldom and (kind == first or name in MODELS) else exhaustive
                cases.append(case if always else rare(*case))
    return pytest.mark.parametrize(("name", "n", "dtype"), cases)


RECTANGLES = [(1, 6, 2), (6, 1, 5), (9, 4, 1), (4, 9, 3), (3, 18, 3), (19, 2, 4), (5, 33, 6), (5, 0, 3), (0, 5, 4)]


def rectangles(row):
    """Sizes that are not equal; for three letters the last may be none too."""
    shapes = [*RECTANGLES, (5, 6, 0)] if len(row.letters) > 2 else RECTANGLES
    return [sizes[: len(row.letters)] for sizes in shapes] if len(row.letters) > 1 else []


def options(row, dtype):
    """All combinations of the options, as keyword arguments."""
    return [dict(zip(row.options, letters, strict=True)) for letters in product(*row.allowed(dtype).values())]


def factors(row):
    """Scalars that matrices are multiplied by."""
    return [name for name in row.scalars if name in ("alpha", "beta")]


def tried(row, dtype):
    """Values that the scalars are tried with."""
    return scalars(np.zeros(0, dtype).real.dtype if row.real_scalars else dtype)


def numbers(row, dtype):
    """All combinations of values of the factors, as keyword arguments."""
    names = factors(row)
    return [dict(zip(names, chosen, strict=True)) for chosen in product(tried(row, dtype), repeat=len(names))]


def general(row, dtype):
    """Factors that no kernel is compiled for, as keyword arguments."""
    _, _, minus, fraction = tried(row, dtype)
    return dict(zip(factors(row), (fraction, minus), strict=False))


def ones(row):
    """Scalars that kernels are compiled for and with which all is read, as keyword arguments."""
    return dict.fromkeys(factors(row), 1)


def both(row, dtype):
    """A size that is compiled in, and one that is not, with scalars that are and that are not."""
    return (known(row), ones(row)), (unknown(row), general(row, dtype))


def in_turn(row, n, dtype):
    """Options and scalars, as keyword arguments, that kernels of n x n are compiled for: sizes take turns."""
    every, fixed = options(row, dtype), sorted(row.fixed) or [tuple(general(row, dtype).values())]
    names = row.scalars if row.fixed else factors(row)
    count = min(2 if n < 10 else 1, len(every))  # large kernels take long to compile
    turn = 2 * structural(np.dtype(dtype).char.lower()).index(n)
    return [
        every[5 * i % len(every)] | dict(zip(names, fixed[i % len(fixed)], strict=True))
        for i in range(turn, turn + count)
    ]


def unread(n, uplo="L", diag="N"):
    """A mask of the elements that are not read of a matrix of which one triangle is."""
    mask = np.triu(np.ones((n, n), bool), 1)
    return (mask if uplo.upper() == "L" else mask.T) | (np.eye(n, dtype=bool) & (diag.upper() == "U"))


def masks(row, arrays, letters):
    """For every operand, a mask of the elements that are not read, whatever the scalars."""
    triangle = {name: letters[name] for name in ("uplo", "diag") if name in letters}
    return [
        unread(a.shape[1], **triangle) if A.half else np.zeros(a.shape[1:], bool)
        for A, a in zip(row.inputs, arrays, strict=True)
    ]


def argument(operand, a, layout=cla.pack, vlen=None, queue=None):
    """The argument of the public function for an operand."""
    return a[:, :, 0] if operand.kind == "integer" else layout(a, vlen, queue=queue)


def operands(name, rng, sizes, dtype, nm=BATCH, **letters):
    """Operands with NaN in all that must not be read; `letters` are options and scalars."""
    row, dtype = routine.named(name), np.dtype(dtype)
    arrays = oracle.named(name).operands(lambda m, n: random(rng, (nm, m, n), dtype), *sizes, **letters)
    for A, a, mask in zip(row.inputs, arrays, masks(row, arrays, letters), strict=True):
        assert a.dtype == dtype or A.kind
        if not A.kind:
            a[:, mask] = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan
    return list(arrays)


def function(name):
    return getattr(cla, name)


def call(name, arrays, layout=cla.pack, vlen=None, queue=None, **how):
    """All operands after a call on packs of these, and info or None; what is not written keeps its bits."""
    row = routine.named(name)
    given = [argument(A, a, layout, vlen, queue) for A, a in zip(row.inputs, arrays, strict=True)]
    returned = function(name)(*given, **how)
    after, info = unpacked(row, given, returned)
    for operand, a, b, mask in zip(row.inputs, arrays, inputs(row, after), masks(row, arrays, how), strict=True):
        kept = mask if operand.written else np.ones_like(mask)
        assert same_bits(b[:, kept], a[:, kept])
    if not row.outputs:
        assert row.inputs != row.operands or returned is written(row, given)[-1]
        return after, None
    assert isinstance(info, np.ndarray) and info.shape == (len(arrays[0]),) and info.dtype == np.int64
    return after, info


def inputs(row, after):
    """The operands after a call that can be passed to the next."""
    return [a for A, a in zip(row.operands, after, strict=True) if not A.output]


def written(row, arrays):
    """The arrays that a routine writes to."""
    return [a for A, a in zip(row.operands, arrays, strict=True) if A.written and a is not None]


def results(name, arrays, **how):
    """The operands that a call has written, and info if there is any."""
    after, info = call(name, arrays, **how)
    return written(routine.named(name), after) + ([] if info is None else [info])


def all_same(found, expected):
    return all(a is b is None or same_bits(a, b) for a, b in zip(found, expected, strict=True))


def residual(name, before, after, **letters):
    """The largest scaled residual, or zero for a batch of no matrices."""
    return oracle.named(name).residual(before, after, **letters).max(initial=0)


def check(name, rng, sizes, dtype, nm=BATCH, layout=cla.pack, vlen=None, queue=None, **letters):
    """A call on random operands is right."""
    before = operands(name, rng, sizes, dtype, nm, **letters)
    after, info = call(name, before, layout, vlen, queue, **letters)
    assert routine.named(name).outputs != ("info",) or not info.any()
    assert residual(name, before, after, **letters) < oracle.THRESHOLD
