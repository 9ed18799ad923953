"""Ctrl-C, where it must not come in the middle of something."""

import signal
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def held():
    """A Ctrl-C that comes inside is one at the end.

    For a kernel that hands out several arrays: Numba calls Python to make them, where a KeyboardInterrupt
    would be raised, and goes on with what it did not get.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # only the main thread is interrupted, and only a handler of Python's can be put back
        return
    met = []
    before = signal.signal(signal.SIGINT, lambda *_: met.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if met:
        signal.raise_signal(signal.SIGINT)
