"""How operators of PyTorch are made: for every device, with derivatives of both modes, under vmap and when compiled."""

import contextlib
import functools
from types import SimpleNamespace

import numpy as np
import torch
from torch import _C, Tensor, from_numpy
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction
from torch.library import Library, infer_schema, register_fake, register_vmap

from compactla.linalg.arguments import as_arrays

LIBRARY = Library("compactla", "FRAGMENT")
PLAIN = Tensor, torch.nn.Parameter


def operator(made, *, saved=None, backward=None, jvp=None, derived=None, chosen=None, among=None):
    """Make a function an operator of PyTorch, of the same arguments: tensors come first.

    Where nothing transforms or records a call, it does not go through PyTorch's dispatcher, which takes longer.

    Parameters
    ----------
    made : function
        Makes results, whose numbers do not matter, of the arguments.
    saved : function, optional
        Chooses the tensors that derivatives need, of the tuple of arguments and the result. Without it results have no
        derivatives.
    backward : function, optional
        Makes derivatives by the tensors among the arguments, a tuple: of a context and the derivatives by the results,
        of which some may be None. The context has `saved_tensors`, and `options`: the arguments that are no tensors.
    jvp : function, optional
        Makes the derivative of the result, or a tuple of them: of the context, and those of the tensors among the
        arguments, of which some may be None.
    derived : int, optional
        How many results have derivatives: the first ones. Default: all.
    chosen : function, optional
        What is called instead, of the same arguments, where derivatives are needed: with results that these use.
    among : operator, optional
        That instead: its first results are the results.
    """

    def make(function):
        name = function.__name__
        LIBRARY.define(name + infer_schema(function, mutates_args=()), tags=(torch.Tag.pt2_compliant_tag,))
        known = getattr(torch.ops.compactla, name).default
        count = sum(argument.type.isSubtypeOf(_C.TensorType.get()) for argument in known._schema.arguments)
        others = (None,) * (len(known._schema.arguments) - count)
        results, has_derived = len(known._schema.returns), saved or chosen or among

        def forward(ctx, keyset, *args):
            if keyset is None:
                found = function(*args)
            else:
                with inner_derivatives():
                    found = below(known, keyset, args)
            tensors, ctx.options = saved(args, found), args[count:]
            ctx.set_materialize_grads(False)
            if derived:
                ctx.mark_non_differentiable(*found[derived:])
            ctx.save_for_backward(*tensors)
            if keyset is not None or forward_ad._current_level >= 0:
                ctx.save_for_forward(*tensors)
            return found

        def backwards(ctx, *grads):
            known = any(g is not None for g in grads)
            return None, *(backward(ctx, *grads) if known else (None,) * count), *others

        def forwards(ctx, keyset, *tangents):
            with inner_derivatives():
                primals = [halves(x)[0] for x in ctx.saved_tensors]
                return jvp(SimpleNamespace(saved_tensors=primals, options=ctx.options), *tangents[:count])

        steps = {"forward": forward, "backward": backwards, "jvp": forwards}
        both = type(name, (_SingleLevelFunction,), {step: staticmethod(made) for step, made in steps.items()})

        def recorded(keyset, args):
            if chosen:
                return chosen(*args)
            if not among:
                return both.apply(keyset, *args)
            found = among(*args) if keyset else among.recorded(None, args)
            return found[0] if results == 1 else found[:results]

        def dispatched(keyset, *args):
            if has_derived and has_derivatives(args):
                with enable_single_level_autograd_function():
                    return recorded(keyset, args)
            return below(known, keyset, args)

        def apply(*args):
            if not is_plain(args):
                return known(*args)
            dual = forward_ad._current_level >= 0  # which programs that are compiled do not set
            return recorded(None, args) if has_derived and has_derivatives(args, dual) else function(*args)

        def vmap(info, in_dims, *args):
            found = known(*[in_front(x, axis, info.batch_size) for x, axis in zip(args, in_dims, strict=True)])
            return found, 0 if isinstance(found, Tensor) else (0,) * len(found)

        def computed(*args):
            with conjugate_views():
                return function(*args)

        LIBRARY.impl(name, computed, "CompositeExplicitAutograd")
        LIBRARY.impl(name, dispatched, "Autograd", with_keyset=True)
        register_fake(f"compactla::{name}", made, lib=LIBRARY)
        register_vmap(f"compactla::{name}", vmap, lib=LIBRARY)
        apply.recorded = recorded
        return functools.wraps(function)(apply)

    return make


