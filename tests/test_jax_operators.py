"""Functions for JAX: results, derivatives in both modes, transformations, and the calls of XLA."""

import ctypes
import doctest
import inspect
import subprocess
import sys
import threading

import numpy as np
import pytest

from cases import exhaustive, slow

jax = pytest.importorskip("jax", reason="needs JAX: .venv/bin/python -m pip install jax")

from jax import export  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import compactla.jax as ours  # noqa: E402
from compactla.jax import plans, targets  # noqa: E402

theirs = jnp.linalg
pytestmark = pytest.mark.filterwarnings("ignore")  # of JAX, about itself
CUSTOM = export.DisabledSafetyCheck.custom_call(targets.NAME)
ON_CPU = jax.default_backend() == "cpu"


@pytest.fixture(autouse=True, scope="module")
def doubles():
    """Double precision is there, and JAX's products in single precision are not those of TF32 on GPUs."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    with jax.default_matmul_precision("highest"):
        yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def random(rng):
    """A function that makes arrays of a shape."""

    def make(*shape, dtype="float64"):
        a = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            a = a + 1j * rng.standard_normal(shape)
        return jnp.asarray(a, dtype)

    return make


def regular(a):
    return a + 4 * jnp.eye(a.shape[-1], dtype=a.dtype)


def positive(a):
    return regular(a @ a.mT.conj())


def same(found, expected, factor=1e4):
    """Arrays of the same shape and type, equal but for rounding, in any nest of tuples."""
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        x, y = np.asarray(x), np.asarray(y)
        eps = np.finfo(y.dtype).eps if y.dtype.kind in "fc" else 0
        np.testing.assert_allclose(x, y, rtol=0, atol=factor * eps * max(1, abs(y).max(initial=0)))


def eigh(of):
    """Eigenvalues, and what of eigenvectors has no phase."""
    return lambda a: (lambda w, v: (w, abs(v)))(*of(positive(a)))


def svd(of, **options):
    return lambda a: (lambda u, s, vh: (abs(u), s, abs(vh)))(*of(a, **options))


def absolute(of, mode):
    return lambda a: jax.tree.map(abs, tuple(of(a, mode)))


def lstsq(of):
    """As of one matrix and its right-hand sides."""
    return lambda a, b: of(a, b)[:2] + of(a, b)[3:]


def diagonals(dl, d, du, b):
    return dl, d + 4, du, b


def block_by_dense(lower, diag, upper, rhs):
    """The solution of block tridiagonal systems as dense ones."""
    K, b = diag.shape[:2]
    A = jnp.zeros((K, b, K, b), diag.dtype)
    for k in range(K):
        A = A.at[k, :, k].set(regular(diag[k]))
        if k:
            A = A.at[k, :, k - 1].set(lower[k - 1]).at[k - 1, :, k].set(upper[k - 1])
    return theirs.solve(A.reshape(K * b, K * b), rhs.reshape(K * b, -1)).reshape(rhs.shape)


# Ours and JAX's, of matrices of these shapes: no phases are in their results.
FUNCTIONS = {
    "solve": (lambda of: lambda a, b: of(regular(a), b), [(3, 3), (3, 2)]),
    "inv": (lambda of: lambda a: of(regular(a)), [(3, 3)]),
    "det": (lambda of: of, [(3, 3)]),
    "slogdet": (lambda of: of, [(3, 3)]),
    "cholesky": (lambda of: lambda a: of(positive(a)), [(3, 3)]),
    "eigh": (eigh, [(3, 3)]),
    "svd": (lambda of: svd(of, full_matrices=False), [(4, 3)]),
    "svdvals": (lambda of: of, [(3, 4)]),
    "qr": (lambda of: absolute(of, "reduced"), [(4, 3)]),
    "pinv": (lambda of: of, [(4, 3)]),
    "lstsq": (lstsq, [(4, 3), (4, 2)]),
    "matmul": (lambda of: of, [(3, 3), (3, 2)]),
}
THEIRS = {name: getattr(theirs, name) for name in FUNCTIONS}
OTHERS = {  # of other modules, or of none
    "solve_triangular": (
        lambda a, b: ours.solve_triangular(regular(a), b, trans="C", lower=True),
        lambda a, b: jax.scipy.linalg.solve_triangular(regular(a), b, trans="C", lower=True),
        [(3, 3), (3, 2)],
    ),
    "tridiagonal_solve": (
        lambda *arrays: ours.tridiagonal_solve(*diagonals(*arrays)),
        lambda *arrays: jax.lax.linalg.tridiagonal_solve(*diagonals(*arrays)),
        [(6,), (6,), (6,), (6, 2)],
    ),
    "block_tridiagonal_solve": (
        lambda lower, diag, upper, rhs: ours.block_tridiagonal_solve(lower, regular(diag), upper, rhs),
        block_by_dense,
        [(3, 2, 2), (4, 2, 2), (3, 2, 2), (4, 2)],
    ),
    "wide": (lstsq(ours.lstsq), lstsq(theirs.lstsq), [(3, 5), (3, 2)]),
}
PAIRS = {name: (make(getattr(ours, name)), make(THEIRS[name]), shapes) for name, (make, shapes) in FUNCTIONS.items()}
PAIRS |= OTHERS
OFTEN = "solve", "cholesky", "block_tridiagonal_solve"


def some(*always):
    """All of them, of which some are tried always, and some often."""
    return [name if name in always else (slow if name in OFTEN else exhaustive)(name) for name in PAIRS]


@pytest.mark.parametrize("dtype", ["float32", slow("complex128"), exhaustive("float64"), exhaustive("complex64")])
@pytest.mark.parametrize("name", some("block_tridiagonal_solve"))
def test_results_and_vmap(name, dtype, random):
    """In stacks, compiled, and under vmap, where the second argument may be one for all."""
    own, other, shapes = PAIRS[name]
    arrays = [random(7, *shape, dtype=dtype) for shape in shapes]
    found = jax.jit(jax.vmap(own))(*arrays)
    same(found, jax.vmap(other)(*arrays))
    if name not in ("lstsq", "wide", "block_tridiagonal_solve"):
        same(own(*arrays), found, 1)
    axes = (0, *[None] * (len(arrays) - 1))
    mixed = [arrays[0], *(a[0] for a in arrays[1:])]
    same(jax.vmap(own, axes)(*mixed), jax.vmap(other, axes)(*mixed))


@pytest.mark.parametrize("name", ["solve", *map(slow, ("solve_triangular", *list(OTHERS)[1:3]))])
def test_one_matrix_for_all(name, random):
    own, other, shapes = PAIRS[name]
    arrays = [random(*shape) for shape in shapes[:-1]]
    rhs, axes = random(5, 3, *shapes[-1]), (*[None] * len(arrays), 0)
    same(jax.vmap(jax.vmap(own, axes), axes)(*arrays, rhs), jax.vmap(jax.vmap(other, axes), axes)(*arrays, rhs))


@pytest.mark.parametrize("order", [1, exhaustive(2)])
@pytest.mark.parametrize("dtype", ["float64", exhaustive("complex128")])
@pytest.mark.parametrize("name", some("solve"))
def test_derivatives(name, dtype, order, random):
    """In both modes, and twice; they are those of JAX, of complex matrices too."""
    own, other, shapes = PAIRS[name]
    arrays = [random(*shape, dtype=dtype) for shape in shapes]

    def total(function, *arrays):
        leaves = jax.tree.leaves(function(*arrays))
        return sum((abs(x) ** 2).sum() for x in leaves if x.dtype.kind in "fc")

    every = range(len(arrays))
    found = jax.jit(jax.grad(lambda *x: total(own, *x), every))(*arrays)
    if name not in ("lstsq", "wide", "pinv"):  # through singular vectors there
        same(found, jax.grad(lambda *x: total(other, *x), every)(*arrays))
    tangents = [random(*shape, dtype=dtype) for shape in shapes]
    value = jax.jvp(lambda *x: total(own, *x), arrays, tangents)[1]
    same(value, sum((g * t).sum().real for g, t in zip(found, tangents, strict=True)), 1e5)
    if dtype == "float64":
        check_grads(own, arrays, order=order, modes=["fwd", "rev"], atol=1e-3, rtol=1e-3)


@pytest.mark.exhaustive
def test_hessians(random):
    a, b = regular(random(5, 4, 4)), random(5, 4)

    def energy(of):
        return lambda a, b: of.slogdet(a)[1] + b @ of.solve(a, b) + of.det(a)

    found = jax.jit(jax.vmap(jax.hessian(energy(ours), (0, 1))))(a, b)
    same(found, jax.vmap(jax.hessian(energy(theirs), (0, 1)))(a, b))


@pytest.mark.slow
def test_derivatives_of_singular_matrices(random):
    a = random(4, 4).at[3].set(0)
    same(jax.grad(ours.det)(a), jax.grad(theirs.det)(a))
    s = jnp.eye(3)
    assert jnp.isfinite(jax.grad(lambda a: ours.svdvals(a).sum())(s)).all()
    assert jnp.isfinite(jax.grad(lambda a: ours.pinv(a).sum())(s)).all()
    assert jax.grad(lambda rtol: ours.pinv(s, rtol).sum())(0.1) == 0


@pytest.mark.parametrize("options", [{}, {"full_matrices": True}, {"compute_uv": False}], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (1, 1)], ids=str)
@pytest.mark.exhaustive
def test_other_factors(shape, options, random):
    a = random(6, *shape)
    u, s, vh = ours.svd(a)
    same((u[..., : s.shape[-1]] * s[..., None, :]) @ vh[..., : s.shape[-1], :], a)
    for q in (u.mT @ u, vh @ vh.mT):  # vectors of no singular value are free
        same(q, jnp.broadcast_to(jnp.eye(q.shape[-1]), q.shape))
    found, expected = ours.svd(a, **options), theirs.svd(a, **options)
    same(found[1] if options.get("compute_uv", True) else found, theirs.svdvals(a))
    assert [x.shape for x in jax.tree.leaves(found)] == [x.shape for x in jax.tree.leaves(expected)]
    for mode in ("complete", "r", "raw", "full"):
        found, expected = (jax.tree.leaves(of.qr(a, mode)) for of in (ours, theirs))
        same([abs(x) for x in found], [abs(x) for x in expected])


@pytest.mark.slow
def test_pivots(random):
    """Rows are swapped within blocks where that is asked for; without it there is no result."""
    swap = jnp.broadcast_to(jnp.eye(2)[::-1], (2, 3, 2, 2))
    none, rhs = jnp.zeros((2, 2, 2, 2)), random(2, 3, 2, 1)
    same(ours.block_tridiagonal_solve(none, swap, none, rhs, pivoting=True), rhs[:, :, ::-1])
    assert jnp.isnan(ours.block_tridiagonal_solve(none, swap, none, rhs)).all()
    same(ours.block_tridiagonal_solve(none[:, :0], swap[:, :1], none[:, :0], rhs[:, :1]), rhs[:, :1, ::-1])


@pytest.mark.parametrize("name", ["cholesky", "eigh", *map(slow, ("solve", "inv", "svd", "pinv", "tridiagonal_solve"))])
def test_matrices_without_result(name, random):
    """Such a matrix has results of NaN, and changes no other by a bit."""
    a = positive(random(40, 3, 3))
    bad = a.at[17].set(jnp.nan if name in ("eigh", "svd", "pinv") else 0)

    def function(a):
        if name == "tridiagonal_solve":
            return ours.tridiagonal_solve(a[..., 0], a[..., 1], a[..., 2], a)
        return ours.solve(a, jnp.ones((3, 1))) if name == "solve" else getattr(ours, name)(a)

    kept = np.arange(40) != 17
    pairs = zip(jax.tree.leaves(jax.jit(function)(bad)), jax.tree.leaves(function(a)), strict=True)
    for found, expected in pairs:
        assert np.isnan(found[17]).all()
        np.testing.assert_array_equal(found[kept], expected[kept])


@pytest.mark.slow
def test_nearly_singular_matrices(random):
    """They have results, as in LAPACK, however small a pivot is."""
    a = jnp.array([[[1.0, 1.0], [1.0, 1.0 + 1e-15]], [[4.0, 0.0], [0.0, 1e-30]]])
    same(ours.cholesky(a), theirs.cholesky(a))
    assert jnp.isfinite(ours.inv(a)).all()
    huge = positive(random(9, 3, 3)) * jnp.logspace(-300, 300, 9)[:, None, None]
    w = theirs.eigh(huge)[0]
    same(ours.eigh(huge)[0] / w, jnp.ones_like(w))


@pytest.mark.slow
def test_sizes(random):
    """Empty stacks, matrices without elements, large ones, and stacks of any number of matrices and axes."""
    assert ours.solve(jnp.zeros((0, 3, 3)), jnp.zeros((0, 3, 1))).shape == (0, 3, 1)
    assert ours.inv(jnp.zeros((4, 0, 0))).shape == (4, 0, 0)
    assert ours.svdvals(jnp.zeros((2, 0, 3))).shape == (2, 0)
    for shape in ((0, 3), (3, 0), (1, 3)):
        same(ours.lstsq(jnp.ones(shape), jnp.ones(shape[0])), theirs.lstsq(jnp.ones(shape), jnp.ones(shape[0])))
    a = positive(random(2, 1, 3, 4, 4))
    same(ours.inv(a), theirs.inv(a))
    for count in (1, 17, 5000):
        a = jnp.broadcast_to(positive(random(4, 4)), (count, 4, 4))
        assert (ours.inv(a) == ours.inv(a[:1])).all()
    a = regular(random(200, 200))
    same(ours.inv(a), theirs.inv(a))
    same(ours.solve(random(5, 1, 2, 2) + 9 * jnp.eye(2), jnp.ones((3, 2, 1))).shape and a, a)


@pytest.mark.skipif(not ON_CPU, reason="there are several devices of a CPU")
def test_several_devices(random):
    """Under pmap and shard_map, and where stacks are divided: nothing is gathered."""
    a, b = regular(random(4, 50, 3, 3)), random(4, 50, 3, 2)
    expected = ours.solve(a, b)
    same(jax.pmap(ours.solve)(a.reshape(2, 100, 3, 3), b.reshape(2, 100, 3, 2)).reshape(b.shape), expected, 1)
    mesh = jax.make_mesh((2,), ("x",))
    spec = PartitionSpec("x")
    function = jax.jit(jax.grad(lambda a, b: ours.solve(a, b).sum(), (0, 1)))
    divided = [jax.device_put(x, NamedSharding(mesh, spec)) for x in (a, b)]
    for found, x in zip(function(*divided), function(a, b), strict=True):
        assert found.sharding.spec[0] == "x"
        np.testing.assert_array_equal(found, x)
    assert "all-gather" not in function.lower(*divided).compile().as_text()
    one = jax.shard_map(ours.solve, mesh=mesh, in_specs=(PartitionSpec(), spec), out_specs=spec)
    np.testing.assert_array_equal(jax.jit(one)(a[0, 0], divided[1]), ours.solve(a[0, 0], b))


def test_programs_that_are_not_compiled(random):
    a, b = regular(random(3, 3)), random(3, 2)
    expected = ours.solve(a, b)
    with jax.disable_jit():
        same(ours.solve(a, b), expected, 1)
        same(jax.jvp(ours.solve, (a, b), (0 * a, b))[1], expected)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="compactla_solve"):
        ours.solve(0 * a, b)


def test_donated_memory(random):
    a, b = regular(random(9, 3, 3)), random(9, 3, 2)
    expected = ours.solve(a, b)
    given = jnp.array(b)
    same(jax.jit(ours.solve, donate_argnums=1)(a, given), expected, 1)
    assert given.is_deleted()


@pytest.mark.skipif(not (ON_CPU and sys.platform == "linux"), reason="the C library sleeps")
def test_no_lock_of_python(random):
    """A call ends while another thread has the interpreter, and does not give it away."""
    a, b = regular(random(1000, 3, 3)), random(1000, 3, 1)
    function = jax.jit(lambda a, b: jax.lax.fori_loop(0, 20, lambda i, b: ours.solve(a, b), b))
    compiled = function.lower(a, b).compile()
    jax.block_until_ready(compiled(a, b))
    x = compiled(a, b)
    ctypes.PyDLL(None).usleep(300_000)
    assert x.is_ready()


@pytest.mark.skipif(not ON_CPU, reason="of CPUs")
def test_plans_of_other_processes(random, monkeypatch):
    """What XLA has kept of a program tells what it calls: no plan of this process is needed."""
    a = regular(random(9, 3, 3))
    function = jax.jit(ours.inv)
    expected = function(a)
    monkeypatch.setattr(plans, "table", plans.Table())
    plans.table.published = targets.refresh
    targets.refresh()
    same(function(a), expected, 1)
    assert len(plans.table.known) == 1
    with monkeypatch.context() as broken:
        broken.setattr(plans, "table", plans.Table())
        broken.setattr(plans, "planned", lambda description: 1 / 0)
        targets.refresh()
        with pytest.raises(Exception, match="ZeroDivisionError"):
            jax.block_until_ready(function(a))
    targets.refresh()
    for i in range(200):  # the table grows
        plans.make(plans.text_of(plans.Description("inv", (), "d", ((3 + i % 2, 3 + i % 2, False, False),))) + " " * i)
    same(function(a), expected, 1)
    monkeypatch.undo()
    targets.refresh()


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="of CPUs")
def test_export(random, tmp_path):
    """A program that was exported runs in another process, for any number of matrices."""
    pytest.importorskip("flatbuffers", reason="JAX writes exported programs with flatbuffers")
    shapes = export.symbolic_shape("n, 3, 3")
    columns = jax.ShapeDtypeStruct((shapes[0], 3), jnp.float64)  # which are right-hand sides of one matrix
    solve = jax.vmap(ours.solve, (None, 0))
    solved = export.export(jax.jit(lambda b: solve(2 * jnp.eye(3), b)), disabled_checks=[CUSTOM])(columns)
    same(solved.call(jnp.ones((9, 3))), jnp.full((9, 3), 0.5))
    exported = export.export(jax.jit(ours.inv), disabled_checks=[CUSTOM])(jax.ShapeDtypeStruct(shapes, jnp.float64))
    (tmp_path / "inv").write_bytes(exported.serialize())
    program = f"""
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import compactla.jax
from jax import export
compactla.jax.register()
inv = export.deserialize(open({str(tmp_path / "inv")!r}, "rb").read())
for n in (1, 50):
    a = np.random.default_rng(0).random((n, 3, 3)) + 3 * np.eye(3)
    assert np.allclose(np.asarray(inv.call(a)) @ a, np.eye(3))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_threads(random):
    a = regular(random(3000, 3, 3))
    expected, wrong = ours.inv(a), []

    def work():
        for _ in range(20):
            wrong.append(not (ours.inv(a) == expected).all())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 80 and not any(wrong)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ours.solve(jnp.ones((3, 2)), jnp.ones(3)), ValueError, "a has shape (3, 2), must be of square"),
        (lambda: ours.solve(jnp.ones((2, 3, 3)), jnp.ones((2, 2))), ValueError, "b has shape (2, 2), must fit"),
        (lambda: ours.solve(jnp.ones((2, 3, 3)), jnp.ones((4, 3, 1))), ValueError, "b has matrices in a stack of (4,)"),
        (lambda: ours.inv(jnp.ones((2, 2), jnp.float16)), TypeError, "a is of float16, must be of float32"),
        (lambda: ours.cholesky(jnp.ones(2)), ValueError, "a has shape (2,), must have 2 axes or more"),
        (lambda: ours.eigh(jnp.eye(2), UPLO="X"), ValueError, "UPLO is 'X', must be"),
        (lambda: ours.qr(jnp.eye(2), "full matrices"), ValueError, "mode is 'full matrices', must be"),
        (lambda: ours.solve_triangular(jnp.eye(2), jnp.ones(2), trans="H"), ValueError, "trans is 'H', must be"),
        (lambda: ours.lstsq(jnp.ones((3, 2)), jnp.ones(2)), ValueError, "b has shape (2,), must have 3 rows"),
        (
            lambda: ours.tridiagonal_solve(jnp.ones(2), jnp.ones(3), jnp.ones(3), jnp.ones((3, 1))),
            ValueError,
            "dl has shape (2,), must have (3,) as d",
        ),
        (
            lambda: ours.block_tridiagonal_solve(*[jnp.ones((3, 2, 2))] * 3, jnp.ones((3, 2))),
            ValueError,
            "lower has shape (3, 2, 2), must have (2, 2, 2) to fit diag",
        ),
        (lambda: jax.jvp(ours.svd, *[[jnp.ones((2, 3))]] * 2), NotImplementedError, "full_matrices=True"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.slow
def test_types_of_results():
    a = jnp.eye(2, dtype=jnp.int32)
    for name in ("eigh", "svd", "qr", "slogdet"):
        assert type(getattr(ours, name)(a)) is type(getattr(theirs, name)(a))
    assert ours.inv(a).dtype == theirs.inv(a).dtype and ours.det(a).dtype == theirs.det(a).dtype
    assert ours.matmul(a[None], a[None]).dtype == jnp.int32
    assert ours.solve(jnp.eye(2, dtype=jnp.float32), jnp.ones(2, jnp.complex64)).dtype == jnp.complex64


@pytest.mark.parametrize("name", ours.__all__)
@pytest.mark.exhaustive
def test_examples(name):
    with jax.enable_x64(False):
        function = inspect.unwrap(getattr(ours, name))
        for test in doctest.DocTestFinder().find(function, name, globs={}):
            assert not doctest.DocTestRunner().run(test).failed


@pytest.fixture
def gpu(elsewhere, monkeypatch):
    """What XLA would call on a GPU, where one stands in: a function of what to compute, arrays, and results to fill."""
    pytest.importorskip("cuda", reason="needs NVIDIA's bindings")
    import cuda_standin
    from compactla.jax import frame
    from compactla.jax import gpu as module

    machine = cuda_standin.install(monkeypatch, elsewhere.device)
    monkeypatch.setattr(module, "XLA", module.Xla())
    errors = []

    def fail(request):
        errors.append(request.contents.message.decode())
        return len(errors)

    def tell(request):
        request.contents.stream = machine.current
        return None

    def buffers(tensors):
        shapes = [(ctypes.c_int64 * x.ndim)(*x.shape) for x in tensors]
        entries = [frame.Buffer(0, None, 0, x.address, x.ndim, shape) for x, shape in zip(tensors, shapes, strict=True)]
        pointers = (ctypes.POINTER(frame.Buffer) * len(entries))(*map(ctypes.pointer, entries))
        return frame.Buffers(0, None, len(entries), None, pointers)

    def call(description, arrays, results):
        given, made = ([cuda_standin.of(machine, x) for x in some] for some in (arrays, results))
        words = [plans_text(frame, "plan"), plans_text(frame, plans.text_of(description))]
        names = (ctypes.POINTER(frame.Text) * 1)(ctypes.pointer(words[0]))
        entries = (ctypes.c_void_p * 1)(ctypes.addressof(words[1]))
        interface = frame.Interface(make_error=frame.MAKE_ERROR(fail), get_stream=frame.GET_STREAM(tell))
        asked = frame.Frame(
            interface=ctypes.pointer(interface),
            stage=frame.EXECUTE,
            arguments=buffers(given),
            results=buffers(made),
            attributes=frame.Attributes(0, None, 1, None, names, entries),
        )
        before = machine.live
        if module.ANSWER(ctypes.pointer(asked)):
            raise RuntimeError(errors[-1])
        assert {stream for *_, stream in machine.launched} == {machine.current}
        assert machine.live - before <= 4  # work space is given back but what is kept for later calls
        return [x.numpy() for x in made]

    return call


def plans_text(frame, text):
    """Characters as XLA has them."""
    memory = ctypes.create_string_buffer(text.encode(), len(text))
    span = frame.Text(ctypes.cast(memory, ctypes.POINTER(ctypes.c_char)), len(text))
    span.kept = memory
    return span


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["d", "F"])
def test_calls_on_gpus(gpu, dtype, rng):
    """Calls as XLA makes them, of frames that are made here: results are in its memory, in its stream."""
    a = (rng.standard_normal((6, 3, 3)) + 4 * np.eye(3)).astype(dtype)
    a[2] = 0
    b, kept = np.ones((6, 3, 2), dtype), np.arange(6) != 2
    operands = (3, 3, True, False), (3, 2, False, False)
    (x,) = gpu(plans.Description("solve", (), dtype, operands), [a, b], [np.zeros_like(b)])
    np.testing.assert_allclose(a[kept].swapaxes(1, 2) @ x[kept], b[kept], atol=1e-5)
    assert np.isnan(x[2]).all()
    p = a @ a.swapaxes(1, 2).conj() + np.eye(3, dtype=dtype)
    cholesky = plans.Description("cholesky", (("symmetrize", False),), dtype, operands[:1])
    (L,) = gpu(cholesky._replace(operands=((3, 3, False, False),)), [p], [np.zeros_like(p)])
    np.testing.assert_allclose(L @ L.swapaxes(1, 2).conj(), p, atol=1e-4)
    eigh = plans.Description("eigh", (("lower", True), ("symmetrize", False)), dtype, ((3, 3, False, False),))
    w, V = gpu(eigh, [p], [np.zeros((6, 3), dtype.lower()), np.zeros_like(p)])
    np.testing.assert_allclose(p @ V, V * w[:, None], atol=1e-4)
    exported = export.export(jax.jit(ours.cholesky), platforms=["cuda"], disabled_checks=[CUSTOM])(p)
    assert "custom_call @compactla" in exported.mlir_module()
    with pytest.raises(RuntimeError, match="KeyError"):
        gpu(eigh._replace(name="none"), [p], [])
