"""A full disk, or a folder that is not to be written to: what was there stays, and the message says so."""

import resource
from contextlib import contextmanager

import numpy as np
import pytest

from commands import run
from fenchel import Checkpoint, LogisticRegression
from fenchel.io import files
from fenchel.io.trace import write_trace
from fenchel.report.plots import plot_race

RNG = np.random.default_rng(6)
X = RNG.normal(size=(50, 4))
Y = (X[:, 0] > 0).astype(int)
UNTOUCHED = "; the file that was there is untouched"


@contextmanager
def full_disk(size=300):
    """No file can grow beyond so many bytes, as on a disk that has no more room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def fitted():
    return LogisticRegression(solver="lbfgs").fit(X, Y)


WRITERS = {
    "model": lambda model, path: model.save(path),
    "liblinear": lambda model, path: model.to_liblinear(path),
    "trace": lambda model, path: write_trace(path, model.trace_),
    "picture": lambda model, path: plot_race([model.trace_], path),
    "checkpoint": lambda model, path: LogisticRegression(
        solver="lbfgs", callbacks=[Checkpoint(path, every=0.0)]
    ).fit(X, Y),
}


@pytest.mark.parametrize("what", WRITERS)
def test_a_full_disk_leaves_the_old_file(what, fitted, tmp_path):
    if what == "picture":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "file"
    WRITERS[what](fitted, path)  # and all kernels are compiled
    before = path.read_bytes()
    with full_disk(100), pytest.raises(OSError) as caught:
        WRITERS[what](fitted, path)
    assert str(path) in str(caught.value) and UNTOUCHED in str(caught.value)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["file"]
    path.unlink()
    with full_disk(100), pytest.raises(OSError) as caught:
        WRITERS[what](fitted, path)
    assert "untouched" not in str(caught.value) and not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_written_to(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model"
    fitted.save(path)
    before = path.read_bytes()

    def deny(name, *_):
        raise PermissionError(13, "Permission denied", str(name))

    monkeypatch.setattr(files, "open", deny, raising=False)
    with pytest.raises(PermissionError, match=f"permission denied in the folder {tmp_path}{UNTOUCHED}"):
        fitted.save(path)
    assert path.read_bytes() == before


def test_a_full_disk_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = (" ".join(f"{j + 1}:{value}" for j, value in enumerate(x)) for x in X)
    (tmp_path / "data").write_text("".join(f"{y} {row}\n" for y, row in zip(Y, rows, strict=True)))
    train = ("train", "lr", "data", "--solver", "lbfgs", "-o", "model", "--trace", "run.jsonl")
    commands = {
        "model": (*train, "-C", "2"),
        "page.html": ("report", "model", "run.jsonl", "--test", "data", "-o", "page.html"),
        "race/lbfgs.jsonl": ("race", "lr", "data", "--solvers", "lbfgs", "--output", "race"),
        "run.ckpt": (*train, "--checkpoint", "run.ckpt", "--every", "0"),
    }
    for command in commands.values():
        assert run(*command).exit_code == 0
    for name, command in commands.items():
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with full_disk():
            result = run(*command)
        assert result.exit_code == 1, result.output
        last = result.stderr.strip().rpartition("\n")[2]
        assert last.startswith(f"fenchel: {name}: ") and last.endswith(UNTOUCHED), result.stderr
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
