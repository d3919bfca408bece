"""compactla.torch, on the CPU and, where PyTorch finds one, on a CUDA GPU: results, derivatives, compiling."""

import doctest
import re
import sys

import numpy as np
import pytest
import scipy.sparse

import compactla
from cases import exhaustive, slow

NEEDED = "needs PyTorch: .venv/bin/python -m pip install torch --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NEEDED)

import compactla.torch as ours  # noqa: E402
from compactla import linalg  # noqa: E402

theirs = torch.linalg
solving = sys.modules["compactla.torch.solve"]
pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch, about itself
DOUBLES = [torch.complex128, slow(torch.float64)]
DTYPES = [torch.float32, torch.complex128, slow(torch.float64), slow(torch.complex64)]


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request):
    return request.param


@pytest.fixture
def random(device):
    """A function that makes tensors of a shape, those of square matrices with large diagonals."""
    generator = torch.Generator().manual_seed(2)

    def make(*shape, dtype=torch.float64):
        a = torch.randn(*shape, dtype=dtype, generator=generator)
        return a.to(device)

    return make


def regular(a):
    return a + 4 * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def hermitian(a):
    return a + a.mH


def positive(a):
    return regular(a @ a.mH)


def same(found, expected, factor=1e4):
    """Tensors of the same shape and type, equal but for rounding."""
    eps = factor * torch.finfo(expected.dtype).eps
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1
    torch.testing.assert_close(found, expected, rtol=0, atol=eps * scale)


def driver(a):
    """Of lstsq, one that gives residuals; there is one on GPUs."""
    return "gels" if a.is_cuda else "gelsd"


# Of PyTorch, `matmul` too: functions of one library, or the other, that have no phases in their results.
FUNCTIONS = {
    "solve": lambda m, a, b: m.solve(regular(a), b),
    "solve-vector": lambda m, a, b: m.solve(regular(a), b[0, :, 0]),
    "solve-vectors": lambda m, a, b: m.solve(regular(a), b[..., 0]),
    "solve-right": lambda m, a, b: m.solve(regular(a), b.mT, left=False),
    "inv": lambda m, a, b: m.inv(regular(a)),
    "cholesky": lambda m, a, b: m.cholesky(positive(a)),
    "cholesky-upper": lambda m, a, b: m.cholesky(positive(a), upper=True),
    "eigenvalues": lambda m, a, b: m.eigh(hermitian(a)).eigenvalues,
    "eigenvectors": lambda m, a, b: m.eigh(hermitian(a), UPLO="U").eigenvectors.abs(),
    "eigvalsh": lambda m, a, b: m.eigvalsh(hermitian(a)),
    "cholesky_solve": lambda m, a, b: either(m, "cholesky_solve")(b, m.cholesky(positive(a))),
    "cholesky_solve-upper": lambda m, a, b: either(m, "cholesky_solve")(b, m.cholesky(positive(a)).mH, upper=True),
    "solve_triangular": lambda m, a, b: m.solve_triangular(regular(a), b, upper=False),
    "solve_triangular-right": lambda m, a, b: m.solve_triangular(a, b.mT, upper=True, left=False, unitriangular=True),
    "singular-vectors": lambda m, a, b: torch.cat([m.svd(a[..., :2])[i].abs()[..., :2] for i in (0, 2)], -2),
    "singular-polar": lambda m, a, b: (lambda found: found.U @ found.Vh)(m.svd(a)),
    "svdvals": lambda m, a, b: m.svdvals(a[..., :2, :]),
    "qr-Q": lambda m, a, b: m.qr(a[..., :2]).Q,
    "qr-R": lambda m, a, b: m.qr(a[..., :2, :], mode="complete").R,
    "det": lambda m, a, b: m.det(a),
    "slogdet": lambda m, a, b: sum(x * x for x in m.slogdet(a)).abs(),
    "pinv": lambda m, a, b: m.pinv(a[..., :2]),
    "pinv-hermitian": lambda m, a, b: m.pinv(hermitian(a), atol=1e-3, hermitian=True),
    "lstsq": lambda m, a, b: m.lstsq(a[..., :2], b, driver=driver(a)).solution,
    "lstsq-residuals": lambda m, a, b: m.lstsq(a[..., :2], b, driver=driver(a)).residuals,
    "lstsq-vectors": lambda m, a, b: m.lstsq(a, b[..., 0]).solution,
    "matrix_exp": lambda m, a, b: m.matrix_exp(a),
    "matmul": lambda m, a, b: either(m, "matmul")(a, b),
    "matmul-vector": lambda m, a, b: either(m, "matmul")(b[0, :, 0], a),
}
USE_BOTH = "solve", "matmul", "lstsq", "cholesky_solve"


