"""Threads of ours beside those of Numba, after a fork, and at a process's end; kernels for processors with less."""

import os
import platform
import sys
from pathlib import Path

import pytest

from compactla.cpu.emit.machine import machine
from processes import python

pytestmark = pytest.mark.slow

# `work` keeps several threads busy; what it returns is known from one thread.
WORK = """
import os, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import compactla as cla
from compactla.oracle import THRESHOLD
from compactla.cpu.threads import pool, sharing
sharing.GRAIN = 100

def helpers():
    return sharing.boxes[:, pool.THERE // 8].sum()

def work(seed, threads=None):
    rng = np.random.default_rng(seed)
    a = rng.random((500, 3, 3)) + 9 * np.eye(3)
    A, B, C = cla.pack(a, threads=threads), cla.pack(a), cla.Pack.zeros(500, 3, 3)
    cla.gemm(A, B, C, threads=threads)
    cla.getrfnp(A, threads=threads)
    cla.trsm(A, C, threads=threads)
    T = cla.BlockTridiag(np.ones((100, 4, 3, 3)), a.reshape(100, 5, 3, 3), np.ones((100, 4, 3, 3)))
    T.factor(threads=threads)
    return C.unpack(threads=threads).tobytes() + T.solve(a[:, 0].reshape(100, 5, 3), threads=threads).tobytes()

expected = [work(seed, 1) for seed in range(4)]
"""

NUMBA_BUSY = """
import numba

@numba.njit(parallel=True)
def numbas(x):
    for i in numba.prange(len(x)):
        x[i] = x[i] * 0.5 + i

def busy():
    x = np.zeros(10000)
    while not over:
        numbas(x)

over = False
thread = threading.Thread(target=busy)
thread.start()
with ThreadPoolExecutor(4) as users:
    assert list(users.map(work, list(range(4)) * 5)) == expected * 5
over = True
thread.join()
print(numba.threading_layer())
"""


X86 = platform.machine() in ("x86_64", "AMD64") and sys.platform != "darwin"
TBB = pytest.param("tbb", marks=pytest.mark.skipif(not X86, reason="TBB's package is for Linux and Windows on x86-64"))


@pytest.mark.parametrize("layer", ["workqueue", "omp", TBB])
def test_beside_parallel_loops_of_the_user(layer):
    # TBB's package puts its library where the system does not look
    libraries = os.pathsep.join([str(Path(sys.prefix, "lib")), os.environ.get("LD_LIBRARY_PATH", "")])
    settings = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "3", "LD_LIBRARY_PATH": libraries}
    assert python(WORK + NUMBA_BUSY, **settings).strip() == layer


FORK = """
work(0)
assert helpers()
child = os.fork()
if not child:
    os._exit(0 if [work(seed) for seed in range(4)] == expected and helpers() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert work(1) == expected[1]

import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as processes:
    assert processes.map(work, range(4)) == expected
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_after_a_fork():
    # later Pythons warn of any fork while there are threads
    python("import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)" + WORK + FORK, NUMBA_NUM_THREADS="3")


FORK_AMID = """
from compactla import LineRelaxation, LinePreconditioner
from scipy.sparse import bsr_array
from compactla.cpu import lines
from compactla.gpu import program
factor_lines = lines.factor_lines
M = bsr_array(np.eye(6) * 4, blocksize=(3, 3))
P, S = LinePreconditioner(M, [[0, 1]]), LineRelaxation(M, [[0, 1]])
T = cla.BlockTridiag(np.ones((9, 1, 3, 3)), np.ones((9, 2, 3, 3)), np.ones((9, 1, 3, 3)))
begun, over = threading.Barrier(5), threading.Event()

def hold(*args):
    begun.wait()
    over.wait()
    raise ValueError("never mind")

def go(call, *args):
    try:
        call(*args)
    except ValueError:
        pass

class Program:
    def build(self, options):
        return self

class Context:
    devices = ()

