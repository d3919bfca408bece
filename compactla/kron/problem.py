"""The operands of Kronecker products: factors and items, which are checked together."""

import math
from dataclasses import dataclass

import numpy as np

from compactla.backends import backend
from compactla.checks import (
    as_array,
    check_device_array,
    check_dtype,
    check_kind,
    check_launch,
    check_written,
    is_device_array,
    is_writeable,
    option,
)
from compactla.dtypes import REAL
from compactla.layout import Pack
from compactla.overlap import address
from compactla.scalars import scalar


def as_sequence(a, name):
    if not isinstance(a, list | tuple):
        raise TypeError(f"{name} is a {type(a).__name__}, must be a tuple of matrices")
    return a


@dataclass(frozen=True)
class Target:
    """Type and device that scalars must fit."""

    dtype: np.dtype

    @property
    def is_complex(self):
        return self.dtype.kind == "c"


class KronProblem:
    """Factors and items that fit together.

    Attributes
    ----------
    X : ndarray or Pack
        Items, not transposed any more.
    d, e : tuple of int
        Axes of items of X and of Y.
    operands, signs : list
        See `compactla.cpu.kron.apply`.
    called : list of str
        What messages call the operands.
    """

    def __init__(self, factors, X, trans, transx, name="factors"):
        factors = as_sequence(factors, name)
        if not factors:
            raise ValueError(f"{name} is empty, must have one matrix for each axis of the items")
        self.names = [f"{name}[{k}]" for k in range(len(factors))]
        self.packed = isinstance(X, Pack)
        self.X = X if self.packed else items(X, "X")
        self.dtype, n = check_dtype(self.X.dtype, "X"), len(factors)
        self.queue = self.X.queue if self.packed or is_device_array(self.X) else None
        if self.queue is not None and not self.packed:
            check_device_array(self.X, self.queue, "X")
        letters = letters_of(trans, n)
        if option("transx", transx, "NT") == "T":
            if n != 2:
                raise ValueError(f"transx is 'T' with {n} factors, must be 'N' unless there are two")
            if self.packed:
                self.X = self.X.T
            elif self.X.ndim == 3:
                self.X = transposed(self.X)
        if not self.packed and self.X.ndim != n + 1:
            raise ValueError(f"X has {self.X.ndim} axes, must have {n + 1}: those of {n} factors, after nm")
        self.nm = self.X.nm if self.packed else self.X.shape[0]
        self.operands, self.signs, self.called = [], [], []
        for k, (F, letter) in enumerate(zip(factors, letters, strict=True)):
            self.add(F, self.names[k], letter)
        self.e, self.d = (tuple(F.shape[axis] for F in self.operands) for axis in (-2, -1))
        self.check_axes()

    def add(self, F, name, letter="N"):
        """Add an operand, after op."""
        F = self.checked(F, name)
        if letter != "N":
            F = transposed(F)
        self.operands.append(F)
        self.signs.append(-1 if letter == "C" else 1)
        self.called.append(name)

    def checked(self, F, name):
        """An operand as a matrix, an array of nm matrices, or a pack."""
        if not isinstance(F, Pack):
            F = items(F, name)
            if F.ndim not in (2, 3):
                raise ValueError(f"{name} has shape {F.shape}, must be (m, n), or ({self.nm}, m, n): one for each item")
        self.check_here(F, name)
        if F.dtype != self.dtype:
            raise TypeError(f"{name} is of {F.dtype}, must be of {self.dtype} as X")
        nm = F.nm if isinstance(F, Pack) else self.nm if F.ndim == 2 else F.shape[0]
        if nm != self.nm:
            raise ValueError(f"{name} has {nm} matrices, must have {self.nm}, one for each item, or be one matrix")
        if isinstance(F, Pack):
            others = [P for P in (self.X, *self.operands) if isinstance(P, Pack)]
            if others and others[0].vlen != F.vlen:
                raise ValueError(f"{name} has vector length {F.vlen}, must have {others[0].vlen} as the other packs")
        elif self.queue is None and F.ndim == 2 and any(stride % REAL[F.dtype.char].itemsize for stride in F.strides):
            F = F.copy()
        return F

    def check_axes(self):
        """Refuse items that do not have the columns of the factors as axes."""
        has = self.X.shape[1:]
        needed = (self.d[0], math.prod(self.d[1:])) if self.packed else self.d
        if has != needed:
            shapes = ", ".join(f"{m} x {n}" for m, n in zip(self.e, self.d, strict=True))
            raise ValueError(f"X has items of {has}, must have {needed}: factors are {shapes}")

    def check_square(self, name):
        for k, (m, n) in enumerate(zip(self.e, self.d, strict=True)):
            if m != n:
                raise ValueError(f"{name}[{k}] is {m} x {n}, must be square")

    def diagonalise(self, values, shift, inverses):
        """Put inverses in front of the eigenvectors, and eigenvalues behind them."""
        vectors, n = self.operands, len(self.d)
        given = {"values": as_sequence(values, "values")}
        if inverses is not None:
            given["inverses"] = as_sequence(inverses, "inverses")
        for name, matrices in given.items():
            if len(matrices) != n:
                raise ValueError(f"{name} has {len(matrices)} entries, must have {n}, as there are vectors")
        # the inverses of the eigenvectors come first: their adjoints, if they are unitary
        self.operands, self.signs, self.called = [], [], []
        for k in range(n):
            if inverses is None:
                self.operands.append(transposed(vectors[k]))
                self.signs.append(-1)
                self.called.append(self.names[k])
            else:
                self.add(inverses[k], f"inverses[{k}]")
                if self.operands[-1].shape[-2:] != vectors[k].shape[-2:]:
                    raise ValueError(f"inverses[{k}] has shape {self.operands[-1].shape}, must fit to vectors[{k}]")
        # then the eigenvectors, and last the eigenvalues, of which the first have the shift added
        self.operands += vectors
        self.called += self.names
        self.signs += [1] * n
        for k, (x, size) in enumerate(zip(values, self.d, strict=True)):
            x = items(x, f"values[{k}]")
            if is_device_array(x):
                self.check_here(x, f"values[{k}]")
            if x.dtype not in (self.dtype, REAL[self.dtype.char]):
                raise TypeError(f"values[{k}]: dtype is {x.dtype}, must be {self.dtype} as X, or real")
            if x.shape not in ((size,), (self.nm, size)):
                raise ValueError(f"values[{k}] has shape {x.shape}, must be ({size},) or ({self.nm}, {size})")
            added = scalar("shift", shift, Target(self.dtype)) if k == 0 else 0
            self.operands.append(backend(self.queue, "kron").values(x, self.dtype, added, self.queue))
            self.signs.append(1)
            self.called.append(f"values[{k}]")

    def made(self):
        """A result that nothing was written to yet."""
        if self.packed:
            return self.X.beside(self.e[0], math.prod(self.e[1:]))
        run = backend(self.queue)
        return run.empty((self.nm, *self.e), self.dtype, self.queue, run.reused(self.X))

    def run(self, name, out, alpha, beta, work, threads, wait_for):
        """Check what is left to be checked, and compute."""
        target = Target(self.dtype)
        alpha, beta = scalar("alpha", alpha, target), scalar("beta", beta, target)
        launch = check_launch(threads, wait_for, self.queue)
        if out is None:
            if beta != 0:
                raise ValueError(f"out is None, must be given for beta, which is {beta}, must be 0 without it")
            out = self.made()
        else:
            self.check_out(out)
        if work is not None:
            self.check_work(work, name, out, launch)
        if not self.nm or 0 in self.e:
            return out
        if alpha == 0 or 0 in self.d:
            backend(self.queue, "kron").scale(out, self.e, beta, launch)
            return out
        apply = backend(self.queue, "kron").run
        apply(name, self.operands, self.signs, self.X, out, self.d, self.e, (alpha, beta), work, launch)
        return out

    def is_planned(self, arrays):
        """Whether the operands are the NumPy arrays that were given, without copies, and are not empty."""
        there = map(address, (*self.operands, self.X)) if self.queue is None else ()
        return 0 not in (self.nm, *self.d, *self.e) and [*there] == [*map(address, arrays)]

    def needed(self, name, Y, launch):
        """Elements of work space that so many threads need, and one; on a device twice all that is needed."""
        if not math.prod((self.nm, *self.d, *self.e)):
            return [0, 0]
        return backend(self.queue, "kron").needed(name, self.operands, self.X, Y, self.d, self.e, launch)

    def check_out(self, out):
        """Refuse an output that cannot be written to."""
        if self.packed:
            if not isinstance(out, Pack):
                raise TypeError(f"out is a {type(out).__name__}, must be a Pack as X")
            needed, data = (self.nm, self.e[0], math.prod(self.e[1:])), out.view.buffer
            if out.vlen != self.X.vlen:
                raise ValueError(f"out has vector length {out.vlen}, must have {self.X.vlen} as X")
        else:
            if isinstance(out, Pack):
                raise TypeError("out is a Pack, must be an array as X")
            needed, data = (self.nm, *self.e), out
            check_kind(out, self.queue, "out")
        self.check_here(out, "out")
        if out.dtype != self.dtype:
            raise TypeError(f"out is of {out.dtype}, must be of {self.dtype} as X")
        if out.shape != needed:
            raise ValueError(f"out has shape {out.shape}, must have {needed}")
        check_written("out", data, self.read())

    def check_work(self, work, name, out, launch):
        """Refuse work space that is too small, or that is used otherwise."""
        check_kind(work, self.queue, "work")
        if work.ndim != 1 or not work.flags.c_contiguous or not is_writeable(work):
            raise TypeError("work must be a contiguous array of one axis, which can be written: see kron_work")
        self.check_here(work, "work")
        if work.dtype != self.dtype:
            raise TypeError(f"work is of {work.dtype}, must be of {self.dtype} as X")
        least = self.needed(name, out, launch)[1]
        if work.size < least:
            raise ValueError(f"work has {work.size} elements, must have {least} at least: see kron_work")
        check_written("work", work, {"out": memory(out), **self.read()})

    def read(self):
        """The arrays that are read, by their names."""
        return {"X": memory(self.X)} | {name: memory(A) for name, A in zip(self.called, self.operands, strict=True)}

    def check_here(self, A, name):
        """Refuse an array that does not live where X does."""
        if isinstance(A, Pack):
            there = A.queue
        else:
            there = A.queue if is_device_array(A) else None
        if (there is None) != (self.queue is None):
            places = [("the CPU" if queue is None else "a device") for queue in (there, self.queue)]
            raise TypeError(f"{name} lives on {places[0]}, must live on {places[1]} as X")
        if self.queue is None:
            return
        if isinstance(A, Pack):
            if there.context != self.queue.context:
                raise ValueError(f"{name} lives in another OpenCL context, must live in that of X")
        else:
            check_device_array(A, self.queue, name)


def items(a, name):
    """An argument as an array, or as it is if it lives on a device."""
    return a if is_device_array(a) else as_array(a, name)


def transposed(A):
    """A view of transposed matrices."""
    if isinstance(A, Pack):
        return A.T
    return A.transpose((*range(A.ndim - 2), A.ndim - 1, A.ndim - 2))


def letters_of(trans, n):
    """A letter for each of n factors."""
    enough = isinstance(trans, str) and (len(trans) == n or (len(trans) == 3 and n < 3) or trans == "NNN")
    if not enough:
        raise ValueError(f"trans is {trans!r}, must have a letter for each of the {n} factors")
    letters = [option("trans", letter, "NTC") for letter in trans]
    return letters[:n] if len(letters) >= n else ["N"] * n


def memory(A):
    """The array that an operand is in."""
    return A.view.buffer if isinstance(A, Pack) else A
