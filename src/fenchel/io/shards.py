"""Shards: a training set as arrays on disk, mapped into memory: for data larger than memory.

A folder has one file for each array, NAME.bin, little-endian numbers without a header, the shards one behind
the other, and `manifest.json`:

    format, version    "fenchel shards", 2
    kind               what the arrays are: "rows", features and one label each; "events", with their names
    arrays             the type of each
    facts              what the numbers stand for: classes, columns, how the text was read
    shards             for each how many examples it has, and of each array how many numbers and their CRC-32
    common             the same of arrays that belong to no shard, such as names

Arrays called `starts` or `...indptr` say where something begins in others: they grow from 0 through all
shards, and the first shard has a number more.

A shard is a range of every array, a few megabytes: large enough to be read at the disk's full speed, small
enough for a handful of them, drawn from all over the files, to be in memory at a time. So examples are met
in a random order though text is often sorted, and nothing has to be shuffled on disk.
"""

import os
import tempfile
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fenchel._memory import available_bytes
from fenchel._sparse import Rows
from fenchel.errors import DataError
from fenchel.io._json import parse_json
from fenchel.io.backing import Backing
from fenchel.io.paging import IN_MEMORY, Paged
from fenchel.io.shard_writer import FORMAT, FULL, MANIFEST, VERSION, ShardWriter

MEMORY = 1 << 28  # bytes of examples at a time: more mix no better
PROGRAM, COPIES = 3 << 26, 8  # what a process has before training; arrays of all weights or examples
FOR_A_WHILE = 40  # bytes of each example while a problem is made, or its gap looked at
BLOCK = 1 << 24  # bytes at a time where checksums are computed
ROW_ARRAYS = "indptr", "indices", "data"


def _overlapping(array):
    """Blocks of an array, each beginning with the last number of the one before."""
    return (array[max(at - 1, 0) : at + BLOCK] for at in range(0, array.size, BLOCK))


def _is_pointer(name) -> bool:
    return name == "starts" or name.endswith("indptr")


def _type_of_numbers(name, kind) -> np.dtype:
    found = np.dtype(kind)
    if found.kind not in "iuf":
        raise TypeError(f"the array {name!r} has the type {kind!r}")
    return found


def _checksum(array) -> int:
    content, found = array.view(np.uint8), 0
    for at in range(0, content.size, BLOCK):
        found = crc32(content[at : at + BLOCK], found)
    return found


