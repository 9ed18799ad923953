"""Hostile files: every reader against damaged inputs.

    python tests/hostile.py 20000              that many inputs for each reader
    python tests/hostile.py 1 --only libsvm --first 4711    one of them again

Reading ends in a right result or in the reader's own error that names the file: never in another exception,
in more than SECONDS, or in more than MEMORY on top of what the process has.  Each reader runs in a process of
its own, so that a crash is counted too.
"""

import argparse
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from hostile_cases import CASES
from mutations import generator

SECONDS, MEMORY = 10, 2**30
IN_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # opening files was most of the time
SHOWN = 5  # violations of a reader that are printed


class Hang(BaseException):
    """Not an Exception, so that no reader can take it for its own."""


@contextmanager
def time_limit(seconds):
    """Raise Hang after so many seconds of the processor: others may be at work on the machine."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def content(case, seed: int) -> bytes:
    """The damaged file of that number."""
    return case.damage(generator(case.name, seed), case.samples())


def examine(case, seed: int, folder) -> str:
    """fine, refused, or what is wrong, with the file of that number."""
    data = content(case, seed)
    path = Path(folder) / f"hostile{case.suffix}"
    path.write_bytes(data)
    try:
        with time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # weights of 1e308 overflow: no matter of reading
            result = case.read(path)
            return case.compare(data, result) or "fine"
    except case.errors as error:
        if not str(error).startswith(str(path)):
            return f"an error that does not name the file: {error}"
        return case.regret(data) or "refused"
    except Hang:
        return f"a hang of more than {SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


# ---- many of them, each reader in a process of its own


def run(case, first: int, count: int, folder) -> tuple[Counter, list]:
    """How the inputs ended, and (seed, what is wrong) of the violations."""
    case.samples(), case.warm(folder)
    place, (reading, writing) = mmap.mmap(-1, 8), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_here(case, first, count, folder, place, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as lines:
        found = [line.rstrip("\n").split("\t", 1) for line in lines]
    status = os.waitpid(child, 0)[1]
    tally = Counter(outcome if outcome in ("fine", "refused") else "violations" for _, outcome in found)
    wrong = [(int(seed), outcome) for seed, outcome in found if outcome not in ("fine", "refused")]
    if status:
        tally["violations"] += 1
        wrong.append((struct.unpack("q", place[:])[0], f"the process died (status {status})"))
    return tally, wrong


def _run_here(case, first, count, folder, place, writing):
    limit = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with os.fdopen(writing, "w", encoding="utf-8") as lines:
        for seed in range(first, first + count):
            place[:] = struct.pack("q", seed)
            outcome = examine(case, seed, folder)
            lines.write(f"{seed}\t{' '.join(outcome.encode('utf-8', 'backslashreplace').decode().split())}\n")


def _address_space():
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--only", action="append", help="a reader by name; may be given more than once")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    print(f"{'reader':24} {'inputs':>8} {'fine':>8} {'refused':>8} {'violations':>10} {'seconds':>8}")
    bad = 0
    for case in CASES:
        if options.only and case.name not in options.only:
            continue
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
            tally, wrong = run(case, options.first, max(1, options.count // case.share), folder)
        seconds = time.perf_counter() - started
        sizes = f"{sum(tally.values()):8} {tally['fine']:8} {tally['refused']:8} {tally['violations']:10}"
        print(f"{case.name:24} {sizes} {seconds:8.0f}", flush=True)
        for seed, outcome in wrong[:SHOWN]:
            print(f"    seed {seed}: {outcome}", flush=True)
        bad += tally["violations"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
