"""Functions on stacks of larger matrices, by the libraries that arrays are of: see `compactla.linalg.composed`.

Each has the name of its `compactla.linalg.stacks.Stacked`. It takes arrays of the library, of stacks of one shape, and
sizes and options by their names. It returns what the `Stacked` has as outputs, and integers that are not 0 for matrices
that have no result, or None.
"""

import contextlib
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from compactla.backends import device_module
from compactla.calls.notes import refuse, state
from compactla.dtypes import REAL

INTEGER = np.dtype(np.int32)
SMALLEST = 32  # rows and columns of matrices up to which routines on packs are faster


class Functions:
    """Functions under NumPy's and SciPy's names.

    Those that find that there are matrices without a result, but not which, raise a LinAlgError.

    Attributes
    ----------
    xp, linalg, scipy : module
        What has the names of `numpy`, `numpy.linalg` and `scipy.linalg`.
    within : function
        A context in which functions are called.
    """

    within: Callable = contextlib.nullcontext
    failure: type[Exception] = LinAlgError

    def __init__(self, name: str, scipy: str) -> None:
        self.xp, self.scipy = importlib.import_module(name), importlib.import_module(scipy)
        self.linalg = self.xp.linalg

    def has(self, dtype: np.dtype) -> bool:
        """Whether there are arrays of a type."""
        return True

    def finished(self, x: Any, dtype: np.dtype, failed: Any) -> Any:
        """A contiguous array of a type, NaN, or 0, for matrices that failed; None failed if nobody wants that."""
        if failed is not None:
            x = self.xp.where(flags(failed, x.ndim), np.nan if dtype.kind in "fc" else 0, x)
        return self.contiguous(x, dtype)

    def contiguous(self, x: Any, dtype: np.dtype) -> Any:
        return self.xp.ascontiguousarray(x, dtype)

    def check(self, results: list) -> None:
        """Raise a LinAlgError if there may be matrices without a result, as far as results tell."""
        if any(bool(self.xp.isnan(x).any()) for x in results if x.dtype.kind in "fc"):
            raise LinAlgError

    def solve(self, A, B, **_):
        return [self.linalg.solve(A, B)], None

    def solve_symmetric(self, A, B, assume_a, uplo, **_):
        if assume_a == "pos":
            (factor,), failed = self.cholesky(A, uplo, "yes")
            return [self.cho_solve(factor, B, uplo)[0][0]], failed
        return self.solve(self.whole(A, uplo, self.adjoint if assume_a == "her" else self.transposed), B)

    def matmul(self, A, B, **_):
        return [self.product(A, B)], None

    def whole(self, A, uplo, other):
        """Matrices of which one triangle counts; a function makes the `other` of it."""
        half, strict = self.triangle(A, uplo), self.triangle(A, uplo, 1)
        if other == self.adjoint:
            diagonal = half - strict
            half = strict + (diagonal + other(diagonal)) / 2
        return half + other(strict)

    def triangle(self, A, uplo, away=0):
        """One triangle, without so many diagonals."""
        return self.xp.tril(A, -away) if uplo == "L" else self.xp.triu(A, away)

    def transposed(self, A):
        return self.xp.swapaxes(A, -2, -1)

    def adjoint(self, A):
        return self.xp.conj(self.transposed(A))

    def inv(self, A, **_):
        return [self.linalg.inv(A)], None

    def det(self, A, **_):
        return [self.linalg.det(A)], None

    def slogdet(self, A, **_):
        return list(self.linalg.slogdet(A)), None

    def cholesky(self, A, uplo, clean, **_):
        factor, failed = self.factored(A if uplo == "L" else self.adjoint(A))
        factor = factor if uplo == "L" else self.adjoint(factor)
        return [factor if clean == "yes" else factor + self.triangle(A, "LU"[uplo == "L"], 1)], failed

    def factored(self, A):
        """Lower Cholesky factors from lower triangles."""
        return self.linalg.cholesky(A), None

    def qr(self, A, mode, **_):
        found = self.linalg.qr(A, mode=mode)
        return [found] if mode == "r" else list(found), None

    def eigh(self, A, UPLO, **_):
        return list(self.linalg.eigh(A, UPLO=UPLO)), None

    def eigvalsh(self, A, UPLO, **_):
        return [self.linalg.eigvalsh(A, UPLO=UPLO)], None

    def svd(self, A, k, p, q, **_):
        return list(self.linalg.svd(A, full_matrices=max(p, q) > k)), None

    def svdvals(self, A, **_):
        return [self.linalg.svd(A, compute_uv=False)], None

    def pinv(self, A, rcond, **_):
        (U, s, Vh), failed = self.svd(A, 1, 1, 1)
        inverse, _ = self.cut(s, rcond)
        return [self.product(self.adjoint(Vh) * inverse[..., None, :], self.adjoint(U))], failed

    def product(self, A, B):
        return self.xp.matmul(A, B)

    def cut(self, s, rcond):
        """Inverses of singular values, 0 for those up to a part of the largest; and how many are above."""
        above = s > rcond[..., 0] * s[..., :1]
        return self.xp.where(above, 1 / s, 0 * s), above.sum(-1)

    def lstsq(self, A, B, rcond, **_):
        (U, s, Vh), failed = self.svd(A, 1, 1, 1)
        inverse, rank = self.cut(s, rcond)
        X = self.product(self.adjoint(Vh), inverse[..., None] * self.product(self.adjoint(U), B))
        squares = (abs(B - self.product(A, X)) ** 2).sum(-2)
        short = (rank < A.shape[-1])[..., None]
        return [X, self.xp.where(short, np.nan * squares, squares), rank, s], failed

    lstsq_wide = lstsq

    def lu_factor(self, A, **_):
        lu, piv = self.scipy.lu_factor(A)
        return [lu, piv], self.singular(lu)

    def lu_solve(self, lu, piv, B, trans, **_):
        n, piv = lu.shape[-1], piv[..., 0]
        failed = ((piv < 0) | (piv >= n)).any(-1)
        return [self.solved_by_lu(lu, self.xp.clip(piv, 0, n - 1), B, trans)], failed

    def solved_by_lu(self, lu, piv, B, trans):
        """Solutions with LU factors, whose rows were interchanged."""
        return self.scipy.lu_solve((lu, piv), B, "NTC".index(trans))

    def singular(self, A):
        """Whether triangles have zeros on their diagonals."""
        return (self.xp.diagonal(A, 0, -2, -1) == 0).any(-1)

    def solve_triangular(self, A, B, trans, uplo, diag, **_):
        return [self.solved(A, B, uplo, trans, diag)], None if diag == "U" else self.singular(A)

    def solved(self, A, B, uplo, trans="N", diag="N"):
        """Solutions of systems with triangles."""
        options = {"trans": "NTC".index(trans), "lower": uplo == "L", "unit_diagonal": diag == "U"}
        return self.scipy.solve_triangular(A, B, **options)

    def cho_solve(self, A, B, uplo, **_):
        first, second = "CN" if uplo == "U" else "NC"
        return [self.solved(A, self.solved(A, B, uplo, first), uplo, second)], None


