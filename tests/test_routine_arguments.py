"""Tests of arguments of all routines: what they take, and what they refuse before anything is written."""

import doctest
import inspect
import re

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
from numpy.lib.stride_tricks import as_strided

import compactla as cla
from cases import same_bits
from compactla import oracle, routine
from compactla.gpu.devices import new_queue
from compactla.results import unpacked
from drivers import working_devices
from rows import (
    BATCH,
    ROUTINES,
    all_same,
    argument,
    call,
    each,
    factors,
    function,
    known,
    ones,
    operands,
    residual,
    results,
    unknown,
)

every_routine = each(ROUTINES)
with_scalars = each([name for name in ROUTINES if factors(routine.named(name))])
on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True, ids=lambda d: "opencl")
with_info = each([name for name in ROUTINES if "info" in routine.named(name).outputs])
NM, VLEN = 5, 4


def refuse(name, error, argument, *packs, **how):
    """The call raises `error`, whose message names `argument`, and leaves all packs as they were."""
    given = [A for A in packs if isinstance(A, cla.Pack)]
    before = [A.unpack() for A in given]
    with pytest.raises(error, match=rf"\b{argument}\b"):
        function(name)(*packs, **how)
    assert all(same_bits(A.unpack(), old) for A, old in zip(given, before, strict=True))


def packed(name, rng, queue=None, dtype=np.float64, vlen=VLEN, sizes=None, nm=NM, **letters):
    """Packs that a routine takes."""
    sizes = unknown(routine.named(name)) if sizes is None else sizes
    given = operands(name, rng, sizes, dtype, nm, **letters)
    return [argument(A, a, vlen=vlen, queue=queue) for A, a in zip(routine.named(name).inputs, given, strict=True)]


def replaced(packs, i, other):
    return [*packs[:i], other, *packs[i + 1 :]]


def writes(name):
    """Number and operand of all packs that a routine writes to."""
    return [(i, A) for i, A in enumerate(routine.named(name).inputs) if A.written and not A.kind]


