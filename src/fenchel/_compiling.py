"""How long Numba has been compiling or loading kernels in this process: no clock of ours counts that."""

import time

from numba.core import event


class _Stopwatch(event.Listener):
    """Runs while any thread holds, or waits for, Numba's lock of the compiler.

    It has no lock of its own: Ctrl-C may strike inside, and a lock that nobody gives back is worse than a
    moment lost.
    """

    def __init__(self):
        self._open, self._counted, self._mark = [], 0.0, 0.0

    def on_start(self, event):
        self._count()
        self._open.append(event)

    def on_end(self, event):
        self._count()
        if self._open:
            self._open.pop()

    def _count(self):
        now = time.perf_counter()
        if self._open:
            self._counted += now - self._mark
        self._mark = now

    def seconds(self) -> float:
        return self._counted + (time.perf_counter() - self._mark if self._open else 0.0)

    def forget_unfinished(self):
        """Ctrl-C may have kept an end from being heard."""
        self._open.clear()


_stopwatch = _Stopwatch()
event.register("numba:compiler_lock", _stopwatch)


def compiling_clock():
    """A function that tells the seconds spent compiling, as a clock does: only differences mean something."""
    _stopwatch.forget_unfinished()
    return _stopwatch.seconds
