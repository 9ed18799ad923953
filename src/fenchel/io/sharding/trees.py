"""Sentences with the heads of their words as shards, in memory that grows with words and features alone."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from fenchel import trees
from fenchel.features.arcs import PRESETS, ArcFeatures
from fenchel.features.tokens import Tokens
from fenchel.io.shard_writer import ShardWriter
from fenchel.io.sharding.streams import (
    ROWS,
    Partitions,
    RowStream,
    Transposed,
    cut_if_full,
    is_dask,
    portions,
    require_again,
)
from fenchel.io.shards import Shards

AT_ONCE = 16  # sentences whose arcs are in memory together
TRUE = "true_"  # begins the names of the arrays of features of true arcs, for the model of labels
FEATURES = "features."  # and of those by which features are known again
ARCS = {name: kind for name, kind in ROWS.items() if name != "data"}  # every entry is a 1


def shard_trees(
    batches: Iterable,
    folder,
    *,
    template: str = "mcdonald",
    min_count: int = 3,
    observed: bool = False,
    hash_bits: int | None = None,
    single_root: bool = True,
    rows: int | None = None,
    overwrite: bool = False,
    read_as: dict | None = None,
) -> Shards:
    """Write sentences with the heads of their words as shards: what `DependencyParser.fit` then takes.

    Parameters
    ----------
    batches : iterable of (sentences, heads) or (sentences, heads, labels)
        Some at a time, as `DependencyParser.fit` takes them. They are gone through three times, for words,
        features and rows: give a list, or an object that begins anew with each iter(). Or a Dask bag of
        sentences (words, heads). Sentences whose arcs cross are left out.
    template, min_count, observed, hash_bits, single_root
        As of `DependencyParser`.
    folder, rows, overwrite, read_as
        As in `shard_events`; rows: sentences of a shard.
    """
    batches = Transposed(Partitions(batches)) if is_dask(batches) else batches
    require_again(batches, "sentences")
    if template not in PRESETS:
        raise ValueError(f"template={template!r}; there is {', '.join(map(repr, PRESETS))}")
    bank = _Bank(batches, single_root)
    kept = {"min_count": min_count, "observed": bool(observed), "hash_bits": hash_bits}
    features = ArcFeatures.learn_batches(bank, **kept)
    if features.n_columns == 0:
        raise ValueError(f"no feature is of min_count={min_count} arcs; lower min_count")
    (learnt, arrays), classes = features.to_file(), bank.classes
    common = {FEATURES + name: array for name, array in arrays.items()}
    types = ARCS | {"starts": "uint64", "heads": "int64"}
    types |= {name: array.dtype.name for name, array in common.items()}
    if classes:
        types |= {TRUE + name: kind for name, kind in ARCS.items()} | {"labels": "uint32"}
    with ShardWriter(folder, "trees", types, overwrite) as writer:
        stream = _TreeStream(writer, features, classes)
        for tokens, heads, labels in bank:
            stream.append(tokens, heads, labels, rows)
        writer.share(**common)
        facts = {"columns": features.n_columns, "classes": classes, "features": learnt}
        facts |= {"single_root": bool(single_root), "left_out": bank.left_out, "read_as": read_as or {}}
        writer.finish(facts | kept)
    return Shards(folder)


class _Bank:
    """(Tokens, heads (N,), labels or None) of the sentences that have words and whose arcs do not cross."""

    def __init__(self, batches, single_root):
        self._batches, self._single_root = batches, single_root
        self.left_out, self._labels, self._labelled = [], {}, None

    @property
    def classes(self) -> list:
        """The labels in order, once all were met; none where all of them are _."""
        return sorted(self._labels) if set(self._labels) - {"_"} else []

    def __iter__(self) -> Iterator[tuple]:
        self.left_out, first = [], 0
        for sentences, heads, *labels in self._batches:
            tokens = sentences if isinstance(sentences, Tokens) else Tokens.from_sentences(sentences)
            kept = self._kept(tokens, heads, first)
            first += len(tokens)
            if not kept.size:
                continue
            flat = np.fromiter(chain.from_iterable(heads[i] for i in kept), np.int64)
            yield tokens[kept], flat, self._labels_of(labels[0] if labels else None, kept, flat.size)

    def _labels_of(self, labels, kept, words) -> list | None:
        """The label of each word's arc."""
        if (labels is None) != (self._labelled is False) and self._labelled is not None:
            raise ValueError("some sentences have labels of arcs and others none; give all or none")
        self._labelled = labels is not None
        if labels is None:
            return None
        flat = list(chain.from_iterable(labels[i] for i in kept))
        if len(flat) != words:
            raise ValueError(f"{words} words but {len(flat)} labels of arcs; they must match")
        self._labels.update(dict.fromkeys(flat))
        return flat

    def _kept(self, tokens, heads, first) -> np.ndarray:
        """The numbers of the sentences to train on; those whose arcs cross are remembered."""
        kept = []
        lengths = np.diff(tokens.starts).tolist()
        if len(heads) != len(lengths):
            raise ValueError(f"{len(lengths)} sentences but heads of {len(heads)}; they must match")
        for i, (found, length) in enumerate(zip(heads, lengths, strict=True)):
            if len(found) != length:
                raise ValueError(f"sentence {first + i} has {length} words but {len(found)} heads")
            wrong = trees.fault(list(found), self._single_root)
            if wrong is not None:
                raise ValueError(f"sentence {first + i}, word {wrong[0]}: {wrong[1]}")
            if not trees.is_projective(found):
                self.left_out.append(first + i)
            elif length:
                kept.append(i)
        return np.array(kept, np.int64)


class _TreeStream:
    """Sentences that come some at a time, as the arrays of shards."""

    def __init__(self, writer: ShardWriter, features: ArcFeatures, classes: list):
        self._writer, self._features, self._words = writer, features, 0
        self._places = {label: k for k, label in enumerate(classes)}
        self._arcs = RowStream(writer, ones=True)
        self._true = RowStream(writer, TRUE, ones=True) if classes else None
        writer.append(0, starts=np.zeros(1, np.uint64))

    def append(self, tokens: Tokens, heads, labels, rows: int | None) -> None:
        for a, b in portions(len(tokens), rows, AT_ONCE):
            cut_if_full(self._writer, rows)
            some, first, last = tokens[a:b], int(tokens.starts[a]), int(tokens.starts[b])
            ends = (tokens.starts[a + 1 : b + 1] + self._words).astype(np.uint64)
            own = {"starts": ends, "heads": heads[first:last]}
            if self._true:
                codes = [self._places[label] for label in labels[first:last]]
                self._true.append(self._features.rows(some, heads[first:last]), 0, labels=codes)
            self._arcs.append(self._features.rows(some), b - a, **own)
        self._words += tokens.n_tokens
