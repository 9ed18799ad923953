"""Checkpoint: a run kept in a file, so that a crash costs minutes and not hours."""

import time
from pathlib import Path

from fenchel.errors import DataError
from fenchel.io.checkpoints import read_checkpoint, write_checkpoint

# What a fingerprint says, in the words of a refusal.
WHAT = {
    "fenchel": "another version of fenchel",
    "solver": "another solver or seed",
    "problem": "another problem",
}
WHAT |= {"data": "other data"}


class Checkpoint:
    """Keeps a run in a file and goes on with it: callbacks=[Checkpoint("run.ckpt")] of any estimator.

    Parameters
    ----------
    path : str or path
        The file. It is replaced by a rename, so that a kill at any moment leaves the last whole one.
    every : float, default 60.0
        Seconds between two; 0 keeps after every step. The last state is kept in any case.
    resume : bool, default False
        Whether to go on from the file, if there is one. A checkpoint of other data, settings or version is
        refused. The result is, to the bit, that of a run that was never interrupted.
    """

    def __init__(self, path, every: float = 60.0, resume: bool = False):
        if not every >= 0.0:
            raise ValueError(f"every={every!r} must be a number of seconds, at least 0")
        self.path, self.every, self.resume = Path(path), every, resume
        self._last = time.monotonic()

    @property
    def beside(self) -> str:
        """The folder where workers of a cluster keep their dual variables; all of them must reach it."""
        return f"{self.path.absolute()}.places"

    def __call__(self, trace) -> None:
        """A callback that has nothing to do at a check."""

    def is_due(self) -> bool:
        return time.monotonic() - self._last >= self.every

    def save(self, fingerprint, arrays, encoded) -> None:
        write_checkpoint(self.path, fingerprint, arrays, encoded)
        self._last = time.monotonic()

    def load(self, fingerprint):
        """The arrays and values that were kept; None where none were, or are not asked for."""
        if not (self.resume and self.path.exists()):
            return None
        found, arrays, encoded = read_checkpoint(self.path)
        for name, value in fingerprint.items():
            if found.get(name) != value:
                shown = "" if name == "data" else f": {found.get(name)!r}, not {value!r}"
                raise DataError(str(self.path), None, f"a checkpoint of {WHAT[name]}{shown}")
        return arrays, encoded
