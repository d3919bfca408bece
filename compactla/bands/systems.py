"""The base of the classes of band matrices: arrays of systems, their factorization and solution."""

import math
from typing import Any

import numpy as np

from compactla.backends import backend, device_module, device_name
from compactla.band_form import Form
from compactla.bands import cutting
from compactla.buffers import Buffer, Pool
from compactla.calls.plans import UNKNOWN, Plans
from compactla.checks import (
    as_array,
    check_device_array,
    check_dtype,
    check_kind,
    check_launch,
    check_queue,
    check_written,
    is_device_array,
)
from compactla.cpu.bands import systems as cpu
from compactla.foreign import accepts_foreign, hand_back
from compactla.locks import read_write_lock
from compactla.overlap import address
from compactla.pickling import Copied
from compactla.strides import in_two_axes
from compactla.types import Array, Events

MANY = 256  # plans that are kept


class Systems(Copied):
    """Systems of n equations, with one band matrix for each or one for all.

    Attributes
    ----------
    n : int
        Number of unknowns of a system.
    nsys : int or None
        Number of systems; None where one matrix is shared by as many as there are right-hand sides.
    dtype : numpy.dtype
        Type of the matrices.
    queue : pyopencl.CommandQueue or None
        Where they live; None on the CPU.
    """

    _not_copied = ("_lock", "_plans", "_spare")

    def _adopt(self, form: Form, given: dict, matrix, axis=None):
        """Take matrices: diagonals (..., n), or all of them (..., m, n), of arrays that were given by their names."""
        self._form, self._given, self._axis = form, given, axis
        main = matrix[len(matrix) // 2]
        together = form.name in ("banded", "spd")
        self._lead, self.n = main.shape[: -2 if together else -1], main.shape[-1]
        self.nsys = math.prod(self._lead) if self._lead else None
        self.dtype, self.queue = main.dtype, getattr(main, "queue", None)
        self._found: Any = None
        self._kept: Any = None  # memory of factors
        self._factors: Any = None  # None too where a factorization was broken off
        self._prepare()
        if self.queue is not None:
            run = device_module("bands")
            self._matrix = matrix if together else [run.rows(a) for a in matrix]
            if not run.fit(self._matrix, self._lead):
                self._matrix = [run.contiguous(a, self.dtype) for a in self._matrix]
            return
        if together and not form.wide:
            matrix = np.moveaxis(main, -2, 0)
        self._matrix = [main] if form.wide else [diagonal[..., None] for diagonal in matrix]
        if in_two(self._matrix, self._lead) is None:
            self._matrix = [np.array(diagonal, order="C") for diagonal in self._matrix]

    def _prepare(self):
        self._lock = read_write_lock()
        self._plans = Plans(MANY)
        dtype, queue = self.dtype, self.queue
        self._spare = Pool(queue, lambda: Buffer(dtype, queue))

    def __repr__(self) -> str:
        sizes = f"{'one matrix' if self.nsys is None else f'{self.nsys} systems'} of {self.n}"
        state = "not factored" if self._factors is None else "factored"
        return f"{type(self).__name__}({sizes}, {self._form}, {self.dtype}, device={device_name(self.queue)}, {state})"

    @property
    def info(self) -> np.ndarray | None:
        """Result of the last factorization, perhaps by a solve: (nsys,) integers as of `factor`.

        It is None before the first. Reading it waits for a device.
        """
        with self._lock.here.lock:
            found = self._found
            if found is not None and not isinstance(found, np.ndarray):
                found = self._found = device_module("bands").info_of(found, math.prod(self._lead))
            return hand_back(found)

    @info.setter
    def info(self, value):
        self._found = value

    @accepts_foreign
    def factor(self, *, threads: int | None = None, wait_for: Events = None) -> np.ndarray:
        """Factor all matrices, and keep the factors.

        Parameters
        ----------
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        (nsys,) ndarray of int64
            For each matrix 0, or 1 + the index of its first pivot that is exactly zero (of positive definite ones: that
            is not positive). Of singular rings it is any of 1 to n. Where a matrix is shared there is one.

        Notes
        -----
        The arrays that were given are read now, and may be filled with new values before a call, unless they had to be
        copied: lists, or strides of more than two axes. They are not written.
        """
        return self._lock.write(self._factor, check_launch(threads, wait_for, self.queue))

    def _factor(self, launch):
        self._factors = None
        factors, info = self._factored(launch, self._kept)
        if factors is not self._kept:
            self._plans = Plans(MANY)
        self._kept = self._factors = factors
        self.info = info
        return info

    def _factored(self, launch, factors=None):
        """New factors, or old ones that are overwritten, and info."""
        if self.queue is not None:
            run = device_module("bands")
            factors, found = run.factor(self._form, self.n, self._matrix, self._lead, self.queue, launch)
            return factors, np.zeros(0, np.int64) if found is None else run.info_of(found, math.prod(self._lead))
        nsys = math.prod(self._lead)
        info = padded(nsys, self.dtype)
        if nsys:
            known = factors is not None and factors.lanes == cpu.lanes_of(self.dtype)
            if not known:
                factors = cpu.new_factors(self._form, nsys, self.n, self.dtype)
            plan = self._plans.known.get("factor", UNKNOWN) if known else UNKNOWN
            if plan is UNKNOWN:
                operands = in_two(self._matrix, self._lead)
                plan = cpu.plan(self._form, "factor", self.dtype, self.n, operands, factors=factors)
            if known:
                self._plans.add("factor", plan)
            plan.run([address(info)], launch)
        return factors, info[:nsys]

    @accepts_foreign
    def solve(
        self, rhs: Array, *, axis: int | None = None, out: Array = None, threads: int | None = None,
        wait_for: Events = None,
    ) -> Array:  # fmt: skip
        """Solve for right-hand sides: with factors, if there are, else factor on the way and keep nothing.

        Parameters
        ----------
        rhs : (nsys, n) or (nsys, n, nrhs) array_like or pyopencl.array.Array
            Right-hand sides, of a dtype that casts to that of the matrices; of any shape with `axis`. Shared matrices
            take any number of systems, or (n,).
        axis : int, optional
            The axis of `rhs` along which systems are. The others number them, the last one fastest.
        out : ndarray or pyopencl.array.Array, optional
            Array for the solutions: of the shape of `rhs` and the dtype of the matrices, of any strides. It
            may be `rhs`.
        threads : int, optional
            Maximum number of CPU threads, as for `compactla.gemm`.
        wait_for : list of pyopencl.Event, optional
            Events to wait for before starting (devices only), as for `compactla.gemm`.

        Returns
        -------
        ndarray or pyopencl.array.Array
            `out`, or the solutions in a new array of the kind and shape of `rhs`. Those of systems that `info` names
            are meaningless. NumPy arrays are copied to the device of the matrices and back.

        Raises
        ------
        TypeError, ValueError
            If `rhs` is of another shape or of a dtype that does not cast; if `out` is of another kind, dtype or shape,
            is read-only, has several elements in one place, or shares memory with the matrices or, without being the
            same, with `rhs`; or if an option is not as above.
        """
        on_device = self.queue is not None and is_device_array(rhs)
        if on_device:
            check_device_array(rhs, self.queue, "rhs")
        else:
            rhs = as_array(rhs, "rhs")
        if rhs.dtype != self.dtype and not np.can_cast(rhs.dtype, self.dtype, "same_kind"):
            raise TypeError(f"rhs: dtype is {rhs.dtype}, must cast to {self.dtype}")
        axis = self._check_axis(rhs, axis)
        if out is not None:
            self._check_out(out, rhs, on_device)
        launch = check_launch(threads, wait_for, self.queue, recorded=True)
        with self._lock.here.lock:
            if self.queue is not None or self._factors is None or rhs.dtype != self.dtype:
                launch.refuse()
            elif launch.recorded:
                launch.uses(self._lock, self._check_factored)
            if self.queue is not None:
                return self._solve_on_device(rhs, axis, out, launch)
            x = np.empty_like(rhs, self.dtype, subok=False) if out is None else out
            rhs = rhs if rhs.dtype == self.dtype else rhs.astype(self.dtype)
            if rhs.size:
                self._solve(rhs, x, axis, launch)
            return x

    def _check_factored(self):
        if self._factors is None:
            raise RuntimeError("factoring failed after it had begun: factor must be called again")

    def _solve(self, rhs, x, axis, launch):
        columns = 1 if axis is not None else rhs.shape[-1]
        factors, plans = self._factors, self._plans
        if factors is None and (self.nsys is None or columns > cpu.FEW or self._form.wide):
            (factors, self.info), plans = self._factored(launch), Plans()
        few = factors is None and cutting.suits(self._form, self.nsys, self.n, self.dtype, columns)
        if few and (operands := self._operands(vectors(rhs, axis), vectors(x, axis), None)) is not None:
            info = padded(self.nsys, self.dtype)
            cutting.solve(self._form, operands, info, launch)
            self.info = info[: self.nsys]
            return
        key = rhs.shape, rhs.strides, x.strides, axis, factors is None
        plan = plans.known.get(key, UNKNOWN)
        if plan is UNKNOWN:
            plan = plans.add(key, self._plan(vectors(rhs, axis), vectors(x, axis), factors))
        if plan is None:  # strides that kernels do not take
            launch.refuse()
            copied = np.array(rhs, order="C")
            self._solve(copied, copied, axis, launch)
            x[...] = copied
        elif factors is None:
            info = padded(self.nsys, self.dtype)
            plan.run([address(rhs), address(x), address(info)], launch)
            self.info = info[: self.nsys]
        else:
            plan.run([address(rhs), address(x), 0], launch)

    def _solve_on_device(self, rhs, axis, out, launch):
        arrays, there = backend(self.queue), is_device_array(rhs)
        x = out if there else None
        if x is None:
            x = arrays.empty(rhs.shape, self.dtype, self.queue, getattr(rhs, "allocator", None))
        if rhs.size:
            if not there:
                rhs = arrays.upload(np.asarray(rhs, self.dtype, order="C"), self.queue)
            self._solve_there(rhs, x, axis, launch)
        if there:
            return x
        if out is None:
            return arrays.download(x)
        out[...] = arrays.download(x)
        return out

    def _solve_there(self, rhs, x, axis, launch):
        """x <- the solutions, of arrays on the device of any strides."""
        run = device_module("bands")
        B, X = (a if axis is None else run.columns(run.moved(a, axis)) for a in (rhs, x))
        lead = max(self._lead, B.shape[:-2], key=len)
        if rhs.dtype != self.dtype or not run.fit([B], lead):
            copied = run.contiguous(rhs, self.dtype)
            return self._solve_there(copied, x, axis, launch)
        if not run.fit([X], lead) or not run.fit([B, X], lead):
            copied, whole = run.contiguous(rhs, self.dtype), run.contiguous(x, self.dtype)
            self._solve_there(copied, whole, axis, launch)
            return run.copy(whole, x)
        factors, common = self._factors, self.nsys is None
        once = factors is None and not common and B.shape[-1] <= run.FEW and not self._form.wide
        if once and run.fit([*self._matrix, B, X], lead):
            room = self._spare.take()
            self._found = run.both(self._form, self.n, self._matrix, B, X, lead, room, launch)
            return self._spare.give(room)
        if factors is None:
            factors, self.info = self._factored(launch)
        room = self._spare.take()
        run.solve(self._form, self.n, factors, B, X, lead, common, room, launch)
        return self._spare.give(room)

    def _operands(self, B, X, factors):
        """What a solve reads and writes, as `compactla.cpu.bands.systems.plan` takes it; None if it needs copies."""
        lead = max(self._lead, B.shape[:-2], key=len)
        return in_two([*(self._matrix if factors is None else []), B, X], lead)

    def _plan(self, B, X, factors):
        """The plan of a solve for arrays (..., n, nrhs), with factors if there are some; None if it needs copies."""
        operands = self._operands(B, X, factors)
        if operands is None:
            return None
        if factors is None:
            return cpu.plan(self._form, "once", self.dtype, self.n, operands)
        common = self.nsys is None
        return cpu.plan(self._form, "solve", self.dtype, self.n, operands, factors=factors, common=common)

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

    def _check_out(self, out, rhs, on_device):
        if on_device:
            check_kind(out, self.queue, "out")
            check_device_array(out, self.queue, "out")
        elif type(out) is not np.ndarray:
            raise TypeError(f"out is a {type(out).__name__}, must be a NumPy array")
        if out.dtype != self.dtype:
            raise TypeError(f"out: dtype is {out.dtype}, must be {self.dtype}")
        if out.shape != rhs.shape:
            raise ValueError(f"out has shape {out.shape}, must be {rhs.shape} as rhs")
        check_written("out", out, {"rhs": rhs, **self._given}, same=("rhs",))


def check_axis(axis, a, name):
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise TypeError(f"axis is {axis!r}, must be an integer")
    if not -a.ndim <= axis < a.ndim:
        raise ValueError(f"axis is {axis}, must be one of the {a.ndim} axes of {name}")
    return int(axis) % a.ndim


def check_diagonals(given, queue):
    """Diagonals as arrays of one dtype, by their names, of which the first says what it must be and where."""
    arrays, first, dtype = {}, None, None
    main = next(iter(given.values()))
    on_device = is_device_array(main)
    if queue is not None:
        check_queue(queue, "queue")
    for name, a in given.items():
        if is_device_array(a) != on_device:
            raise TypeError(f"{name} is a {type(a).__name__}, must be an array of the kind of {next(iter(given))}")
        if on_device:
            check_device_array(a, main.queue if queue is None else queue, name)
        else:
            a = as_array(a, name)
        if first is None:
            first, dtype = name, check_dtype(a.dtype, name)
        elif a.dtype != dtype:
            raise TypeError(f"{name}: dtype is {a.dtype}, must be {dtype} as {first}")
        arrays[name] = a
    if queue is not None and not on_device:
        return {name: backend(queue).upload(a, queue) for name, a in arrays.items()}
    return arrays


def check_flag(value, name) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value!r}, must be True or False")
    return bool(value)


def padded(nsys, dtype):
    """Zeros for each lane of the packs of so many systems."""
    V = cpu.lanes_of(dtype)
    return np.zeros(-(-nsys // V) * V, np.int64)


def along(a, axis):
    """A view of an array with this axis as the last one."""
    return np.moveaxis(a, axis, -1) if isinstance(a, np.ndarray) else device_module("bands").moved(a, axis)


def vectors(a, axis):
    """An array as (..., n, nrhs), where systems are along an axis; or along the last but one."""
    return a if axis is None else np.moveaxis(a, axis, -1)[..., None]


def in_two(arrays, lead):
    """Views (outer, inner, m, n) of arrays (..., m, n) of as many systems as a shape has; None if there are none."""
    arrays = [a if a.shape[:-2] == lead else a.reshape(lead + a.shape[-2:]) for a in arrays]
    found = in_two_axes(lead, [a.strides[:-2] for a in arrays])
    return None if found is None else [a.reshape(*found[0], *a.shape[-2:]) for a in arrays]