def either(m, name):
    """A function of ours, or that of PyTorch that is not in torch.linalg."""
    return getattr(m, name) if m is ours else getattr(torch, name)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results(random, name, dtype):
    a, b = random(5, 3, 3, dtype=dtype), random(5, 3, 2, dtype=dtype)
    same(FUNCTIONS[name](ours, a, b), FUNCTIONS[name](theirs, a, b))


@pytest.mark.parametrize("shapes", [((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (4, 3, 1)), ((4, 3, 3), (3,)), ((3, 3), (3,))])
def test_stacks_are_broadcast(random, shapes):
    a, b = (random(*shape) for shape in shapes)
    a = regular(a).requires_grad_()
    b.requires_grad_()
    for f, g in ((ours.solve, theirs.solve), (ours.matmul, torch.matmul)):
        same(f(a, b), g(a, b))
        for x, y in zip(*(torch.autograd.grad(h(a, b).square().sum(), (a, b)) for h in (f, g)), strict=True):
            same(x, y)


@pytest.mark.parametrize("lead", [(0,), (2, 0), (2, 3)])
@pytest.mark.parametrize("n", [0, 2])
def test_empty_stacks(random, lead, n):
    a, b = random(*lead, n, n), random(*lead, n, 1)
    for name in FUNCTIONS:
        if name in ("matmul-vector", "solve-vector") or (
            n < 2 and name.startswith(("singular", "svd", "qr", "pinv", "lst"))
        ):
            continue
        given = [x.clone().requires_grad_() for x in (a, b)]
        found = FUNCTIONS[name](ours, *given)
        assert found.shape == FUNCTIONS[name](theirs, a, b).shape
        if name != "lstsq-residuals":  # of which there are none
            found.abs().sum().backward()
            assert given[0].grad is None or given[0].grad.shape == a.shape
    assert ours.matmul(b[..., :0], b[..., :0].mT).abs().sum() == 0


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "matmul-vector"])
@pytest.mark.parametrize("dtype", DOUBLES)
def test_derivatives(random, name, dtype):
    """The first and the second ones, by differences."""
    a, b = random(2, 3, 3, dtype=dtype).requires_grad_(), random(2, 3, 2, dtype=dtype).requires_grad_()
    function = FUNCTIONS[name]
    parts = (a, b) if name.startswith(USE_BOTH) else (a,)

    def call(a, b=b):
        return function(ours, a, b)

    assert torch.autograd.gradcheck(call, parts, check_forward_ad=True, check_batched_grad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, parts, check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("dtype", DOUBLES)
@pytest.mark.parametrize("ops", ["NT", "CN", slow("TC"), slow("CC")])
def test_gemm(random, ops, dtype):
    """Products of all kinds of operands, and what is added."""
    op = {"N": lambda x: x, "T": lambda x: x.mT, "C": lambda x: x.mH}
    shapes = [(4, 3) if letter == "N" else (3, 4) for letter in ops[0]] + [(3, 2) if ops[1] == "N" else (2, 3)]
    a, b = (random(2, *shape, dtype=dtype).requires_grad_() for shape in shapes)
    c = random(4, 2, dtype=dtype).requires_grad_()

    def call(a, b, c):
        return ours.gemm(a, b, c, 2, -0.5, *ops)

    same(call(a, b, c), 2 * op[ops[0]](a) @ op[ops[1]](b) - 0.5 * c)
    assert torch.autograd.gradcheck(call, (a, b, c))
    assert torch.autograd.gradgradcheck(call, (a, b, c), fast_mode=True)


def test_derivatives_of_equal_eigenvalues(device):
    """Derivatives of equal eigenvalues are finite."""
    a = torch.eye(3, dtype=torch.float64, device=device).repeat(2, 1, 1).requires_grad_()
    (g,) = torch.autograd.grad(ours.eigh(a).eigenvalues.square().sum(), a)
    same(g, 2 * a.detach())


def test_derivatives_by_phases(random):
    a = hermitian(random(2, 3, 3, dtype=torch.complex128)).requires_grad_()
    with pytest.raises(RuntimeError, match="depend on the phases of vectors"):
        ours.eigh(a).eigenvectors.imag.sum().backward()


def test_matrices_that_fail(random):
    """Matrices that fail are named, or filled, and so are their derivatives; others are as without them."""
    a, b = regular(random(4, 3, 3)), random(4, 3, 1)
    a[2] = 0
    with pytest.raises(theirs.LinAlgError, match="Singular matrix: 1 of 4 matrices, at 2"):
        ours.solve(a, b)
    with pytest.raises(theirs.LinAlgError, match="not positive definite"):
        ours.cholesky(-a)
    with pytest.raises(theirs.LinAlgError):
        ours.inv(a)
    with pytest.raises(theirs.LinAlgError):
        ours.eigh(a * np.nan)
    good = [0, 1, 3]
    for f in (lambda a, b: ours.solve(a, b, on_error="nan"), lambda a, b: ours.inv(a, on_error="nan"),
              lambda a, b: ours.cholesky(positive(a) - 4.1 * (a == 0).all(), on_error="nan")):  # fmt: skip
        whole, part = a.clone().requires_grad_(), a[good].requires_grad_()
        x, y = f(whole, b), f(part, b[good])
        assert torch.equal(x[good], y)
        x.sum().backward()
        y.sum().backward()
        assert torch.equal(whole.grad[good], part.grad)


def test_single_precision(random):
    a, b = regular(random(40, 3, 3, dtype=torch.float32)), random(40, 3, 1, dtype=torch.float32)
    x, y = ours.solve(a, b), ours.solve(a, b, compute="double")
    same(x, y)
    assert x.dtype == y.dtype == torch.float32 and not torch.equal(x, y)
    assert torch.equal(x, ours.solve(a, b, compute="same"))
    assert abs(y.double() - torch.linalg.solve(a.double(), b.double())).max() < 1e-6


def test_nothing_is_copied(monkeypatch):
    """Arrays are the memory of tensors, whatever their strides."""
    a, seen = regular(torch.randn(4, 3, 3)).mT[::2], []
    inv = linalg.inv
    monkeypatch.setattr(linalg, "inv", lambda x, **options: seen.append(x) or inv(x, **options))
    ours.inv(a)
    assert np.shares_memory(seen[0], a.numpy()) and seen[0].strides == a.numpy().strides


def operands(random, name, dtype):
    """Arguments of an operator."""
    a, b = regular(random(4, 3, 3, dtype=dtype)), random(4, 3, 2, dtype=dtype)
    factors = torch.ops.compactla.lu_factor(a, "raise", "same")
    return {
        "solutions": (a, b, "raise", "same"),
        "solutions_and_factors": (a, b, "raise", "same"),
        "solve_with": (a, *factors, b, True),
        "triangular": (a, b, True, False, "double"),
        "definite_solutions": (b, a.abs().to(dtype), False, "same"),
        "inverses": (a, "nan", "same"),
        "factors": (positive(a), "raise", "double"),
        "eigen": (hermitian(a), "L", "raise", "double"),
        "turn": (a.real.to(dtype), a[..., 0].real.to(dtype)),
        "singular": (a, False, "raise", "same"),
        "orthogonal": (a[..., :2, :].contiguous(), False, "same"),
        "determinants": (a, "same"),
        "cofactors": (a, *factors),
        "logarithms": (a, "same"),
        "pseudoinverses": (a[..., :2].contiguous(), 1e-10, "raise", "same"),
        "least_squares": (a[..., :2].contiguous(), b, 1e-10, "raise", "same"),
        "exponentials": (a, "same"),
        "products": (a, b, True, False),
    }


NAMES = [*operands(lambda *shape, dtype: torch.ones(shape).to(dtype), "", torch.float64)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DOUBLES)
def test_operators_are_as_pytorch_wants_them(random, name, dtype):
    has_phases = name in ("eigen", "singular") and dtype.is_complex
    args = [x.detach() if isinstance(x, torch.Tensor) else x for x in operands(random, name, dtype)[name]]
    for x in args:
        if isinstance(x, torch.Tensor) and not has_phases and x.dtype == dtype:
            x.requires_grad_()
    torch.library.opcheck(getattr(torch.ops.compactla, name).default, tuple(args))


def everything(m, a, b):
    w, V = m.eigh(hermitian(a))
    x = m.solve(regular(a), b) + m.solve(regular(a), b[..., 0]).unsqueeze(-1)
    L = m.cholesky(positive(a), upper=True)
    return m.matmul(m.inv(regular(a)), x).abs().sum() + L.abs().sum() + w.sin().sum() + V.abs().sum()


@pytest.mark.parametrize("backend", [slow("aot_eager"), exhaustive("inductor")])
@pytest.mark.parametrize("dtype", DOUBLES)
@pytest.mark.parametrize("derived", [False, True])
def test_compiled_programs(random, backend, dtype, derived):
    torch.compiler.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(lambda a, b: everything(ours, a, b), fullgraph=True, backend=backend)
        for nm in (4, 7):  # the second time for any number
            a, b = (random(nm, *shape, dtype=dtype).requires_grad_(derived) for shape in ((3, 3), (3, 2)))
            found, expected = compiled(a, b), everything(theirs, a, b)
            same(found, expected)
            if derived:
                for x, y in zip(torch.autograd.grad(found, (a, b)), torch.autograd.grad(expected, (a, b)), strict=True):
                    same(x, y, 1e6)


@pytest.mark.parametrize("dtype", DOUBLES)
def test_transformed_functions(random, dtype):
    a, b = random(4, 3, 3, dtype=dtype), random(4, 3, 2, dtype=dtype)
    derived = {m: torch.func.grad(lambda a, b, m=m: everything(m, a, b), argnums=(0, 1)) for m in (ours, theirs)}
    expected = derived[theirs](a, b)
    for found in (derived[ours](a, b), torch.vmap(derived[ours])(a, b)):
        for x, y in zip(found, expected, strict=True):
            same(x, y, 1e6)
    pairs = torch.vmap(torch.vmap(ours.solve, (None, 0)), (0, None))(regular(a), b)
    same(pairs, theirs.solve(regular(a)[:, None], b))
    inner = torch.vmap(ours.solve, (2, 0), 1)(regular(a).permute(1, 2, 0), b)
    same(inner, theirs.solve(regular(a), b).transpose(0, 1))


def nested(f, a, t):
    """Derivatives of a function in both modes, one within the other."""
    forward, number = torch.func.jvp, lambda a: f(a).abs().square().sum()
    return (
        forward(f, (a,), (t,)),
        forward(lambda a: forward(f, (a,), (t,))[1], (a,), (t,)),
        forward(torch.func.grad(number), (a,), (t,)),
        torch.func.grad(lambda a: forward(number, (a,), (t,))[1])(a),
        torch.vmap(torch.func.grad(number))(a),
        torch.vmap(lambda a, t: forward(f, (a,), (t,))[1])(a, t),
    )


def recorded(f, a, t):
    """What ordinary derivatives are of those in forward mode, also by a direction."""
    a, t = a.clone().requires_grad_(), t.clone().requires_grad_()
    with torch.autograd.forward_ad.dual_level():
        first = torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(a, t))).tangent
    second = torch.func.jvp(f, (a,), (t,))[1]
    return [torch.autograd.grad(x.abs().square().sum(), (a, t)) for x in (first, second)]