class OfTorch(Functions):
    """PyTorch's functions, which tell which matrices have no result."""

    def __init__(self) -> None:
        super().__init__("torch", "torch.linalg")
        self.failure = self.linalg.LinAlgError

    def finished(self, x, dtype, failed):
        x = x.to(getattr(self.xp, dtype.name))
        if failed is None:
            return x.contiguous()
        number = x.new_full((), np.nan if dtype.kind in "fc" else 0)
        new = self.xp.empty(x.shape, dtype=x.dtype, device=x.device)
        return self.xp.where(flags(failed, x.ndim), number, x, out=new)

    def solve(self, A, B, **_):
        x, info = self.linalg.solve_ex(A, B)
        return [x], info

    def inv(self, A, **_):
        x, info = self.linalg.inv_ex(A)
        return [x], info

    def factored(self, A):
        return self.linalg.cholesky_ex(A)

    def qr(self, A, mode, **_):
        if mode == "raw":
            factors, tau = self.xp.geqrf(A)
            return [self.transposed(factors), tau], None
        found = self.linalg.qr(A, mode=mode)
        return [found.R] if mode == "r" else list(found), None

    def check(self, results):
        """All is told."""

    def product(self, A, B):
        if not self.xp.is_autocast_enabled():
            return self.xp.matmul(A, B)
        with self.xp.autocast("cuda", enabled=False):  # where it would be one in half precision
            return self.xp.matmul(A, B)

    def of_finite(self, function, A, values=lambda found: found):
        """Results of a function that may raise an error if one matrix is not finite, and which have no `values`."""
        try:
            found = function(A)
        except self.failure:
            failed = ~self.xp.isfinite(A).all(-1).all(-1)
            return function(self.xp.where(failed[..., None, None], 0, A)), failed
        return found, self.xp.isnan(values(found)).any(-1)

    def eigh(self, A, UPLO, **_):
        found, failed = self.of_finite(self.linalg.eigh, self.lower(A, UPLO), lambda found: found[0])
        return list(found), failed

    def eigvalsh(self, A, UPLO, **_):
        found, failed = self.of_finite(self.linalg.eigvalsh, self.lower(A, UPLO))
        return [found], failed

    def lower(self, A, uplo):
        """The lower triangle of Hermitian matrices of which one counts."""
        return self.triangle(A, "L") if uplo == "L" else self.adjoint(self.triangle(A, "U"))

    def svd(self, A, k, p, q, **_):
        full = max(p, q) > k
        svd = functools.partial(self.linalg.svd, full_matrices=full)
        found, failed = self.of_finite(svd, A, lambda found: found[1])
        return list(found), failed

    def svdvals(self, A, **_):
        found, failed = self.of_finite(self.linalg.svdvals, A)
        return [found], failed

    def lu_factor(self, A, **_):
        lu, piv, info = self.linalg.lu_factor_ex(A)
        return [lu, piv - 1], info

    def solved_by_lu(self, lu, piv, B, trans):
        if trans == "T":
            return self.linalg.lu_solve(lu, piv + 1, B.conj(), adjoint=True).conj()
        return self.linalg.lu_solve(lu, piv + 1, B, adjoint=trans == "C")

    def cho_solve(self, A, B, uplo, **_):
        return [self.xp.cholesky_solve(B, A, upper=uplo == "U")], None

    def solved(self, A, B, uplo, trans="N", diag="N"):
        if trans != "N":
            A, uplo = self.adjoint(A) if trans == "C" else self.transposed(A), "LU"[uplo == "L"]
        return self.linalg.solve_triangular(A, B, upper=uplo == "U", unitriangular=diag == "U")


