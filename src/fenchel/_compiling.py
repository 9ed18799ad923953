"""How long Numba has been compiling or loading kernels in this process: no clock of ours counts that.

And who is told that it does.
"""

import sys
import time
from contextlib import contextmanager

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


PATIENCE = 2.0  # seconds of compiling after which the user is told


class _Herald(event.Listener):
    """Says that kernels of this package are being compiled: what takes seconds must not be silent."""

    def __init__(self):
        self.listener = tell_once
        self._depth, self._spent, self._mark, self._kernels = 0, 0.0, 0.0, 0

    def on_start(self, event):
        if _is_ours(event):
            self._depth += 1
            if self._depth == 1:
                self._mark, self._kernels = time.perf_counter(), self._kernels + 1
            self.listener(True, self._spent + time.perf_counter() - self._mark, self._kernels)

    def on_end(self, event):
        if _is_ours(event) and self._depth > 0:
            self._depth -= 1
            if self._depth == 0:
                self._spent += time.perf_counter() - self._mark
                self.listener(False, self._spent, self._kernels)


def _is_ours(event) -> bool:
    """Not of another package, nor made without a module, as a jitclass makes some."""
    return str(event.data["dispatcher"].py_func.__module__).startswith("fenchel.")


def tell_once(compiling: bool, seconds: float, kernels: int) -> None:
    """Write a line, once in a process, where somebody may be looking."""
    looked_at = "ipykernel" in sys.modules or getattr(sys.stderr, "isatty", bool)()
    if compiling and seconds >= PATIENCE and looked_at and not _told:
        _told.append(seconds)
        print("fenchel: compiling kernels, once on this machine (up to half a minute)", file=sys.stderr)


@contextmanager
def heard_by(listener):
    """Within it listener(whether it is compiling, seconds so far, kernels begun) is told instead.

    A kernel is one that Python calls, with those that it calls. How many a run will need nobody knows: that
    depends on the solver, the structure, and what earlier processes have kept.
    """
    before, _herald.listener = _herald.listener, listener
    try:
        yield
    finally:
        _herald.listener = before


_told: list[float] = []
_herald = _Herald()
event.register("numba:compile", _herald)