def determinant(a):
    return (a[..., 0, :] * torch.linalg.cross(a[..., 1, :], a[..., 2, :])).sum(-1)


def values_of_two_rows(a):
    """Singular values of matrices of two rows: those of a a^H are their squares."""
    g = a @ a.mH
    first, second = g[..., 0, 0].real, g[..., 1, 1].real
    apart = ((first - second).square() / 4 + g[..., 0, 1].abs().square()).sqrt()
    return ((first + second)[..., None] / 2 + torch.stack([apart, -apart], -1)).sqrt()


# In place of those functions of PyTorch whose derivatives of forward mode can't be derived: factors do not follow, and
# PyTorch 2.11 fails with an assertion of its own in svdvals on a GPU.
FOLLOWED = {
    "solve": lambda a, b: torch.linalg.inv(regular(a)) @ b,
    "det": lambda a, b: determinant(a),
    "slogdet": lambda a, b: (lambda d: (d.sgn() * d.sgn() + d.abs().log().square()).abs())(determinant(a)),
    "svdvals": lambda a, b: values_of_two_rows(a[..., :2, :]),
}
ONE_TENSOR = [
    "solve",
    "inv",
    "cholesky",
    "eigenvalues",
    "svdvals",
    "qr-Q",
    "det",
    "slogdet",
    "pinv",
    "pinv-hermitian",
    "lstsq",
    "matrix_exp",
]


