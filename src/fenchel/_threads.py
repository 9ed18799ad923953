"""Shares of a loop for threads: kernels release Python's lock."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

PARTS = 4  # a large sum over rows is always split in this many, so that no number of threads changes its bits
LARGE = 400_000  # multiplications from which splitting pays


def for_each_share(count: int, work: float, threads: int | None, task, parts: int = PARTS) -> list:
    """[task(start, stop) for each part of 0 … count − 1], by threads; one part where the work is small.

    The calling thread takes its share: handing all of it over would cost it a wait.
    """
    if work < LARGE:
        return [task(0, count)]
    parts = list(pairwise(count * k // parts for k in range(parts + 1)))
    helpers = min(thread_count(threads), len(parts)) - 1
    if helpers == 0:
        return [task(*part) for part in parts]

    def share(first):
        return {k: task(*parts[k]) for k in range(first, len(parts), helpers + 1)}

    others = [thread_pool(helpers).submit(share, first) for first in range(1, helpers + 1)]
    done = share(0)
    for other in others:
        done |= other.result()
    return [done[k] for k in range(len(parts))]


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads kept for the next pass: starting them costs as much as a small one."""
    return ThreadPoolExecutor(threads)


# A forked child has none of its parent's threads, and would wait for them forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=thread_pool.cache_clear)


def thread_count(threads: int | None) -> int:
    """scikit-learn's n_jobs as a number of threads: None is all cores, −1 too, −2 all but one."""
    cores = os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))
    if threads is None:
        return cores
    threads = int(threads)
    if threads == 0:
        raise ValueError("n_jobs=0 has no meaning; use None, a positive number, or −1 for all cores")
    return threads if threads > 0 else max(1, cores + 1 + threads)
