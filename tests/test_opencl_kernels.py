"""Pack-level functions called from a user's own OpenCL kernel, and how such kernels are built."""

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pyopencl.array
import pytest

import compactla as cla
from cases import exhaustive, in_turns, lines, random, slow
from compactla import gpu
from compactla.gpu import arrays, program
from compactla.oracle import THRESHOLD, widen
from drivers import working_devices
from programs import FILES, OTHERS, of_rows, switches

on_devices = pytest.mark.parametrize("queue", working_devices(), indirect=True)

SCHUR = """
#include "gemm.cl"
#include "getrfnp.cl"

/* x <- inv(D - E F) x for matrices of order N; D is overwritten by its factors */
__kernel void schur(__global CLA_REAL *D, __global const CLA_REAL *E, __global const CLA_REAL *F, __global CLA_REAL *x)
{
    const long q = get_global_id(0); /* one work-item a lane */
    const cla_matrix d = cla_matrix_of_batch(D, q, N, N), e = cla_matrix_of_batch(E, q, N, N);
    const cla_matrix f = cla_matrix_of_batch(F, q, N, N), b = cla_matrix_of_batch(x, q, N, 1);

    cla_gemm(N, N, N, cla_lane_real(-1), e, f, cla_lane_real(1), d);
    cla_getrfnp(N, N, CLA_NONUNIT, d);
    cla_trsm(N, 1, CLA_UNIT, cla_lane_real(1), d, b);
    /* U, last row first */
    cla_trsm(N, 1, CLA_NONUNIT, cla_lane_real(1), cla_reversed(d, N, N), cla_rows_reversed(b, N));
}
"""


@on_devices
@pytest.mark.parametrize(("n", "dtype"), in_turns([3, 10]), ids=str)
def test_user_kernel(queue, dtype, n, rng):
    nm, vlen = 21, 8

    def batch(*shape):
        a = rng.uniform(-1, 1, (nm, *shape)) + 1j * rng.uniform(-1, 1, (nm, *shape))
        return a.astype(dtype) if dtype.kind == "c" else a.real.astype(dtype)

    d, e, f, b = batch(n, n) + 2 * n * np.eye(n, dtype=dtype), batch(n, n), batch(n, n), batch(n, 1)
    D, E, F, x = (cla.pack(a, vlen=vlen, queue=queue) for a in (d, e, f, b))

    program = gpu.build(queue.context, SCHUR, dtype, vlen, N=n)
    lanes = x.data.shape[0] * vlen
    program.schur(queue, (lanes,), None, D.data.data, E.data.data, F.data.data, x.data.data)

    d, e, f, b, x = widen(d, e, f, b, x.unpack())
    a = d - e @ f
    scale = (np.abs(d) + np.abs(e) @ np.abs(f)) @ np.abs(x)
    assert np.max(np.abs(b - a @ x) / scale) < THRESHOLD * n * np.finfo(dtype).eps


CHOLESKY = """
#include "potrf.cl"
#include "potrs.cl"

/* x <- inv(A) x for matrices of order N, whose lower, or for UPPER whose upper triangle is given */
__kernel void cholesky(__global CLA_REAL *A, __global CLA_REAL *x, __global int *info)
{
    const long q = get_global_id(0);
    cla_matrix a = cla_matrix_of_batch(A, q, N, N);
    if (UPPER) a = cla_conjugated(cla_transposed(a));
    cla_int_store(cla_ints_of_batch(info, q, 1), 0, cla_potrf(N, a));
    cla_potrs(N, 1, a, cla_matrix_of_batch(x, q, N, 1));
}
"""


