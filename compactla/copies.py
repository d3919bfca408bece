"""How objects that hold factors are copied and pickled."""

import copy
import weakref
from typing import Any

import numpy as np

from compactla.layout import Pack

# Arrays that are unpickled just now and can't be written, by their identity, and the copies that take their places.
_writeable: dict[int, tuple[weakref.ref, np.ndarray]] = {}


class Copied:
    """An object whose copies have factors of their own.

    Attributes
    ----------
    _not_copied : tuple of str
        Attributes that `_prepare` sets, of copies too.
    """

    _not_copied: tuple[str, ...] = ()

    def _prepare(self):
        """Set what is not copied."""

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # one that shared the factors would change with them

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._not_copied}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update({name: _own(value) for name, value in state.items()})
        self._prepare()


def _own(value):
    """A value with copies of the arrays that can't be written, such as those that joblib maps from files."""
    if type(value) in (list, tuple):
        return type(value)(map(_own, value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_own, value))
    if isinstance(value, Pack):
        return Pack(_own(value.view.buffer), value.nm)
    if not isinstance(value, np.ndarray) or value.flags.writeable:
        return value
    key = id(value)  # the same in several objects of one pickle
    if key not in _writeable:
        _writeable[key] = weakref.ref(value, lambda _: _writeable.pop(key)), np.array(value, order="K")
    return _writeable[key][1]
