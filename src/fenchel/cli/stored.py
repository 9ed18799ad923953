"""Shards for the command line: sentences and treebanks of any size, and folders in the place of files."""

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import fenchel
from fenchel.cli import options
from fenchel.cli.failures import Failure, in_options
from fenchel.cli.output import count, source
from fenchel.cli.sentences import Corpus, guess_format, preset_for

SEQUENCES = 5_000  # of a CRFsuite file that are read at a time


@dataclass(frozen=True)
class Stored:
    """A folder of shards in the place of a file; what they were read from is in their facts.

    labelled: whether labels of arcs, if there are any, are to be learnt.
    """

    name: str
    shards: "fenchel.Shards"
    labelled: bool = True

    @classmethod
    def of(cls, folder, kind: str, taker: str) -> "Stored":
        shards = fenchel.Shards(folder)
        shards.require(kind, taker)
        return cls(str(folder), shards)

    @property
    def n(self) -> int:
        return self.shards.n

    @property
    def read_as(self) -> dict:
        return self.shards.fact("read_as", dict)

    @property
    def columns(self) -> int | None:
        return self.read_as.get("columns")

    @property
    def separator(self) -> str | None:
        return self.read_as.get("separator")

    @cached_property
    def labels(self) -> list:
        return self.shards.fact("classes", list)

    def take(self, numbers):
        """Parts are not made: they would be in memory."""
        raise Failure(f"{self.name}: parts of shards are not trained on; give the file itself")


def is_folder(path) -> bool:
    return os.path.isdir(path)


def refuse_reading(path, names: tuple[str, ...]) -> None:
    """Options of how text is read say nothing of shards, which were read when they were written."""
    for name in filter(options.given, names):
        option = f"--{name.replace('_', '-')}"
        raise Failure(f"{path}: {option} belongs to the shards; give it to `fenchel shard`, not here")


def take_over(model, shards, names: tuple[str, ...]) -> None:
    """Settings that were chosen when the shards were written; the command line can only say the same."""
    own = {name: shards.facts.get(name) for name in names}
    for name in filter(options.given, names):
        theirs, ours = own[name], getattr(model, name)
        if ours != theirs:
            found = f"the shards were written with {name}={theirs!r}, not {ours!r}"
            raise Failure(in_options(f"{found}; leave that out, or write them anew"))
    model.set_params(**own)


# ---- sentences


@dataclass(frozen=True)
class SentenceFiles:
    """(X, y, weight) of the sentences of files one after the other, some at a time, anew with each iter()."""

    paths: tuple[str, ...]
    format: str
    separator: str | None

    def __iter__(self):
        if self.format == "crfsuite":
            return (batch for path in self.paths for batch in _attribute_batches(path))
        return self._column_batches()

    def _column_batches(self):
        from fenchel.io.columns import iterate_batches

        columns = None
        for path in self.paths:
            for tokens in iterate_batches(path, self.separator):
                columns = columns or tokens.n_columns
                if tokens.n_columns < 2:
                    raise Failure(f"{source(path)}: 1 column, expected at least a word and, last, its label")
                if tokens.n_columns != columns:
                    found = f"{source(path)}: {count(tokens.n_columns, 'column')}"
                    raise Failure(f"{found}, expected {columns} as in {source(self.paths[0])}")
                yield *tokens.without_last(), None


def _attribute_batches(path):
    from fenchel.io.crfsuite import iterate_crfsuite

    sequences = iterate_crfsuite(path)
    while some := list(islice(sequences, SEQUENCES)):
        yield tuple(zip(*((one.attributes, one.labels, one.weight) for one in some), strict=True))


def shard_sentences(paths, folder, settings, separator):
    """The `fenchel.Shards` of the sentences of these files."""
    from fenchel.io.sharding import shard_sequences

    _refuse_stdin(paths, "twice: first for attributes and labels")
    format = settings["format"] or (
        "columns" if separator or settings["template"] else guess_format(paths[0])
    )
    files, read_as, template = SentenceFiles(paths, format, separator), {}, settings["template"]
    if format == "columns":
        X, y, _ = next(iter(files))
        read_as = {"columns": X.n_columns + 1} | ({"separator": separator} if separator else {})
        template = template or preset_for(Corpus(source(paths[0]), X, y, columns=X.n_columns + 1))
        if not template:
            columns = f"{X.n_columns + 1} columns"
            raise Failure(f"{source(paths[0])}: there is no default for {columns}; give --template")
    names = "min_count", "hash_bits", "bias", "boundaries", "rows", "overwrite"
    own = {name: settings[name] for name in names}
    return shard_sequences(files, folder, template=template, read_as=read_as, **own)


def _refuse_stdin(paths, why):
    if "-" in paths:
        raise Failure(f"the text is read {why}, but standard input is there once; give a file")


# ---- treebanks


@dataclass(frozen=True)
class TreeFiles:
    """(sentences, heads, labels) of treebanks one after the other, some at a time, anew with each iter()."""

    paths: tuple[str, ...]
    tags: str
    single_root: bool
    labels: bool

    def __iter__(self):
        from fenchel.io.treebanks import iterate_treebank

        for path in self.paths:
            for some in iterate_treebank(path, tags=self.tags, single_root=self.single_root):
                yield some.tokens, some.heads, some.labels if self.labels else None


def shard_treebanks(paths, folder, settings):
    """The `fenchel.Shards` of the sentences of these treebanks."""
    from fenchel.io.sharding import shard_trees

    _refuse_stdin(paths, "three times, for words, features and arcs")
    names = "min_count", "observed", "hash_bits", "single_root", "rows", "overwrite"
    files = TreeFiles(paths, *(settings[name] for name in ("tags", "single_root", "labels")))
    read_as = {"tags": settings["tags"], "single_root": settings["single_root"]}
    return shard_trees(files, folder, read_as=read_as, **{name: settings[name] for name in names})
