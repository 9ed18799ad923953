"""Events as numbers, whether they came from Python objects or out of a file: what MaxEnt is trained on.

Labels may be anything hashable. What is known of an event's label is the label, or where it is soft a dict
label -> probability.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, isfinite
from numbers import Real

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import Rows, take
from fenchel.estimators.inputs import as_numbers, require_list
from fenchel.features.encode import encode, encode_candidates
from fenchel.features.hashing import Hashed, names_for, read_names
from fenchel.features.vocabulary import Vocabulary
from fenchel.io.shards import Shards

EVENTS = "a list of events"
SHOWN = 5  # labels that an error lists before it says how many more there are


@dataclass(frozen=True)
class Encoded:
    """n events.

    rows: features (n, A), crossed with the labels; or, with `starts`, a row f(x, y) for each candidate.
    y: of each event the label, or a dict label -> probability; empty where it is not known.
    weight: (n,) how much each event counts; None where all count 1.
    starts, candidates: (n + 1,) where each event's candidates begin, and for each a list of their labels.
    disk: where the rows lie, if they are not in memory.
    """

    rows: Rows
    vocabulary: Vocabulary | Hashed
    y: list
    weight: np.ndarray | None = None
    starts: np.ndarray | None = None
    candidates: list | None = None
    disk: Shards | None = None

    @property
    def joint(self) -> bool:
        return self.starts is not None

    @property
    def n(self) -> int:
        return self.rows.shape[0] if self.starts is None else self.starts.size - 1

    @property
    def soft(self) -> bool:
        return any(isinstance(truth, dict) for truth in self.y)

    @cached_property
    def classes(self) -> np.ndarray:
        """The labels of all events, sorted if they can be, else in the order first seen."""
        labels = {}
        for number, truth in enumerate(self.y):
            _require_label(number, truth)
            labels.update(truth if isinstance(truth, dict) else {truth: 1.0})
        if any(label != label for label in labels):
            number = next(i for i, truth in enumerate(self.y) if truth != truth)
            raise ValueError(f"y contains NaN, which is no label, as that of event {number}")
        return _sorted_labels(list(labels))

    @cached_property
    def targets(self):
        """(n,) the number of each event's label among the classes; (n, K) probabilities if some are soft."""
        number_of = {label: k for k, label in enumerate(self.classes.tolist())}
        if not self.soft:
            return np.fromiter(map(number_of.__getitem__, self.y), np.int64, len(self.y))
        pairs = [_distribution(number, truth) for number, truth in enumerate(self.y)]
        columns = [number_of[label] for given in pairs for label in given]
        values = [p for given in pairs for p in given.values()]
        ends = np.cumsum([0, *map(len, pairs)])
        return sp.csr_matrix((values, columns, ends), shape=(self.n, self.classes.size))

    @cached_property
    def candidate_targets(self) -> np.ndarray:
        """(M,) the probability of each candidate."""
        target, starts = np.zeros(self.rows.shape[0]), self.starts.tolist()
        for number, (truth, labels) in enumerate(zip(self.y, self.candidates, strict=True)):
            for label, p in _distribution(number, truth).items():
                if label not in labels:
                    known = listed(labels)
                    raise ValueError(f"event {number}: label {label!r} is not among its candidates {known}")
                target[starts[number] + labels.index(label)] = p
        return target

    def take(self, which) -> "Encoded":
        """The events of these numbers, in this order."""
        which = np.asarray(which, dtype=np.int64)
        y = [self.y[i] for i in which] if self.y else []
        weight = None if self.weight is None else self.weight[which]
        some = replace(self, y=y, weight=weight, disk=None)
        if not self.joint:
            return replace(some, rows=take(self.rows, which))
        first, counts = self.starts[which], np.diff(self.starts)[which]
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(first - starts[:-1], counts) + np.arange(starts[-1])
        labels = [self.candidates[i] for i in which]
        return replace(some, rows=take(self.rows, rows), starts=starts, candidates=labels)

    def named(self, row: int) -> list:
        """The features of a row as (name, value) pairs."""
        names, here = self.vocabulary.names, slice(*self.rows.indptr[row : row + 2].tolist())
        columns, values = self.rows.indices[here].tolist(), self.rows.data[here].tolist()
        return [(names[j], value) for j, value in zip(columns, values, strict=True)]

    def first_of_each(self, values) -> np.ndarray:
        """(n,) of an array over the candidates: the place of each event's largest, the first of equals."""
        largest = np.repeat(np.maximum.reduceat(values, self.starts[:-1]), np.diff(self.starts))
        places = np.flatnonzero(values == largest)
        return places[np.searchsorted(places, self.starts[:-1])] - self.starts[:-1]


