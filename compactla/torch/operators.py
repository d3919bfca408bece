"""Operators of PyTorch, of matrices in stacks of one shape: what they compute, and their derivatives.

Derivatives are made of the same operators, so that they can be derived again: M. Giles, Collected matrix derivative
results for forward and reverse mode algorithmic differentiation, 2008; complex ones, and those of factors, as PyTorch
has them. They never raise errors for singular matrices, since these would have been named before, and so a GPU is not
waited for.
"""

import functools
import math

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.library import custom_op

from compactla import linalg
from compactla.dense import gemm as routine

PHASE = 1e-2  # largest derivative by the phase of an eigenvector that is taken for none, as in PyTorch


def call(function, *tensors, **options):
    """Results of a function of compactla for tensors, where they are."""
    tensors = [t.detach() for t in tensors]
    try:
        if not tensors[0].is_cpu:
            return function(*tensors, **options)
        found = function(*[t.numpy() for t in tensors], **options, threads=torch.get_num_threads())
    except np.linalg.LinAlgError as error:
        raise torch.linalg.LinAlgError(str(error)) from None
    return tuple(map(torch.from_numpy, found)) if isinstance(found, tuple) else torch.from_numpy(found)


def operator(made, saved, derivative):
    """Make a function an operator of PyTorch, of the same arguments: tensors come first.

    Transformations call an `autograd.Function` that calls it, which takes longer: `torch.func` refuses derivatives of
    operators, and in forward mode these would be zero, where that has an error to tell.

    Parameters
    ----------
    made : function
        Makes results, whose numbers do not matter, of the arguments.
    saved : function
        Chooses what the derivative needs of the arguments and the results: tensors, and a tuple of others.
    derivative : function
        Makes a tuple of derivatives by the tensors among the arguments: of a context, whose `saved_tensors` and
        `options` are what was saved, and of the derivatives by the results.
    """

    def setup_context(ctx, inputs, output):
        tensors, ctx.options = saved(inputs, output)
        ctx.save_for_backward(*tensors)
        ctx.others = [None] * sum(not isinstance(x, Tensor) for x in inputs)
        ctx.set_materialize_grads(isinstance(output, Tensor))  # eigenvalues have derivatives where vectors have none

    def backward(ctx, *grads):
        return *derivative(ctx, *grads), *ctx.others

    def make(function):
        known = custom_op(f"compactla::{function.__name__}", function, mutates_args=())

        def apply(*args):
            return both.apply(*args) if is_transformed() else known(*args)

        def vmap(info, in_dims, *args):
            found = apply(*[in_front(x, axis, info.batch_size) for x, axis in zip(args, in_dims, strict=True)])
            return found, 0 if isinstance(found, Tensor) else (0,) * len(found)

        known.register_fake(made)
        known.register_autograd(backward, setup_context=setup_context)
        known.register_vmap(vmap)
        steps = {"forward": known, "setup_context": setup_context, "backward": backward, "vmap": vmap}
        both = type(function.__name__, (Function,), {name: staticmethod(step) for name, step in steps.items()})
        return functools.wraps(function)(apply)

    return make


