"""Few long tridiagonal systems, with which most lanes would be idle: cut into parts that are solved side by side.

Single rows, the separators, cut a system as in `compactla.lines.in_parts`: with l and u for what couples a part T to
the separators before and behind it, its unknowns are

    x = y - (inv(T) l) x_before - (inv(T) u) x_after,    T y = rhs,

and the rows of the separators, with this put in, are a tridiagonal system again, a short one. Of the parts only the
ends are needed for that, and nothing is kept: the parts are solved again, with the separators known. So are solved
systems of which each row's diagonal element is as large as its neighbours together: then all of this is no larger than
what the system has, and no part is worse conditioned. How a system is cut depends on its length alone.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from compactla.band_form import Form
from compactla.buffers import scratch
from compactla.calls.launch import Launch
from compactla.cpu.bands.systems import BandPlan, lanes_of, plan
from compactla.overlap import address

# Rows of a part and its separator: the work space of V parts fits the second cache, where they do not meet in one set.
PART = 8 * 127
LONG, FEW = 1 << 16, 2  # rows from which on, and systems up to which, it is faster
BLOCK = 32  # parts that are solved at once for their ends


def suits(form: Form, nsys: int | None, n: int, dtype: np.dtype, columns: int) -> bool:
    """Tell whether systems are few and long."""
    few = nsys is not None and nsys <= FEW and 4 * nsys <= lanes_of(dtype)
    return few and form.name == "tridiag" and columns == 1 and n >= LONG


def solve(form: Form, operands: list[np.ndarray], info: np.ndarray, launch: Launch) -> None:
    """Solve systems with one right-hand side; the operands are those of `plan`, and info is zero before."""
    rest = []
    with np.errstate(all="ignore"):
        for place in np.ndindex(operands[0].shape[:2]):
            lower, diag, upper, b, x = (a[place][:, 0] for a in operands)
            if not (is_dominant(lower, diag, upper) and in_parts(form, lower, diag, upper, b, x, launch)):
                rest.append(place)
    if rest:
        *others, X = operands
        index = tuple(np.transpose(rest))
        x = np.empty((1, len(rest), *X.shape[2:]), X.dtype)
        found = whole(form, [*(a[index][None] for a in others), x], launch)
        X[index] = x[0]
        info[np.ravel_multi_index(index, X.shape[:2])] = found


def is_dominant(lower, diag, upper):
    """Tell whether each row's diagonal element of a system is as large as its neighbours together."""
    n, count = len(diag), BLOCK * PART
    for start in range(0, n, count):
        beside = np.zeros(min(count, n - start), diag.real.dtype)
        before, after = np.abs(lower[max(start - 1, 0) : start + count - 1]), np.abs(upper[start : start + count])
        beside[len(beside) - len(before) :] += before
        beside[: len(after)] += after
        if not (np.abs(diag[start : start + count]) >= beside).all():
            return False
    return True


def whole(form, operands, launch):
    """Solve systems that are not cut, which fill operands of `plan`; returns info."""
    return run(plan(form, "once", operands[-1].dtype, operands[-1].shape[2], operands), operands, launch)


def run(found: BandPlan, operands, launch):
    """Work by a plan on operands that lie as those it was made for; returns info."""
    nsys, V = operands[0].shape[0] * operands[0].shape[1], lanes_of(operands[0].dtype)
    info = np.zeros(-(-nsys // V) * V, np.int64)
    found.run([*map(address, operands), address(info)], launch)
    return info[:nsys]


def parts_of(a, start, count, length):
    """So many parts of a vector from the row `start` on, as an operand: rows of each up to a length."""
    (step,) = a.strides
    return as_strided(a[start:], (1, count, length, 1), (0, PART * step, step, step))


def in_parts(form, lower, diag, upper, b, x, launch):
    """Solve a system that is cut, with x for its unknowns; False, and nothing is written, where a pivot is zero."""
    n, m = len(diag), PART - 1
    count, tail = divmod(n, PART)

    def operands(start, count, length):
        of_rows = zip((lower, diag, upper), (length - 1, length, length - 1), strict=True)
        return [parts_of(a, start, count, many) for a, many in of_rows]

    # The first and the last unknown of each part, for rhs, and for what couples it to the separators
    sizes = [(start, min(BLOCK, count - start), m) for start in range(0, count, BLOCK)]
    sizes += [(count, 1, tail)] * (tail > 0)
    ends = np.zeros((2, 3, count + 1), diag.dtype)
    rhs, y = scratch(diag.dtype, 2, 3 * BLOCK * m * (diag.itemsize // diag.real.itemsize)).view(diag.dtype)
    rhs, y = rhs.reshape(3, BLOCK, m), y.reshape(3, BLOCK, m)
    rhs[1:] = 0
    found, made = None, None
    for part, some, length in sizes:
        start = part * PART
        if made != (some, length):
            B, Y = (np.moveaxis(a[:, :some, :length], 0, 2)[None] for a in (rhs, y))
        rows = operands(start, some, length)
        rhs[0, :some, :length] = parts_of(b, start, some, length)[0, ..., 0]
        first = start == 0
        rhs[1, first:some, 0] = lower[start - 1 + first * PART :: PART][: some - first]
        if length == m:
            rhs[2, :some, m - 1] = upper[start + m - 1 :: PART][:some]
        if made != (some, length):
            found, made = plan(form, "once", diag.dtype, length, [*rows, B, Y]), (some, length)
        if run(found, [*rows, B, Y], launch).any():
            return False
        ends[0, :, part : part + some], ends[1, :, part : part + some] = y[:, :some, 0], y[:, :some, length - 1]

    # The separators
    (y, before, after), (last, last_before, last_after) = ends
    down, d, up, r = lower[m - 1 :: PART], diag[m::PART], np.zeros(count, diag.dtype), b[m::PART]
    beside = upper[m::PART]
    up[: len(beside)] = beside
    d = d - down * last_after[:count] - up * before[1:]
    r = r - down * last[:count] - up * y[1:]
    down, up = -(down * last_before[:count])[1:], -(up * after[1:])[:-1]
    separators = np.empty(count, diag.dtype)
    if whole(form, [a[None, None, :, None] for a in (down, d, up, r, separators)], launch).any():
        return False

    # All others, with these known
    if x is not b:
        x[:] = b
    x[m::PART] = separators
    x[m - 1 :: PART][:count] -= upper[m - 1 :: PART][:count] * separators
    behind = lower[m::PART]
    x[PART::PART] -= behind * separators[: len(behind)]
    for start, some, length in ((0, count, m), (count * PART, 1, tail)):
        if length:
            X = parts_of(x, start, some, length)
            whole(form, [*operands(start, some, length), X, X], launch)
    return True