@pytest.mark.parametrize("name", ONE_TENSOR)
@pytest.mark.parametrize("dtype", DOUBLES)
@pytest.mark.parametrize("backend", [None, slow("aot_eager"), exhaustive("inductor")])
def test_modes_within_each_other(random, name, dtype, backend):
    """Also compiled, where derivatives of forward mode must not be zero."""
    torch.compiler.reset()
    a, t, b = random(2, 3, 3, dtype=dtype), random(2, 3, 3, dtype=dtype), random(3, 2, dtype=dtype)

    def f(a):
        return FUNCTIONS[name](ours, a, b.expand(*a.shape[:-2], 3, 2))

    def g(a):
        return FOLLOWED[name](a, b) if name in FOLLOWED else FUNCTIONS[name](theirs, a, b.expand(*a.shape[:-2], 3, 2))

    calls = [nested, recorded] if backend is None else [torch.compile(nested, fullgraph=True, backend=backend)]
    with torch._inductor.config.patch(force_disable_caches=True):
        found = [call(f, a, t) for call in calls]
    expected = [call(g, a, t) for call in (nested, recorded)[: len(calls)]]
    for x, y in zip(*(torch.utils._pytree.tree_leaves(x) for x in (found, expected)), strict=True):
        same(x, y, 1e7)


