"""Sparse matrices of one pattern: their values are packed, and a product goes through all of a pack at once."""

import numpy as np

from compactla.checks import as_array, check_dtype, check_launch, option
from compactla.layout import Pack, pack_padded
from compactla.sparse.pattern import Pattern
from compactla.view import backend


class BatchCSR:
    """A batch of sparse matrices of one pattern, on the CPU.

    Parameters
    ----------
    arg : (data, indices, indptr)
        The values of the matrices, (nm, nnz) of float32, float64, complex64 or complex128, with any strides, and their
        pattern, as of `scipy.sparse.csr_array`: the values of row i are ``data[:, indptr[i]:indptr[i + 1]]``, in the
        columns ``indices[indptr[i]:indptr[i + 1]]``, each of which is there once.
    shape : (int, int), optional
        Of a matrix; default: as many columns as there are rows.
    vlen : int, optional
        How many matrices are interleaved; default: what suits the processor.

    Attributes
    ----------
    nm, shape, nnz, dtype, vlen : int, (int, int), int, numpy.dtype, int
        Matrices, rows and columns of each, values of each, their type, and vector length.
    indices, indptr : ndarray of int64
        The pattern, with columns in ascending order.
    data : ndarray
        The packed values, (npack, nnz, V), or (npack, nnz, 2, V) of complex numbers, in the order of the pattern.
    T, H : object
        What multiplies with the transposes and the conjugate transposes: ``A.T @ x``. They are views.
    version : int
        How often the values were given anew.

    Raises
    ------
    TypeError, ValueError
        If the arguments are not of this kind.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = cla.BatchCSR((np.array([[1.0, 2, 3], [4, 5, 6]]), [0, 1, 1], [0, 2, 3]))
    >>> A @ np.ones((2, 2))
    array([[3., 3.],
           [9., 6.]])
    """

    __array_ufunc__ = None  # so that ``x @ A`` is refused, and not computed for each element of x

    def __init__(self, arg, shape=None, *, vlen=None):
        if not isinstance(arg, tuple) or len(arg) != 3:
            raise TypeError(f"arg is a {type(arg).__name__}, must be a tuple (data, indices, indptr)")
        data = as_array(arg[0], "data")
        self.dtype = check_dtype(data.dtype, "data")
        self.pattern = Pattern(*arg[1:], shape)
        self.shape, self.nnz = (self.pattern.m, self.pattern.n), len(self.pattern.indices)
        if data.ndim != 2:
            raise ValueError(f"data has shape {data.shape}, must be (nm, nnz)")
        self.nm = len(data)
        self.values = pack_padded(self._ordered(data), vlen, unit=0, queue=None)
        self.vlen, self.version = self.values.vlen, 0

    def __repr__(self):
        return (
            f"BatchCSR({self.nm} x {self.shape[0]} x {self.shape[1]}, nnz={self.nnz}, {self.dtype}, vlen={self.vlen})"
        )

    @property
    def indices(self):
        return self.pattern.indices

    @property
    def indptr(self):
        return self.pattern.indptr

    @property
    def data(self):
        return self.values.data[:, :, 0]

    @property
    def T(self):
        return Transposed(self, "T")

    @property
    def H(self):
        return Transposed(self, "C")

    def _ordered(self, data):
        """Values as matrices of one column, in the order of the pattern."""
        if data.shape != (self.nm, self.nnz):
            raise ValueError(f"data has shape {data.shape}, must be {(self.nm, self.nnz)}")
        order = self.pattern.order
        return (data if order is None else data[:, order])[:, :, None]

    def update(self, data, *, threads=None):
        """Give the matrices new values, (nm, nnz) of the same type; preconditioners follow when they are next used.

        Raises
        ------
        TypeError, ValueError
            If `data` is of another dtype or shape.
        """
        self.packed(data, self.values, threads)
        self.version += 1

    def packed(self, data, out, threads=None):
        """Other values of the same pattern, (nm, nnz), as a pack: `out`, which is written to."""
        data = as_array(data, "data")
        if data.dtype != self.dtype:
            raise TypeError(f"data: dtype is {data.dtype}, must be {self.dtype}")
        return pack_padded(self._ordered(data), None, unit=0, queue=None, out=out, threads=threads)

    def toarray(self):
        """The matrices as an ordinary array (nm, m, n)."""
        a = np.zeros((self.nm, *self.shape), self.dtype)
        a[:, self.pattern.rows, self.indices] = self.values.unpack()[:, :, 0]
        return a

    def __matmul__(self, x):
        return self.multiply(x)

    def multiply(self, x, y=None, *, alpha=1, beta=0, trans="N", threads=None):
        """alpha op(A) x + beta y, of all matrices.

        Parameters
        ----------
        x : (nm, k) or (nm, k, nrhs) array_like, or Pack
            One or more columns for each matrix; a pack has those of k x nrhs matrices.
        y : array_like or Pack, optional
            What is added to, of the shape of the result and the kind of `x`; a pack is written to.
        alpha, beta : number or (nm,) array_like
            One for all systems, or one for each. `y` is not read where beta is zero, nor A and x where alpha is.
        trans : {"N", "T", "C"}
            Whether op(A) is A, its transpose or its conjugate transpose.
        threads : int, optional
            At most how many threads work, as for `compactla.gemm`.

        Returns
        -------
        ndarray or Pack
            The products, of the kind of `x`; `y`, if that is a pack.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of this kind.
        """
        trans = option("trans", trans, "NTC")
        threads = check_launch(threads, None, None)
        m, n = self.shape if trans == "N" else self.shape[::-1]
        X, ndim = columns(x, "x", self, n)
        if isinstance(y, Pack) != isinstance(x, Pack) and y is not None:
            raise TypeError(f"y is a {type(y).__name__}, must be of the kind of x")
        if y is None:
            Y = self.values.beside(m, X.n)
        else:
            Y, given = columns(y, "y", self, m)
            if (Y.n, given) != (X.n, ndim):
                raise ValueError("y must have as many columns as x")
        plain = isinstance(alpha, int) and alpha == 1 and isinstance(beta, int) and beta == 0
        scalars = None if plain else self._scalars(alpha, beta, y)
        run = backend(None, "sparse")
        X, whole = contiguous(X), contiguous(Y)
        run.multiply(self.values, self.pattern, X, whole, trans, scalars, threads)
        if whole is not Y:
            Y.data[...] = whole.data
        return Y if isinstance(x, Pack) else as_given(Y, ndim)

    def _scalars(self, alpha, beta, y):
        both = np.zeros((self.nm, 2, 1), self.dtype)
        for k, (name, number) in enumerate((("alpha", alpha), ("beta", beta))):
            number = as_array(number, name)
            if number.shape not in ((), (self.nm,)):
                raise ValueError(f"{name} has shape {number.shape}, must be a number, or ({self.nm},)")
            if number.dtype.kind not in "biuf" + self.dtype.kind:
                raise TypeError(f"{name}: dtype is {number.dtype}, must be one of {self.dtype}")
            both[:, k, 0] = number
        if y is None and both[:, 1].any():
            raise ValueError("y is None, must be given for a beta that is not zero")
        return pack_padded(both, self.vlen, None, unit=0)


