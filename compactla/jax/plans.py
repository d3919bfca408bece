"""Plans of calls: what a function does with matrices of some type and sizes, however many there are.

A plan is made of a text that says all of it, which XLA keeps with a compiled program, so that it may be made in another
process. In memory it is found by a key, a digest of the text.
"""

import ast
import threading
from typing import Any, NamedTuple

import numpy as np

from compactla.cpu.linalg import stacks as cpu
from compactla.cpu.threads.pool import words_of
from compactla.digests import digest
from compactla.dtypes import REAL
from compactla.jax.stacks import CHOICES, Choice
from compactla.linalg.arguments import StackPlace
from compactla.linalg.stacks import Fit, own
from compactla.overlap import address

# What makes an item of a result blank.
BLANK = {"f": int(np.float32(np.nan).view(np.int32)), "d": int(np.float64(np.nan).view(np.int64)), "i": 0}


class Description(NamedTuple):
    """What a plan is for.

    Attributes
    ----------
    name : str
        Name of the function.
    options : tuple of (str, object)
        Names and values of its options.
    dtype : str
        Letter of the type of its matrices.
    operands : tuple of (int, int, bool, bool)
        Of each input its rows and columns, whether it is transposed in memory, and whether there is one matrix of it
        for all others.
    """

    name: str
    options: tuple
    dtype: str
    operands: tuple


class Sized(NamedTuple):
    """An input as `compactla.linalg.stacks.Stacked` sees it."""

    shape: tuple[int, ...]

    @property
    def ndim(self):
        return len(self.shape)


class Table:
    """Plans by their keys, as compiled code looks for them: beginning at the key, at one place after the other.

    Attributes
    ----------
    words : ndarray of int64
        The number of places less 1, then key and address of each, which are 0 where there is none.
    published : function
        Is called where there are new words.
    """

    def __init__(self):
        self.known: dict[str, Any] = {}
        self.kept: list[Any] = []  # what may still be looked at
        self.published = lambda: None
        self._room(64)

    def _room(self, places):
        self.words = np.zeros(1 + 2 * places, np.int64)
        self.words[0] = places - 1
        self.kept.append(self.words)

    def add(self, text, key, plan):
        """Enter a plan."""
        self.kept.append(plan)
        if 2 * len(self.known) > self.words[0]:
            before, places = self.words, 2 * (int(self.words[0]) + 1)
            self._room(places)
            for i in range(1, len(before), 2):
                if before[i]:
                    self._put(*before[i : i + 2])
            self.published()
        self._put(key, address(plan.words))
        self.known[text] = plan

    def _put(self, key, place):
        mask = int(self.words[0])
        i = int(key) & mask
        while self.words[1 + 2 * i]:
            i = (i + 1) & mask
        self.words[2 + 2 * i] = place
        self.words[1 + 2 * i] = key


class Plan(NamedTuple):
    """The words of a plan, and the kernel that has others."""

    words: np.ndarray
    kernel: Any


table = Table()
_lock = threading.Lock()


def text_of(description: Description) -> str:
    return repr(tuple(description))


def key_of(text: str) -> int:
    """The key of a plan, which is not 0."""
    return int(digest(text.encode())[:15], 16) or 1


def make(text: str) -> None:
    """Make the plan that a text is of, unless it is there."""
    with _lock:
        if text not in table.known:
            table.add(text, key_of(text), planned(Description(*ast.literal_eval(text))))


def chosen(description: Description) -> tuple[Choice, Any, dict[str, int]]:
    """The function for stacks that a description is of, and its sizes by their letters."""
    sizes = [Sized((m, n)) for m, n, *_ in description.operands]
    choice = CHOICES[description.name](**dict(description.options))
    number = choice.stacked.sizes(sizes)
    if number is None:
        raise ValueError(f"{description.name} has matrices of sizes {[x.shape for x in sizes]}, must be such that fit")
    return choice, choice.stacked, number


def planned(description: Description) -> Plan:
    """Compile the kernel, and note what the handler has to know."""
    choice, stacked, number = chosen(description)
    dtype = np.dtype(description.dtype)
    places, leader = [], -1
    for i, ((m, n, turned, shared), letters) in enumerate(
        zip(description.operands, stacked.inputs.values(), strict=True)
    ):
        kind = REAL[dtype.char] if own(letters) else dtype
        item = kind.itemsize
        strides = (item, m * item) if turned else (n * item, item)
        places.append(StackPlace(kind.char, m, n, 0 if shared else m * n * item, *strides))
        leader = i if leader < 0 and not shared else leader
    fit = Fit((1,), 1, number, dtype, dtype, stacked.made((1,), number, dtype.char))
    kernel = cpu.kernel(stacked, choice.options, fit, tuple(places))
    calling = words_of(kernel.code)
    words = [
        *(calling.function, calling.kernel, int(kernel.cost) + 1, kernel.lanes, len(places), len(kernel.made)),
        *(leader, choice.filled, len(kernel.words), kernel.place),
    ]
    for shape, kind in kernel.made:
        real = REAL[kind.char] if kind.kind == "c" else kind
        words += int(np.prod(shape)) * kind.itemsize, real.itemsize, BLANK[real.char]
    return Plan(np.array(words, np.int64), kernel)