def test_derivatives_use_the_factors(random, monkeypatch):
    """Each matrix is factored once, whatever is derived."""
    a, b = regular(random(4, 3, 3)).requires_grad_(), random(4, 3, 2)
    for name in ("solve", "inv", "det", "cholesky", "eigh", "svd"):
        monkeypatch.setattr(linalg, name, None)  # nothing is factored by what does more
    x = ours.solve(a, b)
    monkeypatch.setattr(solving, "SOLVED", None)
    monkeypatch.setattr(solving, "lu_factor", None)
    (g,) = torch.autograd.grad(x.square().sum(), a, create_graph=True)
    (h,) = torch.autograd.grad(g.square().sum(), a)
    y = theirs.solve(a, b)
    (g,) = torch.autograd.grad(y.square().sum(), a, create_graph=True)
    same(h, torch.autograd.grad(g.square().sum(), a)[0], 1e6)


@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_derivatives_of_determinants_of_larger_matrices(random, name):
    """Their factors have all rows of L interchanged, which determinants alone do without."""
    a = random(3, 13, 13)
    found = []
    for library in (ours, theirs):
        x = a.clone().requires_grad_()
        value = getattr(library, name)(x)
        found.append(torch.autograd.grad((value if name == "det" else value[1]).sum(), x)[0])
    same(*found, 1e6)


