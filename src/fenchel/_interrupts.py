"""Ctrl-C, where it must not come in the middle of something."""

import signal
from contextlib import contextmanager
from threading import current_thread, main_thread

ENDING = signal.SIGINT, signal.SIGTERM  # what may raise KeyboardInterrupt: the latter does in a command


@contextmanager
def held():
    """A Ctrl-C that comes inside is one at the end.

    For a kernel that hands out several arrays: Numba calls Python to make them, where a KeyboardInterrupt
    would be raised, and goes on with what it did not get.
    """
    if current_thread() is not main_thread():  # which alone is interrupted
        yield
        return
    met, before = [], {each: signal.getsignal(each) for each in ENDING}
    ours = [each for each in ENDING if callable(before[each])]
    try:
        for each in ours:
            signal.signal(each, lambda number, frame: met.append(number))
        yield
    finally:
        for each in ours:
            signal.signal(each, before[each])
    if met:
        signal.raise_signal(met[0])