@contextlib.contextmanager
def inner_derivatives():
    """Within `torch.func`, let transformations further out derive what is computed."""
    if _C._functorch.peek_interpreter_stack() is None:
        yield
    else:
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            yield


@contextlib.contextmanager
def conjugate_views():
    """Let views be of conjugates, and of negatives: in modes, as of programs just compiled, they are what they view."""
    keys = _C.DispatchKey
    with _C._SetExcludeDispatchKeyGuard(keys.Conjugate, False), _C._SetExcludeDispatchKeyGuard(keys.Negative, False):
        yield


def below(known, keyset, args):
    """Results of what is below derivatives in the dispatcher."""
    with _C._AutoDispatchBelowAutograd():
        return known.redispatch(keyset & _C._after_autograd_keyset, *args)


def is_plain(args):
    """Whether arguments are ordinary tensors, and nothing transforms, records or compiles what is done with them."""
    if torch.compiler.is_compiling() or _C._len_torch_dispatch_stack() or _C._get_tracing_state() is not None:
        return False
    if _C._functorch.peek_interpreter_stack() is not None or args[0].is_meta:
        return False
    for x in args:  # all() takes longer
        if is_batched(x) if type(x) in PLAIN else isinstance(x, Tensor):
            return False
    return True


def is_batched(x):
    """Whether a tensor is one of the older vmap, of `torch.autograd.grad` with ``is_grads_batched=True``."""
    return _C._functorch.is_legacy_batchedtensor(x)


def has_derivatives(args, dual=True):
    """Whether a tensor is to have a derivative, or has one in forward mode, if any tensor may: `dual`."""
    if torch.is_grad_enabled() and _C._any_requires_grad(*args):
        return True
    if not dual or not _C._is_fwd_grad_enabled() or torch.is_inference_mode_enabled():
        return False
    if _C._dispatch_tls_is_dispatch_key_excluded(_C.DispatchKey.AutogradFunctionality):  # within an operator
        return False
    return any(halves(x)[1] is not None for x in args if isinstance(x, Tensor))


def halves(x):
    """A tensor without its derivative of forward mode, and that derivative, or None."""
    return (x, None) if _C._functorch.is_batchedtensor(x) or is_batched(x) else torch._VF._unpack_dual(x, level=0)


def in_front(x, axis, size):
    """An argument under vmap: a tensor with its axis in front, or repeated along one."""
    if not isinstance(x, Tensor):
        return x
    return x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)


def call(function, *tensors, **options):
    """Results of a function of compactla for tensors, where they are."""
    try:
        if not tensors[0].is_cpu:
            return function(*without_derivatives(tensors), **options)
        found = function(*[t.numpy(force=True) for t in tensors], **options, threads=torch.get_num_threads())
    except np.linalg.LinAlgError as error:
        raise torch.linalg.LinAlgError(str(error)) from None
    return as_tensors(found)


def run(stacked, *tensors, options=(), on_error="raise", compute="same"):
    """Results of a function on stacks for tensors, where they are."""
    try:
        if not tensors[0].is_cpu:
            arrays, _ = as_arrays(*without_derivatives(tensors), devices=(*stacked.inputs,))
            return stacked(arrays, options, on_error, compute)
        arrays = [t.numpy(force=True) for t in tensors]
        return as_tensors(stacked(arrays, options, on_error, compute, torch.get_num_threads()))
    except np.linalg.LinAlgError as error:
        raise torch.linalg.LinAlgError(str(error)) from None


def without_derivatives(tensors):
    """Tensors as their numbers are in memory."""
    return [t.detach().resolve_conj().resolve_neg() for t in tensors]


def as_tensors(found):
    return tuple([as_tensor(x) for x in found]) if isinstance(found, tuple | list) else as_tensor(found)


def as_tensor(found):
    """An array, or a number of NumPy, as a tensor."""
    if type(found) is np.ndarray and found.flags.c_contiguous:
        return from_numpy(found)
    return from_numpy(np.asarray(found)).contiguous()


def like_first(a, *others):
    return a.new_empty(a.shape)


def like_second(a, b, *others):
    return b.new_empty(b.shape)