def test_derivatives_of_determinants_of_singular_matrices(device):
    """Cofactors, where PyTorch has zeros; and second derivatives."""
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, device=device).requires_grad_()
    (g,) = torch.autograd.grad(ours.det(a), a, create_graph=True)
    same(g.detach(), torch.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=torch.float64, device=device))
    (h,) = torch.autograd.grad(g[0, 1] + 2 * g[1, 1], a)
    expected = torch.tensor([[2.0, 0.0], [-1.0, 0.0]], dtype=torch.float64, device=device)
    torch.testing.assert_close(h, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in ours.__all__ if name != "gemm"])
def test_out(random, name):
    a, b = positive(random(2, 3, 3)), random(2, 3, 2)
    args = {"solve": (a, b), "cholesky_solve": (b, a), "lstsq": (a, b), "matmul": (a, b), "solve_triangular": (a, b)}
    options = {"upper": True} if name == "solve_triangular" else {}
    args = args.get(name, (a,))
    expected = getattr(ours, name)(*args, **options)
    one = isinstance(expected, torch.Tensor)
    out = [x.new_empty(0) for x in ((expected,) if one else expected)]
    found = getattr(ours, name)(*args, **options, out=out[0] if one else tuple(out))
    assert type(found) is type(expected)
    for x, y, z in zip((found,) if one else found, (expected,) if one else expected, out, strict=True):
        assert x is z and torch.equal(x, y)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        getattr(ours, name)(args[0].requires_grad_(), *args[1:], **options, out=out[0] if one else tuple(out))


@pytest.mark.parametrize("name", ["solve", "inv", "det", "eigvalsh", "svdvals"])
def test_large_matrices(random, name):
    """Those that there are no kernels for, with derivatives."""
    for n in (33, 130):
        a, b = hermitian(random(2, n, n)).requires_grad_(), random(2, n, 1)
        f, g = (getattr(m, name)(a, b) if name == "solve" else getattr(m, name)(a / 8) for m in (ours, theirs))
        same(f, g, 1e6)
        for x, y in zip(*(torch.autograd.grad(x.abs().log().sum(), a) for x in (f, g)), strict=True):
            same(x, y, 1e8)


def test_conjugate_views(random):
    a, b = regular(random(2, 3, 3, dtype=torch.complex128)), random(2, 3, 2, dtype=torch.complex128)
    same(ours.solve(a.mH, b.conj()), theirs.solve(a.mH, b.conj()))
    same(ours.inv(a.imag + 4 * a.conj().imag), theirs.inv(a.imag + 4 * a.conj().imag), 1e8)


