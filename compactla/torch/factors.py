"""Factors P L U of matrices, which derivatives are computed with: alone, and beside solutions and determinants."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from compactla.linalg.det import DET, SLOGDET
from compactla.linalg.failures import Failure, complain
from compactla.linalg.lu import LU_FACTOR, LU_SOLVE
from compactla.linalg.solve import SOLVE
from compactla.linalg.stacks import Result, choose
from compactla.torch.operator import operator, run

WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def computed(a, compute):
    """Matrices in the type that they are computed in."""
    if compute == "same":
        return a
    choose("compute", compute, ("double", "same"))
    return a.to(WIDE.get(a.dtype, a.dtype))


def of_type(a, b):
    """Numbers in the type of others."""
    return a if a.dtype == b.dtype else a.to(b.dtype)


def is_ours(a):
    """Whether matrices have a kernel: those on a CPU that are too large, or too few, are left to PyTorch."""
    n = a.shape[-1]
    many = a.numel() >= LIMITS.fewest(n) * n * n or not a.numel()
    return not a.is_cpu or (n <= LIMITS.largest and many)


def empty_factors(a, on_error, compute):
    dtype = WIDE.get(a.dtype, a.dtype) if compute == "double" else a.dtype
    return a.new_empty(a.shape, dtype=dtype), a.new_empty(a.shape[:-1], dtype=torch.int32)


@operator(empty_factors)
def lu_factor(a: Tensor, on_error: str, compute: str) -> tuple[Tensor, Tensor]:
    """Factors P L U of matrices, in the type that they are computed in: L and U in one, and pivots from 0.

    Where a matrix is singular, there is an error if `on_error` is "raise", NaN if it is "nan", its factors if "keep".
    """
    wide = computed(a, compute)
    if not is_ours(a):
        return with_lapack(wide, on_error)
    function, on_error = (KEPT, "raise") if on_error == "keep" else (FACTORS, on_error)
    return run(function, wide, on_error=on_error)


def with_lapack(a, on_error):
    """Factors of PyTorch, of matrices that our kernels are not for."""
    factors, pivots, info = torch.linalg.lu_factor_ex(a)
    if on_error != "keep" and info.any():
        if on_error == "raise":
            complain(torch.linalg.LinAlgError, SOLVE.failure.message, info.numpy() != 0)
        factors[info != 0] = torch.nan
    return factors.contiguous(), pivots - 1


def solved(lu, piv, b, adjoint):
    """Solutions with factors."""
    return run(LU_SOLVE[False], lu, piv.unsqueeze(-1), b, options=("C" if adjoint else "N",))[0]


def numbers_and_factors(function):
    """A function of PyTorch's numbers and factors, as one of arrays."""

    def numpy(*arrays):
        a, *others = map(torch.from_numpy, arrays)
        lu, piv, _ = torch.linalg.lu_factor_ex(a)
        return tuple(x.contiguous().numpy() for x in (*function(a, lu, piv, *others), lu, piv - 1))

    return numpy


def zero_pivots(*found):
    """Flags of matrices that are singular, of results of which the last are factors."""
    return (np.diagonal(found[-2], axis1=-2, axis2=-1) == 0).any(-1)


def with_factors(function, numbers, failure):
    """A function of square matrices with their factors as two more results, for the sizes that have such kernels."""
    return replace(
        function,
        name=f"{function.name}_with_factors",
        outputs=(*function.outputs, Result("nn"), Result("n", "i")),
        numpy=numbers_and_factors(numbers),
        failure=failure,
        limits=LIMITS,
    )


LIMITS = LU_SOLVE[False].limits
KEEP, REFUSE = Failure(error=None), Failure(SOLVE.failure.message, seen=zero_pivots)
KEPT = replace(LU_FACTOR[False], numpy=numbers_and_factors(lambda *_: ()), failure=KEEP)
FACTORS = replace(KEPT, failure=REFUSE)
SOLVED = with_factors(SOLVE, lambda a, lu, piv, b: (torch.linalg.lu_solve(lu, piv, b),), REFUSE)
DETERMINED = with_factors(DET, lambda a, lu, piv: (torch.linalg.det(a),), KEEP)
LOGARITHMS = with_factors(SLOGDET, lambda a, lu, piv: torch.linalg.slogdet(a), KEEP)