@on_devices
@pytest.mark.parametrize(("upper", "dtype"), [(0, np.dtype("d")), (1, np.dtype("D"))], ids=str)
def test_user_kernel_of_positive_definite_matrices(queue, dtype, upper, rng):
    nm, n, vlen = 21, 7, 8
    g, b = random(rng, (nm, n, n), dtype), random(rng, (nm, n, 1), dtype)
    a = (g @ g.conj().swapaxes(1, 2) + n * np.eye(n)).astype(dtype)
    a[4, 2, 2], a[9, 5, 5], a[13, 0, 0] = -1, np.nan, 0
    given, other = a.copy(), np.tri(n, k=-1, dtype=bool) if upper else np.tri(n, k=-1, dtype=bool).T
    given[:, other] = 777  # which is neither read nor written
    if dtype.kind == "c":
        given[:, range(n), range(n)] += 5j  # not read either, but set to 0
    A, x = cla.pack(given, vlen, queue=queue), cla.pack(b, vlen, queue=queue)
    info = pyopencl.array.zeros(queue, (A.data.shape[0], 1, vlen), np.int32)
    program = gpu.build(queue.context, CHOLESKY, dtype, vlen, N=n, UPPER=upper)
    program.cholesky(queue, (info.size,), None, A.data.data, x.data.data, info.data)

    expected = np.zeros(nm)
    expected[[4, 9, 13]] = 3, 6, 1
    assert np.array_equal(info.get().reshape(-1)[:nm], expected)
    factor = A.unpack()
    assert (factor[:, other] == 777).all() and not factor[:, range(n), range(n)].imag.any()
    a, b, x = (y[expected == 0] for y in widen(a, b, x.unpack()))
    scale = np.abs(a) @ np.abs(x) + np.abs(b)
    assert np.max(np.abs(b - a @ x) / scale) < THRESHOLD * n * np.finfo(dtype).eps


@on_devices
def test_built_once(queue):
    def build(vlen):
        return gpu.build(queue.context, SCHUR, np.float32, vlen, N=2)

    with ThreadPoolExecutor(4) as pool:
        programs = list(pool.map(build, [4, 4, 4, 8]))
    assert programs[0] is programs[1] is programs[2] is not programs[3]


@on_devices
def test_build_log(queue):
    with pytest.raises(RuntimeError, match="undeclared_name"):
        gpu.build(queue.context, "__kernel void k(__global int *a) { *a = undeclared_name; }", np.float32)


EXACT = {  # OpenCL C on lanes x and y, and what it is in NumPy
    "cla_lane_real(cla_lane_re(x))": lambda x, y: x.real,
    "cla_lane_real(cla_lane_im(x))": lambda x, y: x.imag,
    "cla_lane_of(cla_lane_re(y), cla_lane_im(x))": lambda x, y: of(y.real, x.imag, x.dtype),
    "cla_lane_conj(x)": lambda x, y: x.conj(),
    "cla_lane_real(cla_lane_abs1(x))": lambda x, y: abs(x.real) + abs(x.imag),
    "cla_lane_real(cla_lane_minimum(cla_lane_re(x), cla_lane_re(y)))": lambda x, y: np.minimum(x.real, y.real),
    "cla_lane_real(cla_lane_maximum(cla_lane_re(x), cla_lane_re(y)))": lambda x, y: np.maximum(x.real, y.real),
    "cla_lane_real(cla_lane_copysign(1, cla_lane_re(x)))": lambda x, y: np.copysign(1, x.real),
    "cla_lane_select(cla_lane_re(x) < cla_lane_re(y), x, y)": lambda x, y: np.where(x.real < y.real, x, y),
    "cla_lane_select(cla_lane_re(x) >= cla_lane_re(y), x, y)": lambda x, y: np.where(x.real >= y.real, x, y),
    "cla_lane_of_int(cla_lane_is_zero(x))": lambda x, y: x == 0,
    "cla_lane_of_float(cla_lane_to_float(x))": lambda x, y: x.astype("F" if x.dtype.kind == "c" else "f"),
    "cla_lane_of_double(cla_lane_to_double(x))": lambda x, y: x,
    "cla_get(cla_conjugated(cla_transposed(a)), 0, 1)": lambda x, y: y.conj(),
    "cla_get(cla_reversed(a, 2, 1), 0, 0)": lambda x, y: y,
}
ROUNDED = {
    "cla_lane_real(cla_lane_abs(x))": lambda x, y: abs(x.astype(np.result_type(x, np.longdouble))),
    "cla_lane_real(cla_lane_sqrt(cla_lane_re(x)))": lambda x, y: np.sqrt(x.real),
    "cla_lane_real(cla_lane_rsqrt(cla_lane_re(x)))": lambda x, y: 1 / np.sqrt(x.real.astype(np.longdouble)),
}


def of(re, im, dtype):
    """Numbers with these real parts and, if they are complex, imaginary parts."""
    z = np.empty(len(re), dtype)
    z.real = re
    if dtype.kind == "c":
        z.imag = im
    return z


