"""Writing a folder of shards: see `io.shards` for what it holds."""

import errno
import fcntl
import json
import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from zlib import crc32

import numpy as np

FORMAT, VERSION = "fenchel shards", 2
MANIFEST = "manifest.json"
RANDOM = 8  # letters of a name that `tempfile` makes up
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ShardWriter:
    """Writes a folder of shards, array by array: `append` what comes, `cut` a shard, `finish`.

    A context. The folder takes its name when all is written: an error, or leaving before `finish`, changes
    nothing.
    """

    def __init__(self, folder, kind: str, arrays: dict[str, str], overwrite: bool = False):
        """arrays: NumPy's name of the type of each. overwrite: whether other shards may be replaced."""
        self.folder, self.kind = Path(os.path.abspath(folder)), kind
        self._require_place(overwrite)
        self._types = {name: np.dtype(kind).newbyteorder("<") for name, kind in arrays.items()}
        self._shards, self._common = [], {}
        self._begin()

    def _require_place(self, overwrite):
        """Refuse a folder that holds something else than shards, or shards that are not to be replaced."""
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise FileExistsError(f"{self.folder}: a file; give a new folder")
        strange = [path.name for path in self.folder.iterdir() if not _is_ours(path)]
        if strange:
            raise FileExistsError(f"{self.folder}: holds {strange[0]!r}, which is no part of any shards")
        if (self.folder / MANIFEST).exists() and not overwrite:
            raise FileExistsError(f"{self.folder}: holds shards already; give another folder, or overwrite")

    def __enter__(self):
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._remove_remains()
        self._place = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}.", dir=self.folder.parent))
        with ExitStack() as opened:
            opened.enter_context(_claimed(self._place))
            self._files = {
                name: opened.enter_context(open(self._place / f"{name}.bin", "wb")) for name in self._types
            }
            self._opened = opened.pop_all()
        return self

    def _remove_remains(self) -> None:
        """Remove what a run that was killed has left beside the folder; who lives has claimed its own."""
        before = f".{self.folder.name}."
        for place in self.folder.parent.iterdir():
            if place.name.startswith(before) and len(place.name) == len(before) + RANDOM and place.is_dir():
                content = list(place.iterdir())
                with _claimed(place) as dead:
                    if dead and content and all(map(_is_ours, content)):
                        shutil.rmtree(place, ignore_errors=True)

    def __exit__(self, kind, error, trace):
        try:
            self._opened.close()
        except OSError as late:  # what was left to be written has no room either
            if error is None:
                self._name(late)
                raise
        finally:
            shutil.rmtree(self._place, ignore_errors=True)
            self._name(error)

    def _name(self, error) -> None:
        """Let a full disk be told by the folder's name: what was written to has one of its own, or none."""
        if isinstance(error, OSError) and error.errno in FULL:
            error.filename = str(self.folder)

    def _begin(self):
        self._examples, self._sizes = 0, dict.fromkeys(self._types, 0)
        self._sums = dict.fromkeys(self._types, 0)

    def append(self, examples: int, **arrays) -> None:
        """Numbers of so many more examples."""
        for name, numbers in arrays.items():
            self._sums[name] = self._write(name, numbers, self._sums[name])
            self._sizes[name] += len(numbers)
        self._examples += examples

    def share(self, **arrays) -> None:
        """Whole arrays that belong to no shard."""
        for name, numbers in arrays.items():
            self._common[name] = {"size": len(numbers), "sum": self._write(name, numbers, 0)}

    def _write(self, name, numbers, known: int) -> int:
        """Write the numbers; the checksum of all that were written since it was 0."""
        content = np.ascontiguousarray(numbers, self._types[name]).reshape(-1).view(np.uint8)
        self._files[name].write(content)
        return crc32(content, known)

    @property
    def examples(self) -> int:
        """Of the shard that is being written."""
        return self._examples

    @property
    def bytes(self) -> int:
        """Likewise."""
        return sum(size * self._types[name].itemsize for name, size in self._sizes.items())

    def cut(self) -> None:
        """End the shard, unless it is empty."""
        if self._examples:
            self._shards.append({"examples": self._examples, "sizes": self._sizes, "sums": self._sums})
            self._begin()

    def finish(self, facts: dict) -> None:
        """Make the folder whole."""
        self.cut()
        if not self._shards:
            raise ValueError("there are no examples; at least one is needed")
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        types = {name: kind.name for name, kind in self._types.items()}
        manifest = {"format": FORMAT, "version": VERSION, "kind": self.kind, "arrays": types}
        manifest |= {"facts": facts, "shards": self._shards, "common": self._common}
        (self._place / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        self._place.chmod(0o755)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        os.replace(self._place, self.folder)


@contextmanager
def _claimed(folder):
    """Whether the folder is ours while we are inside: nobody who lives has claimed it."""
    file = os.open(folder, os.O_RDONLY)
    try:
        yield _locked(file)
    finally:
        os.close(file)


def _locked(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has, or the file system knows no locks
        return False
    return True


def _is_ours(path) -> bool:
    return path.suffix == ".bin" or path.name == MANIFEST
