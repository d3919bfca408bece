"""Which block rows form lines, found from the coefficients of a sparse matrix or from where its rows lie in space."""

from itertools import pairwise

import numpy as np
import scipy.sparse
from numba.extending import register_jitable

from compactla.checks import as_array, check_dtype, check_size
from compactla.cpu.kernel import compiled_once
from compactla.lines.extraction import check_matrix
from compactla.types import Array, Sparse

# How much a coupling must stand out for a line to start along it, to go on, and to turn; with coordinates.
ANISOTROPY = 1.001, 2 / 3, 2.0
FARTHEST = 2.0, 2.0, 0.0
TINY = 1e-140  # distance whose square may be too small to be exact
# Weight of a coupling that goes one way only, against one that goes both ways.
ONE_WAY = 1e-3
# Weight of a coupling whose square underflows to zero.
FAINT = 1e-160
# How often the scale of every unknown is set anew: it need not be exact.
SWEEPS = 20


def find_lines(
    M: Sparse, block_size: int | None = None, coordinates: Array = None, *, anisotropy: float | None = None,
    threshold: float = 0.01, min_length: int = 2,
) -> list[np.ndarray]:  # fmt: skip
    """Find the lines of a `LinePreconditioner`: the chains of block rows that are coupled most strongly.

    Lines start where the anisotropy is strongest, and are walked in both directions: from every block row to the one it
    is coupled to most strongly among those that are on no line yet. A line ends where no coupling stands out any more.
    Lines have no chords: no block row is coupled to another of its line but its neighbours on it, so that the solve
    along the line leaves no coupling out. Block rows without couplings that stand out are lines of their own. Equal
    couplings are taken in the order of the block rows: the result is always the same.

    How strongly block rows i and j are coupled is the geometric mean of the norms of ``inv(M[i, i]) @ M[i, j]`` and
    ``inv(M[j, j]) @ M[j, i]``, with the unknowns of a block scaled alike in the whole matrix so that it is balanced:
    the units of equations and unknowns do not matter. A coupling that goes one way only counts a thousandth.

    Parameters
    ----------
    M : scipy.sparse BSR or CSR matrix or array, (n, n)
        The matrix: float32, float64, complex64 or complex128. Indices may be unsorted; duplicates are summed.
    block_size : int, optional
        Size b of the blocks; needed for CSR, taken from the matrix for BSR.
    coordinates : (n / b, dim) array_like, optional
        Where the block rows lie. Given these, only the pattern of `M` counts, and how strongly two block rows are
        coupled is 1 over their distance, as in Ifpack2: a line goes to the nearest two of the neighbours, where the
        farthest is far enough away.
    anisotropy : float, optional
        How much a coupling must stand out, at both of its ends: a line only goes along those that are more than so many
        times as strong as the third strongest of the block row. Default: 1.001 where a line starts, so that a grid that
        is the same in all directions has no lines, 2/3 where it goes on, so that it does not break off where cells are
        about as long as high, and 2 where it turns a corner. With `coordinates`: as the weakest of the block row, where
        the default is 2; its inverse is Ifpack2's line detection threshold.
    threshold : float, optional
        A line does not go along couplings weaker than this fraction of the strongest one at either of its ends.
    min_length : int, optional
        Shorter lines are taken apart into lines of one block row.

    Returns
    -------
    list of (length,) arrays of int64
        The block rows along each line, every block row on exactly one; views of one array. A line starts at the lower
        numbered of its ends, and they are in the order of these.

    Raises
    ------
    TypeError
        If `M` is not such a matrix, its dtype is none of the above, or an argument is of the wrong type.
    ValueError
        If `M` is malformed, not square or does not divide into square blocks, `coordinates` has another shape or is not
        finite, or a number is out of range.

    See Also
    --------
    compactla.LinePreconditioner, compactla.LineRelaxation

    References
    ----------
    .. [1] D. J. Mavriplis, "Multigrid strategies for viscous flow solvers on anisotropic unstructured meshes",
       J. Comput. Phys. 145 (1998): lines from the strongest anisotropy.
    .. [2] ``Ifpack2::LinePartitioner`` of Trilinos: lines from coordinates.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> import compactla as cla
    >>> T = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(3, 3))
    >>> M = sp.kronsum(T, 100 * T, format="csr")             # couplings 3 rows apart are the strong ones
    >>> [line.tolist() for line in cla.find_lines(M, block_size=1)]
    [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    """
    b = check_matrix(M, block_size)
    check_dtype(M.dtype, "M")
    needed = ANISOTROPY if coordinates is None else FARTHEST
    if anisotropy is not None:
        anisotropy = _not_negative(anisotropy, "anisotropy")
        needed = anisotropy, anisotropy, max(anisotropy, needed[2])
    threshold = _not_negative(threshold, "threshold")
    check_size(min_length, "min_length")
    nrow = M.shape[0] // b
    if coordinates is not None:
        coordinates = _check_coordinates(coordinates, nrow)
    if M.format != "bsr" or not M.has_canonical_format:
        M = M.tocsr().tobsr(blocksize=(b, b))
    S = _couplings(M) if coordinates is None else _proximities(M, coordinates)
    S.sort_indices()
    strongest, third, weakest = _ranks(S.indptr, S.data)
    around = third if coordinates is None else weakest
    least = np.maximum(np.outer(needed, around), threshold * strongest)
    if coordinates is not None:
        least = np.maximum(least, third)
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-strongest / around, kind="stable")
    flat, offset = _collect(_walk(S.indptr, S.indices, S.data, least, order), min(min_length, len(order) + 1))
    return [flat[start:stop] for start, stop in pairwise(offset.tolist())]