@pytest.mark.parametrize("name", ROUTINES)
def test_names(name):
    """The function takes operands, options and scalars in order, and all else by name; its text says what they are."""
    row, run = routine.named(name), function(name)
    assert row.name == run.__name__ == name and name in dir(cla) and name in cla.__all__
    parameters = inspect.signature(run).parameters
    kinds = {kind: [p for p, x in parameters.items() if x.kind == kind] for kind in inspect._ParameterKind}
    positional = kinds.pop(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_name = kinds.pop(inspect.Parameter.KEYWORD_ONLY)
    assert not any(kinds.values())
    count = len(row.inputs)
    assert positional[:count] == [A.name for A in row.inputs]
    others = [scalar for scalar in row.scalars if scalar not in positional]
    assert sorted(positional[count:]) == sorted((*row.options, *row.scalars.keys() - others))
    assert not {*others} & {*factors(row)}
    assert {option: parameters[option].default for option in row.options} == {
        option: letters[0] for option, letters in row.options.items()
    }
    assert by_name == [*others, *row.outputs, "threads", "wait_for"]
    text = inspect.getdoc(run)
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text
    assert all(f"\n{p}" in text or f", {p}" in text for p in parameters)


@every_routine
def test_examples(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(function(name), name)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@every_routine
def test_too_many_positional_arguments(name, queue, rng):
    packs, run = packed(name, rng, queue), function(name)
    parameters = inspect.signature(run).parameters.values()
    defaults = [p.default for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD][len(packs) :]
    run(*packs, *defaults)
    with pytest.raises(TypeError, match="positional argument"):
        run(*packs, *defaults, None)


@every_routine
def test_other_packs(name, queue, elsewhere, rng):
    """All packs are of one number of matrices, vector length, type and device."""
    packs = packed(name, rng, queue)
    places = range(len(packs))
    others = [
        (ValueError, {"nm": NM + 1}),
        (ValueError, {"vlen": 2 * VLEN}),
        (TypeError, {"dtype": np.float32}),
        (TypeError, {"dtype": np.complex128}),
        ((TypeError, ValueError), {"queue": elsewhere}),
        *([] if queue is None else [((TypeError, ValueError), {"queue": None})]),
    ]
    for i, operand in enumerate(routine.named(name).inputs):
        if operand.kind:
            continue
        for error, changes in others if sum(not A.kind for A in routine.named(name).inputs) > 1 else []:
            bad = packed(name, rng, **{"queue": queue, **changes})[i]
            refuse(name, error, operand.name, *(bad if i == j else packs[j] for j in places))
        for bad in (packs[i].unpack(), None, [packs[i]], packs[i].data):
            refuse(name, TypeError, operand.name, *(bad if i == j else packs[j] for j in places))


@every_routine
def test_sizes_that_do_not_fit(name, queue, rng):
    row, packs = routine.named(name), packed(name, rng, queue)
    letters = "".join(A.sizes for A in row.inputs) + "".join(row.implied) + "11"
    for i, operand in enumerate(row.inputs):
        for axis, letter in enumerate("" if operand.kind else operand.sizes):
            for change in (1, -1):
                shape = [packs[i].m, packs[i].n]
                shape[axis] += change
                other = cla.Pack.zeros(NM, *shape, vlen=VLEN, queue=queue)
                if letters.count(letter) > 1:
                    refuse(name, ValueError, operand.name, *replaced(packs, i, other))


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("gels", ((7, 4), (6, 5)), "B is 6 x 5, must have 7 rows: A is 7 x 4"),
        ("gels", ((4, 7), (6, 5)), "B is 6 x 5, must have 7 rows: A is 4 x 7"),
        ("gelsy", ((4, 7), (8, 5)), "B is 8 x 5, must have 7 rows: A is 4 x 7"),
        ("gemv", ((5, 5), (4, 1), (5, 1)), "x is 4 x 1, must have 5 rows, as many as there are columns of op(A)"),
    ],
)
def test_which_size_does_not_fit(name, shapes, message):
    """Both operands are named, and their sizes are those that they have."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        function(name)(*(cla.Pack.zeros(2, *shape) for shape in shapes))


@every_routine
def test_options(name, queue, rng):
    row, packs = routine.named(name), packed(name, rng, queue)
    row.chosen(*(letters[0] for letters in row.options.values()))
    for option, letters in row.options.items():
        words = (letters[:2], letters[0] * 2, 1, True) if isinstance(letters, str) else (2, 0.5, int(letters[0]))
        for bad in ("X", "H", "", None, *words):
            refuse(name, ValueError, option, *packs, **{option: bad})


@with_scalars
def test_scalars(name, queue, rng):
    row, packs = routine.named(name), packed(name, rng, queue)
    for scalar in factors(row):
        for bad in (1j, "1", None, np.ones(3)):
            refuse(name, TypeError, scalar, *packs, **{scalar: bad})


@pytest.mark.parametrize("dtype", [np.float32, np.complex64], ids="sc")
@with_scalars
def test_scalars_that_overflow(name, queue, dtype, rng):
    row, packs = routine.named(name), packed(name, rng, queue, dtype)
    for scalar in factors(row):
        for bad in (1e300, -1e39, 10**400, np.float64(3.5e38), np.longdouble(1e200)):
            refuse(name, ValueError, scalar, *packs, **{scalar: bad})
    for value in (np.finfo(np.float32).max, -np.inf):
        function(name)(*packs, **dict.fromkeys(factors(row), value))


@every_routine
def test_read_only_memory(name, rng):
    packs = packed(name, rng)
    for i, operand in writes(name):
        locked = cla.Pack(packs[i].data.copy(), NM)
        locked.data.flags.writeable = False
        refuse(name, ValueError, operand.name, *replaced(packs, i, locked))


@every_routine
def test_what_is_read_may_be_read_only_and_repeated(name, rng):
    """A stride of zero stands for one matrix in all packs."""
    row = routine.named(name)
    arrays = operands(name, rng, unknown(row), np.float64, 4 * VLEN)
    arrays = [a if A.written else a[np.arange(len(a)) % VLEN] for A, a in zip(row.inputs, arrays, strict=True)]
    packs = [argument(A, a, vlen=VLEN) for A, a in zip(row.inputs, arrays, strict=True)]
    for i, operand in enumerate(row.inputs):
        if not operand.written and not operand.kind:
            packs[i] = cla.Pack(np.broadcast_to(packs[i].data[:1], packs[i].data.shape), 4 * VLEN)
            assert not packs[i].data.flags.writeable
    assert residual(name, arrays, unpacked(row, packs, function(name)(*packs))[0]) < oracle.THRESHOLD


@every_routine
def test_memory_for_several_elements(name, rng):
    """No two elements that are written are one place, whether strides are zero or meet."""
    packs = packed(name, rng)
    for i, operand in writes(name):
        A = packs[i]
        for axis in np.flatnonzero(np.greater(A.data.shape[:3], 1)):
            strides = [0 if other == axis else stride for other, stride in enumerate(A.data.strides)]
            repeated = cla.Pack(as_strided(A.data.copy(), A.data.shape, strides), NM)
            refuse(name, ValueError, operand.name, *replaced(packs, i, repeated))
        meeting = cla.Pack(as_strided(np.zeros(9999), A.data.shape, (64, 32, 32, 8)), NM)
        refuse(name, ValueError, operand.name, *replaced(packs, i, meeting))


def blocks(A, B, whole):
    """Blocks of larger packs of the sizes of A and B: A's, of B's that share an element, and of B's that do not."""
    C = whole[: A.m, : A.n]
    across = whole.T[A.n - 1 : A.n - 1 + B.m, A.m - 1 : A.m - 1 + B.n]
    sharing = [whole[: B.m, : B.n], whole[A.m - 1 : A.m - 1 + B.m, A.n - 1 : A.n - 1 + B.n], whole[: B.n, : B.m].T,
               across, whole[:: A.m, :: A.n][: B.m, : B.n]]  # fmt: skip
    apart = [whole[A.m : A.m + B.m, : B.n], whole[A.m : A.m + B.n, : B.m].T,
             whole[: B.m, A.n : A.n + B.n], whole[1 : 1 + 2 * B.m : 2, A.n : A.n + B.n]]  # fmt: skip
    return C, sharing, apart if whole.queue is None else []  # on a device, what is between the elements counts too