class Transposed:
    """The transposes, or conjugate transposes, of a batch of sparse matrices, to multiply with."""

    __array_ufunc__ = None

    def __init__(self, A, trans):
        self.A, self.trans, self.shape, self.dtype, self.nm = A, trans, A.shape[::-1], A.dtype, A.nm

    def __matmul__(self, x):
        return self.A.multiply(x, trans=self.trans)


class Operator:
    """What kernels apply: packed values by their pattern, and what kind of operator these are.

    For incomplete factors `diagonal` says where the diagonal is, for blocks `size` how large they are.
    """

    def __init__(self, kind, values, pattern, diagonal=None, size=1):
        self.kind, self.values, self.pattern, self.size = kind, values, pattern, size
        self.diagonal = pattern.indptr if diagonal is None else diagonal


def columns(x, name, A, n):
    """Columns of n rows for each matrix of A as a pack, and how many axes they had."""
    if isinstance(x, Pack):
        if x.queue is not None:
            raise TypeError(f"{name} lives on {x.device}, must live on the CPU as A")
        if (x.nm, x.m, x.vlen, x.dtype) != (A.nm, n, A.vlen, A.dtype):
            raise ValueError(f"{name} is {x!r}, must have {A.nm} matrices of {n} rows, {A.dtype}, vlen={A.vlen}")
        return x, 3
    x = as_array(x, name)
    if x.dtype.kind not in "biufc" or not np.can_cast(x.dtype, A.dtype, "safe"):
        raise TypeError(f"{name}: dtype is {x.dtype}, must be {A.dtype} or one that it holds")
    if x.ndim not in (2, 3) or x.shape[:2] != (A.nm, n):
        raise ValueError(f"{name} has shape {x.shape}, must be ({A.nm}, {n}) or ({A.nm}, {n}, nrhs)")
    whole = x.astype(A.dtype, copy=False)
    return pack_padded(whole[:, :, None] if x.ndim == 2 else whole, A.vlen, None, unit=0), x.ndim


def as_given(X, ndim):
    """Columns as an ordinary array of so many axes."""
    x = X.unpack()
    return x[:, :, 0] if ndim == 2 else x


def contiguous(X):
    """The pack, or a copy whose memory has no gaps."""
    if X.data.flags.c_contiguous:
        return X
    Y = X.beside(X.m, X.n)
    Y.data[...] = X.data
    return Y
