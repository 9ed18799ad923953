"""Kills: training with checkpoints, ended by SIGKILL at random moments, goes on to the same bits.

    python tests/kills.py 50               so many kills for all runs together
    python tests/kills.py 1 --seed 17      one of them again

Each round trains on the command line with --checkpoint, is killed, sometimes again after --resume, and then
goes on to the end. The model must have the weights of a run that nobody killed, bit for bit, and no file but
the checkpoint and the model may be left.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fenchel
from fenchel.cli import cli

RUNS = {
    "lr gis": "lr rows --solver gis --tol 0.2",
    "lr cd-dual": "lr rows --solver cd-dual --tol 1e-10",
    "lr auto": "lr rows -C 1e3 --tol 1e-10",
    "lr sag": "lr rows --solver sag --tol 1e-8",
    "crf eg-gap": "crf words --template chunk --solver eg-gap --tol 1e-9",
    "crf lbfgs": "crf words --template chunk --solver lbfgs --tol 1e-6 --threads 2",
    "crf hinge": "crf words --template chunk --loss hinge --tol 1e-3",
}


def write_data(folder) -> None:
    """Rows of libsvm, and sentences in columns, both noisy enough for some hundred steps."""
    rng = np.random.default_rng(3)
    X, W = rng.random((400, 20)), rng.normal(size=(20, 3))
    y = (X @ W + 0.5 * rng.normal(size=(400, 3))).argmax(axis=1)
    rows = (" ".join(f"{j + 1}:{value:.6f}" for j, value in enumerate(x)) for x in X)
    (folder / "rows").write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True)))
    words = rng.integers(40, size=(150, 8))
    tags = np.where(rng.random(words.shape) < 0.8, words % 5, rng.integers(5, size=words.shape))
    lines = (
        "".join(f"w{word} p{word % 7} t{tag}\n" for word, tag in zip(*pair, strict=True))
        for pair in zip(words.tolist(), tags.tolist(), strict=True)
    )
    (folder / "words").write_text("\n".join(lines))


def start(run, output, *more) -> int:
    """Train in a process of its own, forked: importing everything anew would be most of the time."""
    child = os.fork()
    if child == 0:
        try:
            cli.main(["train", *RUNS[run].split(), "-o", str(output), "-q", *more], standalone_mode=True)
        except SystemExit as end:
            os._exit(end.code or 0)
        finally:
            os._exit(3)
    return child


def finish(child) -> None:
    """Wait for the end, which must be a good one."""
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"it ended with status {status}"


def bits(path) -> bytes:
    model = fenchel.load(path)
    return (model.coef_ if hasattr(model, "intercept_") else model.weights_).tobytes()


def kill_and_resume(run, folder, rng, seconds, expected) -> int:
    """Kill a run at a random moment, once or more, and let it go on; how many kills met a running process."""
    checkpoint, output, met = folder / "run.ckpt", folder / "killed", 0
    kept = ("--checkpoint", str(checkpoint), "--every", rng.choice(["0", "0", "0.02"]), "--resume")
    checkpoint.unlink(missing_ok=True), output.unlink(missing_ok=True)
    for _ in range(rng.choice([1, 1, 2, 3])):
        child = start(run, output, *kept)
        time.sleep(rng.uniform(0.0, 1.1 * seconds))
        os.kill(child, signal.SIGKILL)
        met += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    finish(start(run, output, *kept))
    assert bits(output) == expected, "the weights are others"
    left = {path.name for path in folder.iterdir()} - {"rows", "words", "whole", "killed", "run.ckpt"}
    assert not left, f"left behind: {left}"
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, met, rounds = random.Random(options.seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder), write_data(folder)
        whole = {}
        while met < options.count:
            run = list(RUNS)[rounds % len(RUNS)]
            if run not in whole:
                for again in range(2):  # the first compiles, the second is timed, with checkpoints as later
                    began = time.perf_counter()
                    kept = ("--checkpoint", str(folder / "run.ckpt"), "--every", "0") if again else ()
                    finish(start(run, folder / "whole", *kept))
                whole[run] = time.perf_counter() - began, bits(folder / "whole")
                print(f"{run}: {whole[run][0]:.2f} s without a kill", flush=True)
            met += kill_and_resume(run, folder, rng, *whole[run])
            rounds += 1
            print(f"{run}: {met} kills so far", flush=True)
    print(f"{met} kills in {rounds} runs: all ended at the weights of a run that nobody killed")


if __name__ == "__main__":
    sys.exit(main())