def _not_negative(value, name) -> float:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, must be a number")
    try:
        number = float(value)
    except OverflowError:  # of an integer
        number = np.inf
    if not 0 <= number < np.inf:
        raise ValueError(f"{name} is {value}, must be finite and not negative")
    return number


def _check_coordinates(coordinates, nrow) -> np.ndarray:
    coordinates = as_array(coordinates, "coordinates")
    if coordinates.dtype.kind not in "iuf":
        raise TypeError(f"coordinates: dtype is {coordinates.dtype}, must be real numbers")
    if coordinates.ndim != 2 or coordinates.shape[0] != nrow:
        raise ValueError(f"coordinates has shape {coordinates.shape}, must be ({nrow}, dim)")
    with np.errstate(over="ignore"):
        coordinates = coordinates.astype(np.float64, copy=False)
    if not np.isfinite(coordinates).all():
        raise ValueError("coordinates holds numbers that are infinite or NaN, must hold finite ones")
    return coordinates


def _couplings(M) -> scipy.sparse.csr_array:
    """How strongly the block rows of `M` are coupled: a symmetric matrix without a diagonal."""
    b = M.blocksize[0]
    pattern, data = (M.indptr, M.indices), np.ascontiguousarray(M.data)
    inverse = np.empty((len(M.indptr) - 1, b, b), np.result_type(M.dtype, np.float64))
    _invert_diagonal(*pattern, data, inverse)
    norm, total = np.empty(len(data)), np.zeros((b, b))
    _norms(*pattern, data, inverse, np.ones(b), norm, total)
    if b > 1:
        _norms(*pattern, data, inverse, _balance(total), norm, total)
    zero = np.flatnonzero(norm == 0)
    norm[zero[data[zero].any(axis=(1, 2))]] = FAINT
    A = _graph(M, norm)
    B = A.T.tocsr()
    with np.errstate(over="ignore", invalid="ignore"):  # of blocks that are not finite, which nothing follows
        return A.multiply(B).sqrt().maximum(ONE_WAY * A.maximum(B)).tocsr()


def _balance(total) -> np.ndarray:
    """The scale for which rows and columns of ``total * scale**2 / scale[:, None]**2`` have the same sums."""
    scale = np.ones(len(total))
    total = total - np.diag(total.diagonal())
    for k in list(range(len(total))) * SWEEPS:
        column, row = total[:, k] @ scale**-2.0, total[k] @ scale**2
        if column > 0 and row > 0:
            scale[k] = (row / column) ** 0.25
    return scale


