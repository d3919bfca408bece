"""Kronecker products and sums of small matrices, applied to many items: arrays of two, three or more axes."""

from typing import Any

import numpy as np

from compactla.backends import backend
from compactla.calls.recording import repeats
from compactla.checks import check_launch
from compactla.foreign import accepts_foreign
from compactla.kron.plans import apply
from compactla.kron.problem import KronProblem, as_sequence
from compactla.types import Array, Events


@repeats("out", "work", host=True)
def kron_apply(
    factors: Array, X: Array, out: Array = None, alpha: Array = 1, beta: Array = 0, trans: str = "NNN",
    transx: str = "N", *, work: Array = None, threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Kronecker products applied to items: Y <- alpha (op(A) x op(B) x op(C)) X + beta Y.

    With three factors, and all sums over l, m, n::

        Y[p, i, j, k] <- alpha sum op(A)[i, l] op(B)[j, m] op(C)[k, n] X[p, l, m, n] + beta Y[p, i, j, k]

    Items are read once and written once.

    Parameters
    ----------
    factors : sequence of (m, n) or (nm, m, n) array_like or pyopencl.array.Array, or Pack
        One factor for each axis of an item; a factor is one matrix for all items, or one for each. All of them live
        where X does.
    X : (nm, na, nb, nc) array_like or pyopencl.array.Array, or Pack
        The items, with an axis for each factor, of float32, float64, complex64 or complex128 and any strides; or a pack
        of na x (nb nc) matrices, or, with one factor, of columns.
    out : ndarray, pyopencl.array.Array or Pack, optional
        Y, to be written to: of the kind of `X`, of any strides, without shared memory. Default: a new one.
    alpha, beta : scalar
        Where `beta` is zero Y is overwritten, whatever it held; where `alpha` is zero factors and X are not read.
    trans : str
        A letter for each factor, "N", "T" or "C": op(A) is A, its transpose, or its conjugate transpose. With one or
        two factors there may be three letters.
    transx : {"N", "T"}
        "T": the items are transposed, X is (nm, nb, na); with two factors only.
    work : ndarray or pyopencl.array.Array, optional
        Work space from `kron_work`; then only the result is allocated. Default: work space that the thread
        keeps from call to call; on a device a new one, if it is needed.
    threads : int, optional
        Maximum number of CPU threads, as for `compactla.gemm`.
    wait_for : list of pyopencl.Event, optional
        Events to wait for before starting (devices only), as for `compactla.gemm`.

    Returns
    -------
    ndarray, pyopencl.array.Array or Pack
        Y.

    Raises
    ------
    TypeError, ValueError
        If arguments do not fit together, `out` is read-only, or shares memory with another argument or with itself.

    See Also
    --------
    compactla.kron_work, compactla.kron_sum_apply, compactla.gemm

    Notes
    -----
    On the CPU the order in which axes are taken is the one of the least work. Code is compiled for sizes up to 16, if
    all sizes are the same; all others share code. GPUs keep items in local memory; larger ones go through memory for
    each axis.

    References
    ----------
    .. [1] C. Jhurani, "Batched Kronecker product for 2-D matrices and 3-D arrays on NVIDIA GPUs", 2013.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A, B, X = np.ones((2, 3)), np.ones((5, 4)), np.ones((100, 3, 4))
    >>> Y = cla.kron_apply((A, B), X)
    >>> Y.shape, bool((Y == A @ X @ B.T).all())
    ((100, 2, 5), True)
    """
    return apply("kron", factors, X, out, alpha, beta, trans, transx, work, threads, wait_for)


@repeats("out", "work", host=True)
def kron_sum_apply(
    factors: Array, X: Array, out: Array = None, alpha: Array = 1, beta: Array = 0, trans: str = "NNN",
    transx: str = "N", *, work: Array = None, threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Kronecker sums applied to items: Y <- alpha (op(A) x I x I + I x op(B) x I + I x I x op(C)) X + beta Y.

    It is the Laplacian of tensor-product elements with the second derivatives A, B and C along their axes.

    Parameters
    ----------
    factors : sequence of (m, m) or (nm, m, m) array_like, or Pack
        Square factors, as of `kron_apply`.
    X, out, alpha, beta, trans, transx, work, threads, wait_for
        See `kron_apply`.

    Returns
    -------
    ndarray, pyopencl.array.Array or Pack
        Y.

    Raises
    ------
    TypeError, ValueError
        See `kron_apply`; also if a factor is not square.

    See Also
    --------
    compactla.kron_apply, compactla.kron_sum_solve, compactla.kron_work

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A, B, X = np.ones((3, 3)), np.ones((4, 4)), np.ones((100, 3, 4))
    >>> bool((cla.kron_sum_apply((A, B), X) == A @ X + X @ B.T).all())
    True
    """
    return apply("sum", factors, X, out, alpha, beta, trans, transx, work, threads, wait_for)


@accepts_foreign
def kron_sum_solve(
    vectors: Any, values: Any, X: Array, out: Array = None, alpha: Array = 1, beta: Array = 0, transx: str = "N", *,
    shift: Array = 0, inverses: Any = None, work: Array = None, threads: int | None = None, wait_for: Events = None,
) -> Array:  # fmt: skip
    """Systems with Kronecker sums solved by fast diagonalisation, of the factors' eigenvectors and eigenvalues.

    With A = S diag(a) S^-1, B = T diag(b) T^-1 and C = U diag(c) U^-1 this is the inverse of `kron_sum_apply`::

        Y <- alpha (A x I x I + I x B x I + I x I x C + shift I)^-1 X + beta Y
           = alpha (S x T x U) D (S^-1 x T^-1 x U^-1) X + beta Y,    D = 1 / (a[i] + b[j] + c[k] + shift)

    Parameters
    ----------
    vectors : sequence of (m, m) or (nm, m, m) array_like, or Pack
        Eigenvectors S, T, U, in columns, as of `numpy.linalg.eigh`.
    values : sequence of (m,) or (nm, m) array_like or pyopencl.array.Array
        Eigenvalues a, b, c, in numbers of X or real ones of their precision.
    X, out, alpha, beta, transx, threads, wait_for
        See `kron_apply`.
    shift : scalar
        Number that is added to all sums of eigenvalues.
    inverses : sequence, optional
        S^-1, T^-1, U^-1, as `vectors`. Default: the conjugate transposes. Where the eigenvectors are those of pencils
        (K, M), as of ``scipy.linalg.eigh(K, M)``, with S^H M S = I, that default makes this the inverse of
        K x M x M + M x K x M + M x M x K + shift M x M x M.
    work : ndarray or pyopencl.array.Array, optional
        Work space from ``kron_work(..., solve=True)``, as of `kron_apply`.

    Returns
    -------
    ndarray, pyopencl.array.Array or Pack
        Y; not finite where a sum of eigenvalues is zero.

    Raises
    ------
    TypeError, ValueError
        See `kron_apply`; also if eigenvalues do not fit eigenvectors.

    See Also
    --------
    compactla.kron_sum_apply, compactla.kron_work

    References
    ----------
    .. [1] R. E. Lynch, J. R. Rice and D. H. Thomas, "Direct solution of partial difference equations by tensor product
       methods", Numer. Math. 6, 1964.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A = np.array([[2.0, 1], [1, 2]])
    >>> a, S = np.linalg.eigh(A)
    >>> X = np.ones((100, 2, 2))
    >>> Y = cla.kron_sum_solve((S, S), (a, a), X)
    >>> np.allclose(cla.kron_sum_apply((A, A), Y), X)
    True
    """
    problem = KronProblem(vectors, X, "N" * len(as_sequence(vectors, "vectors")), transx, name="vectors")
    problem.check_square("vectors")
    problem.diagonalise(values, shift, inverses)
    return problem.run("solve", out, alpha, beta, work, threads, wait_for)


@accepts_foreign
def kron_work(
    factors: Array, X: Array, trans: str = "NNN", transx: str = "N", *, sum: bool = False, solve: bool = False,
    threads: int | None = None,
) -> Array:  # fmt: skip
    """Work space for `kron_apply` with such arguments, or for `kron_sum_apply` or `kron_sum_solve`.

    Parameters
    ----------
    factors, X, trans, transx
        Arguments of the call that it is for; `vectors` of `kron_sum_solve` are factors.
    sum, solve : bool
        Whether it is for `kron_sum_apply`, or `kron_sum_solve`.
    threads : int, optional
        Maximum number of CPU threads, as for `kron_apply`.

    Returns
    -------
    ndarray or pyopencl.array.Array
        An array of one axis, where X lives and of its type. It can be used in one call at a time, and for fewer items.

    See Also
    --------
    compactla.kron_apply, compactla.kron_sum_apply, compactla.kron_sum_solve

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> A, X = np.eye(3), np.ones((10, 3, 3))
    >>> work = cla.kron_work((A, A), X)
    >>> cla.kron_apply((A, A), X, work=work).shape
    (10, 3, 3)
    """
    problem = KronProblem(factors, X, trans, transx)
    launch = check_launch(threads, None, problem.queue)
    name = "solve" if solve else "sum" if sum else "kron"
    if solve:
        problem.diagonalise([np.ones(n, problem.dtype) for n in problem.d], 0, None)
    size = problem.needed(name, problem.made(), launch)[0]
    return backend(problem.queue).empty((size,), problem.dtype, problem.queue)