@every_routine
def test_shared_memory(name, queue, rng):
    """Memory that is written must not be read; what lies between its elements may be."""
    row, packs = routine.named(name), packed(name, rng, queue)
    for i, operand in writes(name):
        for j, other in enumerate(row.inputs):
            if i == j or other.kind:
                continue
            A, B = packs[i], packs[j]
            count = max(B.m, B.n)  # of steps as long as A
            frame = 2 * max(A.m, A.n, count) + A.m + A.n
            whole = np.full((NM, A.m * count + frame, A.n * count + frame), 0.25)
            whole = cla.pack(whole, VLEN, queue=queue)
            C, sharing, apart = blocks(A, B, whole)
            for X in sharing:
                pair = f"{operand.name} shares memory with {other.name}"
                if other.written:  # either may be named first
                    pair += f"|{other.name} shares memory with {operand.name}"
                refuse(name, ValueError, f"({pair})", *replaced(replaced(packs, i, C), j, X))
            before = [P.unpack() if isinstance(P, cla.Pack) else P[:, :, None] for P in packs]
            for X in apart:
                cla.pack(before[i], out=C), cla.pack(before[j], out=X)
                placed = replaced(replaced(packs, i, C), j, X)
                after, _ = unpacked(row, placed, function(name)(*placed))
                assert residual(name, before, after) < oracle.THRESHOLD
                assert other.written or same_bits(X.unpack(), before[j])


@every_routine
def test_threads_and_wait_for(name, queue, rng):
    """A number of threads belongs to a call on the CPU, events to one on a device."""
    packs = packed(name, rng, queue)
    wrong = ((ValueError, 0), (ValueError, -2), (TypeError, 2.0), (TypeError, "2"), (TypeError, True))
    for error, threads in wrong:
        refuse(name, error if queue is None else ValueError, "threads", *packs, threads=threads)
    for threads in (1, np.int64(2), 1000):
        if queue is None:
            function(name)(*packs, threads=threads)
        else:
            refuse(name, ValueError, "threads", *packs, threads=threads)
    function(name)(*packs, threads=None, wait_for=None)
    for wait_for in ([], "ab", [None]):
        if queue is None:
            refuse(name, ValueError, "wait_for", *packs, wait_for=wait_for)
        elif wait_for:
            refuse(name, TypeError, "wait_for is .*, must be a list of pyopencl Events", *packs, wait_for=wait_for)