def _proximities(M, coordinates) -> scipy.sparse.csr_array:
    """1 / distance of all block rows that are coupled in `M`, in units of about the size of the whole."""
    A = _graph(M, np.ones(M.indptr[-1]))
    S = A.maximum(A.T).tocsr()
    row = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    coordinates = np.ldexp(coordinates, -1 - np.frexp(abs(coordinates).max(initial=0))[1])
    step = coordinates[row] - coordinates[S.indices]
    distance = np.linalg.norm(step, axis=1)
    tiny = distance < TINY
    longest = abs(step[tiny]).max(axis=1, keepdims=True, initial=np.finfo(np.float64).smallest_subnormal)
    distance[tiny] = longest[:, 0] * np.linalg.norm(step[tiny] / longest, axis=1)
    with np.errstate(divide="ignore", over="ignore"):
        S.data = 1 / distance
    return S


def _graph(M, weight) -> scipy.sparse.csr_array:
    """The block rows that are coupled in `M`, each other than itself and with a weight other than 0."""
    nrow = len(M.indptr) - 1
    row = np.repeat(np.arange(nrow, dtype=M.indices.dtype), np.diff(M.indptr))
    weight = np.where(row == M.indices[: len(row)], 0, weight[: len(row)])
    A = scipy.sparse.csr_array((weight, M.indices[: len(row)], M.indptr), shape=(nrow, nrow), copy=True)
    A.eliminate_zeros()
    return A


@compiled_once
def _invert_diagonal(indptr, indices, data, inverse):
    """The inverses of the diagonal blocks; of a singular one, 1 over the largest number of each of its rows."""
    b = data.shape[1]
    a, largest = np.empty((b, b), inverse.dtype), np.empty(b)
    for row in range(len(indptr) - 1):
        x = inverse[row]
        a[:], x[:], largest[:] = 0, 0, 0
        for k in range(indptr[row], indptr[row + 1]):
            for i in range(b):
                for j in range(b):
                    largest[i] = max(largest[i], abs(data[k, i, j]))
                    if indices[k] == row:
                        a[i, j] = data[k, i, j]
        for i in range(b):
            x[i, i] = 1
        for k in range(b):  # Gauss-Jordan elimination with partial pivoting
            p = k
            for i in range(k + 1, b):
                if abs(a[i, k]) > abs(a[p, k]):
                    p = i
            if not 0 < abs(a[p, k]) < np.inf:
                x[:] = 0
                for i in range(b):
                    x[i, i] = 1 / largest[i] if largest[i] > 0 else 0
                break
            pivot = 1 / a[p, k]
            for j in range(b):
                a[k, j], a[p, j] = a[p, j], a[k, j]
                x[k, j], x[p, j] = x[p, j], x[k, j]
                a[k, j] *= pivot
                x[k, j] *= pivot
            for i in range(b):
                factor = a[i, k]
                if i != k:
                    for j in range(b):
                        a[i, j] -= factor * a[k, j]
                        x[i, j] -= factor * x[k, j]


@compiled_once
def _norms(indptr, indices, data, inverse, scale, norm, total):
    """Frobenius norms of ``inverse[i] @ M[i, j] * scale / scale[:, None]`` for all blocks (i, j).

    The squares of the numbers in all that are finite and off the diagonal are added to `total`.
    """
    b = data.shape[1]
    square = np.empty((b, b))
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            sum_of_squares = 0.0
            for i in range(b):
                for j in range(b):
                    x = inverse[row, i, 0] * data[k, 0, j]
                    for m in range(1, b):
                        x += inverse[row, i, m] * data[k, m, j]
                    square[i, j] = (x.real * x.real + x.imag * x.imag) * (scale[j] / scale[i]) ** 2
                    sum_of_squares += square[i, j]
            norm[k] = np.sqrt(sum_of_squares)
            if indices[k] != row and sum_of_squares < np.inf:
                for i in range(b):
                    for j in range(b):
                        total[i, j] += square[i, j]


@compiled_once
def _ranks(indptr, strength):
    """The strongest, the third strongest and the weakest coupling of every block row; 0 where there is none."""
    nrow = len(indptr) - 1
    strongest, third, weakest = np.zeros(nrow), np.zeros(nrow), np.zeros(nrow)
    for i in range(nrow):
        first = second = last = 0.0
        least = np.inf
        for k in range(indptr[i], indptr[i + 1]):
            s = strength[k]
            least = min(least, s)
            if s > first:
                first, second, last = s, first, second
            elif s > second:
                second, last = s, second
            elif s > last:
                last = s
        strongest[i], third[i] = first, last
        if least < np.inf:
            weakest[i] = least
    return strongest, third, weakest


