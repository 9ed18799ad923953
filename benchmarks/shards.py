"""Training on data larger than memory: text sharded and trained under a limit of memory.

python shards.py --gigabytes 4 --limit 1            made-up libsvm text
python shards.py --kind crf --copies 40 --limit 2   CoNLL-2000, repeated

Text is made once and kept in --folder. Sharding and training are processes of their own, in a control group
of `--limit` gigabytes where this machine lets us make one (root, cgroup v1 or v2): there the system's cache
of files counts too, and a process that needs more is killed. Printed: megabytes of text a second, seconds and
passes of training, the largest anonymous memory of each process, and how long it takes to read the shards
from an empty cache of files.
"""

import argparse
import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit

FEATURES = 1_000_000
ROWS = 20_000  # made at a time
GROUPS = {"v1": "/sys/fs/cgroup/memory", "v2": "/sys/fs/cgroup"}
ZERO, SPACE, COLON, POINT, NEWLINE, MINUS = (np.uint8(ord(c)) for c in "0 :.\n-")


def make_text(path, size, entries):
    """Rows of about so many entries with a linear truth and noise, as many as fill `size` bytes."""
    rng = np.random.default_rng(0)
    truth, written = rng.normal(size=FEATURES), 0
    room = np.empty(ROWS * (entries * 16 + 4), np.uint8)
    growth = np.log(FEATURES / entries) * 2 / entries
    with open(path, "wb") as file:
        while written < size:
            length = fill_text(truth, rng.random((ROWS, entries, 2)), rng.normal(size=ROWS), growth, room)
            file.write(room[:length])
            written += length


@njit(cache=True)
def fill_text(truth, chances, noise, growth, out):
    """Lines of text; columns increase by what is often 1 at first and hardly ever at the end. Written."""
    at = 0
    for i in range(chances.shape[0]):
        label, at = at, at + 2
        column, scale, score = 0, 0.0, noise[i]
        for e in range(chances.shape[1]):
            scale += chances[i, e, 0] * growth
            column += int(np.exp(scale))
            if column > truth.size:
                break
            value = 1 + int(chances[i, e, 1] * 99)  # hundredths
            score += truth[column - 1] * value / 100
            out[at] = SPACE
            at = put_digits(column, out, at + 1)
            out[at], out[at + 1], out[at + 2] = COLON, ZERO, POINT
            out[at + 3], out[at + 4] = ZERO + value // 10, ZERO + value % 10
            at += 5
        out[label] = MINUS if score < 0 else SPACE  # a blank before a label is none of it
        out[label + 1] = ZERO + 1
        out[at] = NEWLINE
        at += 1
    return at


@njit(cache=True)
def put_digits(number, out, at):
    size, rest = 1, number // 10
    while rest:
        size, rest = size + 1, rest // 10
    for k in range(size):
        out[at + size - 1 - k] = ZERO + number % 10
        number //= 10
    return at + size


def limited(limit):
    """A function that puts the calling process into a group of so many bytes; None where none can be made."""
    for version, root in GROUPS.items():
        group = Path(root) / "fenchel-shards"
        name = "memory.limit_in_bytes" if version == "v1" else "memory.max"
        try:
            group.mkdir(exist_ok=True)
            (group / name).write_text(str(limit))
        except OSError:
            continue
        return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    return None


def run(arguments, enter):
    """(seconds, largest anonymous bytes) of `fenchel ...`, which speaks for itself."""
    start, most = time.perf_counter(), 0
    command = [sys.executable, "-m", "fenchel", *map(str, arguments)]
    with subprocess.Popen(command, preexec_fn=enter) as process:
        while process.poll() is None:
            most = max(most, anonymous_bytes(process.pid))
            time.sleep(0.05)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - start, most


def anonymous_bytes(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if "RssAnon" in line), 0)


def drop_cache():
    """Forget the files that the system has in memory; False where it is not ours to say."""
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1")
    except OSError:
        return False
    return True


def seconds_of_reading(folder):
    drop_cache()
    start = time.perf_counter()
    for path in sorted(folder.glob("*.bin")):
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=["lr", "crf"], default="lr")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of libsvm text")
    parser.add_argument("--entries", type=int, default=160, help="of a row of it")
    parser.add_argument("--copies", type=int, default=40, help="of CoNLL-2000")
    parser.add_argument("--limit", type=float, default=1.0, help="gigabytes of memory")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/fenchel-shards"))
    parser.add_argument("--tol", default="1e-3")
    parser.add_argument("--seconds", default=None, help="of training, at most")
    parser.add_argument("--keep", action="store_true", help="shards that are there already")
    chosen = parser.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    text, options = text_of(chosen)
    shards, enter = text.with_suffix(""), limited(int(chosen.limit * 1e9))
    size = text.stat().st_size
    limit = f"limited to {chosen.limit:g} GB" if enter else "not limited: no control group"
    print(f"{size / 1e9:.2f} GB of text, memory {limit}")
    if not (chosen.keep and shards.exists()):
        command = ["shard", chosen.kind, text, "-o", shards, "--overwrite", *options]
        seconds, most = run(command, enter)
        print(f"shard: {size / seconds / 1e6:.0f} MB/s, {most / 1e6:.0f} MB anonymous")
    reading = seconds_of_reading(shards)
    drop_cache()
    command = ["train", chosen.kind, shards, "-o", chosen.folder / "model", "--tol", chosen.tol]
    command += ["--max-seconds", chosen.seconds] if chosen.seconds else []
    seconds, most = run(command, enter)
    print(f"train: {seconds:.1f} s, {most / 1e6:.0f} MB anonymous; shards are read in {reading:.1f} s")


def text_of(chosen):
    """The file of text, made once, and the options that `shard` takes with it."""
    if chosen.kind == "lr":
        path = chosen.folder / f"{chosen.gigabytes:g}.svm"
        if not path.exists():
            make_text(path, chosen.gigabytes * 1e9, chosen.entries)
        return path, []
    path = chosen.folder / f"conll{chosen.copies}.txt"
    if not path.exists():
        with gzip.open(Path(os.environ["FENCHEL_DATA"]) / "conll2000" / "train.txt.gz") as stream:
            once = stream.read() + b"\n"
        with open(path, "wb") as file:
            for _ in range(chosen.copies):
                file.write(once)
    return path, ["--template", "chunk"]


if __name__ == "__main__":
    main()
