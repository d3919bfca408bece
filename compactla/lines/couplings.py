"""Strengths of couplings of the block rows of a sparse matrix, from its coefficients or from coordinates."""

import numpy as np
import scipy.sparse

from compactla.cpu.late import CompiledLate

TINY = 1e-140  # distance whose square may be too small to be exact
# Weight of a coupling that goes one way only, against one that goes both ways.
ONE_WAY = 1e-3
# How large the trace of a block is, against its norm, for its sign to count.
SIGN = 0.1
# How often the scale of every unknown is set anew: it need not be exact.
SWEEPS = 20


def in_blocks(M, sizes):
    """`M` in BSR form, with sorted indices and without duplicates.

    Block rows are padded to the largest of their `sizes`, with ones on the diagonal.
    """
    if M.format == "bsr" and M.has_canonical_format:
        return M
    M, b = sizes.padded(M.tocsr()), sizes.largest
    if sizes.differ:
        added = np.ones(M.shape[0], M.dtype)
        added[sizes.unknowns] = 0
        M = M + scipy.sparse.diags_array(added, format="csr")
    M = M.tobsr(blocksize=(b, b), copy=True)
    M.sum_duplicates()
    M.sort_indices()  # which SciPy's conversion leaves as they come
    return M


def couplings(M) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Strengths of couplings of the block rows of `M`: a symmetric matrix without a diagonal, its indices sorted.

    And for every block of `M` whether it is of the other sign than diffusion has, as the trace of its product with the
    inverse of the diagonal block is positive.
    """
    b = M.blocksize[0]
    inverse = np.zeros((len(M.indptr) - 1, b, b), np.result_type(M.dtype, np.float64))
    pattern, data = (M.indptr, M.indices), np.ascontiguousarray(M.data)
    _invert_diagonal(*pattern, data, inverse, np.empty((b, b), inverse.dtype), np.empty(b))
    norm, opposite, square, total = (
        np.empty(len(data)),
        np.empty(len(data), np.bool_),
        np.empty((b, b)),
        np.zeros((b, b)),
    )
    _norms(*pattern, data, inverse, np.ones(b), norm, opposite, square, total)
    if b > 1:
        _norms(*pattern, data, inverse, _balance(total), norm, opposite, square, total)
    A = _graph(M, norm)
    B = A.T.tocsr()
    with np.errstate(over="ignore", invalid="ignore"):  # of blocks that are not finite, which nothing follows
        S = A.multiply(B).sqrt().maximum(ONE_WAY * A.maximum(B)).tocsr()
    S.sort_indices()
    return S, opposite


def _balance(total) -> np.ndarray:
    """The scale for which rows and columns of ``total * scale**2 / scale[:, None]**2`` have the same sums."""
    scale = np.ones(len(total))
    total = total - np.diag(total.diagonal())
    for k in list(range(len(total))) * SWEEPS:
        column, row = total[:, k] @ scale**-2.0, total[k] @ scale**2
        if column > 0 and row > 0:
            scale[k] = (row / column) ** 0.25
    return scale


def proximities(M, coordinates) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """1 / distance of all block rows that are coupled in `M`, in units of about the size of the whole.

    And that every block of `M` may be of the other sign than diffusion has.
    """
    A = _graph(M, np.ones(M.indptr[-1]))
    S = A.maximum(A.T).tocsr()
    S.sort_indices()
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    coordinates = np.ldexp(coordinates, -1 - np.frexp(abs(coordinates).max(initial=0))[1])
    step = coordinates[row] - coordinates[S.indices]
    distance = np.linalg.norm(step, axis=1)
    tiny = distance < TINY
    longest = abs(step[tiny]).max(axis=1, keepdims=True, initial=np.finfo(np.float64).smallest_subnormal)
    distance[tiny] = longest[:, 0] * np.linalg.norm(step[tiny] / longest, axis=1)
    with np.errstate(divide="ignore", over="ignore"):
        S.data = 1 / distance
    return S, np.ones(M.indptr[-1], np.bool_)


def _graph(M, weight) -> scipy.sparse.csr_array:
    """The block rows that are coupled in `M`, each other than itself and with a weight other than 0."""
    nrow = len(M.indptr) - 1
    row = np.repeat(np.arange(nrow, dtype=M.indices.dtype), np.diff(M.indptr))
    weight = np.where(row == M.indices[: len(row)], 0, weight[: len(row)])
    A = scipy.sparse.csr_array((weight, M.indices[: len(row)], M.indptr), shape=(nrow, nrow), copy=True)
    A.eliminate_zeros()
    return A


@CompiledLate
def _invert_diagonal(indptr, indices, data, inverse, a, largest):
    """The inverses of the diagonal blocks; of a singular one, 1 over the largest number of each of its rows.

    The inverses are zero before; a block and a vector are work space.
    """
    b = data.shape[1]
    for row in range(len(indptr) - 1):
        for i in range(b):
            largest[i] = 0
            for j in range(b):
                a[i, j] = 0
        # the diagonal block, and the largest number of each of its rows
        for k in range(indptr[row], indptr[row + 1]):
            for i in range(b):
                for j in range(b):
                    largest[i] = max(largest[i], abs(data[k, i, j]))
                    if indices[k] == row:
                        a[i, j] = data[k, i, j]
        # [a | x]: a becomes the identity, x the inverse
        for i in range(b):
            inverse[row, i, i] = 1
        for k in range(b):  # Gauss-Jordan elimination with partial pivoting
            p = k
            for i in range(k + 1, b):
                if abs(a[i, k]) > abs(a[p, k]):
                    p = i
            if not 0 < abs(a[p, k]) < np.inf:
                for i in range(b):
                    for j in range(b):
                        inverse[row, i, j] = 0
                    inverse[row, i, i] = 1 / largest[i] if largest[i] > 0 else 0
                break
            pivot = 1 / a[p, k]
            for j in range(b):
                a[k, j], a[p, j] = a[p, j], a[k, j]
                inverse[row, k, j], inverse[row, p, j] = inverse[row, p, j], inverse[row, k, j]
                a[k, j] *= pivot
                inverse[row, k, j] *= pivot
            for i in range(b):
                factor = a[i, k]
                if i != k:
                    for j in range(b):
                        a[i, j] -= factor * a[k, j]
                        inverse[row, i, j] -= factor * inverse[row, k, j]


@CompiledLate
def _norms(indptr, indices, data, inverse, scale, norm, opposite, square, total):
    """Frobenius norms of ``inverse[i] @ M[i, j] * scale / scale[:, None]`` for all blocks (i, j).

    Also whether their traces are positive and not small beside these. The squares of the numbers in all that are finite
    and off the diagonal are added to `total`; a block is work space.
    """
    b = data.shape[1]
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            sum_of_squares = trace = 0.0
            for i in range(b):
                for j in range(b):
                    x = inverse[row, i, 0] * data[k, 0, j]
                    for m in range(1, b):
                        x += inverse[row, i, m] * data[k, m, j]
                    ratio = scale[j] / scale[i]
                    square[i, j] = (x.real * x.real + x.imag * x.imag) * (ratio * ratio)
                    sum_of_squares += square[i, j]
                    if i == j:
                        trace += x.real
            norm[k] = np.sqrt(sum_of_squares)
            opposite[k] = trace > SIGN * norm[k]
            if indices[k] != row and sum_of_squares < np.inf:
                for i in range(b):
                    for j in range(b):
                        total[i, j] += square[i, j]
