"""qr: QR factorizations."""

from compactla.calls.recording import repeats
from compactla.linalg import _dispatched, _numpy
from compactla.linalg.arguments import as_arrays, told
from compactla.linalg.stacks import Limits, Result, Stacked
from compactla.types import Array

QRResult = type(_numpy.qr([[1.0]]))  # a plain tuple in old versions of NumPy


@repeats()
def qr(a: Array, mode: str = "reduced", *, compute: str | None = None, threads: int | None = None) -> Array:
    """QR factorizations a = q r, for stacks of matrices.

    Parameters
    ----------
    a : (..., m, n) array_like
        Matrices; k = min(m, n).
    mode : str, optional
        "reduced": q of k columns and r of k rows. "complete": q of m columns and r of m rows. "r": r of k rows alone.
        "raw": h and tau, as LAPACK ``?geqrf`` leaves them, with h transposed.
    compute, threads
        See `compactla.linalg.solve`.

    Returns
    -------
    q : (..., m, k) or (..., m, m) ndarray
        Orthonormal columns. A named tuple has it and r as Q and R.
    r : (..., k, n) or (..., m, n) ndarray
        Upper triangular.
    h : (..., n, m) ndarray
        Reflectors, below the diagonal of its transpose, and r.
    tau : (..., k) ndarray
        Scales of the reflectors.

    Raises
    ------
    numpy.linalg.LinAlgError
        If `a` has less than two axes.
    TypeError, ValueError
        If the type of `a` is not supported, or an option is none of the above.

    See Also
    --------
    numpy.linalg.qr : The same, one matrix after the other.
    compactla.geqrf : The same for packs.

    Notes
    -----
    Householder reflectors, as LAPACK ``?geqrf``, with its signs: the diagonal of r is real, of either sign.

    Examples
    --------
    >>> import numpy as np
    >>> from compactla import linalg
    >>> q, r = linalg.qr(np.array([[[3.0, 1.0], [4.0, 2.0]]]))
    >>> r.round(2)
    array([[[-5. , -2.2],
            [ 0. ,  0.4]]])
    >>> np.allclose(q @ r, [[3.0, 1.0], [4.0, 2.0]])
    True
    """
    given, function = as_arrays(a, devices=("a",)), QR.get(mode) if isinstance(mode, str) else None
    if given is None:
        return _dispatched.qr(a, **told(qr, mode=mode))
    if function is None:
        return _numpy.qr(a, **told(qr, mode=mode))
    arrays, wrap = given
    results = function(arrays, (mode,), compute=compute, threads=threads)
    if wrap:
        results = [wrap(x) if result.sizes != "k" else x for x, result in zip(results, function.outputs, strict=True)]
    if mode == "r":
        return results[0]
    if mode == "raw":
        return tuple(results)
    return QRResult(*results) if hasattr(QRResult, "_fields") else QRResult(results)  # type: ignore[call-arg] # tuple's


def work(m, n, k, returned):
    """Multiply-adds, if so many columns of Q are returned."""
    return 2 * k * (m * n - (m + n) * k / 2 + k * k / 3) + k * returned * (2 * m - k)


def stacked(outputs, columns):
    """The function with these results, of which Q has so many columns."""
    return Stacked(
        "qr",
        inputs={"a": "mn"},
        outputs=tuple(map(Result, outputs)),
        work=lambda m, n, k, **_: work(m, n, k, columns(m, k)),
        numpy=_numpy.qr,
        options=("mode",),
        fails=False,
        implied={"k": lambda m, n, **_: min(m, n)},
        limits=Limits(
            largest=128,
            fewest=lambda n: 1 if n <= 8 else 2 if n <= 16 else 4,
            extent=lambda m, n, k, **_: max(k, m * max(n, columns(m, k)) // 128),
        ),
    )


QR = {
    "reduced": stacked(("mk", "kn"), lambda m, k: k),
    "complete": stacked(("mm", "mn"), lambda m, k: m),
    "r": stacked(("kn",), lambda m, k: 0),
    "raw": stacked(("nm", "k"), lambda m, k: 0),
}
