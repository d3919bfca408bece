"""Reads what the command line is given: matrices, lines and right-hand sides from files."""

import contextlib
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse

from compactla.lines.extraction import check_pattern
from compactla.types import Array

OUR_INDICES, SCIPY_INDICES = ("indices", "indptr"), ("indices", "indptr", "row", "col", "coords", "offsets")

# Of numbers in extended precision, which SciPy's solvers do not take.
DOUBLE = {"g": np.dtype(np.float64), "G": np.dtype(np.complex128)}


class SystemFile(NamedTuple):
    """A matrix in BSR form, and the lines and the right-hand side that its file has, if any.

    The lines are of blocks of the size that the file has, if it has blocks, which need not be that of the matrix.
    """

    M: scipy.sparse.bsr_array
    lines: np.ndarray | None
    rhs: np.ndarray | None
    block_size: int | None


def read_system(path: Any, block_size: int | None = None) -> SystemFile:
    """Read a matrix from a .npz, .mtx or .mtx.gz file.

    Parameters
    ----------
    path : str or path-like
        A Matrix Market file; or a .npz file that `scipy.sparse.save_npz` wrote; or one with the arrays `data`
        (nnzb, b, b), `indices` and `indptr` of a square BSR matrix, and perhaps `rhs` (n,) and `lines`
        (nlines, length).
    block_size : int, optional
        Size b of the blocks; needed if the file does not hold blocks.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or holds no square matrix of such blocks.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist, must be a .npz, .mtx or .mtx.gz file")
    if not str(path).endswith((".npz", ".mtx", ".mtx.gz")):
        raise ValueError(f"{path} has another ending, must be a .npz, .mtx or .mtx.gz file")
    lines = rhs = None
    if str(path).endswith((".mtx", ".mtx.gz")):
        M = _parse(path, "a matrix", lambda: _market(path))
    else:
        M, lines, rhs = _parse(path, "a matrix", lambda: _system(path))
    if not scipy.sparse.issparse(M):
        raise ValueError(f"{path} holds a dense array, must hold a sparse matrix")
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"{path} holds a matrix of shape {M.shape}, must be square")
    if M.dtype.kind not in "biufc":
        raise ValueError(f"{path} holds entries of type {M.dtype}, must hold numbers")
    if M.data.size < max(M.shape[0], 1):  # and what follows takes time and memory for every row
        raise ValueError(f"{path} holds {M.data.size} entries in {M.shape[0]} rows, must hold at least one in each")
    if not np.isfinite(M.data).all():
        raise ValueError(f"{path} holds numbers that are infinite or NaN, must hold finite ones")
    if M.dtype.kind in "biu":
        M = M.astype(np.float64)
    of_file = M.blocksize[0] if M.format == "bsr" else None
    return SystemFile(_blocked(path, M, block_size), lines, rhs, of_file)


def read_lines(path: Any) -> Any:
    """Read lines: a 2-D array from a .npy or .npz file, or text with the block rows of a line on each row.

    Block rows count from 0; in text, spaces separate them.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or holds no such array or something other than integers.
    """
    if str(path).endswith((".npy", ".npz")):
        lines = _parse(path, "lines", lambda: _array(path, "lines"))
        if lines.ndim != 2 or lines.dtype.kind not in "iu":
            raise ValueError(f"{path} holds {lines.dtype} of shape {lines.shape}, must be integers (lines, length)")
        return lines
    lines = []
    for number, text in enumerate(_parse(path, "lines", Path(path).read_text).splitlines(), start=1):
        try:
            line = [int(row) for row in text.split()]
        except ValueError as error:
            raise ValueError(f"{path}, row {number}: {text.strip()!r} must be block row numbers") from error
        if line:
            lines.append(line)
    return lines


def read_vector(path: Any, n: int) -> np.ndarray:
    """Read a vector of length n from a .npy, .npz, .mtx, .mtx.gz or text file.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read or holds something else.
    """
    if str(path).endswith((".npy", ".npz")):
        x = _parse(path, "a vector", lambda: _array(path, "rhs"))
    elif str(path).endswith((".mtx", ".mtx.gz")):
        x = _parse(path, "a vector", lambda: _market(path))
    else:
        x = _parse(path, "a vector", lambda: _text(path))
    if scipy.sparse.issparse(x) and x.shape in ((n, 1), (1, n)):
        x = x.toarray()
    return check_vector(path, x, n)


def check_vector(path: Any, x: Array, n: int) -> np.ndarray:
    """`x` as floating-point numbers in shape (n,), or a ValueError that names the file."""
    if x.shape not in ((n,), (n, 1), (1, n)) or x.dtype.kind not in "iufc":
        raise ValueError(f"{path} holds a right-hand side of {x.dtype} {x.shape}, must be numbers ({n},)")
    dtype = np.result_type(x.dtype, np.float32)
    return x.reshape(n).astype(DOUBLE.get(dtype.char, dtype), copy=False)


def _market(path):
    """What a Matrix Market file holds. SciPy warns that the class of sparse matrices will be another one."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return scipy.io.mmread(path)


