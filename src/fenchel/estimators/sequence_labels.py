"""Labels of sequences, and constraints on them, as numbers."""

from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import scipy.sparse as sp

from fenchel.estimators.inputs import as_numbers, describe, is_list, require_list
from fenchel.features.sequences import Sequences
from fenchel.features.tokens import Tokens
from fenchel.io.shards import Shards

NONE = np.empty(0, np.uint8)


@dataclass(frozen=True)
class LabelledSequences:
    """What a ChainCRF is fitted to: sequences and label codes (N,) as numbers, and what they stand for.

    disk: where they lie, if they are not in memory.
    """

    sequences: Sequences
    codes: np.ndarray
    classes: np.ndarray
    source: object
    weight: np.ndarray | None = None
    token_weight: np.ndarray | None = None
    disk: Shards | None = None

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


def require_sequences(X, name="X", *, template=None) -> None:
    """TypeError where X is something else than sequences, or a matrix, which is one of them.

    A function as the template may take the rows of an array for sequences.
    """
    is_matrix = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf" and template is None
    if is_matrix or sp.issparse(X):
        raise TypeError(
            f"{name} is a matrix, expected a list of sequences; write [{name}] if it is one sequence"
        )
    if not isinstance(X, Tokens):
        require_list(name, X, "a list of sequences, each a list of tokens")


def code_labels(y, starts) -> tuple[np.ndarray, np.ndarray]:
    """(N,) codes of the labels and the sorted labels; y has one list of labels for each sequence."""
    lengths = np.diff(starts.astype(np.int64))
    if isinstance(y, Tokens):
        _check_lengths(np.diff(y.starts), lengths)
        # a part of a corpus may not have all of its labels
        present, codes = np.unique(y.codes[0], return_inverse=True)
        classes, places = sorted_labels(np.array([y.values[0][k] for k in present.tolist()], dtype=object))
        return places[codes], classes
    y = label_lists("y", y, lengths)
    flat = list(chain.from_iterable(y))
    distinct = distinct_labels(flat, y)
    classes, places = sorted_labels(distinct)
    where = dict(zip(distinct.tolist(), places.tolist(), strict=True))
    return np.fromiter(map(where.__getitem__, flat), np.int64, len(flat)), classes


def label_lists(name, y, lengths) -> list:
    """One list of labels for each sequence of that length; an error names the first that is none."""
    if isinstance(y, Tokens):
        return label_lists(name, cut(np.array(y.column(0), dtype=object), y.starts), lengths)
    require_list(name, y, "a list with the labels of each sequence")
    y = list(y)
    for k, labels in enumerate(y):
        if not is_list(labels):
            found = "a string" if isinstance(labels, str) else describe(labels)
            raise ValueError(f"{name}[{k}] is {found}, expected a list with the label of each token")
    _check_lengths([len(labels) for labels in y], lengths, name)
    return y


def known_codes(y, classes) -> np.ndarray:
    """(N,) codes of labels among those of a model, all of which it must know."""
    where, flat = {label: k for k, label in enumerate(classes.tolist())}, list(chain.from_iterable(y))
    for label in dict.fromkeys(flat):
        _require_known(label, where, "y")
    return np.fromiter(map(where.__getitem__, flat), np.int64, len(flat))


def distinct_labels(flat, y):
    """The labels in the order first seen; an error names the first that is none."""
    try:
        labels = list(dict.fromkeys(flat))
        if not any(label is None or label != label for label in labels):
            return np.fromiter(labels, object, len(labels))
    except TypeError:  # a list cannot be looked up
        pass
    for k, some in enumerate(y):
        for t, label in enumerate(some):
            if label is None or isinstance(label, list | dict | set | np.ndarray) or label != label:
                found = "NaN" if isinstance(label, float) else describe(label)
                raise ValueError(f"y[{k}][{t}] is {found}, which is no label; use strings or numbers")
    raise ValueError("y holds labels that cannot be looked up; use strings or numbers")


def _check_lengths(found, expected, name="y"):
    if len(found) != len(expected):
        raise ValueError(
            f"X{name[1:]} has {len(expected)} sequences but {name} has {len(found)}; they must match"
        )
    wrong = np.flatnonzero(np.asarray(found, dtype=np.int64) != expected)
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(f"sequence {k} has {expected[k]} tokens but {found[k]} labels in {name}")


