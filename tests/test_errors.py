"""Bad arguments raise a TypeError or ValueError that names the argument, and nothing is written."""

import numba
import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest
import scipy.sparse
from numpy.lib.stride_tricks import as_strided

import compactla as cla
import compactla.cpu as pack_level
from cases import here, lines, random, same_bits, there
from compactla.cpu import compile


@pytest.fixture
def packs(queue, rng):
    """Makes packs of matrices of the given sizes."""

    def make(*shapes, nm=5, dtype=np.float64, vlen=4, queue=queue):
        return [cla.pack(random(rng, (nm, *shape), dtype), vlen, queue=queue) for shape in shapes]

    return make


def refuse(error, argument, routine, *args, **kwargs):
    """The call raises `error`, whose message names `argument`, and leaves all packs as they were."""
    given = [A for A in (*args, *kwargs.values()) if isinstance(A, cla.Pack)]
    before = [A.unpack() for A in given]
    with pytest.raises(error, match=rf"\b{argument}\b"):
        routine(*args, **kwargs)
    assert all(same_bits(A.unpack(), old) for A, old in zip(given, before, strict=True))


FOREIGN = np.dtype(float).newbyteorder("S")


@pytest.mark.parametrize("dtype", [int, bool, object, np.float16, np.longdouble, FOREIGN])
def test_dtypes(dtype, queue):
    refuse(TypeError, "a", cla.pack, np.zeros((2, 3, 3), dtype), queue=queue)
    refuse(TypeError, "dtype", cla.Pack.zeros, 2, 3, 3, dtype=dtype, queue=queue)


def test_pack():
    a = np.zeros((2, 3, 3))
    for shape in ((), (3,), (3, 3), (1, 2, 3, 3)):
        refuse(ValueError, "a", cla.pack, np.zeros(shape))
    for vlen in (0, -4):
        refuse(ValueError, "vlen", cla.pack, a, vlen)
    for vlen in (4.0, "8", True):
        refuse(TypeError, "vlen", cla.pack, a, vlen)
    for queue in ("gpu", 0, cla):
        refuse(TypeError, "queue", cla.pack, a, queue=queue)


def test_new_packs():
    for new in (cla.Pack.empty, cla.Pack.zeros, cla.Pack.identity):
        refuse(ValueError, "nm", new, -1, 3, 3)
        refuse(TypeError, "m", new, 1, 3.0, 3)
        refuse(TypeError, "n", new, 1, 3, "3")
        refuse(ValueError, "nm", new, 2**62, 0, 0)
        refuse(TypeError, "dtype", new, 1, 3, 3, dtype="foo")
        refuse(TypeError, "queue", new, 1, 3, 3, queue="gpu")


def test_wrapped_memory():
    data = np.zeros((2, 3, 3, 4))
    refuse(TypeError, "data", cla.Pack, data.tolist())
    refuse(TypeError, "data", cla.Pack, data.astype(int))
    refuse(TypeError, "data", cla.Pack, data.astype(complex))
    for bad in (data[0], np.zeros((2, 3, 3, 3, 4)), data[..., ::2], data[..., ::-1], data[..., :0]):
        refuse(ValueError, "data", cla.Pack, bad)
    refuse(ValueError, "data", cla.Pack, np.zeros((2, 3, 3, 4, 2)).swapaxes(3, 4))
    for nm in (-1, 4, 9):
        refuse(ValueError, "nm", cla.Pack, data, nm)
    refuse(TypeError, "nm", cla.Pack, data, 5.0)


def test_views_and_copies(packs):
    (A,) = packs((3, 4))
    for index in (None, slice(2), (0, 1), (slice(2), 1), (slice(1), slice(1), slice(1))):
        with pytest.raises(TypeError, match="index"):
            A[index]
    for device in ("gpu", None, 1):
        refuse(TypeError, "device", A.to, device)


