"""Batch-level BLAS: arguments are checked here, once, and the work is done where the packs live."""

import cmath

import numpy as np

from compactla.checks import as_array, check_launch, option
from compactla.layout import Pack
from compactla.overlap import share_memory
from compactla.view import lower_left

NUMBERS = int, float  # of Python, and NumPy's float64
OVERFLOW = 2.0**128 - 2.0**103  # the least number that is rounded to infinity in single precision


def gemm(A, B, C, alpha=1, beta=0, transa="N", transb="N", threads=None, wait_for=None) -> Pack:
    """Matrix products C <- alpha op(A) op(B) + beta C, in place.

    Parameters
    ----------
    A, B, C : Pack
        nm matrices each, op(A) of m x k, op(B) of k x n, C of m x n, with the same dtype, vector length and device.
    alpha, beta : scalar
        Where `beta` is zero C is overwritten, whatever it held; where `alpha` is zero A and B are not read.
    transa, transb : {"N", "T", "C"}
        op(X) is X, its transpose, or its conjugate transpose.
    threads : int, optional
        At most how many threads work on packs on the CPU, the calling one included. Default, and limit: the environment
        variable NUMBA_NUM_THREADS, or the number of processors. Small batches are not shared out.
    wait_for : list of pyopencl.Event, optional
        What a device waits for before it begins, beside the events of the arrays.

    Returns
    -------
    Pack
        C. On a device this does not wait until the work is done: ``C.data.events`` ends with its event.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, C is read-only or shares memory with A or B, an option is unknown,
        `threads` is not a positive integer, or given for packs on a device, or `wait_for` for packs on the CPU.

    Notes
    -----
    BLAS ``?gemm``, Intel MKL ``mkl_?gemm_compact``.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.ones((100, 3, 4)), np.ones((100, 4, 2))
    >>> C = cla.gemm(cla.pack(a), cla.pack(b), cla.Pack.zeros(100, 3, 2))
    >>> bool((C.unpack() == a @ b).all())
    True
    """
    if not type(A) is type(B) is type(C) is Pack or not A.kind == B.kind == C.kind:
        check_packs(A=A, B=B, C=C)
    a, b, c = A.view, B.view, C.view
    if transa != "N" and option("transa", transa, "NTC") != "N":
        a = a.T
    if transb != "N" and option("transb", transb, "NTC") != "N":
        b = b.T
    if a.m != c.m or b.n != c.n or a.n != b.m:
        raise ValueError(
            f"C is {c.m} x {c.n}, must be {a.m} x {b.n}: op(A) is {a.m} x {a.n} and op(B) is {b.m} x {b.n}"
            if a.n == b.m
            else f"op(B) is {b.m} x {b.n}, must have the {a.n} rows that op(A) has columns"
        )
    alpha, beta = scalar("alpha", alpha, C), scalar("beta", beta, C)
    if a.n == 0:  # an empty sum is zero, whatever multiplies it
        alpha = type(alpha)(0)
    check_output("CAB", c, a, b)
    launch = check_launch(threads, wait_for, C.queue)
    conja, conjb = C.is_complex and transa in "Cc", C.is_complex and transb in "Cc"
    c.run.gemm(a, b, c, alpha, beta, conja, conjb, launch)
    return C