class Shards(Paged):
    """A training set on disk, as `fenchel shard` makes them; `fit` takes it in the place of X and y.

    folder : where it lies
    memory : bytes of examples that training works on at a time; as many again are read meanwhile. Unless
        given 256 MB, or an eighth of what is available where that is less
    client : the Dask client at whose workers models are trained on it; unless given the active one, if any
    n : the number of examples; pieces : array (S + 1,), the example with which each of S shards begins
    arrays : the numbers, mapped and not read before they are used
    total : of a part, the weight of all examples of the whole; else None
    """

    def __init__(self, folder, memory: int | None = None, client=None):
        if memory is not None and memory < 1:
            raise ValueError(f"memory={memory!r} must be a positive number of bytes")
        if client is not None and not hasattr(client, "submit"):
            raise TypeError(f"client={client!r} is no Dask client; give distributed.Client({client!r})")
        self.folder, self.total, self.client = Path(folder), None, client
        self.memory = min(MEMORY, available_bytes() // 8 + 1) if memory is None else memory
        manifest, self._verified = self._manifest(), False
        self._backings, self._companions = {}, []
        try:
            self._shards, self._common = manifest["shards"], manifest["common"]
            self.kind, self.facts = manifest["kind"], manifest["facts"]
            types = {name: _type_of_numbers(name, kind) for name, kind in manifest["arrays"].items()}
            self.pieces = self._ends([shard["examples"] for shard in self._shards])
            self._bounds = {name: self._ends(self._counts(name)) for name in types}
            self.arrays = {name: self._mapped(name, kind) for name, kind in types.items()}
            own = [np.diff(self._bounds[name]) * types[name].itemsize for name in self._divided]
            self._sizes = sum(own, np.zeros(len(self._shards), np.int64))
        except (KeyError, TypeError, AttributeError) as error:  # something is not where it should be
            raise self._error(f"the manifest is damaged ({error!r})") from None

    @property
    def _divided(self) -> list[str]:
        """The names of the arrays that shards are ranges of."""
        return [name for name in self._bounds if name not in self._common]

    def _counts(self, name) -> list[int]:
        """How many numbers of an array each shard has; of one in common there are as many in one piece."""
        if name in self._common:
            return [self._common[name]["size"]]
        return [shard["sizes"][name] for shard in self._shards]

    def _manifest(self) -> dict:
        path = self.folder / MANIFEST
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{self.folder}: no such folder of shards")
        if not path.exists():
            raise self._error("a folder without shards (no manifest.json); `fenchel shard` makes them")
        try:
            manifest = parse_json(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise self._error(f"the manifest is damaged ({error})") from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self._error("manifest.json is not one of fenchel shards")
        if manifest.get("version") != VERSION:
            found = f"shards of version {manifest.get('version')!r}, but this fenchel reads {VERSION}"
            old = manifest.get("version") in range(1, VERSION)
            way_out = "shard the data anew" if old else "use the fenchel that wrote them, or a newer one"
            raise self._error(f"{found}; {way_out}")
        return manifest

    def _error(self, message) -> DataError:
        return DataError(str(self.folder), None, message)

    def _ends(self, counts) -> np.ndarray:
        if not counts or not all(type(count) is int and 0 <= count < 2**60 for count in counts):
            raise self._error("the manifest is damaged (sizes of shards)")
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])

    def _mapped(self, name, kind) -> np.ndarray:
        """The numbers of a file, copied where somebody writes to them: kernels know no read-only arrays."""
        path, count = self.folder / f"{name}.bin", int(self._bounds[name][-1])
        if not path.is_file():
            raise self._error(f"{path.name} is missing; shard the data anew")
        if path.stat().st_size != count * kind.itemsize:
            found = f"{path.name} has {path.stat().st_size} bytes, expected {count * kind.itemsize}"
            raise self._error(f"{found}: cut off or altered; shard the data anew")
        if count == 0:
            return np.empty(0, kind)
        with open(path, "rb") as file:
            self._backings[name] = Backing(file, shared=False)
        return self._backings[name].map(kind)

    def __repr__(self):
        return f"<Shards of {self.n} examples ({self.kind}) in {str(self.folder)!r}>"

    @property
    def n(self) -> int:
        return int(self.pieces[-1])

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def peak(self) -> int:
        """Bytes that training takes at most, about: pages of shards, weights, and numbers of examples."""
        labels = len(self.fact("classes", list))
        outputs = 1 if self.kind == "trees" or (self.kind == "rows" and labels == 2) else labels
        weights = 8 * self.fact("columns", int) * outputs
        numbers = max(COPIES * min(8 * self.n, IN_MEMORY), FOR_A_WHILE * self.n)
        return PROGRAM + 2 * min(self.memory, self.size) + COPIES * weights + numbers

    def require(self, kind: str, taker: str) -> None:
        """DataError unless the arrays are of this kind."""
        if self.kind != kind:
            raise self._error(f"shards of {self.kind}, but {taker} is trained on {kind}")

    def array(self, name: str) -> np.ndarray:
        """One of the arrays; DataError where it is missing."""
        if name not in self.arrays:
            raise self._error(f"the manifest is damaged (it has no array {name!r})")
        return self.arrays[name]

    def array_of_examples(self, name: str) -> np.ndarray:
        """The same of an array that has a number for each example."""
        if self.array(name).size != self.n:
            raise self.damaged(name)
        return self.arrays[name]

    def damaged(self, name: str) -> DataError:
        """What to raise where an array holds what it cannot."""
        return self._error(f"{name}.bin is damaged; shard the data anew")

    def unreadable(self, what: str) -> DataError:
        """What to raise where arrays and facts together make no sense."""
        return self._error(f"damaged, {what}; shard the data anew")

    def fact(self, name: str, kind: type):
        """One of the facts, of this type; DataError where it is missing."""
        if type(self.facts.get(name)) is not kind:
            raise self._error(f"the manifest is damaged (its fact {name!r})")
        return self.facts[name]

    @cached_property
    def rows(self) -> Rows:
        """The sparse matrix of the arrays indptr, indices and data, a row for each example."""
        return self.matrix("", self.n, self.fact("columns", int))

    def starts(self, name: str, count: int, end: int | None = None) -> np.ndarray:
        """An array of pointers that grows from 0 to `end` in so many steps; DataError where it does not."""
        found = self.array(name)
        grows = all((np.diff(some.view(np.int64)) >= 0).all() for some in _overlapping(found))
        fits = found.size == count + 1 and found[0] == 0 and (end is None or found[-1] == end)
        if not (grows and fits):
            raise self.damaged(name)
        return found

    def matrix(self, prefix: str, rows: int, columns: int) -> Rows:
        """The sparse matrix of the arrays with this prefix; without data all its entries are 1."""
        indices = self.array(prefix + "indices")
        indptr = self.starts(prefix + "indptr", rows, indices.size)
        stored = prefix + "data" in self.arrays
        data = self.arrays[prefix + "data"] if stored else as_strided(np.ones(1), indices.shape, (0,))
        if data.size != indices.size:
            raise self.damaged(prefix + "data")
        for at in range(0, indices.size, BLOCK):
            wrong = indices[at : at + BLOCK].max() >= columns
            if wrong or (stored and not np.isfinite(data[at : at + BLOCK]).all()):
                raise self._error(f"{prefix}indices.bin or {prefix}data.bin is damaged; shard the data anew")
        return Rows(indptr, indices, data, columns)

    def part(self, numbers, total: float | None = None) -> "Shards":
        """The shards of these numbers as a training set of its own, which keeps all the facts of the whole.

        Names, classes and columns are those of all shards, and so is `total`, by which weights are divided
        where they become masses: the problem of a part is a summand of the whole one. total: the weight of
        all examples of all shards, where they have other weights than those that the shards know.
        """
        numbers = [int(number) for number in numbers]
        if not numbers or not all(0 <= number < len(self._shards) for number in numbers):
            raise ValueError(f"{numbers} are not shards; there are 0 to {len(self._shards) - 1}")
        some = self._rewritten(numbers, self._divided, self._part_of_arrays, self.facts)
        some.total = float(self.facts.get("weight", self.n) if total is None else total)
        return some

    def with_constant(self, value: float) -> "Shards":
        """The rows with a column more, of one value: its weight is a penalised intercept."""

        def lengthened(number, ends):
            arrays = self._part_of_arrays(number, ends)
            begin = ends["indptr"]
            at = (arrays["indptr"] - np.uint64(begin)).view(np.int64)
            arrays["indptr"] += np.arange(1, at.size + 1, dtype=np.uint64)
            arrays["indices"] = np.insert(arrays["indices"], at, self.rows.n_columns)
            arrays["data"] = np.insert(arrays["data"], at, value)
            return arrays

        columns = {"columns": self.rows.n_columns + 1}
        longer = self._rewritten(range(len(self._shards)), list(ROW_ARRAYS), lengthened, columns)
        longer.total = self.total
        return longer

    def _rewritten(self, numbers, names, content, facts) -> "Shards":
        """Shards of other arrays, content(number, where each pointer has come to), written beside these.

        Shard by shard, in files that nobody else sees and that go with the last user.
        """
        ends = {name: 0 for name in names if _is_pointer(name)}
        types = {name: self.array(name).dtype.name for name in [*names, *self._common]}
        with self._room_beside() as place:
            with ShardWriter(place, self.kind, types) as writer:
                writer.append(0, **{name: np.zeros(1, np.uint64) for name in ends})
                writer.share(**{name: self.array(name) for name in self._common})
                for number in numbers:
                    arrays = content(number, ends)
                    writer.append(int(np.diff(self.pieces)[number]), **{name: arrays[name] for name in names})
                    writer.cut()
                    ends = {name: int(arrays[name][-1]) for name in ends}
                    self.dismiss(np.array([number]))
                writer.finish(facts)
            other = Shards(place, self.memory)
        other.folder = self.folder  # where dual variables go, and what errors speak of
        return other

    @contextmanager
    def _room_beside(self):
        """A place for the shards written once more; a full disk is told by the folder that it is made in."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            try:
                yield Path(folder) / "shards"
            except OSError as error:
                if error.errno in FULL:
                    place = self._scratch or tempfile.gettempdir()
                    error.filename = f"{place}, {self.size / 1e6:,.1f} MB to write the shards once more"
                raise

    def _part_of_arrays(self, number, ends) -> dict[str, np.ndarray]:
        """The numbers of a shard, with pointers that go on where those of `ends` have come to."""
        made = {}
        for name in self._divided:
            begin, end = self._bounds[name][number : number + 2].tolist()
            if name not in ends:
                made[name] = self.arrays[name][begin:end]
                continue
            first = max(begin, 1)  # before the first shard's numbers is the 0 with which all begins
            made[name] = self.arrays[name][first:end] - self.arrays[name][first - 1] + np.uint64(ends[name])
        return made

    def verify(self) -> None:
        """Compare all checksums: one pass over the files. DataError names the first shard that is altered."""
        if self._verified:
            return
        for name in self._common:
            if _checksum(self.arrays[name]) != self._common[name].get("sum"):
                raise self._error(f"{name}.bin is altered; shard the data anew")
        for number, shard in enumerate(self._shards):
            for name in self._divided:
                begin, end = self._bounds[name][number : number + 2].tolist()
                if _checksum(self.arrays[name][begin:end]) != shard["sums"].get(name):
                    raise self._error(f"shard {number} of {name}.bin is altered; shard the data anew")
        self._verified = True

    # ---- what training asks of a disk

    @property
    def _scratch(self) -> Path | None:
        """The folder of files that come and go: this one, or the system's own where it may not be written."""
        return self.folder if os.access(self.folder, os.W_OK) else None
