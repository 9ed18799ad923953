"""Labels of sequences, and constraints on them, as numbers."""

from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from fenchel.features.sequences import Sequences
from fenchel.features.tokens import Tokens

NONE = np.empty(0, np.uint8)


@dataclass(frozen=True)
class LabelledSequences:
    """What a ChainCRF is fitted to: sequences and label codes (N,) as numbers, and what they stand for."""

    sequences: Sequences
    codes: np.ndarray
    classes: np.ndarray
    source: object
    weight: np.ndarray | None = None
    token_weight: np.ndarray | None = None

    def without_empty(self) -> "LabelledSequences":
        """The same without sequences of no token, which have no part in the objective."""
        starts = self.sequences.starts
        full = np.diff(starts.astype(np.int64)) > 0
        if not full.any():
            raise ValueError("there is no token; at least one labelled sequence is needed")
        if full.all():
            return self
        kept = np.concatenate([starts[:-1][full], starts[-1:]])
        weight = None if self.weight is None else np.asarray(self.weight)[full]
        return replace(self, sequences=replace(self.sequences, starts=kept), weight=weight)


def code_labels(y, starts) -> tuple[np.ndarray, np.ndarray]:
    """(N,) codes of the labels and the sorted labels; y has one list of labels for each sequence."""
    lengths = np.diff(starts.astype(np.int64))
    if isinstance(y, Tokens):
        values = np.array(y.values[0], dtype=object)
        _check_lengths(np.diff(y.starts), lengths)
        classes, places = _sorted(values)
        return places[y.codes[0]].astype(np.int64), classes
    y = list(y)
    wrong = next((k for k, labels in enumerate(y) if isinstance(labels, str)), None)
    if wrong is not None:
        raise ValueError(f"y[{wrong}] is a string, expected a list with the label of each token")
    _check_lengths([len(labels) for labels in y], lengths)
    flat = np.empty(int(lengths.sum()), dtype=object)
    flat[:] = list(chain.from_iterable(y))
    distinct = np.array(list(dict.fromkeys(flat.tolist())), dtype=object)
    classes, places = _sorted(distinct)
    where = dict(zip(distinct.tolist(), places.tolist(), strict=True))
    return np.fromiter(map(where.__getitem__, flat), np.int64, flat.size), classes


def _check_lengths(found, expected):
    if len(found) != len(expected):
        raise ValueError(f"X has {len(expected)} sequences but y has {len(found)}; they must match")
    wrong = np.flatnonzero(np.asarray(found, dtype=np.int64) != expected)
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(f"sequence {k} has {expected[k]} tokens but {found[k]} labels in y")


def check_sequence_weights(weight, n) -> np.ndarray | None:
    """(n,) how much each sequence counts."""
    if weight is None:
        return None
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},), one for each sequence")
    return weight


def join_token_weights(weights, starts) -> np.ndarray | None:
    """(N,) the numbers of all sequences, one after the other."""
    if weights is None:
        return None
    weights = [np.asarray(numbers, dtype=np.float64) for numbers in weights]
    lengths = np.diff(starts.astype(np.int64))
    if len(weights) != lengths.size:
        raise ValueError(
            f"token_weight has {len(weights)} entries for {lengths.size} sequences; they must match"
        )
    for k, numbers in enumerate(weights):
        if numbers.shape != (lengths[k],):
            raise ValueError(f"token_weight[{k}] has shape {numbers.shape} for {lengths[k]} tokens")
    return np.concatenate(weights)


def _sorted(distinct):
    """The labels in order, and the place of each of the distinct ones among them."""
    kinds = {type(label) for label in distinct}
    if not kinds:
        raise ValueError("there is no token; at least one labelled sequence is needed")
    try:
        order = sorted(range(len(distinct)), key=lambda k: distinct[k])
    except TypeError:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            f"the labels are of kinds that cannot be ordered ({names}); use str(label)"
        ) from None
    places = np.empty(len(distinct), np.int64)
    places[order] = np.arange(len(distinct))
    ordered = [distinct[k] for k in order]
    classes = np.array(ordered) if len(kinds) == 1 else np.array(ordered, dtype=object)
    return (classes if classes.ndim == 1 else np.array(ordered, dtype=object)), places


def cut(labels, starts) -> list:
    """One list of labels for each sequence."""
    flat = labels.tolist()
    return [flat[a:b] for a, b in pairwise(starts.tolist())]


def banned_pairs(pairs, classes) -> np.ndarray | None:
    """(K, K) bool, True where the label of the column must not follow that of the row."""
    if pairs is None:
        return None
    banned = np.zeros((classes.size, classes.size), bool)
    where = {label: k for k, label in enumerate(classes.tolist())}
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"banned holds {pair!r}, expected pairs (label, label that must not follow)")
        for label in pair:
            if label not in where:
                raise ValueError(f"banned names the label {label!r}, which the model does not know")
        banned[where[pair[0]], where[pair[1]]] = True
    return banned


def allowed_labels(allowed, starts, classes) -> np.ndarray:
    """(N·K,) uint8, 0 where a label is not allowed; empty where nothing is said."""
    if allowed is None:
        return NONE
    starts, K = starts.astype(np.int64), classes.size
    if len(allowed) != starts.size - 1:
        raise ValueError(
            f"allowed has {len(allowed)} entries for {starts.size - 1} sequences; they must match"
        )
    where = {label: k for k, label in enumerate(classes.tolist())}
    mask = np.ones((int(starts[-1]), K), np.uint8)
    for i, choices in enumerate(allowed):
        if choices is None:
            continue
        if len(choices) != starts[i + 1] - starts[i]:
            tokens = starts[i + 1] - starts[i]
            raise ValueError(f"allowed[{i}] has {len(choices)} entries for {tokens} tokens; they must match")
        for t, choice in enumerate(choices):
            if choice is not None:
                _allow(mask[starts[i] + t], choice, where, f"allowed[{i}][{t}]")
    return mask.ravel()


def _allow(row, choice, where, name):
    """Set row to 1 at the labels of the choice, 0 elsewhere."""
    labels = choice if isinstance(choice, list | tuple | set | frozenset) else [choice]
    row[:] = 0
    for label in labels:
        if label not in where:
            raise ValueError(f"{name} names the label {label!r}, which the model does not know")
        row[where[label]] = 1
    if not row.any():
        raise ValueError(f"{name} is empty: it leaves no label")
