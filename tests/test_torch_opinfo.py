"""PyTorch's own samples for torch.linalg, and the checks of derivatives that its tests make of them."""

import warnings

import pytest

from cases import exhaustive

torch = pytest.importorskip("torch", reason="needs PyTorch, as tests/test_torch_operators.py")
pytest.importorskip("expecttest", reason="needs what PyTorch's tests need: expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_utils import set_rng_seed

import compactla.torch as ours  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
NAMES = {
    "matmul" if name == "matmul" else name if name == "cholesky_solve" else f"linalg.{name}": name
    for name in ours.__all__
    if name not in ("gemm", "matrix_exp")
}
NAMES["matrix_exp"] = "matrix_exp"
OPS = {" ".join(filter(None, (op.name, op.variant_test_name))): op for op in op_db if op.name in NAMES}
DTYPES = [torch.float64, exhaustive(torch.complex128)]
THEIRS = {name: getattr(torch.linalg, name) for name in ours.__all__ if hasattr(torch.linalg, name)}


@pytest.fixture(params=OPS)
def op(request):
    set_rng_seed(0)
    return OPS[request.param]


@pytest.fixture
def function(op, monkeypatch):
    """PyTorch's function, with ours in its place."""
    name = NAMES[op.name]
    mine = getattr(ours, name)
    if op.op in (getattr(torch, name, None), getattr(torch.linalg, name, None)):
        return mine
    monkeypatch.setattr(torch.linalg, name, mine)
    return op.op


def leaves(found):
    return [found] if isinstance(found, torch.Tensor) else [*found]


def test_every_function_is_there():
    assert {NAMES[op.name] for op in OPS.values()} == {*NAMES.values()}


@pytest.mark.parametrize("dtype", [torch.float32, *DTYPES, exhaustive(torch.complex64)])
def test_results(op, function, dtype):
    """Kinds of results, shapes, types and numbers are PyTorch's."""
    count = 0
    for sample in op.sample_inputs("cpu", dtype):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        found = function(*args, **kwargs)
        expected = theirs(op, args, kwargs)
        assert type(found) is type(expected)
        found, expected = (leaves(sample.output_process_fn_grad(x)) for x in (found, expected))
        for x, y in zip(found, expected, strict=True):
            scale = max(1.0, float(y.abs().max())) if y.numel() else 1.0
            eps = 2e3 * torch.finfo(dtype).eps
            torch.testing.assert_close(x, y, rtol=eps * 10, atol=eps * scale)
        count += 1
    assert count


def theirs(op, args, kwargs):
    """The result of PyTorch's function, also where ours is in its place."""
    name = NAMES[op.name]
    with pytest.MonkeyPatch.context() as patch:
        if name in THEIRS:
            patch.setattr(torch.linalg, name, THEIRS[name])
        return op.op(*args, **kwargs)


def test_errors(op, function):
    """What PyTorch refuses is refused, with its words."""
    if op.error_inputs_func is None:
        pytest.skip("PyTorch has no such samples")
    for wrong in op.error_inputs("cpu"):
        sample = wrong.sample_input
        with pytest.raises(wrong.error_type, match=wrong.error_regex):
            function(sample.input, *sample.args, **sample.kwargs)


def checked(op, function, sample):
    """A function of the tensors that need derivatives, and these."""
    args = (sample.input, *sample.args)
    tensors = [x for x in args if isinstance(x, torch.Tensor) and x.requires_grad]

    def call(*given):
        rest = iter(given)
        full = [next(rest) if isinstance(x, torch.Tensor) and x.requires_grad else x for x in args]
        found = op.gradcheck_wrapper(function, *full, **sample.kwargs)
        if sample.output_process_fn_grad is not None:
            found = sample.output_process_fn_grad(found)
        found = [x for x in leaves(found) if x.is_floating_point() or x.is_complex()]
        return tuple(found)

    return call, tensors


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_derivatives(op, function, dtype):
    """First derivatives of both modes, and with vmap."""
    if not op.supports_autograd or (not op.variant_test_name and op.name == "linalg.lstsq"):
        pytest.skip("PyTorch has no derivatives, or checks another variant")
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        call, tensors = checked(op, function, sample)
        assert torch.autograd.gradcheck(
            call,
            tensors,
            check_batched_grad=op.check_batched_grad,
            check_grad_dtypes=True,
            check_forward_ad=True,
            check_batched_forward_grad=op.check_batched_forward_grad,
            check_undefined_grad=True,
            nondet_tol=op.gradcheck_nondet_tol,
            fast_mode=True,
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_second_derivatives(op, function, dtype):
    """Second derivatives, reverse mode over both modes."""
    if not op.supports_autograd or (not op.variant_test_name and op.name == "linalg.lstsq"):
        pytest.skip("PyTorch has no derivatives, or checks another variant")
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        call, tensors = checked(op, function, sample)
        assert torch.autograd.gradgradcheck(
            call,
            tensors,
            gen_non_contig_grad_outputs=True,
            check_batched_grad=op.check_batched_gradgrad,
            check_grad_dtypes=True,
            check_fwd_over_rev=True,
            check_rev_over_rev=True,
            nondet_tol=op.gradcheck_nondet_tol,
            fast_mode=True,
        )
