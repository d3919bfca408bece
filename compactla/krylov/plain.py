"""The words that `compactla.krylov_methods` is written in, for all systems at a time, by NumPy."""

from types import SimpleNamespace

import numpy as np

from compactla.checks import is_device_array, on_host
from compactla.dtypes import REAL
from compactla.foreign import called_back
from compactla.layout import Pack, pack


def words(apply, precondition):
    """The words for vectors that are arrays (nm, n), and functions of them."""
    return SimpleNamespace(
        abs1=lambda x: abs(x.real) + abs(x.imag),
        add=add,
        apply=lambda A, X, Y: np.copyto(Y, apply(X)),
        clear=lambda X: X.fill(0),
        combine=combine,
        compiled=lambda function: function,
        conj=np.conj,
        copy=lambda X, Y: np.copyto(Y, X),
        follow=lambda A, M, X, Z, Y: np.copyto(Y, apply(Z)),
        dot=lambda X, Y: np.einsum("qi,qi->q", X.conj(), Y),
        keep=lambda mask, X: np.copyto(X, 0, where=~mask[:, None]),
        maximum=np.maximum,
        norm=norm,
        number=lambda x, like: np.full_like(like, x),
        precondition=lambda M, X, Y: np.copyto(Y, precondition(X)),
        record=record,
        scale=scale,
        select=np.where,
        sqrt=np.sqrt,
        subtract=lambda B, a, R: np.subtract(a[:, None] * B, R, out=R),
        vector=lambda W, k: W[k],
    )


def add(mask, Y, a, X):
    Y[mask] += a[mask, None] * X[mask]


def combine(P, a, R):
    P[...] = R + a[:, None] * P


def norm(X):
    """The 2-norms of vectors; no square overflows or underflows."""
    parts = np.ascontiguousarray(X).view(REAL[X.dtype.char])
    _, exponents = np.frexp(abs(parts).max(1, initial=0))
    return np.ldexp(np.linalg.norm(np.ldexp(parts, -exponents[:, None]), axis=1), exponents)


def scale(X, a):
    X *= a[:, None]


def record(history, count, size, mask):
    if history.size:
        history[mask, count[mask].astype(int)] = size[mask]


def called(function, name, like):
    """A user's function of packs as one of arrays; packs are where `like` is, and as long."""

    function = called_back(function, name)

    def call(x):
        y = function(pack(x[:, :, None], like.vlen, queue=like.queue))
        y = y.unpack() if isinstance(y, Pack) else y
        y = on_host(y) if is_device_array(y) else np.asarray(y)
        if y.shape not in (x.shape, (*x.shape, 1)):
            raise ValueError(f"{name} returned an array of shape {y.shape}, must return a Pack like its argument")
        if not np.can_cast(y.dtype, x.dtype, "same_kind"):
            raise TypeError(f"{name} returned {y.dtype}, must return {x.dtype}")
        return y.reshape(x.shape)

    return call


def applied(operator):
    """A batch of matrices, or a preconditioner, as a function of arrays."""
    if isinstance(operator, Pack):
        a = on_host(operator.unpack())
        return lambda x: np.einsum("qij,qj->qi", a, x)
    return lambda x: operator @ x
