"""Memory of work arrays, which is kept from call to call."""

import math

from compactla.view import backend


class Room:
    """Memory for one work array at a time. It grows: arrays no larger than one before allocate nothing."""

    def __init__(self, dtype, queue):
        self.dtype, self.queue, self._memory, self._last = dtype, queue, None, None

    def array(self, shape):
        """An unset array; the one that was taken before must not be used any more."""
        if self._last is None or self._last.shape != shape:
            size = math.prod(shape)
            if self._memory is None or self._memory.size < size:
                self._memory = self._last = None
                self._memory = backend(self.queue).empty((size,), self.dtype, self.queue)
            enough = self._memory if self._memory.size == size else self._memory[:size]
            self._last = enough.reshape(shape)
        return self._last