def special_pairs(dtype, device):
    """All pairs of special numbers, as matrices (nm, 2, 1); as real and imaginary parts, if there are any."""
    limits = np.finfo(dtype)
    few = [0, -0.0, 1, -2.5, 3e-5, 4e5, np.inf, -np.inf, np.nan, limits.tiny, limits.max, -limits.max / 3]
    config = device.single_fp_config if limits.bits == 32 else device.double_fp_config
    if config & cl.device_fp_config.DENORM:
        few += [limits.smallest_subnormal, -limits.tiny / 4]
    first, second = np.array(list(itertools.product(few, few)), limits.dtype).T
    x, y = of(first, second, dtype), of(second, first, dtype)
    return np.stack([x, np.roll(y, 17) if dtype.kind == "c" else y], 1)[:, :, None]


@on_devices
def test_lane_vocabulary(queue, dtype):
    """Numbers of all magnitudes, zeros of both signs, infinities and NaN, one work-item each."""
    results = [*EXACT, *ROUNDED]
    source = f"""
        #include "lane.h"
        __kernel void vocabulary(__global const CLA_REAL *A, __global CLA_REAL *R)
        {{
            const cla_matrix a = cla_matrix_of_batch(A, get_global_id(0), 2, 1);
            const cla_matrix r = cla_matrix_of_batch(R, get_global_id(0), {len(results)}, 1);
            const cla_lane x = cla_get(a, 0, 0), y = cla_get(a, 1, 0);
            {"".join(f"cla_set(r, {i}, 0, {result});" for i, result in enumerate(results))}
        }}
    """
    a = special_pairs(dtype, queue.device)
    A, R = cla.pack(a, 4, queue=queue), cla.Pack.zeros(len(a), len(results), 1, dtype, 4, queue=queue)
    program = gpu.build(queue.context, source, dtype, 4)
    program.vocabulary(queue, (A.data.shape[0] * 4,), None, A.data.data, R.data.data)

    found, limits = dict(zip(results, R.unpack()[:, :, 0].T, strict=True)), np.finfo(dtype)
    with np.errstate(all="ignore"):
        for result, function in EXACT.items():
            assert np.array_equal(found[result], function(*a[:, :, 0].T).astype(dtype), equal_nan=True), result
        for result, function in ROUNDED.items():
            expected, values = function(*a[:, :, 0].T), found[result].real
            within = abs(values - expected) <= 4 * (limits.eps * abs(expected) + limits.smallest_subnormal)
            same = np.isnan(values) & np.isnan(expected) | (values == expected.astype(limits.dtype))
            assert (within | same).all(), (result, a[~(within | same)], values[~(within | same)])


@on_devices
def test_integer_lanes(queue, rng):
    source = """
        #include "lane.h"
        /* entry i <- entry 2 - i, and as it is after a way through lanes */
        __kernel void turn(__global const int *P, __global int *Q)
        {
            __global int *p = cla_ints_of_batch(P, get_global_id(0), 3), *q = cla_ints_of_batch(Q, get_global_id(0), 6);
            for (int i = 0; i < 3; i++) {
                const cla_lane x = cla_lane_of_int(cla_int_load(p, i));
                cla_int_store(q, i, cla_int_load(p, 2 - i));
                cla_int_store(q, 3 + i, cla_lane_to_int(x + cla_lane_of(cla_lane_re(x) < 0 ? -0.75f : 0.75f, 3)));
            }
        }
    """
    for dtype in (np.float32, np.complex64):
        p = rng.integers(-1000, 1000, (5, 3, 4)).astype(np.int32)
        P, Q = pyopencl.array.to_device(queue, p), pyopencl.array.zeros(queue, (5, 6, 4), np.int32)
        gpu.build(queue.context, source, dtype, 4).turn(queue, (20,), None, P.data, Q.data)
        assert np.array_equal(Q.get(), np.concatenate([p[:, ::-1], p], 1))


TAKEN = """V N K M P R A B C L U D lane matrix tile square stored watch from to reversed transposed triangle gemm trsm
    getrfnp potrf potrs substitute widen pivot root step first REAL COMPLEX PARTS INLINE PASTE TILE COLS DOWN ACROSS
    CELLS UNIT NONUNIT RECIPROCAL UNROLL STEP STEPS ROW COLUMN SCALE A_AT B_AT AT SET APPLY LANES TEAM GROUP"""


