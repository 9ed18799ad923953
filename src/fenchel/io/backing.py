"""Files under arrays, whose pages give way to memory of this process while they are worked on.

Where data are larger than memory the system's cache of files would be filled and emptied by every pass, and
a page be read several times for one use: in a control group of 1 GB, 160 GB for the 2 GB of sentences
and their dual variables. Read past the cache, each page is read once.
"""

import ctypes
import mmap
import os
import sys
from contextlib import suppress
from weakref import finalize

import numpy as np

FIXED = 0x10  # of mmap(2), for which Python has no name; nor, before 3.13, for the next one
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
PAGE = mmap.PAGESIZE
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
_LIBRARY = ctypes.CDLL(None, use_errno=True)
_map = _LIBRARY.mmap
_map.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def advise(address: int, size: int, advice: int) -> None:
    """madvise(2); what the system does not know it may refuse: that is advice, too."""
    _LIBRARY.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(advice))


class Backing:
    """A file that is mapped where an array lies.

    shared: whether what is written to the array belongs into the file; else it is the array's alone.
    """

    def __init__(self, file, shared: bool):
        self._shared, self._direct = shared, None
        self._file = self._kept(os.dup(file.fileno()))
        flags = (os.O_RDWR if shared else os.O_RDONLY) | getattr(os, "O_DIRECT", 0)
        with suppress(OSError):  # of a system, or a file system such as tmpfs, that has no such thing
            self._direct = self._kept(os.open(f"/proc/self/fd/{self._file}", flags))

    def _kept(self, file: int) -> int:
        finalize(self, os.close, file)
        return file

    def map(self, kind) -> np.ndarray:
        """The numbers of the whole file."""
        return np.frombuffer(mmap.mmap(self._file, 0, flags=self._flags, prot=READ_WRITE), kind)

    @property
    def _flags(self) -> int:
        """Pages that nobody writes to need no promise of memory."""
        return mmap.MAP_SHARED if self._shared else mmap.MAP_PRIVATE | NORESERVE

    def take(self, address: int, begin: int, end: int) -> None:
        """Read the whole pages of these bytes into memory of their own; address: where the array lies.

        The first and the last page may belong to what others work on, and stay. They are asked for alone:
        a page that is met makes the system read megabytes around it.
        """
        inner = _whole_pages(begin, end)
        if self._direct is None:
            return
        for edge in (begin, end - 1):
            os.posix_fadvise(self._file, edge - edge % PAGE, PAGE, os.POSIX_FADV_WILLNEED)
        if inner[0] < inner[1]:
            _replace(address + inner[0], inner[1] - inner[0], mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
            _transfer(os.preadv, self._direct, address, *inner)

    def give_back(self, address: int, begin: int, end: int) -> None:
        """The file's own pages again, once what may have changed is written."""
        inner = _whole_pages(begin, end)
        if self._direct is None or inner[0] >= inner[1]:
            return
        if self._shared:
            _transfer(os.pwritev, self._direct, address, *inner)
        _replace(address + inner[0], inner[1] - inner[0], self._flags, self._file, inner[0])


def _whole_pages(begin, end):
    return -(-begin // PAGE) * PAGE, end - end % PAGE


def _replace(address, size, flags, file, offset):
    """Other pages at the same address, at once for whoever looks."""
    if _map(address, size, READ_WRITE, flags | FIXED, file, offset) != address:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _transfer(move, file, address, begin, end):
    """Read or write the bytes of a file that belong there."""
    while begin < end:
        view = memoryview((ctypes.c_char * (end - begin)).from_address(address + begin)).cast("B")
        done = move(file, [view], begin)
        if done <= 0:
            raise OSError("a file of shards or dual variables was cut off while it was used")
        begin += done
