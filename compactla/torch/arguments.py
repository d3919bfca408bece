"""Arguments as torch.linalg takes them, and errors as it raises them."""

import functools
import inspect
import warnings

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
OWN = {"on_error", "compute"}  # options that PyTorch's functions have not


def like(theirs):
    """Let a function refuse what a function of PyTorch refuses, with its words too, and take `out`, as that does."""

    def make(function):
        @functools.wraps(function)
        def call(*args, out=None, **options):
            try:
                found = function(*args, **options)
            except (TypeError, ValueError, torch.linalg.LinAlgError) as error:
                refused = error
            else:
                return found if out is None else written(out, found, function.__name__, args)
            if is_half(args):
                return call(*[x.float() if isinstance(x, Tensor) else x for x in args], out=out, **options)
            raise with_words(refused, theirs, args, options) from None

        usual = inspect.signature(function)
        added = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        call.__signature__ = usual.replace(parameters=[*usual.parameters.values(), added])
        return call

    return make


def is_half(args):
    """Whether a tensor of half precision is given within autocast, where PyTorch's functions convert it to single."""
    halves = [x for x in args if isinstance(x, Tensor) and x.dtype in (torch.float16, torch.bfloat16)]
    return bool(halves) and torch.is_autocast_enabled(halves[0].device.type)


def with_words(error, theirs, args, options):
    """The error, or one that is also of the kind that PyTorch's function raises, and has its message."""
    try:
        with torch.no_grad():
            theirs(*args, **{name: value for name, value in options.items() if name not in OWN})
    except (TypeError, RuntimeError, ValueError, IndexError) as own:
        return both_kinds(type(error), type(own))(f"{error} ({own})")
    return error


@functools.cache
def both_kinds(ours, theirs):
    """A class of errors that are of two kinds."""
    return ours if issubclass(ours, theirs) else type(ours.__name__, (ours, theirs), {"__module__": __name__})


def written(out, found, name, args):
    """`out`, into which results were written."""
    one = isinstance(out, Tensor)
    for target, x in zip((out,) if one else out, (found,) if one else found, strict=True):
        if torch.is_grad_enabled() and (x.requires_grad or target.requires_grad):
            what = "functions with out=... arguments don't support automatic differentiation"
            raise RuntimeError(f"{name}(): {what}, but one of the arguments requires grad.")
        if target.device != x.device:
            raise RuntimeError(f"{name}: out is on {target.device}, must be on {x.device}")
        if not torch.can_cast(x.dtype, target.dtype):
            raise RuntimeError(f"{name}: out is of {target.dtype}, to which {x.dtype} can't be cast")
        if target.shape != x.shape:
            if target.numel():
                shapes = f"from {tuple(target.shape)} to {tuple(x.shape)}"
                warnings.warn(f"{name}: an output with elements was resized {shapes}", stacklevel=3)
            target.resize_(x.shape)
        target.copy_(x)
    return out if one else type(found)(out)


def broadcast(a, b):
    """Stacks of matrices A and B in one shape."""
    own, other = a.shape[:-2], b.shape[:-2]
    if own == other:
        return a, b
    try:
        lead = torch.broadcast_shapes(own, other)
    except RuntimeError:
        raise ValueError(f"B has matrices in a stack of {tuple(other)}, must fit to that of A, {tuple(own)}") from None
    return a.expand(*lead, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:])


def are_vectors(b, a):
    """Whether right-hand sides are vectors: as PyTorch tells."""
    return b.ndim == 1 or b.shape == a.shape[:-1]


def check_tensor(a, name, axes=2):
    if not isinstance(a, Tensor):
        raise TypeError(f"{name} is a {type(a).__name__}, must be a torch.Tensor")
    if a.dtype not in DTYPES:
        raise TypeError(f"{name}: dtype is {a.dtype}, must be float32, float64, complex64 or complex128")
    if a.layout is not torch.strided:
        raise TypeError(f"{name}: layout is {a.layout}, must be torch.strided")
    if a.ndim < axes:
        raise ValueError(f"{name} has shape {tuple(a.shape)}, must have {axes} axes or more")


def check_square(a, name):
    check_tensor(a, name)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name} has shape {tuple(a.shape)}, must be of square matrices")


def check_like(b, name, a, axes=1):
    """Refuse what is no tensor as A."""
    check_tensor(b, name, axes)
    if b.dtype != a.dtype:
        raise TypeError(f"{name} is of {b.dtype}, must be of {a.dtype} as A")
    if b.device != a.device:
        raise ValueError(f"{name} is on {b.device}, must be on {a.device} as A")


def check_rows(right, a, left=True):
    """Refuse right-hand sides that do not fit to square matrices."""
    if right.shape[-2 if left else -1] != a.shape[-1]:
        raise ValueError(f"B has shape {tuple(right.shape)}, must fit to A, which has shape {tuple(a.shape)}")
