"""Tests of all routines: results are right for all sizes, options and layouts, and depend on one matrix alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import LAYOUTS, exhaustive, poisoned, same_bits, slow
from compactla import oracle, routine
from compactla.cpu.cost import STATIC
from compactla.results import unpacked
from rows import (
    BATCH,
    MODELS,
    OTHER,
    ROUTINES,
    all_same,
    argument,
    both,
    call,
    check,
    each,
    factors,
    function,
    general,
    in_turn,
    inputs,
    known,
    masks,
    numbers,
    operands,
    options,
    own,
    rectangles,
    residual,
    results,
    unknown,
    with_sizes,
    with_types,
)

LANES = [(1, np.float32), (3, np.complex128), (16, np.float32), (32, np.complex128)]
FACTORED = [name for name in ROUTINES if factors(routine.named(name))]


@with_sizes(ROUTINES)
def test_squares(name, queue, n, dtype, rng):
    row = routine.named(name)
    for letters in in_turn(row, n, dtype):
        check(name, rng, (n,) * len(row.letters), dtype, queue=queue, **letters)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ROUTINES)
def test_options_of_a_size(name, queue, rng):
    row = routine.named(name)
    for letters in options(row, OTHER[own(name).char]):
        check(name, rng, known(row), OTHER[own(name).char], queue=queue, **letters)


# Drivers of LAPACK that call two others, which are tried.
DRIVERS = "gesv", "hesv", "posv", "sygv", "sysv"


@with_types(ROUTINES, mark=lambda name, dtype: (exhaustive if name in DRIVERS else slow)(name, dtype))
def test_rectangles(name, queue, dtype, rng):
    row = routine.named(name)
    every, shapes = options(row, dtype), rectangles(row) or [unknown(row)]
    step = min(3, -(-len(every) // 2))  # of many options, each is tried with some of the sizes
    for i, letters in enumerate(every):
        for sizes in shapes[(i + i // step) % step :: step] or shapes:
            check(name, rng, sizes, dtype, queue=queue, **letters, **general(row, dtype))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ROUTINES)
@given(data=st.data())
def test_any_shape(name, queue, data):
    row = routine.named(name)
    sizes = data.draw(st.tuples(*[st.integers(0, 50)] * len(row.letters)), "sizes")
    nm = data.draw(st.integers(0, 40), "nm")
    letters = data.draw(st.sampled_from(options(row, np.float64)), "options")
    normal = st.floats(-2, 2).filter(lambda x: x == 0 or abs(x) > 1e-6)  # nothing is subnormal
    letters |= {name: data.draw(normal, name) for name in factors(row)}
    check(name, np.random.default_rng(0), sizes, np.float64, nm, queue=queue, **letters)


@with_types(FACTORED)
def test_scalars(name, queue, dtype, rng):
    row = routine.named(name)
    for sizes in (known(row), unknown(row), *rectangles(row)[-1:]):
        for letters in numbers(row, dtype):
            check(name, rng, sizes, dtype, queue=queue, **letters)


@with_types(FACTORED)
def test_scalars_of_numpy(name, queue, dtype, rng):
    row = routine.named(name)
    arrays = operands(name, rng, unknown(row), dtype)
    for values in ((0.5, -1), (-1, 0.5)):
        expected = results(name, arrays, queue=queue, **dict(zip(factors(row), values, strict=False)))
        values = [dtype.type(x) if x == 0.5 else np.int64(x) for x in values]
        found = results(name, arrays, queue=queue, **dict(zip(factors(row), values, strict=False)))
        assert all_same(found, expected)


@with_types(FACTORED)
def test_zero_scalars_read_nothing(name, queue, dtype, rng):
    """If alpha is zero, nothing is read but what another scalar multiplies, and nothing that a zero multiplies."""
    row = routine.named(name)
    for sizes in (known(row), unknown(row)):
        for letters in numbers(row, dtype):
            zero = {scalar for scalar, value in letters.items() if value == 0}
            for value in (np.nan, np.inf) if zero else ():
                arrays = operands(name, rng, sizes, dtype, **letters)
                before = [
                    np.full_like(a, value) if (A.scaled_by or "alpha") in zero else a
                    for A, a in zip(row.inputs, arrays, strict=True)
                ]
                after, _ = call(name, before, queue=queue, **letters)
                given, left = inputs(row, after), masks(row, before, letters)
                for A, b, a, mask in zip(row.inputs, before, given, left, strict=True):
                    assert not A.written or np.isfinite(a[:, ~mask]).all() or same_bits(a, b)
                assert residual(name, before, after, **letters) < oracle.THRESHOLD


@pytest.mark.slow
@pytest.mark.parametrize(("vlen", "dtype"), LANES)
@pytest.mark.parametrize("name", [name if name in MODELS else exhaustive(name) for name in ROUTINES])
def test_vector_lengths_and_batches(name, queue, vlen, dtype, rng):
    row = routine.named(name)
    for nm in (0, 1, 4, 33):
        check(name, rng, unknown(row), dtype, nm, vlen=vlen, queue=queue, **general(row, np.dtype(dtype)))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@with_types(ROUTINES)
def test_layouts(name, queue, dtype, layout, rng):
    row = routine.named(name)
    every = options(row, dtype)
    for letters in every[:: max(1, min(5, len(every) // 2))]:
        check(name, rng, unknown(row), dtype, queue=queue, layout=layout, **letters, **general(row, dtype))


@with_types(ROUTINES)
def test_what_surrounds_a_block_is_left_alone(name, queue, dtype, rng):
    """Operands are blocks of larger packs, of which only the blocks are written."""
    row = routine.named(name)
    arrays = operands(name, rng, unknown(row), dtype)
    letters = general(row, dtype)
    frames = [np.pad(a, ((0, 0), (2, 1), (1, 2)), constant_values=7) for a in arrays]
    packs = [argument(A, frame, queue=queue) for A, frame in zip(row.inputs, frames, strict=True)]
    blocks = [
        arrays[i][:, :, 0] if A.kind else packs[i][2 : 2 + arrays[i].shape[1], 1 : 1 + arrays[i].shape[2]]
        for i, A in enumerate(row.inputs)
    ]
    after, _ = unpacked(row, blocks, function(name)(*blocks, **letters))
    assert residual(name, arrays, after, **letters) < oracle.THRESHOLD
    for A, frame, pack, block in zip(row.inputs, frames, packs, inputs(row, after), strict=True):
        if not A.kind:
            frame[:, 2 : 2 + block.shape[1], 1 : 1 + block.shape[2]] = block
            assert same_bits(pack.unpack(), frame)


@with_types(ROUTINES)
def test_unused_lanes_may_hold_anything(name, queue, dtype, rng):
    row = routine.named(name)
    for sizes, letters in both(row, dtype):
        arrays, how = operands(name, rng, sizes, dtype), {"queue": queue, **letters}
        assert all_same(results(name, arrays, layout=poisoned, **how), results(name, arrays, **how))


@with_types(ROUTINES, mark=slow)
def test_a_failure_stays_alone(name, queue, dtype, rng):
    """A pivot that fails is reported, and neither that nor NaN in one matrix changes another by a bit."""
    row, spoil = routine.named(name), getattr(oracle.named(name), "spoil", None)
    some = [((n,) * len(row.letters), in_turn(row, n, dtype)[-1]) for n in (3, STATIC + 1)]
    some += [(shape, general(row, dtype)) for shape in rectangles(row)[2:4]]
    where = BATCH - 9
    others = np.arange(BATCH) != where
    for shape, letters in some:
        arrays = operands(name, rng, shape, dtype, **letters)
        good, info = call(name, arrays, queue=queue, **letters)
        pivots = min(arrays[0].shape[1:])
        for k in (None, *sorted({0, pivots // 2, pivots - 1} if spoil is not None else ())):
            bad = [a.copy() for a in arrays]
            if k is None:
                for A, a in zip(row.inputs, bad, strict=True):
                    a[where] = 0 if A.kind == "integer" else np.nan
            else:
                expected = spoil(where, k, *bad, **letters)
            after, failed = call(name, bad, queue=queue, **letters)
            pairs = [(a, b) for a, b in zip(after, good, strict=True) if a is not b]  # None is what was not asked for
            assert all(same_bits(a[others], b[others]) for a, b in pairs)
            if info is not None:
                assert same_bits(failed[others], info[others])
            if row.outputs == ("info",):
                assert not failed[others].any()
                assert k is None or failed[where] == expected


@pytest.mark.optimized
@with_types(ROUTINES)
def test_results_depend_on_nothing_but_the_matrix(name, queue, dtype, rng):
    """Results have the same bits whatever else is in the batch, and wherever in it the matrix is."""
    row = routine.named(name)
    for sizes, letters in both(row, dtype):
        arrays = operands(name, rng, sizes, dtype, 300)
        whole = results(name, arrays, queue=queue, **letters)
        for part in (slice(0, 1), slice(1, 2), slice(5, 42), slice(299, 300), slice(None, None, -1)):
            found = results(name, [a[part].copy() for a in arrays], queue=queue, **letters)
            assert all_same(found, [a[part].copy() for a in whole])
        repeated = results(name, [np.repeat(a[:1], 45, axis=0) for a in arrays], queue=queue, **letters)
        assert all_same(repeated, [np.repeat(a[:1], 45, axis=0) for a in whole])


@each(ROUTINES)
def test_lower_case(name, queue, rng):
    row = routine.named(name)
    letters = {option: allowed[-1] for option, allowed in row.allowed(own(name)).items()}
    lower = {option: letter.lower() for option, letter in letters.items() if isinstance(letter, str)}
    letters, how = {option: letters[option] for option in lower}, {"queue": queue, **general(row, own(name))}
    arrays = operands(name, rng, unknown(row), own(name), **letters)
    assert all_same(results(name, arrays, **lower, **how), results(name, arrays, **letters, **how))