def test_unpack(packs, queue, elsewhere):
    (A,) = packs((3, 4))
    new = np.zeros if queue is None else lambda *args: cl.array.zeros(queue, *args)
    refuse(ValueError, "out", A.unpack, out=new((5, 4, 3), np.float64))
    refuse(ValueError, "out", A.unpack, out=new((4, 3, 4), np.float64))
    refuse(TypeError, "out", A.unpack, out=new((5, 3, 4), np.float32))
    refuse(TypeError, "out", A.unpack, out=[0.0])
    refuse(TypeError, "out", A.unpack, out=A.to(elsewhere).data if queue is None else np.zeros((5, 3, 4)))


def test_read_only_memory(rng):
    a = cla.pack(random(rng, (5, 3, 3), np.float64), 4)
    data = a.data.copy()
    data.flags.writeable = False
    A = cla.Pack(data, 5)
    refuse(ValueError, "out", cla.pack, a.unpack(), out=A)
    out = np.zeros((5, 3, 3))
    out.flags.writeable = False
    refuse(ValueError, "out", A.unpack, out=out)


def test_elements_that_share_memory(rng):
    """Strides that are not zero may lead to one place in several ways."""
    a = cla.pack(random(rng, (8, 2, 2), np.float64), 4)
    buffer = np.zeros(200)
    target = cla.Pack(as_strided(buffer, (2, 2, 2, 4), (64, 32, 32, 8)), 8)
    refuse(ValueError, "out", cla.pack, np.ones((8, 2, 2)), out=target)
    for strides in ((16, 8, 8), (24, 16, 8), (8, 0, 128), (-8, 16, 8)):
        refuse(ValueError, "out", a.unpack, out=as_strided(buffer[80:], (8, 2, 2), strides))
    for strides in ((8, 64, 128), (-32, 8, 16), (8, 64, -128)):
        out = a.unpack(out=as_strided(buffer[100:], (8, 2, 2), strides))
        assert same_bits(out.copy(), a.unpack())


def test_ordinary_arrays_that_share_memory(queue, rng):
    A = cla.pack(random(rng, (64, 2, 2), np.float64), 4, queue=queue)
    flat, first = A.data.reshape(-1), cla.Pack(A.data[:2], 8)
    refuse(ValueError, "out", first.unpack, out=flat[4:36].reshape(8, 2, 2))
    refuse(ValueError, "out", cla.pack, flat[4:36].reshape(8, 2, 2), out=first)
    first.unpack(out=flat[32:64].reshape(8, 2, 2))
    cla.pack(flat[32:64].reshape(8, 2, 2), out=first)


def test_memory_of_which_it_is_hard_to_tell_whether_it_is_shared():
    """An example of NumPy's: there is no common byte, which takes minutes to see."""
    memory = np.zeros(192163377, np.float32)
    places = (36674, 61119, 85569), (12223, 12224, 1)
    a, c = (as_strided(memory[i:], (1049, 1049, n, 1), (*np.multiply(place, 4), 4))
            for i, place, n in ((0, places[0], 1049), (64023025, places[1], 1)))  # fmt: skip
    b = cla.Pack(np.broadcast_to(np.float32(0), (1049, 1049, 1, 1)))
    with pytest.raises(ValueError, match="C shares memory with A"):
        cla.gemm(cla.Pack(a), b, cla.Pack(c))


def test_vectors_that_share_memory(queue, rng):
    T = cla.BlockTridiag(*lines(rng, 8, 4, 3, np.float64), queue=queue)
    T.factor()
    vectors = there(random(rng, (300,), np.float64), queue)
    rhs, near, apart = (vectors[i : i + 96].reshape(32, 3, 1) for i in (0, 3, 96))
    refuse(ValueError, "x", T.solve_rows, rhs, near)
    refuse(ValueError, "x", T.solve_rows, near, rhs)
    for name in ("lower", "diag", "upper"):
        refuse(ValueError, name, T.solve_rows, rhs, getattr(T, name).reshape(-1)[:96].reshape(32, 3, 1))
    T.solve_rows(rhs, apart)
    T.solve_rows(rhs, vectors[:96].reshape(32, 3, 1))
    assert same_bits(here(rhs), here(apart))


