"""How long Numba has been compiling or loading kernels in this process: no clock of ours counts that."""

import threading
import time

from numba.core import event


class _Stopwatch(event.Listener):
    """Runs while any thread holds, or waits for, Numba's lock of the compiler."""

    def __init__(self):
        self._lock, self._depth, self._since, self._seconds = threading.Lock(), 0, 0.0, 0.0

    def on_start(self, event):
        with self._lock:
            if self._depth == 0:
                self._since = time.perf_counter()
            self._depth += 1

    def on_end(self, event):
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += time.perf_counter() - self._since

    def seconds(self) -> float:
        with self._lock:
            return self._seconds + (time.perf_counter() - self._since if self._depth else 0.0)


_stopwatch = _Stopwatch()
event.register("numba:compiler_lock", _stopwatch)


def compiling_seconds() -> float:
    """Since fenchel was imported."""
    return _stopwatch.seconds()