P._conjugate_transposed = S._conjugate_transposed = lines.factor_lines = program.build_options = hold
calls = [(P.rmatvec, np.ones(6)), (S.rmatvec, np.ones(6)), (T.factor,), (program.build, Context, "", np.float32)]
users = [threading.Thread(target=go, args=call) for call in calls]
[user.start() for user in users]
begun.wait()
child = os.fork()
if not child:
    signal.alarm(60)
    del P._conjugate_transposed, S._conjugate_transposed
    lines.factor_lines = factor_lines
    program.build_options, program.cl.Program = (lambda *args: []), (lambda *args: Program())
    assert np.allclose(P.rmatvec(np.ones(6)), 0.25) and np.allclose(S.rmatvec(np.ones(6)), 0.25)
    assert isinstance(program.build(Context, "", np.float32), Program)
    try:
        T.factor()
    except RuntimeError as error:
        os._exit(0 if "begun" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
over.set()
[user.join() for user in users]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_while_locks_are_held():
    python("import os, signal, threading, warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n"
           "import numpy as np\nimport compactla as cla\n" + FORK_AMID)  # fmt: skip


GEVENT = """
import _thread, threading

def pretend(function, *args):
    raise AssertionError("a green thread, which runs when this one says so")

# What gevent.monkey.patch_all() does to them.
_thread.start_new_thread = threading._start_new_thread = threading.Thread.start = pretend
"""


def test_threads_that_are_patched():
    """Helpers are started by no function of Python's."""
    assert python(GEVENT + WORK + "work(0)\nprint(helpers())", NUMBA_NUM_THREADS="3") == "2\n"


@pytest.mark.parametrize("threads", ["1", "2", "16"])
def test_calls_from_the_users_threads(threads):
    program = """
with ThreadPoolExecutor(5) as users:
    assert list(users.map(work, list(range(4)) * 5)) == expected * 5
print(helpers())
"""
    helpers = int(python(WORK + program, NUMBA_NUM_THREADS=threads))
    assert helpers == 0 if threads == "1" else 0 < helpers < int(threads)


def test_the_end_of_a_process():
    """Nothing hangs or complains: not parked threads, calls at exit, nor calls still going on in the user's threads."""
    program = """
import atexit

def last():
    assert [work(seed) for seed in range(4)] == expected
    print("last")

def go_on():
    while True:
        work(0)

class Owner:
    def __del__(self):
        assert work(2) == expected[2]
        print("deleted")

owner = Owner()
atexit.register(last)
threading.Thread(target=go_on, daemon=True).start()
work(0)
"""
    for _ in range(2):
        assert python(WORK + program, NUMBA_NUM_THREADS="3").split()[0] == "last"


def test_a_first_call_at_exit():
    """Helpers that cannot be started any more are done without."""
    program = """
import atexit
atexit.register(lambda: print(work(3) == expected[3]))
"""
    assert python(WORK + program, NUMBA_NUM_THREADS="3") == "True\n"


def test_no_more_threads_to_be_had():
    """Calls go on with the helpers that there are, and start others when they can."""
    if sys.platform == "linux":
        python(WORK + NO_ROOM, NUMBA_NUM_THREADS="3")


NO_ROOM = """
import resource
from pathlib import Path
A, B, C = cla.Pack.zeros(500, 3, 3), cla.Pack.zeros(500, 3, 3), cla.Pack.zeros(500, 3, 3)
sharing.boxes[:] = 0  # the helpers that there are wait for ever
cla.gemm(A, B, C, threads=2)
assert helpers() == 1
limits = resource.getrlimit(resource.RLIMIT_AS)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**21, limits[1]))  # too little for the stack of another thread
assert work(1, 3) == expected[1] and helpers() == 1
resource.setrlimit(resource.RLIMIT_AS, limits)
assert work(2, 3) == expected[2] and helpers() == 2
"""


PROCESSOR = """
import numpy as np
import compactla as cla
import reference
from cases import dominant, lines, random
from compactla.cpu.emit.matrices import native_width
from compactla.oracle import THRESHOLD
from rows import residual

rng = np.random.default_rng(0)
for dtype in (np.float64, np.complex64):
    for n in (3, 18):
        a, b, c = dominant(rng, 11, n, n, dtype), *random(rng, (2, 11, n, n), dtype)
        a /= n
        A, B, C = (cla.pack(x) for x in (a, b, c))
        cla.gemm(A, B, C, 0.5, 2, transb="C")
        assert residual("gemm", (a, b, c), (a, b, C.unpack()), alpha=0.5, beta=2, transb="C") < THRESHOLD
        cla.trsm(A, B, uplo="U")
        assert residual("trsm", (a, b), (a, B.unpack()), uplo="U") < THRESHOLD
        assert not cla.getrfnp(A).any()
        assert residual("getrfnp", [a], [A.unpack()]) < THRESHOLD
    blocks, rhs = lines(rng, 11, 4, 3, dtype), random(rng, (11, 4, 3), dtype)
    T = cla.BlockTridiag(*blocks)
    assert not T.factor().any()
    dense, flat = reference.block_tridiagonal(*blocks), (11, 12, 1)
    assert reference.solve_ratio(dense, T.solve(rhs).reshape(flat), rhs.reshape(flat)) < THRESHOLD
print(native_width(np.dtype(np.float64)))
"""


def test_processors_without_fma():
    """NUMBA_CPU_NAME=generic is the least of its kind: 16-byte registers and no fused multiply-add on x86-64."""
    widths = {"generic": 2} | ({"sandybridge": 4} if X86 and machine()[0] > 16 else {})
    for name, width in widths.items():
        output = python(PROCESSOR, NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES="")
        assert not X86 or output == f"{width}\n"
