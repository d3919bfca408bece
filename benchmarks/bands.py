"""Band systems of ordinary arrays, factored and solved at once or with factors that are kept, in one thread.

NumPy goes through all systems at a time, in the layout that suits it best; SciPy's functions solve one after the other.
"""

import numpy as np
import scipy.linalg

import compactla as cla

from . import common

LIBRARIES = ["compactla", "compactla, kept factors", "numpy", "scipy"]
FORMS = {  # diagonals below and above, and options
    "tridiag": (1, 1, {}),
    "tridiag, no interchanges": (1, 1, {"pivoting": False}),
    "ring": (1, 1, {"periodic": True}),
    "banded": (2, 2, {}),
    "banded, no interchanges": (2, 2, {"pivoting": False}),
    "positive definite": (2, 2, {}),
}
SYSTEMS = 10_000


def diagonals(kl, ku, n):
    """Diagonally dominant matrices in SciPy's order of diagonals."""
    ab = np.random.default_rng(n).random((SYSTEMS, kl + ku + 1, n))
    ab[:, ku] += kl + ku
    return ab


def matrices(form, ab):
    """The systems of compactla."""
    _, ku, options = FORMS[form]
    if form == "positive definite":
        return cla.BandedSPD(ab[:, : ku + 1])
    if form.startswith("banded"):
        return cla.Banded((ku, ku), ab, **options)
    if form == "ring":
        return cla.Tridiag(*ab.swapaxes(0, 1)[::-1], **options)
    return cla.Tridiag(ab[:, 2, :-1], ab[:, 1], ab[:, 0, 1:], **options)


def eliminate(kl, ku, ab, b):
    """Gauss' elimination without interchanges of matrices (l + u + 1, n, nsys), as NumPy can have it."""
    ab, b, n = ab.copy(), b.copy(), len(b)
    for k in range(n):
        for i in range(1, min(kl, n - 1 - k) + 1):
            factor = ab[ku + i, k] / ab[ku, k]
            for j in range(1, min(ku, n - 1 - k) + 1):
                ab[ku + i - j, k + j] -= factor * ab[ku - j, k + j]
            b[k + i] -= factor * b[k]
    for k in reversed(range(n)):
        for j in range(1, min(ku, n - 1 - k) + 1):
            b[k] -= ab[ku - j, k + j] * b[k + j]
        b[k] /= ab[ku, k]
    return b


def one_by_one(form, kl, ku, ab, b):
    """SciPy's solutions."""
    if form == "positive definite":
        return np.array([scipy.linalg.solveh_banded(a, x, check_finite=False) for a, x in zip(ab, b, strict=True)])
    return np.array([scipy.linalg.solve_banded((kl, ku), *ax, check_finite=False) for ax in zip(ab, b, strict=True)])


class Bands(common.InTurns):
    """Systems in float64."""

    params = (LIBRARIES, list(FORMS), [16, 128, 256])
    param_names = ("library", "form", "n")

    def prepare(self, form, n):
        kl, ku, _ = FORMS[form]
        ab, b = diagonals(kl, ku, n), np.random.default_rng(n).random((SYSTEMS, n))
        once, kept = matrices(form, ab), matrices(form, ab)
        assert not kept.factor().any()
        found = {"compactla": lambda: once.solve(b, threads=1)}
        found["compactla, kept factors"] = lambda: kept.solve(b, threads=1)
        if form == "positive definite":  # the other triangle, for NumPy
            for k in range(1, kl + 1):
                ab[:, ku + k, : n - k] = ab[:, ku - k, k:].copy()
        whole, turned = (np.ascontiguousarray(np.moveaxis(a, 0, -1)) for a in (ab, b))
        if form != "ring":
            mine = ab[:, : ku + 1].copy() if form == "positive definite" else ab
            found["numpy"] = lambda: eliminate(kl, ku, whole, turned).T
            found["scipy"] = lambda: one_by_one(form, kl, ku, mine, b)
        expected = next(iter(found.values()))()
        assert all(np.allclose(call(), expected, rtol=1e-8) for call in found.values())
        return found, SYSTEMS