@on_devices
def test_included_files_keep_to_their_names(queue):
    """A kernel that includes all of them may call its own functions, types and variables what it likes."""
    sources = {file: file.read_text() for file in sorted(program.SOURCES.iterdir())}
    # Programs, which nobody includes, have no guard; what only includes another needs none.
    alone = re.compile("#define|__kernel|CLA_INLINE")
    guard = re.compile(r"#ifndef CLA_\w+_(H|CL)\n")
    files = [file for file, text in sources.items() if guard.search(text) or not alone.search(text)]
    files.remove(program.SOURCES / "mma.h")  # others than NVIDIA's compilers refuse it
    files = [file for file in files if file.name in FILES]
    text = "".join(map(sources.get, files))
    defined = set(re.findall(r"# *define (\w+)", text))
    assert {"CLA_REAL", "ROW_OFFSET"} < defined
    source = "".join(f'#include "{file.name}"\n' for file in files)
    for name in sorted(name for name in defined if not name.startswith("CLA_")):
        source += f"#ifdef {name}\n#error {name} is left behind\n#endif\n"
    source += "".join(f"static inline int {name}(int a) {{ return a + 1; }}\n" for name in TAKEN.split())
    source += f"__kernel void mine(__global int *a) {{ a[0] = {' + '.join(f'{name}(1)' for name in TAKEN.split())}; }}"
    for dtype in (np.float32, np.complex64):
        gpu.build(queue.context, source, dtype, 8)
    names = set(re.findall(r"^(?:typedef .*|}|CLA_INLINE [\w ]+?) \*?(\w+)[(;]", text, re.M))
    assert {"cla_gemm", "cla_lane", "cla_matrix"} < names and all(name.startswith("cla_") for name in names)


ACROSS = """
#include "unroll.h"

__kernel CLA_GROUP_OF(CLA_VLEN) void across(__global const CLA_REAL *a, CLA_REAL s, __global CLA_REAL *x)
{
    __local int all[CLA_VLEN];
    const int i = get_local_id(0);
    const cla_lane y = cla_lane_load(a, i), z = cla_lane_of(s, s);
    const cla_lane made[] = {CLA_MINUS(y), cla_lane_conj(y), cla_lane_mul(y, z), cla_lane_fma(y, z, z),
                             cla_lane_fnma(y, z, z), cla_lane_recip(y)};
    CLA_UNROLL for (int k = 0; k < 6; k++) cla_lane_store(x, k * CLA_PARTS * CLA_VLEN + i, made[k]);
    all[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    CLA_UNROLL for (int k = 0; k < 6; k++)
        cla_lane_store(x, (6 + k) * CLA_PARTS * CLA_VLEN + all[CLA_VLEN - 1 - i], made[k]);
}
"""


@on_devices
@pytest.mark.parametrize("dtype", "fF")
def test_lanes_across_barriers(queue, rng, dtype):
    """Each work-item has its own after a barrier; those of the first half are written in the reverse order then."""
    y, z = random(rng, (64,), dtype), np.dtype(dtype).type(1.5 + 1.5j if dtype == "F" else 1.5)
    parts = np.stack([y.real, y.imag])[: 1 + (dtype == "F")]
    a, x = pyopencl.array.to_device(queue, parts), pyopencl.array.zeros(queue, (2, 6, *parts.shape), np.float32)
    gpu.build(queue.context, ACROSS, dtype, 64).across(queue, (64,), (64,), a.data, np.float32(1.5), x.data)
    before, after = x.get()
    np.testing.assert_array_equal(after[..., ::-1], before)
    found = before[:, 0] + 1j * before[:, 1] if dtype == "F" else before[:, 0]
    np.testing.assert_allclose(found, [-y, y.conj(), y * z, z + y * z, z - y * z, 1 / y], 1e-5, 1e-5)


def log_of(queue, file, options):
    """What a compiler says of a build that is not in a cache, which would not be logged."""
    unseen = f"-DUNSEEN=0x{time.time_ns():x}"
    built = cl.Program(queue.context, f'#include "{file}"\n').build([*options, unseen], cache_dir=False)
    return built.get_build_info(queue.device, cl.program_build_info.LOG)


