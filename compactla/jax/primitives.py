"""Primitives of JAX that kernels compute: shapes, vmap, and what XLA is to call.

Inputs are (..., m, n), of one type. Each is a stack of a common shape, or there is one matrix of it for all, with axes
of length 1 in front.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import PartitionSpec

from compactla.jax import handler, plans, targets
from compactla.jax.plans import Description

Zero = ad.Zero
# Functions that run on CUDA GPUs; for others, JAX's are called there.
ON_CUDA = {"solve", "solve_triangular", "inv", "det", "slogdet", "cholesky", "eigh", "svd", "qr", "matmul"}


class Function:
    """A primitive.

    Parameters
    ----------
    name : str
        Name of a function in `compactla.jax.stacks`.
    options : function
        The options that it has there, of the sizes of the inputs by their names and of the parameters.
    reference : function
        The same by JAX alone, where there is no kernel, of the inputs and parameters: a list of results.
    parameters : tuple of str
        Names of parameters: constants beside the inputs. "turned" says of each input whether it is to be transposed.
    linear : bool
        Whether results are linear in the last input, and columns of that are on their own.
    """

    def __init__(
        self, name: str, reference: Callable, parameters: tuple[str, ...] = (), options: Callable | None = None,
        linear: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.reference, self.options, self.linear = name, reference, options, linear
        self.primitive = Primitive(f"compactla_{name}")
        self.primitive.multiple_results = True
        self.primitive.def_abstract_eval(self._results)
        self.compiled = jax.jit(alone(self.primitive), static_argnames=parameters)
        self.primitive.def_impl(self._computed)
        batching.primitive_batchers[self.primitive] = self._batched
        for platform in targets.HANDLERS:
            mlir.register_lowering(self.primitive, functools.partial(self._lowered, platform), platform=platform)
        mlir.register_lowering(self.primitive, mlir.lower_fun(reference, multiple_results=True))

    def __call__(self, *arrays: Any, **parameters: Any) -> Any:
        """The results: an array, or a list of several."""
        compute = self.primitive.bind if all(is_known(a.shape[-2:]) for a in arrays) else self.reference
        found = compute(*fitted(arrays), **parameters)
        return found[0] if len(found) == 1 else found

    def _computed(self, *arrays, **parameters):
        with jax.disable_jit(False):  # where programs are not compiled, primitives are
            return self.compiled(*arrays, **parameters)

    def describe(self, shapes: Any, dtype: Any, turned: tuple[bool, ...] = (), **parameters: Any) -> Any:
        """What is computed for inputs of some shapes."""
        turned = turned or (False,) * len(shapes)
        lead = lead_of(shapes)
        operands = []
        for shape, flag in zip(shapes, turned, strict=True):
            m, n = shape[-2:]
            if flag:
                m, n = n, m
            operands.append((m, n, flag, bool(lead) and is_single(shape) and not is_single((*lead, 0, 0))))
        sizes = [operand[:2] for operand in operands]
        options = self.options(*sizes, **parameters) if self.options else parameters
        return Description(self.name, tuple(sorted(options.items())), np.dtype(dtype).char, tuple(operands)), lead

    def _results(self, *inputs, **parameters):
        description, lead = self.describe([x.shape for x in inputs], inputs[0].dtype, **parameters)
        _, stacked, number = plans.chosen(description)
        found = stacked.made(lead, number, description.dtype)
        return [result(shape, dtype, len(lead), inputs) for shape, dtype in found]

    def _lowered(self, platform, context, *operands, **parameters):
        inputs = context.avals_in
        description, lead = self.describe([x.shape for x in inputs], inputs[0].dtype, **parameters)
        _, stacked, number = plans.chosen(description)
        limits, extent = stacked.limits, stacked.limits.extent(**number)
        nm = math.prod(lead) if is_known(lead) else math.inf
        is_ours = platform == "cpu" or self.name in ON_CUDA
        fits = min(number.values()) and extent <= limits.largest and not 0 < nm < limits.fewest(extent)
        if not (is_ours and fits and targets.is_registered(platform)):
            return mlir.lower_fun(self.reference, multiple_results=True)(context, *operands, **parameters)
        text = plans.text_of(description)
        if platform == "cpu":
            plans.make(text)
        elif parameters.get("symmetrize"):
            plain = functools.partial(self.primitive.bind, **parameters | {"symmetrize": False})
            return mlir.lower_fun(lambda A: plain((A + A.mT.conj()) / 2), multiple_results=True)(context, *operands)
        attributes = {handler.KEY: np.int64(plans.key_of(text)), handler.TEXT: text}
        options = {}
        if nm < math.inf and not any(operand[3] for operand in description.operands):
            options["extra_attributes"] = divisible(len(lead), inputs, context.avals_out)
        return jax.ffi.ffi_lowering(targets.NAME, **options)(context, *operands, **attributes)

    def _batched(self, arrays, axes, **parameters):
        size = next(a.shape[axis] for a, axis in zip(arrays, axes, strict=True) if axis is not None)
        *others, last = arrays
        same = all(axis is None for axis in axes[:-1]) and all(is_single(a.shape) for a in others)
        if self.linear and same and is_known(last.shape):
            return self._side_by_side(others, jnp.moveaxis(last, axes[-1], 0), parameters)
        found = []
        for a, axis in zip(arrays, axes, strict=True):
            if axis is not None:
                found.append(jnp.moveaxis(a, axis, 0))
            elif is_single(a.shape):
                found.append(a[None])
            else:
                found.append(jnp.broadcast_to(a, (size, *a.shape)))
        results = self.primitive.bind(*fitted(found), **parameters)
        return results, (0,) * len(results)

    def _side_by_side(self, others, last, parameters):
        """Stacks of right-hand sides of one matrix as its columns."""
        *lead, n, r = last.shape
        wide = jnp.moveaxis(last, -2, 0).reshape(*(1,) * (others[0].ndim - 2), n, math.prod(lead) * r)
        (found,) = self.primitive.bind(*others, wide, **parameters)
        m = found.shape[-2]
        return [jnp.moveaxis(found.reshape(m, *lead, r), 0, -2)], [0]


def alone(primitive):
    """The function that is a primitive, for `jax.jit`."""

    def bind(*arrays, **parameters):
        return primitive.bind(*arrays, **parameters)

    bind.__qualname__ = primitive.name
    bind._apply_primitive = True  # JAX looks for NaN in no part of it
    return bind


def result(shape, dtype, axes, inputs):
    """A result of stacks of so many axes: along these it is divided among devices as the inputs are."""
    like = next((x for x in inputs if not is_single(x.shape)), inputs[0])
    changes = {"shape": shape, "dtype": dtype, "weak_type": False}
    if getattr(like, "sharding", None) is not None:
        spec = *like.sharding.spec[:axes], *[None] * (len(shape) - axes)
        changes["sharding"] = like.sharding.update(spec=PartitionSpec(*spec))
    return like.update(**changes)


def varying(x):
    """The axes of devices along which an array differs, within `shard_map`."""
    kind = jax.typeof(x)
    return getattr(kind, "vma", None) or getattr(getattr(kind, "mat", None), "varying", frozenset())


def divisible(axes, inputs, results):
    """What tells XLA that stacks of so many axes can be divided among devices."""
    count = itertools.count()
    common, sizes = [next(count) for _ in range(axes)], list(inputs[0].shape[:axes])

    def factors(x):
        own = [next(count) for _ in x.shape[axes:]]
        sizes.extend(x.shape[axes:])
        return f"[{', '.join(map(factor, common + own))}]"

    sides = [", ".join(map(factors, side)) for side in (inputs, results)]
    lengths = ", ".join(f"{factor(i)}={size}" for i, size in enumerate(sizes))
    rule = f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{lengths}}}, custom>"
    words = {"mhlo.frontend_attributes": f'{{num_batch_dims = "{axes}"}}', "sdy.sharding_rule": rule}
    return {name: mlir.ir.Attribute.parse(text) for name, text in words.items()}


def factor(i):
    """The name that XLA has for a length."""
    return "ijklmnopqrstuvwxyz"[i] if i < 18 else f"z_{i - 17}"


def is_known(shape):
    """Whether lengths are numbers, as they are but for programs that `jax.export` makes for any."""
    return all(isinstance(n, int) for n in shape)


def is_single(shape):
    """Whether there is one matrix."""
    return all(isinstance(n, int) and n == 1 for n in shape[:-2])


def lead_of(shapes):
    """The common shape of stacks."""
    return next((shape[:-2] for shape in shapes if not is_single(shape)), shapes[0][:-2])


def fitted(arrays):
    """Arrays (..., m, n) as primitives take them, broadcast if need be."""
    axes = [varying(a) for a in arrays]
    every = frozenset().union(*axes)
    if any(own != every for own in axes):
        arrays = [
            jax.lax.pcast(a, tuple(every - own), to="varying") if own != every else a
            for a, own in zip(arrays, axes, strict=True)
        ]
    shapes = [a.shape[:-2] for a in arrays]
    if all(shape == shapes[0] for shape in shapes):
        return arrays
    lead = jnp.broadcast_shapes(*shapes)
    return [
        a
        if a.shape[:-2] == lead
        else a.reshape((1,) * len(lead) + a.shape[-2:])
        if is_single(a.shape)
        else jnp.broadcast_to(a, lead + a.shape[-2:])
        for a in arrays
    ]


def gathered(cotangent, like):
    """A cotangent of one matrix that was there for all: the sum of those of all."""
    if cotangent.shape == like.shape:
        return cotangent
    total = cotangent.sum(tuple(range(cotangent.ndim - 2)))
    return total.reshape(like.shape)


def derived(function: Function) -> Callable:
    """Decorate the rule of forward mode: of inputs, tangents of which some are `Zero`, and parameters.

    It returns results and tangents, as lists.
    """

    def register(rule):
        def jvp(primals, tangents, **parameters):
            return rule(primals, tangents, **parameters)

        ad.primitive_jvps[function.primitive] = jvp
        return rule

    return register


def transposed(function: Function) -> Callable:
    """Decorate the rule that makes reverse mode of forward mode: of a cotangent, inputs, and parameters.

    Inputs that results are linear in are `ad.UndefinedPrimal`. It returns a cotangent for each input, or None.
    """

    def register(rule):
        def transpose(cotangents, *inputs, **parameters):
            (cotangent,) = cotangents
            if type(cotangent) is Zero:
                return [Zero(x.aval) if ad.is_undefined_primal(x) else None for x in inputs]
            found = rule(cotangent, *inputs, **parameters)
            return [
                gathered(c, x.aval) if ad.is_undefined_primal(x) else None for c, x in zip(found, inputs, strict=True)
            ]

        ad.primitive_transposes[function.primitive] = transpose
        return rule

    return register


def full(tangent: Any) -> Any:
    """A tangent as an array."""
    return ad.instantiate_zeros(tangent)


def constant(result: Any) -> Any:
    """The tangent of a result that has none."""
    return Zero(jax.typeof(result).to_tangent_aval())