def trsm(A, B, side="L", uplo="L", trans="N", diag="N", alpha=1, threads=None, wait_for=None) -> Pack:
    """Triangular solves B <- alpha inv(op(A)) B, or B <- alpha B inv(op(A)), in place.

    Parameters
    ----------
    A : Pack
        nm triangular matrices, of m x m for side "L", of n x n for side "R". The other triangle is not read.
    B : Pack
        nm right-hand sides of m x n, with A's dtype, vector length and device.
    side : {"L", "R"}
        On which side of the unknown op(A) stands.
    uplo : {"L", "U"}
        Whether A is lower or upper triangular.
    trans : {"N", "T", "C"}
        op(A) is A, its transpose, or its conjugate transpose.
    diag : {"N", "U"}
        "U": the diagonal is taken as ones and not read.
    alpha : scalar
        Where it is zero, B becomes zero and A is not read.
    threads : int, optional
        At most how many threads work on packs on the CPU, as for `gemm`.
    wait_for : list of pyopencl.Event, optional
        What a device waits for first, as for `gemm`.

    Returns
    -------
    Pack
        B. Division by an exactly zero pivot gives infinities or NaNs, in that matrix only.

    Raises
    ------
    TypeError, ValueError
        If the packs do not fit together, B is read-only or shares memory with A, an option is unknown, or `threads` or
        `wait_for` is not what `gemm` takes.

    Notes
    -----
    BLAS ``?trsm``, Intel MKL ``mkl_?trsm_compact``. Pivots are divided by through their reciprocals, which overflow for
    subnormal pivots: the solution is then not finite either, and matrices of so small entries have to be scaled first.

    Examples
    --------
    >>> import compactla as cla, numpy as np
    >>> a, b = np.tril(np.ones((100, 3, 3))), np.ones((100, 3, 2))
    >>> X = cla.trsm(cla.pack(a), cla.pack(b))
    >>> bool(np.allclose(a @ X.unpack(), b))
    True
    """
    if not type(A) is type(B) is Pack or A.kind != B.kind:
        check_packs(A=A, B=B)
    side, uplo = option("side", side, "LR"), option("uplo", uplo, "LU")
    trans, diag = option("trans", trans, "NTC"), option("diag", diag, "NU")
    size = B.m if side == "L" else B.n
    if (A.m, A.n) != (size, size):
        raise ValueError(f"A is {A.m} x {A.n}, must be {size} x {size}: B is {B.m} x {B.n} and side is {side!r}")
    alpha = scalar("alpha", alpha, B)
    check_output("BA", B.view, A.view)
    launch = check_launch(threads, wait_for, B.queue)
    a, b = lower_left(A.view, B.view, side, uplo, trans)
    b.run.trsm(a, b, alpha, trans == "C" and B.is_complex, diag == "U", launch)
    return B


def scalar(name, value, target):
    """The scalar as a Python number, complex for a complex pack `target`."""
    if not isinstance(value, NUMBERS):
        try:
            given = as_array(value, name)
        except ValueError:
            given = None
        if given is None or given.ndim or given.dtype.kind not in "biufc":
            raise TypeError(f"{name} is {value!r}, must be a number")
        if given.dtype.kind == "c" and not target.is_complex:
            raise TypeError(f"{name} is complex, must be real for packs of {target.dtype}")
    elif -OVERFLOW < value < OVERFLOW:
        return complex(value) if target.is_complex else float(value)
    try:
        number = complex(value) if target.is_complex else float(value)
    except OverflowError:
        number = cmath.inf
    if max(abs(number.real), abs(number.imag)) < OVERFLOW:
        return number
    with np.errstate(over="ignore"):
        rounded = target.dtype.type(number)
    if cmath.isfinite(number) != cmath.isfinite(rounded) or number == number != value:
        raise ValueError(f"{name} is {value!r}, must be in the range of {target.dtype}")
    return number


def check_packs(**packs) -> None:
    """Refuse packs that do not agree with the last of them."""
    for name, P in packs.items():
        if not isinstance(P, Pack):
            raise TypeError(f"{name} is a {type(P).__name__}, must be a Pack (see compactla.pack)")
    last, reference = next(reversed(packs.items()))
    for name, P in packs.items():
        if P.kind == reference.kind:
            continue
        if P.dtype != reference.dtype:
            raise TypeError(f"{name} is of {P.dtype}, must be of {reference.dtype} as {last}")
        if P.vlen != reference.vlen:
            raise ValueError(f"{name} has vector length {P.vlen}, must have {reference.vlen} as {last}")
        if P.nm != reference.nm:
            raise ValueError(f"{name} has {P.nm} matrices, must have {reference.nm} as {last}")
        if P.device == reference.device:
            raise ValueError(f"{name} lives in another OpenCL context than {last}, must live in the same: see Pack.to")
        raise ValueError(f"{name} lives on {P.device!s}, must live on {reference.device!s} as {last}: see Pack.to")


def check_output(names, written, *inputs) -> None:
    """Refuse to write to read-only memory, to one place several times, or to memory that is read too.

    `names` has a letter for each of the views.
    """
    if written.queue is None and not written.buffer.flags.writeable:
        raise ValueError(f"{names[0]} is read-only, must be writeable")
    if written.repeats:
        strides = written.buffer.strides
        raise ValueError(f"{names[0]} has strides {strides}, must have memory of its own for every element")
    start, end = written.span
    for i, read in enumerate(inputs, 1):
        first, last = read.span
        if start < last and first < end and share_memory(written.buffer, read.buffer):
            name, other = names[0], names[i]
            raise ValueError(f"{name} shares memory with {other}, must not: it is written while {other} is read")
