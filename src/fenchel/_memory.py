"""Say what an allocation would take before making it."""

import os
import time

FRESH = 0.01  # seconds for which a number holds: nobody takes much memory, page by page, in less
_read = (-1.0, 0)  # when, bytes


def available_bytes() -> int:
    """Physical memory free for use now, in bytes."""
    global _read
    now = time.monotonic()
    if now - _read[0] > FRESH:
        _read = now, _available_bytes()
    return _read[1]


def _available_bytes() -> int:
    try:
        with open("/proc/meminfo") as lines:
            available = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(available.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_memory(needed: int, purpose: str, way_out: str) -> None:
    """Raise MemoryError, stating the size, if `needed` bytes cannot fit."""
    available = available_bytes()
    if needed > available:
        raise MemoryError(
            f"{purpose} needs {_gib(needed)} GiB, but {_gib(available)} GiB are available; {way_out}"
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}" if size < 2**60 else f"{size / 2**30:.1e}"
