"""Arguments: what they must be, and in which type they are computed."""

from typing import Any

import jax
from jax import numpy as jnp

DTYPES = "float32", "float64", "complex64", "complex128"


def inexact(**arrays: Any) -> list[jax.Array]:
    """Arguments as arrays of their common type, which is one of real or complex numbers."""
    found = [jnp.asarray(a) for a in arrays.values()]
    dtype = jnp.result_type(*found)
    if dtype.kind in "biu":
        dtype = jnp.promote_types(f"float{32 if dtype.itemsize < 8 else 64}", jnp.float32)
    if dtype.name not in DTYPES:
        (name, a), *_ = ((name, a) for name, a in zip(arrays, found, strict=True) if a.dtype == dtype)
        raise TypeError(f"{name} is of {a.dtype}, must be of {', '.join(DTYPES[:3])} or {DTYPES[3]}, or of integers")
    return [a.astype(dtype) for a in found]


def check_axes(a: Any, name: str, axes: int) -> None:
    if a.ndim < axes:
        raise ValueError(f"{name} has shape {a.shape}, must have {axes} axes or more")


def check_square(a: Any, name: str) -> None:
    check_axes(a, name, 2)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name} has shape {a.shape}, must be of square matrices")


def check_stacks(**arrays: Any) -> None:
    """Refuse matrices in stacks that can't be broadcast against each other."""
    shapes = {name: a.shape[:-2] for name, a in arrays.items()}
    try:
        jnp.broadcast_shapes(*shapes.values())
    except ValueError:
        (first, lead), *_, (name, own) = shapes.items()
        raise ValueError(f"{name} has matrices in a stack of {own}, must fit to that of {first}, {lead}") from None
