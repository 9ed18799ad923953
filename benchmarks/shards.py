"""Training on data larger than memory: made-up libsvm text, sharded and trained under a limit of memory.

python shards.py --gigabytes 4 --limit 1

Text is made once and kept in --folder. Sharding and training are processes of their own, in a control group
of `--limit` gigabytes where this machine lets us make one (root, cgroup v1 or v2): there the system's cache
of files counts too, and a process that needs more is killed. Printed: megabytes of text a second, seconds and
passes of training, the largest anonymous memory of each process, and how long it takes to read the shards
from an empty cache of files.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

FEATURES, ENTRIES = 1_000_000, 40  # of a row
ROWS = 20_000  # made at a time
GROUPS = {"v1": "/sys/fs/cgroup/memory", "v2": "/sys/fs/cgroup"}


def make_text(path, size):
    """Rows with a linear truth and noise, as many as fill `size` bytes."""
    rng = np.random.default_rng(0)
    truth, written = rng.normal(size=FEATURES), 0
    columns = np.array([b" %d:" % j for j in range(1, FEATURES + 1)], dtype=object)
    values = np.array([b"%.2f" % (v / 100) for v in range(1, 101)], dtype=object)
    with open(path, "wb") as file:
        while written < size:
            # columns increase by what is often 1 at first and hardly ever at the end: few are frequent
            gaps = np.exp(rng.random((ENTRIES, ROWS)).cumsum(axis=0) * 0.45)
            j = np.minimum(gaps.astype(np.int64).cumsum(axis=0), FEATURES - 1).T
            keep = np.diff(j, axis=1, prepend=-1) > 0
            v = rng.integers(0, 100, j.shape)
            score = (truth[j] * (v + 1) / 100 * keep).sum(axis=1) + rng.normal(size=ROWS)
            parts = np.empty((ROWS, 2 * ENTRIES + 2), dtype=object)
            parts[:, 0], parts[:, -1] = np.where(score > 0, b"1", b"-1"), b"\n"
            parts[:, 1:-1:2] = np.where(keep, columns[j], b"")
            parts[:, 2:-1:2] = np.where(keep, values[v], b"")
            text = b"".join(parts.ravel().tolist())
            file.write(text)
            written += len(text)


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
    """(seconds, largest anonymous bytes, what it said) of `fenchel ...`."""
    start, most = time.perf_counter(), 0
    command = [sys.executable, "-m", "fenchel", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=enter) as process:
        while process.poll() is None:
            most = max(most, anonymous_bytes(process.pid))
            time.sleep(0.05)
        said = process.stderr.read()
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}: {said}")
    return time.perf_counter() - start, most, said.strip()


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
    parser.add_argument("--gigabytes", type=float, default=4.0, help="of text")
    parser.add_argument("--limit", type=float, default=1.0, help="gigabytes of memory")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/fenchel-shards"))
    parser.add_argument("--tol", default="1e-3")
    chosen = parser.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    text, shards = chosen.folder / f"{chosen.gigabytes:g}.svm", chosen.folder / f"{chosen.gigabytes:g}"
    if not text.exists():
        make_text(text, chosen.gigabytes * 1e9)
    enter, size = limited(int(chosen.limit * 1e9)), text.stat().st_size
    print(f"{size / 1e9:.1f} GB of text, memory " + ("limited" if enter else "not limited: no control group"))
    seconds, most, said = run(["shard", "lr", text, "-o", shards, "--overwrite"], enter)
    print(f"shard: {size / seconds / 1e6:.0f} MB/s, {most / 1e6:.0f} MB anonymous\n  {said}")
    reading = seconds_of_reading(shards)
    drop_cache()
    seconds, most, said = run(
        ["train", "lr", shards, "-o", chosen.folder / "model", "--tol", chosen.tol], enter
    )
    print(
        f"train: {seconds:.1f} s, {most / 1e6:.0f} MB anonymous; shards are read in {reading:.1f} s\n  {said}"
    )


if __name__ == "__main__":
    main()