def test_what_is_no_array(queue, packs):
    class OnDevice:
        @property
        def __cuda_array_interface__(self):
            return {"version": 3}

    A, C = packs((3, 3), (3, 3))
    P = cla.LinePreconditioner(scipy.sparse.eye_array(6, format="bsr"), [[0, 1, 2], [3, 4, 5]], queue=queue)
    blocks = np.ones((2, 1, 2, 2)), np.ones((2, 2, 2, 2)), np.ones((2, 1, 2, 2))
    masked = np.ma.ones((2, 2, 2))
    endless: list = []
    endless.append(endless)
    for kind, bad in (
        ("OnDevice", OnDevice()), ("mask", masked), ("mask", [[*masked[0]], (masked[0, 0], [0.0, np.ma.masked])]),
        ("list", [[[1.0], [1, 2]]]), ("list", endless),
    ):  # fmt: skip
        for name, call in (
            ("a", lambda bad=bad: cla.pack(bad, queue=queue)),
            ("rhs", lambda bad=bad: P.solve(bad)),
            ("lower", lambda bad=bad: cla.BlockTridiag(bad, *blocks[1:], queue=queue)),
            ("periodic", lambda bad=bad: cla.BlockTridiag(*blocks, queue=queue, periodic=bad)),
            ("alpha", lambda bad=bad: cla.gemm(A, A, C, bad)),
        ):
            with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b.*\b({kind}|number)\b"):
                call()
    for bad in (OnDevice(), np.ma.ones(6)):
        with pytest.raises(TypeError, match=r"\b(rhs|x) is a"):
            P @ bad
    for bad in (memoryview(np.zeros((5, 3, 3))), np.ma.zeros((5, 3, 3)), OnDevice()):
        refuse(TypeError, "out", A.unpack, out=bad)
    refuse(TypeError, "data", cla.Pack, np.ma.zeros((2, 3, 3, 4)))


def test_number_of_threads(queue, packs, rng):
    (A,), T = packs((3, 3)), cla.BlockTridiag(*lines(rng, 5, 4, 3, np.float64), queue=queue)
    T.factor()
    M = scipy.sparse.eye_array(6, format="bsr")
    calls = {
        "pack": lambda threads: cla.pack(np.zeros((5, 3, 3)), queue=queue, threads=threads),
        "unpack": lambda threads: A.unpack(threads=threads),
        "refactor": lambda threads: T.refactor(threads=threads),
        "solve_rows": lambda threads: T.solve_rows(*[there(np.ones((20, 3, 1)), queue)] * 2, threads=threads),
        "new": lambda threads: cla.LinePreconditioner(M, [[0, 1, 2], [3, 4, 5]], queue=queue, threads=threads),
    }
    before = A.unpack()
    for call in calls.values():
        for error, wrong in ((ValueError, 0), (ValueError, -2), (TypeError, 2.0), (TypeError, "2"), (TypeError, True)):
            with pytest.raises(error if queue is None else ValueError, match=r"\bthreads\b"):
                call(wrong)
    assert same_bits(A.unpack(), before)
    for call in calls.values():
        call(None)
        for threads in (1, np.int64(2), 1000):
            if queue is None:
                call(threads)
            else:
                with pytest.raises(ValueError, match=r"\bthreads\b"):
                    call(threads)