@on_devices
@every_routine
def test_calls_on_devices_do_not_wait(name, queue, rng):
    """Calls begin when the events in `wait_for` have ended, and their own event is in the arrays."""
    row, packs = routine.named(name), packed(name, rng, queue)
    outputs = {output: pyopencl.array.zeros(queue, (NM,), np.int32) for output in row.outputs}
    function(name)(*packs, **outputs)
    queue.finish()
    user = cl.UserEvent(queue.context)
    function(name)(*packs, **outputs, wait_for=[user])
    last = packs[row.main].data.events[-1]
    assert last.command_execution_status != cl.command_execution_status.COMPLETE
    assert all(A.events[-1] == last for A in (*outputs.values(), *(P.data for P in packs if isinstance(P, cla.Pack))))
    user.set_status(cl.command_execution_status.COMPLETE)
    last.wait()


def vector(queue, count, dtype=None):
    """An array for as many integers, which are not zero."""
    if queue is None:
        return np.full(count, 99, np.int64 if dtype is None else dtype)
    return pyopencl.array.zeros(queue, (count,), np.int32 if dtype is None else dtype) + 99


@with_info
def test_info_to_an_array(name, queue, rng):
    row = routine.named(name)
    for sizes in (known(row), unknown(row), (0,) * len(row.letters)):
        for nm in (BATCH, 0):
            arrays = operands(name, rng, sizes, np.float64, nm)
            if nm and sizes[0]:
                oracle.named(name).spoil(9, 1, *arrays)
            after, expected = call(name, arrays, queue=queue)
            info = vector(queue, nm)
            packs = [argument(A, a, queue=queue) for A, a in zip(row.inputs, arrays, strict=True)]
            found, returned = unpacked(row, packs, function(name)(*packs, info=info))
            assert returned is info
            assert np.array_equal(info if queue is None else info.get(), expected)
            assert [*np.flatnonzero(expected)] == ([9] if nm and sizes[0] else [])
            assert all_same(found, after)


@with_info
def test_info_that_does_not_fit(name, queue, elsewhere, rng):
    packs = packed(name, rng, queue)
    locked = np.zeros(NM, np.int64)
    locked.flags.writeable = False
    on_cpu = (ValueError, locked), (TypeError, vector(elsewhere, NM)), (TypeError, np.ma.zeros(NM, np.int64))
    on_device = [] if queue is None else [(TypeError, vector(None, NM)), (ValueError, vector(queue, NM + 1)[1:])]
    on_device += [(ValueError, vector(elsewhere, NM))]
    for error, bad in (
        (TypeError, [0] * NM),
        (TypeError, 0),
        (TypeError, vector(queue, NM, np.int32 if queue is None else np.int64)),
        (TypeError, vector(queue, NM, np.uint32)),
        (ValueError, vector(queue, NM + 1)),
        (ValueError, vector(queue, NM - 1)),
        (ValueError, vector(queue, NM).reshape(NM, 1)),
        (ValueError, vector(queue, 2 * NM)[::2]),
        *(on_cpu if queue is None else on_device),
    ):
        refuse(name, error, "info", *packs, info=bad)


@with_info
def test_info_within_an_operand(name, queue, rng):
    packs = packed(name, rng, queue)
    for A in filter(lambda A: isinstance(A, cla.Pack), packs):
        within = A.data.reshape(-1).view(np.int64 if queue is None else np.int32)[:NM]
        refuse(name, ValueError, "info", *packs, info=within)


@with_info
def test_info_waits_where_there_is_nothing_to_do(name, rng):
    row, unordered = routine.named(name), cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    for device in working_devices():
        queue = new_queue(device, unordered)
        packs, info = packed(name, rng, queue, sizes=(0,) * len(row.letters)), vector(queue, NM)
        queue.finish()
        event = cl.UserEvent(queue.context)
        try:
            function(name)(*packs, info=info, wait_for=[event])
            done = info.events[-1].command_execution_status
        finally:
            event.set_status(cl.command_execution_status.COMPLETE)
        assert done != cl.command_execution_status.COMPLETE
        assert not info.get().any()
        function(name)(*packs, info=vector(cl.CommandQueue(queue.context), NM))


@with_scalars
def test_scalars_are_of_one_kind(name, queue, rng):
    """Whether they are Python's or NumPy's, of any type that holds them, makes no difference."""
    row = routine.named(name)
    arrays = operands(name, rng, known(row), np.complex64)
    expected = results(name, arrays, queue=queue, **ones(row))
    for kind in (complex, float, bool, np.float32, np.int8, np.complex128, np.array):
        assert all_same(results(name, arrays, queue=queue, **{x: kind(1) for x in row.scalars}), expected)
