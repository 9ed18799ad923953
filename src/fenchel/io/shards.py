"""Shards: a training set as arrays on disk, mapped into memory: for data larger than memory.

A folder has one file for each array, NAME.bin, little-endian numbers without a header, the shards one behind
the other, and `manifest.json`:

    format, version    "fenchel shards", 1
    kind               what the arrays are: "rows", features and one label each; "events", with their names
    arrays             the type of each
    facts              what the numbers stand for: classes, columns, how the text was read
    shards             for each how many examples it has, and of each array how many numbers and their CRC-32

A shard is a range of every array, a few megabytes: large enough to be read at the disk's full speed, small
enough for a handful of them, drawn from all over the files, to be in memory at a time. So examples are met
in a random order though text is often sorted, and nothing has to be shuffled on disk.
"""

import json
import mmap
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np

from fenchel._sparse import Rows
from fenchel.errors import DataError
from fenchel.io._json import parse_json

FORMAT, VERSION = "fenchel shards", 1
MANIFEST = "manifest.json"
BLOCK = 1 << 24  # bytes at a time where checksums are computed
IN_MEMORY = 1 << 26  # bytes up to which an array of dual variables is no burden
# Pages that nobody writes to need no promise of memory; Python names this flag from 3.13 on.
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def _overlapping(array):
    """Blocks of an array, each beginning with the last number of the one before."""
    return (array[max(at - 1, 0) : at + BLOCK] for at in range(0, array.size, BLOCK))


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
        self._shards = []
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
        self._place = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}.", dir=self.folder.parent))
        with ExitStack() as opened:
            self._files = {
                name: opened.enter_context(open(self._place / f"{name}.bin", "wb")) for name in self._types
            }
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error):
        self._opened.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def _begin(self):
        self._examples, self._sizes = 0, dict.fromkeys(self._types, 0)
        self._sums = dict.fromkeys(self._types, 0)

    def append(self, examples: int, **arrays) -> None:
        """Numbers of so many more examples."""
        for name, numbers in arrays.items():
            content = np.ascontiguousarray(numbers, self._types[name]).reshape(-1).view(np.uint8)
            self._files[name].write(content)
            self._sizes[name] += len(numbers)
            self._sums[name] = crc32(content, self._sums[name])
        self._examples += examples

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
            shard = {"examples": self._examples, "sizes": self._sizes, "sums": self._sums}
            self._shards.append(shard)
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
        manifest |= {"facts": facts, "shards": self._shards}
        (self._place / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        self._place.chmod(0o755)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        os.replace(self._place, self.folder)


def _is_ours(path) -> bool:
    return path.suffix == ".bin" or path.name == MANIFEST


class Shards:
    """A training set on disk, as `fenchel shard` makes them; `fit` takes it in the place of X and y.

    folder : where it lies
    memory : bytes of examples that training works on at a time; as many again are read meanwhile
    n : the number of examples; pieces : array (S + 1,), the example with which each of S shards begins
    arrays : the numbers, mapped and not read before they are used
    """

    def __init__(self, folder, memory: int = 2**28):
        self.folder, self.memory = Path(folder), memory
        manifest, self._maps, self._verified = self._manifest(), {}, False
        try:
            self._shards = manifest["shards"]
            self.kind, self.facts = manifest["kind"], manifest["facts"]
            types = {name: np.dtype(kind) for name, kind in manifest["arrays"].items()}
            self.pieces = self._ends([shard["examples"] for shard in self._shards])
            self._bounds = {name: self._ends([s["sizes"][name] for s in self._shards]) for name in types}
            self.arrays = {name: self._mapped(name, kind) for name, kind in types.items()}
            self._sizes = sum(np.diff(self._bounds[name]) * types[name].itemsize for name in types)
        except (KeyError, TypeError, AttributeError) as error:  # something is not where it should be
            raise self._error(f"the manifest is damaged ({error!r})") from None

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
            raise self._error(f"{found}; use the fenchel that wrote them, or a newer one")
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
            self._maps[name] = mmap.mmap(
                file.fileno(),
                0,
                flags=mmap.MAP_PRIVATE | NORESERVE,
                prot=mmap.PROT_READ | mmap.PROT_WRITE,
            )
        return np.frombuffer(self._maps[name], kind)

    def __repr__(self):
        return f"<Shards of {self.n} examples ({self.kind}) in {str(self.folder)!r}>"

    @property
    def n(self) -> int:
        return int(self.pieces[-1])

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

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

    def fact(self, name: str, kind: type):
        """One of the facts, of this type; DataError where it is missing."""
        if type(self.facts.get(name)) is not kind:
            raise self._error(f"the manifest is damaged (its fact {name!r})")
        return self.facts[name]

    @cached_property
    def rows(self) -> Rows:
        """The sparse matrix of the arrays indptr, indices and data; DataError where they make none."""
        indptr, indices, data = map(self.array, ("indptr", "indices", "data"))
        columns = self.fact("columns", int)
        grows = all((np.diff(some.view(np.int64)) >= 0).all() for some in _overlapping(indptr))
        fits = indptr.size == self.n + 1 and indptr[0] == 0 and indptr[-1] == data.size == indices.size
        if not (grows and fits):
            raise self.damaged("indptr")
        for at in range(0, data.size, BLOCK):
            if indices[at : at + BLOCK].max() >= columns or not np.isfinite(data[at : at + BLOCK]).all():
                raise self._error("indices.bin or data.bin is damaged; shard the data anew")
        return Rows(indptr, indices, data, columns)

    def with_constant(self, value: float) -> "Shards":
        """The rows with a column more, of one value: its weight is a penalised intercept.

        Written beside these, shard by shard, in files that nobody else sees and that go with the last user.
        """
        types = {name: self.array(name).dtype.name for name in ("indptr", "indices", "data")}
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            place = Path(folder) / "shards"
            with ShardWriter(place, self.kind, types) as writer:
                writer.append(0, indptr=np.zeros(1, np.uint64))
                for number, (begin, end) in enumerate(pairwise(self.pieces.tolist())):
                    writer.append(end - begin, **self._lengthened(begin, end, value))
                    writer.cut()
                    self._advise((number,), mmap.MADV_DONTNEED)
                writer.finish({"columns": self.rows.n_columns + 1})
            longer = Shards(place, self.memory)
        longer.folder = self.folder  # where dual variables go, and what errors speak of
        return longer

    def _lengthened(self, begin, end, value) -> dict[str, np.ndarray]:
        """The arrays of rows begin ≤ i < end with an entry more at the end of each row."""
        rows, ends = self.rows, self.rows.indptr[begin + 1 : end + 1]
        first, last = int(rows.indptr[begin]), int(rows.indptr[end])
        at = (ends - np.uint64(first)).view(np.int64)
        return {
            "indptr": ends + np.arange(begin + 1, end + 1, dtype=np.uint64),
            "indices": np.insert(rows.indices[first:last], at, rows.n_columns),
            "data": np.insert(rows.data[first:last], at, value),
        }

    def verify(self) -> None:
        """Compare all checksums: one pass over the files. DataError names the first shard that is altered."""
        if self._verified:
            return
        for number, shard in enumerate(self._shards):
            for name, bounds in self._bounds.items():
                part = self.arrays[name][bounds[number] : bounds[number + 1]].view(np.uint8)
                found = 0
                for at in range(0, part.size, BLOCK):
                    found = crc32(part[at : at + BLOCK], found)
                if found != shard["sums"].get(name):
                    raise self._error(f"shard {number} of {name}.bin is altered; shard the data anew")
        self._verified = True

    # ---- what training asks of a disk

    def visits(self, order: np.ndarray):
        """Yield the examples of a pass some shards at a time, as `Examples.visits` says.

        Shards take turns as the order meets them first; examples of those in memory together are mixed as
        the order has them.
        """
        together, group = self._groups(order)
        self._advise(together[0], mmap.MADV_WILLNEED)
        for number, (now, then) in enumerate(zip(together, [*together[1:], ()], strict=True)):
            self._advise(then, mmap.MADV_WILLNEED)  # read while the others are worked on
            yield order[group == number]
            self._advise(now, mmap.MADV_DONTNEED)  # they stay in the system's cache while there is room

    def _groups(self, order):
        """The shards that are in memory together, group by group, and the group of each of the examples."""
        shards = self.pieces.size - 1
        of_example = np.repeat(np.arange(shards, dtype=np.int32), np.diff(self.pieces))
        shard, first = of_example[order.view(np.int64)], np.full(shards, order.size)
        first[shard[::-1]] = np.arange(order.size)[::-1]  # what is written last stays: each one's first place
        turns = np.argsort(first, kind="stable")[: np.count_nonzero(first < order.size)]
        ends = np.cumsum(self._sizes[turns])
        count = -(-int(ends[-1]) // self.memory)  # of about one size
        number = np.unique((ends - 1) * count // ends[-1], return_inverse=True)[1]
        group = np.empty(shards, np.int32)
        group[turns] = number
        return np.split(turns, np.flatnonzero(np.diff(number)) + 1), group[shard]

    def _advise(self, shards, advice):
        for name, pages in self._maps.items():
            size, bounds = self.arrays[name].itemsize, self._bounds[name]
            for shard in shards:
                begin, end = int(bounds[shard]) * size, int(bounds[shard + 1]) * size
                begin -= begin % mmap.PAGESIZE
                if end > begin:
                    pages.madvise(advice, begin, end - begin)

    @property
    def _scratch(self) -> Path | None:
        """The folder of files that come and go: this one, or the system's own where it may not be written."""
        return self.folder if os.access(self.folder, os.W_OK) else None

    def room(self, shape) -> np.ndarray:
        """An array for dual variables: where it is large, on disk, in a file that nobody else sees."""
        size = 8 * int(np.prod(shape, dtype=np.int64))
        if size <= IN_MEMORY:
            return np.empty(shape)
        with tempfile.TemporaryFile(dir=self._scratch) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error now, not a crash later
            pages = mmap.mmap(file.fileno(), size)
        return np.frombuffer(pages, np.float64).reshape(shape)
