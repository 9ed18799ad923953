"""Say what an allocation would take before making it."""

import os
import time

FRESH = 0.01  # seconds for which a number holds: nobody takes much memory, page by page, in less
NO_LIMIT = 2**62
_known = (-1.0, 0)  # when, bytes


def available_bytes() -> int:
    """Physical memory free for use now, in bytes."""
    global _known
    now = time.monotonic()
    if now - _known[0] > FRESH:
        _known = now, _available_bytes()
    return _known[1]


def _available_bytes() -> int:
    return min(_of_machine(), _of_group())


def _of_group() -> int:
    """What the control group of this process may still take, the system's cache of files not counted."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            place, most, used = f"/sys/fs/cgroup{path}", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            place, most, used = (
                f"/sys/fs/cgroup/memory{path}",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        limit, taken = (_read(f"{place}/{name}").strip() for name in (most, used))
        if limit.isdigit() and taken.isdigit():
            stat = dict(pair.split() for pair in _read(f"{place}/memory.stat").splitlines())
            cache = int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0))
            return max(int(limit) - int(taken) + cache, 0)
    return NO_LIMIT


def _read(path) -> str:
    """Of a file of the system; empty where there is none."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _of_machine() -> int:
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
        both = f"needs {_size(needed)}, but {_size(available)} are available"
        raise MemoryError(f"{purpose} {both}; {way_out}")


def _size(size: int) -> str:
    """In GiB, or in MB or bytes where that would be next to none of them."""
    if size < 0.1 * 2**30:
        return f"{size / 1e6:.1f} MB" if size > 100_000 else f"{size:,} bytes"
    return f"{size / 2**30:.1f} GiB" if size < 2**60 else f"{size / 2**30:.1e} GiB"