@on_devices
@pytest.mark.parametrize("found", [slow(OTHERS), exhaustive(of_rows)], ids=["others", "routines"])
def test_no_compiler_warns(queue, found):
    for (file, defines), dtype in zip(found() if callable(found) else found, itertools.cycle("fD"), strict=False):
        log = log_of(queue, file, program.build_options(queue.context, np.dtype(dtype), 32, defines))
        assert "warning" not in log, (file, defines, log)


@on_devices
@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(FILES - {"kron_mma.cl"}))
def test_files_compile_alone(queue, file):
    """As in an editor, which knows the folder and no macros, but the name of a part that is to be compiled."""
    for switch in switches(file):
        # GEMM_MMA and kron_mma.cl are NVIDIA's, and some parts are compiled by the test above.
        if switch != "GEMM_MMA" and not any(file == other and switch in defines for other, defines in OTHERS):
            options = ["-cl-std=CL1.2", "-I", str(program.SOURCES), *([f"-D{switch}"] if switch else [])]
            log = log_of(queue, file, options)
            assert "warning" not in log, (switch, log)


@on_devices
def test_contexts_are_let_go(queue, rng, collect):
    """Programs of a context live as long as its queues, in all threads, and as programs that users hold."""
    context = cl.Context([queue.device])
    before = context.reference_count

    def work(queue):
        A = cla.pack(rng.random((9, 3, 3)), queue=queue)
        T = cla.BlockTridiag(*lines(rng, 5, 4, 3, np.float64), queue=queue)
        T.factor()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(cla.gemm, A, A, A.to(queue)).result()
            assert np.isfinite(pool.submit(T.solve, rng.random((5, 4, 3))).result()).all()

    work(cl.CommandQueue(context))
    collect()
    assert context.reference_count == before
    mine = gpu.build(context, SCHUR, np.float32, 8, N=2)
    assert gpu.build(context, SCHUR, np.float32, 8, N=2) is mine
    del mine
    collect()
    assert context.reference_count == before


class SingleDevice:
    name, extensions = "Small GPU", "cl_khr_icd"


class SingleContext:
    devices = (SingleDevice,)


@pytest.mark.parametrize(
    ("dtype", "vlen", "error", "message"),
    [
        (np.float64, 8, ValueError, "float64.*Small GPU has no double"),
        (np.complex128, 8, ValueError, "complex128.*Small GPU has no double"),
        (np.int32, 8, TypeError, "int32"),
        (np.float32, 0, ValueError, "vlen is 0"),
    ],
)
def test_build_arguments(dtype, vlen, error, message):
    with pytest.raises(error, match=message):
        gpu.build(SingleContext, SCHUR, dtype, vlen)


@on_devices
def test_what_does_not_fit(queue):
    with pytest.raises(MemoryError, match=r"shape \(\d+, 32, 32, 8\) and float64 does not fit"):
        cla.Pack._allocate(2**43, 32, 32, np.float64, 8, queue)


@on_devices
def test_what_is_no_lack_of_memory(queue, monkeypatch):
    """A size that the driver refuses is a MemoryError, wrong flags are not."""
    make, flags = cl.Buffer, cl.mem_flags
    monkeypatch.setattr(cl, "Buffer", lambda context, *_, **options: make(context, flags.READ_WRITE, 0))
    with pytest.raises(MemoryError, match=r"shape \(1, 3, 3, 8\) and float64 does not fit .* INVALID_BUFFER_SIZE"):
        cla.Pack._allocate(8, 3, 3, np.float64, 8, queue)
    monkeypatch.setattr(cl, "Buffer", lambda *_, **options: make(queue.context, flags.READ_ONLY | flags.WRITE_ONLY, 8))
    with pytest.raises(cl.LogicError, match="INVALID_VALUE"):
        cla.Pack._allocate(8, 3, 3, np.float64, 8, queue)


@pytest.mark.parametrize(
    ("code", "routine", "lacks"),
    [
        ("OUT_OF_HOST_MEMORY", "clEnqueueWriteBuffer", True),
        ("OUT_OF_RESOURCES", "create_buffer", True),
        ("OUT_OF_RESOURCES", "clEnqueueWriteBuffer", False),  # of a kernel before
        ("INVALID_CONTEXT", "clRetainContext", False),
    ],
)
def test_errors_of_memory(code, routine, lacks):
    error = SimpleNamespace(code=getattr(cl.status_code, code), routine=routine)
    assert arrays.lacks_memory(error) is lacks
