"""Linear operators for vectors of every library; their multiples, sums, products and transposes."""

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from compactla.checks import is_device_array
from compactla.foreign import is_inner_call, root
from compactla.pickling import by_name, named
from compactla.types import Array


class VectorOperator(LinearOperator):
    """A linear operator whose `dot` takes arrays of NumPy and, unlike SciPy's, those on devices and of other libraries.

    What is made of it by arithmetic, and its transpose and adjoint, are such operators too.
    """

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: by_name(value) for name, value in state.items()}

    def __setstate__(self, state: Any) -> None:
        take = getattr(super(), "__setstate__", self.__dict__.update)  # SciPy has one since 1.18.1
        take({name: named(value) for name, value in state.items()})

    def dot(self, x: Array) -> Any:
        """``P @ x``: the product with vectors, a number, or another operator."""
        if isinstance(x, LinearOperator):
            return Product(self, x)
        if np.isscalar(x):
            return Scaled(self, x)
        return self._apply_vectors(x) if is_elsewhere(x) else super().dot(x)

    def _apply_vectors(self, x):
        """The product with vectors that are no NumPy array."""
        return self._matvec(x)

    def matvec(self, x: Array) -> Any:
        """``P @ x`` of one vector."""
        return self._apply_vectors(checked(x, self.shape[1], 1)) if is_elsewhere(x) else super().matvec(x)

    def matmat(self, X: Array) -> Any:
        """``P @ X`` of several vectors."""
        return self._apply_vectors(checked(X, self.shape[1], 2)) if is_elsewhere(X) else super().matmat(X)

    def rmatvec(self, x: Array) -> Any:
        """``P.H @ x`` of one vector."""
        return self.H.dot(checked(x, self.shape[0], 1)) if is_elsewhere(x) else super().rmatvec(x)

    def rmatmat(self, X: Array) -> Any:
        """``P.H @ X`` of several vectors."""
        return self.H.dot(checked(X, self.shape[0], 2)) if is_elsewhere(X) else super().rmatmat(X)

    def _transpose(self):
        return Transposed(self)

    def __rmul__(self, x: Any) -> Any:
        return Scaled(self, x) if np.isscalar(x) else super().__rmul__(x)

    def __truediv__(self, x: Any) -> Any:
        return Scaled(self, 1 / x) if np.isscalar(x) else super().__truediv__(x)  # type: ignore[operator] # is a number

    def __pow__(self, p: Any) -> Any:
        return Power(self, p)

    def __neg__(self) -> Any:
        return Scaled(self, -1)

    def __add__(self, other: Any) -> Any:
        return Sum(self, other) if isinstance(other, LinearOperator) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return Sum(self, Scaled(other, -1)) if isinstance(other, LinearOperator) else NotImplemented


class Combined(VectorOperator):
    """An operator that is made of others."""

    def __init__(self, shape, *parts):
        self.args = parts
        super().__init__(np.result_type(*(getattr(x, "dtype", x) for x in parts)), shape)

    def _rmatvec(self, x):
        return self.H.dot(x)

    def _matmat(self, X):
        return self._matvec(X)

    def _rmatmat(self, X):
        return self._rmatvec(X)


class Scaled(Combined):
    """A multiple of an operator."""

    def __init__(self, A, alpha):
        super().__init__(A.shape, A, alpha)

    def _matvec(self, x):
        A, alpha = self.args
        return alpha * A.dot(x)

    def _adjoint(self):
        A, alpha = self.args
        return Scaled(A.H, np.conj(alpha))


class Sum(Combined):
    """The sum of two operators."""

    def __init__(self, A, B):
        if A.shape != B.shape:
            raise ValueError(f"the operators of a sum have shapes {A.shape} and {B.shape}, must be of one shape")
        super().__init__(A.shape, A, B)

    def _matvec(self, x):
        A, B = self.args
        return A.dot(x) + B.dot(x)

    def _adjoint(self):
        A, B = self.args
        return Sum(A.H, B.H)


class Product(Combined):
    """The product of two operators."""

    def __init__(self, A, B):
        if A.shape[1] != B.shape[0]:
            raise ValueError(f"the operators of a product have shapes {A.shape} and {B.shape}, must fit together")
        super().__init__((A.shape[0], B.shape[1]), A, B)

    def _matvec(self, x):
        A, B = self.args
        return A.dot(B.dot(x))

    def _adjoint(self):
        A, B = self.args
        return Product(B.H, A.H)


class Power(Combined):
    """A power of a square operator, with an exponent of integers from 0 on."""

    def __init__(self, A, p):
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"the operator has shape {A.shape}, must be square")
        if not isinstance(p, int | np.integer) or p < 0:
            raise ValueError(f"p is {p!r}, must be an integer from 0 on")
        super().__init__(A.shape, A)
        self.args = A, int(p)

    def _matvec(self, x):
        A, p = self.args
        for _ in range(p):
            x = A.dot(x)
        return x

    def _adjoint(self):
        A, p = self.args
        return Power(A.H, p)


class Transposed(Combined):
    """The transpose of an operator, which is made when it is applied, as its adjoint is."""

    def __init__(self, A):
        super().__init__(A.shape[::-1], A)

    def _matvec(self, x):
        (A,) = self.args
        return conjugate(A.H.dot(conjugate(x)))

    def _adjoint(self):
        return Conjugated(*self.args)

    def _transpose(self):
        return self.args[0]


class Conjugated(Combined):
    """The conjugate of an operator."""

    def __init__(self, A):
        super().__init__(A.shape, A)

    def _matvec(self, x):
        (A,) = self.args
        return conjugate(A.dot(conjugate(x)))

    def _adjoint(self):
        return Transposed(*self.args)

    def _transpose(self):
        return self.args[0].H


def is_elsewhere(x):
    """Whether vectors are an array on a device, or of another library."""
    return type(x) is not np.ndarray and (is_device_array(x) or (not is_inner_call() and bool(root(type(x)))))


def conjugate(x):
    """Conjugate vectors, and real ones as they are."""
    if "complex" not in str(x.dtype):
        return x
    return x.conj_physical() if hasattr(x, "conj_physical") else x.conj()


def checked(x, n, axes):
    """Vectors, if they are one vector or several."""
    allowed = ((n,), (n, 1)) if axes == 1 else (tuple(x.shape) if len(x.shape) == 2 and x.shape[0] == n else None,)
    if tuple(x.shape) not in allowed:
        expected = f"({n},) or ({n}, 1)" if axes == 1 else f"({n}, nrhs)"
        raise ValueError(f"x has shape {tuple(x.shape)}, must be {expected}")
    return x