class OfCuPy(Functions):
    """CuPy's functions, some of which take no stacks."""

    lu_factor = lu_solve = None  # type: ignore[assignment] # it has none for stacks

    def __init__(self) -> None:
        super().__init__("cupy", "cupyx.scipy.linalg")
        state = importlib.import_module("cupyx").errstate
        self.within = lambda: state(linalg="raise")


class OfJAX(Functions):
    """JAX's functions, whose results are NaN where there are none."""

    def __init__(self) -> None:
        super().__init__("jax.numpy", "jax.scipy.linalg")
        jax = importlib.import_module("jax")
        self.within = lambda: jax.default_matmul_precision("highest")
        self._canonical = jax.dtypes.canonicalize_dtype

    def contiguous(self, x, dtype):
        return x.astype(dtype)

    def has(self, dtype):
        return self._canonical(dtype) == dtype

    def factored(self, A):
        return self.linalg.cholesky(A, symmetrize_input=False), None

    def eigh(self, A, UPLO, **_):
        return super().eigh(self.whole(A, UPLO, self.adjoint), UPLO)

    def eigvalsh(self, A, UPLO, **_):
        return super().eigvalsh(self.whole(A, UPLO, self.adjoint), UPLO)


KINDS: dict[str, Callable[[], Functions]] = {"torch": OfTorch, "cupy": OfCuPy, "jax": OfJAX}
_made: dict[str, Functions] = {}