def test_block_tridiagonal(queue, elsewhere, rng):
    lower, diag, upper = lines(rng, 5, 4, 3, np.float64)

    def new(lower=lower, diag=diag, upper=upper, **options):
        return cla.BlockTridiag(lower, diag, upper, queue=queue, **options)

    for name, block in (("lower", lower), ("upper", upper)):
        for bad in (block[0], block[:4], block[:, :2], block[..., :2], block[:, :, :2]):
            refuse(ValueError, name, new, **{name: bad})
    for bad in (diag[0], diag[..., :2], diag[:, :0]):
        refuse(ValueError, "diag", new, diag=bad)
    for name in ("lower", "diag", "upper"):
        refuse(TypeError, name, new, **{name: np.zeros((5, 4 if name == "diag" else 3, 3, 3), int)})
    for name in ("lower", "upper"):
        refuse(TypeError, name, new, **{name: lower.astype(np.float32)})
    refuse(ValueError, "vlen", new, vlen=0)
    refuse(TypeError, "queue", cla.BlockTridiag, lower, diag, upper, queue="gpu")

    T = new()
    with pytest.raises(RuntimeError, match="factor"):
        T.solve(np.zeros((5, 4, 3)))
    T.factor()
    rhs, foreign = np.ones((20, 3, 1)), cl.array.zeros(elsewhere, (20, 3, 1), np.float64)
    refuse((TypeError, ValueError), "rhs", T.solve_rows, foreign, foreign)
    refuse(TypeError, "x", T.solve_rows, there(rhs, queue), foreign if queue is None else rhs)


def packed_lines(**changes):
    """Arguments of from_packed: one pack of 8 lines of 3 blocks of 2 x 2, some of them changed."""
    diag = np.ascontiguousarray(np.broadcast_to(np.eye(2)[:, :, None] * 5, (3, 2, 2, 8)))
    arguments = {"lower": np.ones((2, 2, 2, 8)), "diag": diag, "upper": np.ones((2, 2, 2, 8))}
    arguments |= {"offset": [0, 3], "rows": np.arange(24).reshape(8, 3).T, "nlines": 8}
    return arguments | changes


def test_packed_lines():
    refuse(ValueError, "lower", cla.BlockTridiag.from_packed, **packed_lines(lower=np.ones((3, 2, 2, 8))))
    refuse(TypeError, "upper", cla.BlockTridiag.from_packed, **packed_lines(upper=np.ones((2, 2, 2, 8), np.float32)))
    refuse(ValueError, "offset", cla.BlockTridiag.from_packed, **packed_lines(offset=[0, 4]))
    refuse(ValueError, "rows", cla.BlockTridiag.from_packed, **packed_lines(rows=np.zeros((3, 4), int)))
    refuse(ValueError, "nlines", cla.BlockTridiag.from_packed, **packed_lines(nlines=9))
    read_only = np.ones((2, 2, 2, 8))
    read_only.flags.writeable = False
    refuse(ValueError, "upper", cla.BlockTridiag.from_packed, **packed_lines(upper=read_only))
    lower = np.ones((2, 2, 2, 8))
    refuse(ValueError, "lower", cla.BlockTridiag.from_packed, **packed_lines(lower=lower, upper=lower))
    rows = packed_lines()["rows"]
    twice, negative, huge = rows.copy(), rows.copy(), rows.astype(np.uint64)
    twice[0, 0], negative[0, 0], huge[0, 0] = 5, -2, 2**64 - 1
    nothing = {"lower": lower[:0], "diag": lower[:0], "upper": lower[2:], "offset": [0], "rows": rows[:0], "nlines": 1}
    for error, name, changes in (
        (ValueError, "offset", {"offset": []}),
        (ValueError, "offset", {"offset": 3}),
        (TypeError, "offset", {"offset": [0.0, 3.0]}),
        (TypeError, "lower", {"lower": lower.tolist()}),
        (TypeError, "diag", {"diag": np.ma.ones((3, 2, 2, 8))}),
        (TypeError, "queue", {"queue": "gpu"}),
        (ValueError, "diag", {"diag": np.ones(3)}),
        (TypeError, "diag: dtype is int64", {"diag": np.ones((3, 2, 2, 8), int)}),
        (ValueError, "diag has strides", {"diag": np.ones((3, 2, 2, 8)).swapaxes(1, 2)}),
        (ValueError, "diag", {"diag": np.ones((3, 2, 2, 0)), "rows": rows[:, :0]}),
        *((TypeError, "rows", {"rows": rows.astype(kind)}) for kind in (float, bool, object)),
        *((ValueError, "rows", {"rows": bad}) for bad in (twice, negative, huge)),
        *((TypeError, "nlines", {"nlines": bad}) for bad in (8.0, True)),
        (ValueError, "nlines", nothing),
    ):
        refuse(error, name, cla.BlockTridiag.from_packed, **packed_lines(**changes))
    arguments = packed_lines()
    T = cla.BlockTridiag.from_packed(**arguments)
    arguments["rows"][:] = 10**6  # of which it has a copy
    T.factor()
    x = np.ones((24, 2, 1))
    refuse(ValueError, "rhs", T.solve_rows, np.ones((23, 2, 1)), x)
    refuse(ValueError, "x", T.solve_rows, x, np.ones((24, 2, 2)))
    refuse(TypeError, "x", T.solve_rows, x, x.astype(np.float32))
    refuse(TypeError, "rhs", T.solve_rows, x.tolist(), x)
    refuse(ValueError, "x", T.solve_rows, x, np.broadcast_to(1.0, x.shape))
    read_only = x.copy()
    read_only.flags.writeable = False
    refuse(ValueError, "x", T.solve_rows, x, read_only)
    refuse(TypeError, "solve_rows", T.solve, np.ones((8, 3, 2)))
    T.solve_rows(x, x)
    assert np.isfinite(x).all()