@compiled_once
def _walk(indptr, indices, strength, least, order):
    """Lines as links: the two block rows (nrow, 2) beside each one on its line, or -1.

    Lines start at block rows in this order, along couplings of more than ``least[0]`` at both ends, and go on along
    those of more than ``least[1]``, or ``least[2]`` where they turn. They have no chords. Indices are sorted.
    """
    line, link = np.full(len(order), -1), np.full((len(order), 2), -1)
    for start in order:
        if line[start] >= 0:
            continue
        line[start] = start
        for side in range(2):
            before, row, slot = link[start, 0], start, side
            while True:
                following = _follow(indptr, indices, strength, least, line, before, row)
                if following < 0:
                    break
                line[following] = start
                link[row, slot] = following
                link[following, 0] = row
                before, row, slot = row, following, 1
    return link


@register_jitable
def _follow(indptr, indices, strength, least, line, before, row):
    """The block row that a line goes on to from its end `row`; -1 if it ends there. Before that end it has `before`."""
    enough = least[0] if before < 0 else least[1]
    strongest, most = -1, 0.0
    for k in range(indptr[row], indptr[row + 1]):
        other, s = indices[k], strength[k]
        if line[other] < 0 and s > max(most, enough[row], enough[other]):
            strongest, most = other, s
    if strongest < 0 or _may_follow(indptr, indices, strength, least, line, before, row, strongest, most):
        return strongest
    following, most = -1, 0.0
    for k in range(indptr[row], indptr[row + 1]):
        other, s = indices[k], strength[k]
        if line[other] < 0 and s > max(most, enough[row], enough[other]):
            if _may_follow(indptr, indices, strength, least, line, before, row, other, s):
                following, most = other, s
    return following


@register_jitable
def _may_follow(indptr, indices, strength, least, line, before, row, other, s):
    """Whether a line may go on to a block row, that it is coupled to by `s`: without a chord, nor a weak turn."""
    if _has_chord(indptr, indices, line, row, other):
        return False
    weak = before >= 0 and s <= max(least[2, row], least[2, other])
    return not (weak and _turns(indptr, indices, strength, before, row, other, s))


@register_jitable
def _has_chord(indptr, indices, line, row, other):
    """Whether `other` is coupled to a block row of the line that ends with `row` before that."""
    for k in range(indptr[other], indptr[other + 1]):
        if line[indices[k]] == line[row] and indices[k] != row:
            return True
    return False


@register_jitable
def _turns(indptr, indices, strength, before, row, other, s):
    """Whether a line that comes from `before` turns at `row`, around a corner of the cell between its neighbours.

    That corner is coupled to both, and more strongly to `other` than `row` is by `s`, or not to `row`.
    """
    m, stop = indptr[before], indptr[before + 1]
    for k in range(indptr[other], indptr[other + 1]):
        corner = indices[k]
        while m < stop and indices[m] < corner:
            m += 1
        if m < stop and indices[m] == corner != row:
            if strength[k] > s or not _coupled(indptr, indices, corner, row):
                return True
    return False


@register_jitable
def _coupled(indptr, indices, row, other):
    for k in range(indptr[row], indptr[row + 1]):
        if indices[k] == other:
            return True
    return False


@compiled_once
def _collect(link, min_length):
    """The block rows of all lines one after the other, and where each starts."""
    nrow = len(link)
    flat, offset = np.empty(nrow, np.int64), np.zeros(nrow + 1, np.int64)
    done = np.zeros(nrow, np.bool_)
    nline = filled = 0
    for end in range(nrow):
        if done[end] or (link[end, 0] >= 0 and link[end, 1] >= 0):
            continue
        start, before, row = filled, -1, end
        while row >= 0:
            flat[filled] = row
            done[row] = True
            filled += 1
            following = link[row, 0] if link[row, 0] != before else link[row, 1]
            before, row = row, following
        if filled - start >= min_length:
            nline += 1
            offset[nline] = filled
        else:
            for stop in range(start + 1, filled + 1):
                nline += 1
                offset[nline] = stop
    return flat, offset[: nline + 1]
