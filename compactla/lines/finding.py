"""Search for lines: from the coefficients of a sparse matrix, or from the coordinates of its rows."""

from itertools import pairwise

import numpy as np

from compactla.checks import as_array, check_dtype, check_size
from compactla.lines.couplings import couplings, in_blocks, proximities
from compactla.lines.extraction import check_matrix
from compactla.lines.walking import collect, ranks, walk
from compactla.types import Array, Sparse

# How much a coupling must stand out for a line to start along it, to go on, and to turn; with coordinates.
ANISOTROPY = 1.001, 2 / 3, 2.0
FARTHEST = 2.0, 2.0, 0.0


def find_lines(
    M: Sparse, block_size: int | Array = None, coordinates: Array = None, *, anisotropy: float | None = None,
    threshold: float = 0.01, min_length: int = 2,
) -> list[np.ndarray]:  # fmt: skip
    """Find the lines of a `LinePreconditioner`: the chains of block rows that are coupled most strongly.

    Lines start where the anisotropy is strongest, and are walked in both directions: from every block row to the one it
    is coupled to most strongly among those that are on no line yet. A line ends where no coupling stands out any more.
    Block rows without couplings that stand out are lines of their own. Equal couplings are taken in the order of the
    block rows: the result is always the same.

    A coupling of two block rows of a line that are not neighbours on it is a chord, which the solve along the line
    leaves out. A line breaks off at a chord, unless that is weaker than every coupling along the line between its ends,
    as a break would give up one of these: wells couple many cells of a column, and do not break it. A chord of the
    other sign than diffusion has counts a million times as much, as sweeps could diverge without it. With `coordinates`
    all chords do. A ring of block rows is opened at its weakest coupling.

    How strongly block rows i and j are coupled is the geometric mean of the norms of ``inv(M[i, i]) @ M[i, j]`` and
    ``inv(M[j, j]) @ M[j, i]``, with the unknowns of a block scaled alike in the whole matrix so that it is balanced:
    the units of equations and unknowns do not matter. A coupling that goes one way only counts a thousandth.

    Parameters
    ----------
    M : scipy.sparse BSR or CSR matrix or array, (n, n)
        The matrix: float32, float64, complex64 or complex128. Indices may be unsorted; duplicates are summed.
    block_size : int or (nrow,) array_like of int, optional
        Size b of the blocks, or of each block row; needed for CSR, taken from the matrix for BSR.
    coordinates : (nrow, dim) array_like, optional
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
    sizes = check_matrix(M, block_size)
    check_dtype(M.dtype, "M")
    needed = ANISOTROPY if coordinates is None else FARTHEST
    if anisotropy is not None:
        anisotropy = _not_negative(anisotropy, "anisotropy")
        needed = anisotropy, anisotropy, max(anisotropy, needed[2])
    threshold = _not_negative(threshold, "threshold")
    check_size(min_length, "min_length")
    nrow = len(sizes.size)
    if coordinates is not None:
        coordinates = _check_coordinates(coordinates, nrow)
    M = in_blocks(M, sizes)
    S, opposite = couplings(M) if coordinates is None else proximities(M, coordinates)
    strongest, third, weakest = ranks(S.indptr, S.data)
    around = third if coordinates is None else weakest
    least = np.maximum(np.outer(needed, around), threshold * strongest)
    if coordinates is not None:
        least = np.maximum(least, third)
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-strongest / around, kind="stable")
    link = walk(S.indptr, S.indices, S.data, M.indptr, M.indices, opposite, least, needed[2], order)
    flat, offset = collect(link, min(min_length, len(order) + 1))
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