@dataclass(frozen=True)
class Borrowed:
    """A function of a library for arrays of some types, shapes and strides.

    Attributes
    ----------
    functions : Functions
        What computes, and how its arrays become others.
    compute : function
        The method of these.
    composed : compactla.linalg.composed.Composed
        What computes where that does not tell which matrices have no result.
    fails : bool
        Whether there may be such.
    """

    functions: Functions
    compute: Callable
    composed: Any
    fails: bool

    @property
    def fit(self) -> Any:
        """Sizes and types."""
        return self.composed.fit

    def run(self, arrays, wait):
        """Compute results, and integers that are not 0 for matrices that failed, or None."""
        queue, read = arrays[0].queue, []
        for letters, a in zip(self.composed.inputs.values(), arrays, strict=True):
            a = device_module().constant(a, queue) if isinstance(a, np.ndarray) else a
            dtype = read_as(letters, self.fit.computed)
            read.append(a if a.dtype == dtype else a.astype(dtype))
        library = queue.library
        try:
            found, failed = self.found([library.give(a) for a in read], wait)
        except self.functions.failure:
            refuse()
            return self.composed.run(arrays, wait)
        results = [library.array(x) for x in found]
        if state.notes is not None:
            state.notes.borrow(functools.partial(self.found, wait=wait), read, results, failed is not None)
        return results, None if failed is None else library.array(failed).get().reshape(-1)

    def found(self, given, wait):
        """Results and flags as `run`, of the library and as its arrays, or an error of the functions."""
        functions, fit = self.functions, self.fit
        if self.compute != functions.matmul:  # which needs no copies for that
            shapes = [fit.lead + tuple(x.shape[-2:]) for x in given]
            every = zip(given, shapes, strict=True)
            given = [x if tuple(x.shape) == shape else functions.xp.broadcast_to(x, shape) for x, shape in every]
        with functions.within():
            found, failed = self.compute(*given, **self.composed.keywords)
            if self.fails:
                functions.check(found)
        told = None
        if failed is not None and wait:
            told, failed = failed if bool(failed.any()) else None, None
        made = [functions.finished(x, dtype, failed) for x, (_, dtype) in zip(found, fit.made, strict=True)]
        return made, told


def flags(failed, ndim):
    """Flags of matrices, for what each of them has in so many axes with theirs."""
    failed = failed.reshape(failed.shape + (1,) * (ndim - failed.ndim))
    return failed if str(failed.dtype).endswith("bool") else failed != 0


def read_as(letters, computed):
    """The type of an input, by its letters in `compactla.linalg.stacks.Stacked`."""
    if letters[2:]:
        return INTEGER
    return REAL[computed.char] if letters == "11" else computed


def borrowed(function: Any, composed: Any, queue: Any) -> Any:
    """The function of the library of arrays for larger matrices; that of packs where there is none."""
    name, fit, sizes = queue.library.name, composed.fit, composed.fit.number
    if name not in KINDS or min(sizes.get("m", sizes["n"]), sizes["n"]) <= SMALLEST:
        return composed
    if name not in _made:
        _made[name] = KINDS[name]()
    functions = _made[name]
    compute = getattr(functions, function.name, None)
    if compute is None or not functions.has(fit.computed):
        return composed
    return Borrowed(functions, compute, composed, function.fails)