def test_vectors_of_preconditioners(device):
    """Preconditioners take tensors, and what is made of them by arithmetic does."""
    T = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6))
    M = scipy.sparse.kron(T, [[1, 0.5], [0, 1]]).tobsr(blocksize=(2, 2))
    queue = None if device == "cpu" else torch.device(device)
    P = compactla.LinePreconditioner(M, [[0, 1, 2, 3], [4, 5]], queue=queue)
    x = torch.arange(12.0, dtype=torch.float64, device=device)
    D = P @ np.eye(12)
    cases = (P, D), (P.T, D.T), (2 * P, 2 * D), ((1 - 2j) * P.H, (1 - 2j) * D.T), (P @ P - P / 2, D @ D - D / 2)
    for operator, matrix in cases:
        for vectors in (x, torch.stack([x, x * x], 1)):
            found = operator @ vectors
            assert found.device == x.device
            same(found, torch.from_numpy(matrix @ vectors.cpu().numpy()).to(device))
        same(operator.matvec(x), operator @ x)
        same(operator.rmatvec(x), torch.from_numpy(matrix.conj().T @ x.cpu().numpy()).to(device))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: ours.inv(a.numpy()), TypeError, "A is a ndarray, must be a torch.Tensor"),
        (lambda a: ours.inv(a.half()), TypeError, "A: dtype is torch.float16, must be"),
        (lambda a: ours.inv(a[0, 0]), ValueError, r"A has shape \(3,\), must have 2 axes or more"),
        (lambda a: ours.cholesky(a[:, 1:]), ValueError, "must be of square matrices"),
        (lambda a: ours.solve(a, a.float()), TypeError, "B is of torch.float32, must be of torch.float64 as A"),
        (lambda a: ours.solve(a, a.to("meta")), ValueError, "B is on meta, must be on cpu as A"),
        (lambda a: ours.solve(a, a[:, 1:]), ValueError, "must fit to A"),
        (lambda a: ours.solve(a, a[0, 0], left=False), ValueError, "must be of matrices if left is False"),
        (lambda a: ours.solve(a, a.repeat(2, 1, 1)), ValueError, r"B .* in a stack of \(4,\), must fit to .* \(2,\)"),
        (lambda a: ours.matmul(a, a[:, 1:]), ValueError, r"must fit to op\(A\)"),
        (lambda a: ours.eigh(a, "M"), ValueError, "UPLO is 'M', must be 'L' or 'U'"),
        (lambda a: ours.gemm(a, a, transa="X"), ValueError, "transa is 'X', must be 'N', 'T' or 'C'"),
        (lambda a: ours.gemm(a, a, beta=1), TypeError, "C is a NoneType, must be"),
        (lambda a: ours.inv(a, on_error="ignore"), ValueError, "on_error is 'ignore', must be 'raise' or 'nan'"),
        (lambda a: ours.inv(a, compute="half"), ValueError, "compute is 'half'"),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.eye(3, dtype=torch.float64).repeat(2, 1, 1))


@pytest.mark.parametrize("name", sorted({*ours.__all__} - {"gemm", "matmul", "cholesky_solve"}))
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_what_pytorch_refuses(name, shape):
    """Errors are of PyTorch's kinds, with its words, and of ours."""
    a, options = torch.ones(shape), {"upper": True} if name == "solve_triangular" else {}
    args = (a, torch.ones(5, 5)) if name in ("solve", "solve_triangular", "lstsq") else (a,)
    try:
        getattr(theirs, name)(*args, **options)
    except RuntimeError as error:
        words = re.escape(str(error).partition(". ")[0])
        for kind in (RuntimeError, ValueError):
            with pytest.raises(kind, match=words):
                getattr(ours, name)(*args, **options)
    else:
        getattr(ours, name)(*args, **options)


def test_words_for_singular_matrices(random):
    a = random(3, 2, 2)
    a[1] = 0
    with pytest.raises(theirs.LinAlgError, match=r"1 of 3 matrices, at 1.*Batch element 1.*singular"):
        ours.inv(a)


@pytest.mark.parametrize("name", ours.__all__)
def test_examples(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(ours, name), name)
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.slow
def test_bicgstab(device, capsys, tmp_path):
    from compactla.examples import torch_bicgstab

    plot = tmp_path / "bicgstab.png"
    torch_bicgstab.main(["--cells", "16", "20", "--device", device, "--plot", str(plot)])
    found = re.findall(r"with (\w+): (\d+) steps, relative residual (\S+)", capsys.readouterr().out)
    (lines, few, residual), (nothing, many, _) = found
    assert (lines, nothing) == ("lines", "nothing") and float(residual) < 1e-7 and int(few) < int(many) / 4
    assert plot.read_bytes().startswith(b"\x89PNG")
