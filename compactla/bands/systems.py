"""What classes of band matrices share: arrays of systems, and how they are factored and solved."""

import math

import numpy as np

from compactla.bands.form import Form
from compactla.checks import as_array, check_dtype, check_launch
from compactla.copies import Copied
from compactla.cpu import bands as cpu
from compactla.linalg.places import steady
from compactla.lines.vectors import check_apart
from compactla.overlap import repeats


class Systems(Copied):
    """Systems of n equations, with one band matrix for each or one for all.

    Attributes
    ----------
    n : int
        Number of unknowns of a system.
    nsys : int or None
        Number of systems; None where one matrix is shared by as many as there are right-hand sides.
    dtype : numpy.dtype
        That of the matrices.
    queue : pyopencl.CommandQueue or None
        Where they live; None on the CPU.
    info : (nsys,) ndarray of int64, or None
        What the last factorization met, which may have been that of a solve: see `factor`; None before it.
    """

    def _adopt(self, form: Form, given: dict, matrix, axis=None):
        """Take matrices: diagonals (..., n) as views of the arrays that were given, by their names."""
        self._form, self._given, self._axis = form, given, axis
        self._matrix = [diagonal[..., None] for diagonal in matrix]
        main = matrix[len(matrix) // 2]
        self._lead, self.n = main.shape[:-1], main.shape[-1]
        self.nsys = math.prod(self._lead) if self._lead else None
        self.dtype, self.queue = main.dtype, None
        self.info = self._factors = None

    def factor(self, *, threads=None, wait_for=None) -> np.ndarray:
        """Factor all matrices, and keep the factors.

        Parameters
        ----------
        threads : int, optional
            At most how many threads work on the CPU, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

        Returns
        -------
        (nsys,) ndarray of int64
            For each matrix 0, or 1 + the index of its first pivot that is exactly zero (of positive definite ones: that
            is not positive). Of singular rings it is any of 1 to n. Where a matrix is shared there is one.

        Notes
        -----
        The arrays that were given are read now, and may be filled with new values before a call. They are not written.
        """
        launch = check_launch(threads, wait_for, self.queue)
        self._factors, self.info = self._factored(launch)
        return self.info

    def _factored(self, launch):
        nsys, factors = math.prod(self._lead), None
        info = padded(nsys, self.dtype)
        if nsys:
            factors = cpu.new_factors(self._form, nsys, self.n, self.dtype)
            operands = in_two(self._matrix, self._lead)
            cpu.run(self._form, "factor", self.dtype, self.n, operands, launch, factors=factors, info=info)
        return factors, info[:nsys]

    def solve(self, rhs, *, axis=None, out=None, threads=None, wait_for=None):
        """Solve for right-hand sides: with factors, if there are, else factor on the way and keep nothing.

        Parameters
        ----------
        rhs : (nsys, n) or (nsys, n, nrhs) array_like
            Right-hand sides, of a dtype that casts to that of the matrices; of any shape with `axis`. Shared matrices
            take any number of systems, or (n,).
        axis : int, optional
            The axis of `rhs` along which systems are. The others number them, the last one fastest.
        out : ndarray, optional
            Where the solutions are written to: of the shape of `rhs` and the dtype of the matrices, of any strides. It
            may be `rhs`.
        threads : int, optional
            At most how many threads work on the CPU, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            What a device waits for first, as for `compactla.gemm`.

        Returns
        -------
        ndarray
            `out`, or the solutions in a new array of the shape of `rhs`. Those of systems that `info` names are
            meaningless.

        Raises
        ------
        TypeError, ValueError
            If `rhs` is of another shape or of a dtype that does not cast; if `out` is of another kind, dtype or shape,
            is read-only, has several elements in one place, or shares memory with the matrices or, without being the
            same, with `rhs`; or if an option is not as above.
        """
        rhs = as_array(rhs, "rhs")
        if rhs.dtype != self.dtype and not np.can_cast(rhs.dtype, self.dtype, "same_kind"):
            raise TypeError(f"rhs: dtype is {rhs.dtype}, must cast to {self.dtype}")
        axis = self._check_axis(rhs, axis)
        self._check_out(out, rhs)
        launch = check_launch(threads, wait_for, self.queue)
        given = rhs
        rhs = rhs if rhs.dtype == self.dtype else rhs.astype(self.dtype)
        x = np.empty_like(given, self.dtype, subok=False) if out is None else out
        if rhs.size:
            self._solve(vectors(rhs, axis), vectors(x, axis), launch)
        return x

    def _solve(self, B, X, launch):
        """Solve for arrays (..., n, nrhs)."""
        matrix, factors, info = [], self._factors, None
        lead = max(self._lead, B.shape[:-2], key=len)
        if factors is None and (self.nsys is None or B.shape[-1] > cpu.FEW):
            factors, self.info = self._factored(launch)
        elif factors is None:
            info, matrix = padded(self.nsys, self.dtype), self._matrix
        operands = in_two([*matrix, B, X], lead)
        if operands is None:  # strides of more than two axes
            B = np.array(B, order="C")
            operands = in_two([*map(np.ascontiguousarray, matrix), B, B], lead)
        action, common = "once" if factors is None else "solve", self.nsys is None
        keywords = {"info": info} if factors is None else {"factors": factors, "common": common}
        cpu.run(self._form, action, self.dtype, self.n, operands, launch, **keywords)
        if info is not None:
            self.info = info[: self.nsys]
        if operands[-1].base is B or operands[-1] is B:
            X[...] = B

    def _check_axis(self, rhs, axis):
        """The axis of `rhs` along which systems are; None for the last but one if the last are right-hand sides."""
        axis = self._axis if axis is None else axis
        n, nsys = self.n, self.nsys
        if axis is not None:
            axis = check_axis(axis, rhs, "rhs")
            rest = rhs.shape[:axis] + rhs.shape[axis + 1 :]
            fits = rhs.shape[axis] == n and (nsys is None or rest == self._lead or math.prod(rest) == nsys)
            if not fits or (len(self._lead) > 1 and len(rest) > 1 and rest != self._lead):
                systems = "" if nsys is None else f" and {nsys} systems along the others"
                raise ValueError(f"rhs has shape {rhs.shape}, must have {n} along axis {axis}{systems}")
            return axis
        if nsys is None and rhs.shape == (n,):
            return 0
        if rhs.ndim not in (2, 3) or rhs.shape[1] != n or (nsys is not None and rhs.shape[0] != nsys):
            count = "nsys" if nsys is None else nsys
            raise ValueError(f"rhs has shape {rhs.shape}, must be ({count}, {n}) or ({count}, {n}, nrhs)")
        return 1 if rhs.ndim == 2 else None

    def _check_out(self, out, rhs):
        if out is None:
            return
        if type(out) is not np.ndarray:
            raise TypeError(f"out is a {type(out).__name__}, must be a NumPy array")
        if out.dtype != self.dtype:
            raise TypeError(f"out: dtype is {out.dtype}, must be {self.dtype}")
        if out.shape != rhs.shape:
            raise ValueError(f"out has shape {out.shape}, must be {rhs.shape} as rhs")
        if not out.flags.writeable:
            raise ValueError("out is read-only, must be writeable")
        if not out.flags.forc and has_repeats(out):
            raise ValueError(f"out has strides {out.strides}, must have each element in a place of its own")
        check_same(out, rhs)
        for name, a in self._given.items():
            if np.may_share_memory(out, a):
                check_apart("out", out, name, a)


def check_same(out, rhs):
    """Refuse `out` if it shares memory with `rhs`, unless each element has the same place."""
    same = out.shape == rhs.shape and out.strides == rhs.strides and out.dtype == rhs.dtype
    if same and out.__array_interface__["data"] == rhs.__array_interface__["data"]:
        return
    if np.may_share_memory(out, rhs):
        check_apart("out", out, "rhs", rhs)


def has_repeats(a):
    """Whether several elements of an array are in one place."""
    if a.ndim <= 3:
        return repeats(a.shape, a.strides, a.itemsize)
    return a.size > 0 and any(n > 1 and stride == 0 for n, stride in zip(a.shape, a.strides, strict=True))


def check_axis(axis, a, name):
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise TypeError(f"axis is {axis!r}, must be an integer")
    if not -a.ndim <= axis < a.ndim:
        raise ValueError(f"axis is {axis}, must be one of the {a.ndim} axes of {name}")
    return int(axis) % a.ndim


def check_diagonals(given):
    """Diagonals as arrays of one dtype, by their names, of which the first says what it must be."""
    arrays, first, dtype = {}, None, None
    for name, a in given.items():
        a = as_array(a, name)
        if first is None:
            first, dtype = name, check_dtype(a.dtype, name)
        elif a.dtype != dtype:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be {dtype} as {first}")
        arrays[name] = a
    return arrays


def check_flag(value, name) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}, must be True or False")
    return bool(value)


def padded(nsys, dtype):
    """Zeros for each lane of the packs of so many systems."""
    V = cpu.lanes_of(dtype)
    return np.zeros(-(-nsys // V) * V, np.int64)


def vectors(a, axis):
    """An array as (..., n, nrhs), where systems are along an axis; or along the last but one."""
    return a if axis is None else np.moveaxis(a, axis, -1)[..., None]


def in_two(arrays, lead):
    """Views (outer, inner, m, n) of arrays (..., m, n) of systems of this shape, or of as many; None if there are none."""
    arrays = [a if a.shape[:-2] == lead else a.reshape(lead + a.shape[-2:]) for a in arrays]
    for split in range(max(len(lead), 1)):
        parts = lead[:split], lead[split:]
        if all(steady(*part) is not None for a in arrays for part in zip(parts, (a.strides[:split], a.strides[split:-2]), strict=True)):
            sizes = tuple(map(math.prod, parts))
            return [a.reshape(sizes + a.shape[-2:]) for a in arrays]
    return None