def _parse(path, what, read):
    """The result of `read`; any error of a parser over a broken file becomes a ValueError."""
    try:
        return read()
    except OSError as error:
        if error.strerror is None:
            raise ValueError(f"{path} cannot be read as {what}: {error}") from error
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise ValueError(f"{path} cannot be read as {what}: {reason}") from error


@contextlib.contextmanager
def _arrays(path):
    """The arrays of a .npz file by name, read when they are asked for; that of a .npy file has the name ''."""
    with open(path, "rb") as stream:  # which NumPy leaves open if the file is broken
        file = np.load(stream)
        yield {"": file} if isinstance(file, np.ndarray) else file


def _system(path):
    """Matrix, lines and right-hand side of a .npz file."""
    with _arrays(path) as arrays:
        M = _matrix(path, arrays)
        return M, *(arrays[name] if name in arrays else None for name in ("lines", "rhs"))


def _matrix(path, arrays):
    by_scipy = "format" in arrays
    for name in SCIPY_INDICES if by_scipy else OUR_INDICES:  # which scipy.sparse would make integers of
        if name in arrays and arrays[name].dtype.kind not in "iu":
            raise ValueError(f"its array {name!r} holds {arrays[name].dtype}, must hold integers")
    M = scipy.sparse.load_npz(path) if by_scipy else _blocks(arrays)
    if M.format in ("bsr", "csr", "csc"):
        check_pattern(M)
    return M


def _blocks(arrays):
    missing = [name for name in ("data", "indices", "indptr") if name not in arrays]
    if missing:
        raise ValueError(f"it has no array {missing[0]!r}")
    data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    if data.ndim != 3 or data.shape[1] != data.shape[2] or not data.shape[1]:
        raise ValueError(f"its data has shape {data.shape}, must be (blocks, b, b)")
    n = (indptr.size - 1) * data.shape[1]
    return scipy.sparse.bsr_array((data, indices, indptr), shape=(n, n))


def _array(path, name):
    """The array of a .npy file; of a .npz file the one called `name`, or the only one."""
    with _arrays(path) as arrays:
        if len(arrays) == 1:
            (name,) = arrays
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}")
        return arrays[name]


def _text(path):
    with warnings.catch_warnings(action="error", category=UserWarning):  # of a file without numbers
        return np.loadtxt(path, ndmin=1)


def _blocked(path, M, block_size):
    if block_size is None:
        if M.format != "bsr":
            raise ValueError(f"{path} holds no blocks, their size must be given: --block-size B")
        block_size = M.blocksize[0]
    if block_size < 1:
        raise ValueError(f"--block-size is {block_size}, must be positive")
    if M.shape[0] % block_size:
        raise ValueError(f"{path} has {M.shape[0]} rows, which do not divide into blocks of {block_size}")
    if M.format == "bsr" and M.blocksize == (block_size, block_size):
        return M
    return scipy.sparse.csr_array(M).tobsr(blocksize=(block_size, block_size))
