"""Tests of the oracles, which must see a wrong result in whatever element and matrix it is."""

import numpy as np
import pytest

from cases import exhaustive, random, slow
from compactla import oracle, routine
from rows import ROUTINES, call, each, general, inputs, known, masks, operands, options, unknown

every_routine = each(ROUTINES)
on_numbers = pytest.mark.parametrize("dtype", [slow(np.float64), exhaustive(np.complex128)], ids="dz")
NM, WRONG = 5, 3


def sizes(row):
    return unknown(row) if len(row.letters) > 1 else known(row)


def calls(name, rng, dtype):
    """Operands before and after calls with all options, and what the oracle is told of a call."""
    row = routine.named(name)
    for letters in options(row, dtype):
        letters |= general(row, np.dtype(dtype))
        before = operands(name, rng, sizes(row), dtype, NM, **letters)
        yield before, call(name, before, **letters)[0], letters


@on_numbers
@every_routine
def test_wrong_elements_are_seen(name, dtype, rng):
    row, residual = routine.named(name), oracle.named(name).residual
    others = np.arange(NM) != WRONG
    for before, after, letters in calls(name, rng, dtype):
        right = residual(before, after, **letters)
        assert right.shape == (NM,) and right.dtype == float and (right < oracle.THRESHOLD).all()
        unread = iter(masks(row, before, letters))
        free = getattr(oracle.named(name), "free", lambda **options: ())(**letters)
        for i, operand in enumerate(row.operands):
            mask = False if operand.output else next(unread)
            if not operand.written or after[i] is None or operand.name in free:
                continue
            largest = np.nanmax(np.abs(np.where(mask, 0, after[i])))
            errors = [1] if operand.kind == "integer" else [1e6 * np.finfo(dtype).eps * largest, np.nan, np.inf]
            for place in zip(*np.nonzero(~(mask | np.zeros(after[i].shape[1:], bool))), strict=True):
                for error in errors:
                    wrong = [a if a is None else a.copy() for a in after]
                    wrong[i][WRONG, *place] += error
                    with np.errstate(invalid="ignore"):
                        found = residual(before, wrong, **letters)
                    assert found[WRONG] > oracle.THRESHOLD, (place, error, letters)
                    assert np.array_equal(found[others], right[others])


@on_numbers
@every_routine
def test_wrong_operands_are_seen(name, dtype, rng):
    """The result for other operands is not that for these."""
    row, residual = routine.named(name), oracle.named(name).residual
    for before, after, letters in calls(name, rng, dtype):
        for i, operand in enumerate(row.inputs):
            wrong = [a.copy() if i == j else a for j, a in enumerate(before)]
            if operand.kind == "integer":
                wrong[i][WRONG] = (wrong[i][WRONG] + 1) % wrong[i].shape[1]
            else:
                wrong[i][WRONG] *= 1.5
            if not operand.scaled_by or letters[operand.scaled_by]:
                assert residual(wrong, after, **letters)[WRONG] > oracle.THRESHOLD


@on_numbers
@every_routine
def test_results_of_other_options_are_seen(name, dtype, rng):
    """Results of other options are seen, for square matrices, unless the other option leaves more of it free."""
    row, residual = routine.named(name), oracle.named(name).residual
    free = getattr(oracle.named(name), "free", lambda **options: ())
    for letters in options(row, dtype):
        before = operands(name, rng, known(row), dtype, NM, **letters)
        after, _ = call(name, before, **letters)
        for option, allowed in row.allowed(dtype).items():
            for value in allowed:
                other = letters | {option: value}
                real = dtype is np.float64 and (option == "conj" or {value, letters[option]} == {"T", "C"})
                same = value == letters[option] or real
                if not same and not set(free(**other)) > set(free(**letters)):
                    with np.errstate(invalid="ignore"):
                        found = residual(before, after, **other)
                    assert (found > oracle.THRESHOLD).all(), (letters, option, value)


@on_numbers
@every_routine
def test_repeated_calls(name, dtype, rng):
    """Operands for calls that are timed are those of a routine, and stay what they are or nearly."""
    row = routine.named(name)
    for letters in options(row, dtype):
        drawn = oracle.named(name).operands(lambda m, n: random(rng, (NM, m, n), dtype), *known(row), **letters)
        start = arrays = oracle.named(name).repeatable(*drawn, **letters)
        for _ in range(20):
            after, info = call(name, arrays, **letters)
            assert row.outputs != ("info",) or not info.any()
            assert oracle.named(name).residual(arrays, after, **letters).max() < oracle.THRESHOLD
            arrays = inputs(row, after)
        assert max(np.abs(a).max() for a in arrays) < 100 * max(1, *(np.abs(a).max() for a in start))


def test_ratios():
    nothing = oracle.ratio(np.zeros((2, 3)), np.array([[1.0, 0, np.nan]] * 2))
    assert nothing.tolist() == [0, 0]
    assert oracle.ratio(np.array([[1.0, 6], [0, np.nan], [1, 0]]), np.array([[2.0, 3], [1, 1], [0, 0]])).tolist() == [
        2, np.inf, np.inf
    ]  # fmt: skip
    for shape in ((0, 3, 3), (2, 0, 3), (2,)):
        assert oracle.ratio(np.zeros(shape), 1).tolist() == [0.0] * shape[0]