@dataclass(frozen=True)
class StoredEvents(Encoded):
    """Events on disk: y are the numbers of their labels among those that the shards name."""

    def take(self, which) -> Encoded:
        """The events of these numbers, in memory."""
        which, labels = np.asarray(which, np.int64), self.disk.fact("classes", list)
        weight = None if self.weight is None else self.weight[which]
        return Encoded(take(self.rows, which), self.vocabulary, [labels[k] for k in self.y[which]], weight)

    @property
    def soft(self) -> bool:
        return False

    @cached_property
    def classes(self) -> np.ndarray:
        return _sorted_labels(self.disk.fact("classes", list))

    @cached_property
    def targets(self) -> np.ndarray:
        place = {label: k for k, label in enumerate(self.classes.tolist())}
        return np.array([place[label] for label in self.disk.fact("classes", list)], np.int64)[self.y]


def encode_events(events, y=(), weight=None, *, vocabulary=None, min_count=1, hash_bits=None) -> Encoded:
    """Events whose features are crossed with the labels; without a vocabulary they make one or are hashed."""
    require_list("events", events, f"{EVENTS}, each a dict or a list of names")
    grow, known = vocabulary is None, names_for(hash_bits) if vocabulary is None else vocabulary
    rows, vocabulary = encode(events, known, grow, min_count)
    return Encoded(rows, vocabulary, as_list(y), _weights(weight))


def encode_joint(events, y=(), weight=None, *, vocabulary=None, min_count=1, hash_bits=None) -> Encoded:
    """Events each of whose candidates has features of its own."""
    require_list("candidates", events, f"{EVENTS}, each a dict of the candidates' features or a list of them")
    grow, known = vocabulary is None, names_for(hash_bits) if vocabulary is None else vocabulary
    rows, starts, candidates, vocabulary = encode_candidates(events, known, grow, min_count)
    return Encoded(rows, vocabulary, as_list(y), _weights(weight), starts, candidates)


def events_on_disk(shards: Shards, weight=None) -> Encoded:
    """The events that shards hold, known to be as they were written; weight: (n,), times their own."""
    shards.require("events", "MaxEnt")
    shards.verify()
    labels, codes = shards.fact("classes", list), shards.array_of_examples("labels")
    if codes.max() >= len(labels):
        raise shards.damaged("labels")
    own, weight = shards.array_of_examples("weight"), _weights(weight)
    own = None if (own == 1.0).all() else own
    if weight is not None and weight.shape != (shards.n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({shards.n},)")
    both = weight if own is None else own if weight is None else own * weight
    return StoredEvents(shards.rows, _stored_names(shards), codes, both, disk=shards)


def _stored_names(shards) -> Vocabulary | Hashed:
    try:
        vocabulary = read_names(shards.arrays)
    except (ValueError, KeyError):
        raise shards.damaged("text") from None
    if len(vocabulary) != shards.fact("columns", int):
        raise shards.damaged("offsets")
    return vocabulary


def as_list(y) -> list:
    """Labels as Python's own values: 1 and not np.int64(1), so that they print, compare and save alike."""
    require_list("y", y, "a list with the label of each event")
    labels = y.tolist() if hasattr(y, "tolist") else list(y)
    if any(issubclass(kind, np.generic) for kind in set(map(type, labels))):
        labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return labels


def _sorted_labels(labels: list) -> np.ndarray:
    """Sorted if they can be."""
    try:
        return as_labels(sorted(labels))
    except TypeError:  # 1 < "a" has no answer
        return as_labels(labels)


def as_labels(labels: list) -> np.ndarray:
    """Labels as an array: of their own type where NumPy has it and keeps them, else of objects."""
    if len(set(map(type, labels))) == 1 and type(labels[0]) in (str, bool, int, float):
        array = np.array(labels)
        if array.dtype.kind in "Ubif" and array.tolist() == labels:  # NumPy cuts zeros off strings
            return array
    return np.fromiter(labels, object, len(labels))


def listed(labels) -> str:
    """'a', 'b', 'c' and 7 more."""
    some = ", ".join(map(repr, list(labels)[:SHOWN]))
    return some if len(labels) <= SHOWN else f"{some} and {len(labels) - SHOWN} more"


def _weights(weight):
    return None if weight is None else as_numbers("sample_weight", weight)


def _require_label(number, truth):
    """TypeError where a label cannot be looked up, as a list cannot."""
    try:
        hash(None if isinstance(truth, dict) else truth)
    except TypeError:
        found = f"the label {truth!r} is a {type(truth).__name__}"
        raise TypeError(f"event {number}: {found}, expected a string or a number") from None


def _distribution(number, truth) -> dict:
    """What is known of an event's label, as a dict label -> probability."""
    if not isinstance(truth, dict):
        _require_label(number, truth)
        return {truth: 1.0}
    for label, p in truth.items():
        if not isinstance(p, Real) or not isfinite(p) or p < 0:
            raise ValueError(f"event {number}: the probability of {label!r} is {p!r}, expected a number ≥ 0")
    total = fsum(truth.values())
    if abs(total - 1.0) > 1e-6:
        raise ValueError(f"event {number}: its probabilities sum to {total:g}, expected 1")
    return truth