def check_sequence_weights(weight, n) -> np.ndarray | None:
    """(n,) how much each sequence counts."""
    if weight is None:
        return None
    weight = as_numbers("sample_weight", weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({n},), one for each sequence")
    return weight


def join_token_weights(weights, starts) -> np.ndarray | None:
    """(N,) the numbers of all sequences, one after the other."""
    if weights is None:
        return None
    require_list("token_weight", weights, "a list with the numbers of each sequence")
    weights = [as_numbers(f"token_weight[{k}]", numbers) for k, numbers in enumerate(weights)]
    lengths = np.diff(starts.astype(np.int64))
    if len(weights) != lengths.size:
        raise ValueError(
            f"token_weight has {len(weights)} entries for {lengths.size} sequences; they must match"
        )
    for k, numbers in enumerate(weights):
        if numbers.shape != (lengths[k],):
            raise ValueError(f"token_weight[{k}] has shape {numbers.shape} for {lengths[k]} tokens")
    return np.concatenate(weights)


def sorted_labels(distinct):
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


def fraction_right(predicted, y, sample_weight) -> float:
    """Of the labels of all tokens, each counting as its sequence does."""
    y = label_lists("y", y, [len(labels) for labels in predicted])
    weights = check_sequence_weights(sample_weight, len(predicted))
    weights = np.ones(len(predicted)) if weights is None else weights
    right = total = 0.0
    for found, truth, weight in zip(predicted, y, weights.tolist(), strict=True):
        right += weight * sum(a == b for a, b in zip(found, truth, strict=True))
        total += weight * len(found)
    return right / total if total else 0.0


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
    require_list("banned", pairs, "a list of pairs (label, label that must not follow)")
    for pair in pairs:
        if not is_list(pair) or len(pair) != 2:
            raise ValueError(f"banned holds {pair!r}, expected pairs (label, label that must not follow)")
        for label in pair:
            _require_known(label, where, "banned")
        banned[where[pair[0]], where[pair[1]]] = True
    return banned


def allowed_labels(allowed, starts, where: list, types=None) -> np.ndarray:
    """(N·L,) uint8, 0 where a label is not allowed; empty where nothing is said.

    where: for each type of token a dict from its labels to their numbers among all L. types (N,): of each
    token; None where there is one type.
    """
    if allowed is None:
        return NONE
    starts, size = starts.astype(np.int64), sum(map(len, where))
    types = np.zeros(starts[-1], np.int64) if types is None else types
    require_list("allowed", allowed, "for each sequence None or a list")
    allowed = list(allowed)
    if len(allowed) != starts.size - 1:
        raise ValueError(
            f"allowed has {len(allowed)} entries for {starts.size - 1} sequences; they must match"
        )
    mask = np.ones((int(starts[-1]), size), np.uint8)
    for i, choices in enumerate(allowed):
        if choices is None:
            continue
        if not is_list(choices):
            found = describe(choices)
            raise ValueError(f"allowed[{i}] is {found}, expected None or a list with an entry for each token")
        if len(choices) != starts[i + 1] - starts[i]:
            tokens = starts[i + 1] - starts[i]
            raise ValueError(f"allowed[{i}] has {len(choices)} entries for {tokens} tokens; they must match")
        for t, choice in enumerate(choices):
            if choice is not None:
                token = starts[i] + t
                _allow(mask[token], choice, where[types[token]], f"allowed[{i}][{t}]")
    return mask.ravel()


def _require_known(label, where, name):
    try:
        known = label in where
    except TypeError:  # a list cannot be looked up
        known = False
    if not known:
        raise ValueError(f"{name} names the label {label!r}, which the model does not know")


def _allow(row, choice, where, name):
    """Set row to 1 at the labels of the choice, 0 elsewhere."""
    labels = choice if isinstance(choice, list | tuple | set | frozenset) else [choice]
    row[:] = 0
    for label in labels:
        _require_known(label, where, name)
        row[where[label]] = 1
    if not row.any():
        raise ValueError(f"{name} is empty: it leaves no label")
