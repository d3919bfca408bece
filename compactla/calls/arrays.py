"""What makes calls with arrays of some kind again: see `recording`, and `compactla.repeats` for the kinds there are."""

import abc
from typing import Any


class Arrays(abc.ABC):
    """Arrays of some kind, and calls that are made again with them."""

    @abc.abstractmethod
    def read(self, x: Any, starts: list[int]) -> Any:
        """What plans of calls depend on, of an array whose beginning joins `starts`; None if they need to see more."""

    @abc.abstractmethod
    def known(self, x: Any) -> Any:
        """The calls with arrays in such memory that this thread makes again."""

    @abc.abstractmethod
    def seen(self, x: Any, number: int, notes: Any) -> Any:
        """An argument as a call sees it that is recorded: in an object of its own for the memory."""

    @abc.abstractmethod
    def handed_back(self, notes: Any, given: Any, found: Any) -> Any:
        """The result of a call that was recorded, as the user sees it."""

    @abc.abstractmethod
    def again(self, notes: Any, targets: Any, found: Any) -> Any:
        """A function of arrays and where they begin that makes a call again; None if it can't be made so.

        Parameters
        ----------
        notes : compactla.calls.notes.Notes
            What it did.
        targets : list of int
            Numbers of the arguments that it writes to.
        found : object
            What it returned.
        """