def is_transformed():
    """Whether this is called by a function of `torch.func`, or in forward mode, and is not being compiled."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def in_front(x, axis, size):
    """An argument under vmap: a tensor with its axis in front, or repeated along one."""
    if not isinstance(x, Tensor):
        return x
    return x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)


def products(a, b, *others):
    return a.new_empty((*a.shape[:-1], b.shape[-1]))


def derive_gemm(ctx, g):
    (a, b), (conja, conjb) = ctx.saved_tensors, ctx.options
    wanted = ctx.needs_input_grad
    ga = gemm(g, b.mT, conja, conja == conjb) if wanted[0] else None
    gb = gemm(a.mT, g, conja == conjb, conjb) if wanted[1] else None
    return ga, gb


@operator(products, lambda inputs, c: (inputs[:2], inputs[2:]), derive_gemm)
def gemm(a: Tensor, b: Tensor, conja: bool, conjb: bool) -> Tensor:
    """Products of matrices, each conjugated or not."""
    c = products(a, b)
    if c.numel():
        A, B, C = (x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in (a, b, c))
        options = {"transa": "C" if conja else "N", "transb": "C" if conjb else "N"}
        call(routine.gemm, A.mT if conja else A, B.mT if conjb else B, C, **options)
    return c


def like_first(a, *others):
    return a.new_empty(a.shape)


def like_second(a, b, *others):
    return b.new_empty(b.shape)


def derive_solve(ctx, g):
    (a, x), (*_, compute) = ctx.saved_tensors, ctx.options
    gb = solve(a.mT, g.conj(), "nan", compute).conj()
    return gemm(-gb, x.mT, False, True) if ctx.needs_input_grad[0] else None, gb


@operator(like_second, lambda inputs, x: ((inputs[0], x), inputs[2:]), derive_solve)
def solve(a: Tensor, b: Tensor, on_error: str, compute: str) -> Tensor:
    """Solutions x of a x = b."""
    return call(linalg.solve, a, b, on_error=on_error, compute=compute)


def derive_solve_triangular(ctx, g):
    (a, x), (lower, compute) = ctx.saved_tensors, ctx.options
    gb = solve_triangular(a.mT, g.conj(), not lower, compute).conj()
    ga = gemm(gb, x.mT, False, True)
    return -(ga.tril() if lower else ga.triu()), gb


@operator(like_second, lambda inputs, x: ((inputs[0], x), inputs[2:]), derive_solve_triangular)
def solve_triangular(a: Tensor, b: Tensor, lower: bool, compute: str) -> Tensor:
    """Solutions x of a x = b, of one triangle of a."""
    options = {"lower": lower, "check_finite": False, "on_error": "nan", "compute": compute}
    return call(linalg.solve_triangular, a, b, **options)


def derive_inv(ctx, g):
    (x,) = ctx.saved_tensors
    return (-gemm(gemm(x.mT, g, True, False), x.mT, False, True),)


@operator(like_first, lambda inputs, x: ((x,), ()), derive_inv)
def inv(a: Tensor, on_error: str, compute: str) -> Tensor:
    """Inverses."""
    return call(linalg.inv, a, on_error=on_error, compute=compute)


def derive_cholesky(ctx, g):
    """L^-H S L^-1, where S is the Hermitian matrix half of whose lower triangle L^H g has."""
    (L,), (*_, compute) = ctx.saved_tensors, ctx.options
    half = gemm(L.mT, g, True, False).tril()
    half = half + half.tril(-1)
    S = (half + half.mH) / 4
    left = solve_triangular(L.mT, S.mT, False, compute)  # the conjugate of L^-H S
    return (solve_triangular(L.mT, left.mH, False, compute).mT,)


@operator(like_first, lambda inputs, L: ((L,), inputs[1:]), derive_cholesky)
def cholesky(a: Tensor, on_error: str, compute: str) -> Tensor:
    """Factors L of matrices L L^H, of which the lower triangle is read."""
    return call(linalg.cholesky, a, on_error=on_error, compute=compute)


def skew(a):
    """The skew-Hermitian part, with zeros on the diagonal."""
    lower = ((a - a.mH) / 2).tril(-1)
    return lower - lower.mH


@operator(like_first, lambda inputs, turned: ((), ()), lambda ctx, g: (skew(g),))
def turn(a: Tensor) -> Tensor:
    """The turn of eigenvectors V, from V^H g with derivatives g by V; an error if those by phases are not zero."""
    if a.is_complex() and (a.diagonal(dim1=-2, dim2=-1).imag.abs() > PHASE).any():
        raise RuntimeError("derivatives depend on the phases of eigenvectors, which are free: they must not")
    return skew(a)


def values_and_vectors(a, *others):
    return a.new_empty(a.shape[:-1], dtype=a.dtype.to_real()), a.new_empty(a.shape)


def derive_eigh(ctx, gw, gV):
    w, V = ctx.saved_tensors
    if gw is gV is None:
        return (None,)
    inner = 0 if gw is None else V * gw.unsqueeze(-2)
    if gV is not None:
        eye = torch.eye(w.shape[-1], dtype=w.dtype, device=w.device)
        turned = turn(gemm(V.mT, gV, True, False)) / (w.unsqueeze(-2) - w.unsqueeze(-1) + eye)
        inner = inner + gemm(V, turned, False, False)
    return (gemm(inner, V.mT, False, True),)


@operator(values_and_vectors, lambda inputs, output: (output, ()), derive_eigh)
def eigh(a: Tensor, uplo: str, on_error: str, compute: str) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of matrices, of which one triangle is read."""
    return call(linalg.eigh, a, UPLO=uplo, on_error=on_error, compute=compute)
