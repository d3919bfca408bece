"""The inputs that tests share."""

import numpy as np
import pyopencl.array
import pytest

import compactla as cla

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
VLENS = [1, 3, 4, 8, 16, 32, None]
BATCH = 11  # a partial pack everywhere
SCALARS = {"f": (0, 1, -1, 0.75), "c": (0, 1, -1, 0.75 - 0.5j)}


def slow(*values):
    """A case that is tried with `tests/run.py --all` only: more of what others show as well."""
    return pytest.param(*values, marks=pytest.mark.slow)


def exhaustive(*values):
    """A case that is left out of `.ci/run` too."""
    return pytest.param(*values, marks=pytest.mark.exhaustive)


def in_turns(sizes, always=None):
    """Sizes with types: each with a real and a complex one, of single and of double precision in turns.

    Kernels are compiled for every size and type, which takes most of the time of the tests. How they are written for a
    size depends on whether numbers are complex, not on their precision, and both precisions have odd and even sizes.
    The second is exhaustive, and the first slow where a size is not among those that are tried always, by default all.
    """
    cases = []
    for i, size in enumerate(sizes):
        first, second = ((size, np.dtype(DTYPES[char])) for char in ("sc", "cs", "dz", "zd")[i % 4])
        cases += [first if always is None or size in always else slow(*first), exhaustive(*second)]
    return cases


# Vector lengths, each with a type: one lane, an odd number, and more than a register has, are tried always.
LANES = [
    *[(1, np.float32), (3, np.complex128), slow(4, np.float32), slow(8, np.complex128)],
    *[(16, np.float32), (32, np.complex128), slow(None, np.float32)],
]


def scalars(dtype):
    """Values that alpha and beta are tried with."""
    return SCALARS[np.dtype(dtype).kind]


def random(rng, shape, dtype):
    """Numbers in [-1, 1], real and imaginary."""
    a = np.empty(shape, dtype)
    a.real = rng.uniform(-1, 1, shape)
    if np.iscomplexobj(a):
        a.imag = rng.uniform(-1, 1, shape)
    return a


def dominant(rng, nm, m, n, dtype):
    """Matrices with large diagonals, whose pivots stay away from zero."""
    return random(rng, (nm, m, n), dtype) + 2 * max(m, n) * np.eye(m, n, dtype=dtype)


def make_singular(a, k):
    """Set the pivot `k` of one matrix to exactly zero: its row of L is zero, and so is its diagonal."""
    a[k, : k + 1] = 0


def lines(rng, nlines, K, b, dtype):
    """Block tridiagonal lines that need no pivoting: lower, diag, upper."""
    coupling = (nlines, max(K - 1, 0), b, b)
    diag = random(rng, (nlines, K, b, b), dtype) + 6 * b * np.eye(b, dtype=dtype)
    return random(rng, coupling, dtype), diag, random(rng, coupling, dtype)


def same_bits(a, b):
    """Whether two arrays are equal bit for bit, NaN and signs of zero included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def laid(x, how):
    """A copy of matrices that lies in memory in some way; numbers between them are NaN."""
    if how == "columns":
        return x.swapaxes(1, 2).copy().swapaxes(1, 2)
    if how == "reversed":
        return x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    if how == "lanes":
        return np.moveaxis(np.moveaxis(x, 0, 2).copy(), 2, 0)
    gaps = {"rows": np.s_[:, :-2, 1:-1], "gaps": np.s_[::2, 1::2, ::3]}
    if how in gaps:
        step = {"rows": (1, 1, 1), "gaps": (2, 2, 3)}[how]
        more = {"rows": (0, 2, 2), "gaps": (0, 0, 0)}[how]
        whole = np.full([n * s + e for n, s, e in zip(x.shape, step, more, strict=True)], np.nan, x.dtype)
        whole[gaps[how]] = x
        return whole[gaps[how]]
    return x.copy()


def there(a, queue):
    """A copy of an array where the queue is, None for the CPU."""
    return np.copy(a) if queue is None else pyopencl.array.to_device(queue, a)


def here(a):
    """An array on the CPU."""
    return a.get() if isinstance(a, pyopencl.array.Array) else a


def poisoned(a, vlen=None, *, queue=None):
    """A pack of `a` whose unused lanes hold NaN."""
    A = cla.pack(a, vlen)
    used = len(a) - A.vlen * (len(A.data) - 1)
    A.data[-1:, ..., used:] = np.nan
    return A if queue is None else A.to(queue)


def transposed(a, vlen=None, *, queue=None):
    """A view of the pack of the transposed matrices."""
    return cla.pack(a.swapaxes(1, 2), vlen, queue=queue).T


def framed(a, vlen=None, *, queue=None):
    """A block of a pack of larger matrices, with NaN around it."""
    nm, m, n = a.shape
    frame = np.full((nm, m + 3, n + 2), np.nan, a.dtype)
    frame[:, 1 : 1 + m, 2 : 2 + n] = a
    return cla.pack(frame, vlen, queue=queue)[1 : 1 + m, 2 : 2 + n]


def framed_transposed(a, vlen=None, *, queue=None):
    return framed(a.swapaxes(1, 2), vlen, queue=queue).T


LAYOUTS = {"plain": cla.pack, "transposed": transposed, "block": framed, "block of transposed": framed_transposed}


ON_PACKS = {  # calls with positive definite matrices and right-hand sides, and their results
    "getrf": lambda A, B: (*cla.getrf(A), A),
    "geqrf": lambda A, B: (cla.geqrf(A), A),
    "getrfnp": lambda A, B: (cla.getrfnp(A), A),
    "potrf": lambda A, B: (cla.potrf(A, "U"), A),
    "gesv": lambda A, B: (cla.gesv(A, B), B),
    "syev": lambda A, B: cla.syev(A, jobz="N"),
    "gesvd": lambda A, B: cla.gesvd(A, False)[1:2],
    "gels, part": lambda A, B: (cla.gels(A[:, :2], B), B[:2, :]),
    "geqp3, transposed": lambda A, B: (*cla.geqp3(A.T), A),
    "getri": lambda A, B: (cla.getri(A, cla.getrf(A)[0]), A),
    "dot": lambda A, B: (cla.dot(A, A.T), cla.nrm2(B)),
    "copy": lambda A, B: (A.T.copy(), A[:, :2].unpack(), cla.pack(B.unpack(), vlen=8)),
}