def in_numba(body, *args):
    """Run statements on arrays a, b, ... and pack-level functions, compiled by Numba."""
    names = "abcd"[: len(args)]
    scope = {name: getattr(pack_level, name) for name in pack_level.__all__}
    exec(f"def kernel({', '.join(names)}):\n    {body}", scope)
    return numba.njit(scope["kernel"])(*args)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("side", 'trsm(matrix(a, 8), matrix(b, 8), "X")'),
        ("diag", 'trsm(matrix(a, 8), matrix(b, 8), diag="X")'),
        ("info", "getrfnp(matrix(a, 8), c)"),
        ("A", "trsm(matrix(a, 8, 4, 4), matrix(b, 8, 4, 2), 'R')"),
        ("matrices", "gemm(matrix(a, 8), matrix(b, 8), matrix(d, 8))"),
        ("constants", "gemm(matrix(a, 8, len(a)), matrix(b, 8), matrix(b, 8))"),
        ("lanes", "matrix(a, 4)"),
        ("m and n", "matrix(a, 8, 9, 9)"),
        ("lanes", "matrix(a[:, :, ::2], 4)"),
    ],
)
def test_pack_level(name, body):
    a, b = np.ones((4, 4, 8)), np.ones((4, 2, 8))
    with pytest.raises((numba.core.errors.NumbaError, ValueError), match=rf"\b{name}\b"):
        in_numba(body, a, b, np.zeros(8), np.ones((4, 2, 8), np.float32))
    assert (a == 1).all() and (b == 1).all()


def test_kernels_that_may_not_be_compiled(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match="NUMBA_DISABLE_JIT is set, must not be"):
        compile.compiled(list, ())


def test_pack_level_options_in_lower_case():
    a, b = np.ones((4, 4, 8)) + np.eye(4)[:, :, None], np.ones((4, 2, 8))
    upper = b.copy()
    in_numba('trsm(matrix(a, 8), matrix(b, 8), "l", "u", "t", "n")', a, b)
    in_numba('trsm(matrix(a, 8), matrix(b, 8), "L", "U", "T", "N")', a, upper)
    assert same_bits(b, upper)
