"""What CRFsuite makes of tokens and labels: the names of attributes, and which weights there are."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import as_csr
from fenchel.estimators.sequence_labels import LabelledSequences


class Attributes(NamedTuple):
    """Names and their values, as `features.encode` takes them."""

    names: list
    values: list


def token_attributes(sentence, t):
    """The attributes of a token, named as python-crfsuite does.

    {"k": "v"} is "k:v" of value 1; {"k": number or bool} is "k" of that value; dicts, lists and sets within
    put their key and ":" before each of their own; a list holds names of value 1.
    """
    token = sentence[t]
    if isinstance(token, str) or not hasattr(token, "__iter__"):
        return token  # `features.encode` refuses it, and says where
    found = Attributes([], [])
    _collect(token, "", found)
    return found


def _collect(item, prefix, found):
    """Add the attributes of a dict, list or set to those found."""
    if not isinstance(item, dict):
        names = sorted(item, key=str) if isinstance(item, set | frozenset) else item
        found.names.extend([_joined(prefix, name) for name in names])
        found.values.extend([1.0] * len(names))
        return
    for key, value in item.items():
        name = _joined(prefix, key)
        if isinstance(value, dict | list | set):
            _collect(value, f"{name}:", found)
        elif isinstance(value, str | bytes):
            found.names.append(_joined(f"{name}:", value))
            found.values.append(1.0)
        else:
            found.names.append(name)
            found.values.append(value)


def _joined(prefix, name):
    name = name.decode() if isinstance(name, bytes) else name
    return prefix + name if isinstance(name, str) else name


class Recorder:
    """token_attributes that remembers attributes of value 0: CRFsuite counts them as seen with the label."""

    def __init__(self):
        self.tokens, self.zeros = 0, []

    def __call__(self, sentence, t):
        found = token_attributes(sentence, t)
        if isinstance(found, Attributes) and 0.0 in found.values:
            pairs = zip(found.names, found.values, strict=True)
            self.zeros += [(self.tokens, name) for name, value in pairs if value == 0.0]
        self.tokens += 1
        return found


class Pairs(NamedTuple):
    """Which pairs training shows, and what their values add up to: both of one shape."""

    seen: np.ndarray
    total: np.ndarray

    def at_least(self, least: float, every) -> np.ndarray:
        """Flat bool: of the pairs seen, or of all, those that add up to so much. Values may be negative."""
        return ((self.seen | bool(every)) & (self.total >= least)).ravel()


def count_pairs(data: LabelledSequences, zeros=()) -> tuple[Pairs, Pairs]:
    """Of attributes with labels (A, K), and of labels with the next label (K, K).

    zeros: (token, name) of attributes of value 0, which the rows of the data do not hold.
    """
    N, K = data.codes.size, data.classes.size
    labels = sp.csr_matrix((np.ones(N), data.codes, np.arange(N + 1)), shape=(N, K))
    rows = as_csr(data.sequences.rows)
    there = sp.csr_matrix((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    states = Pairs((there.T @ labels).toarray() > 0.0, (rows.T @ labels).toarray())
    for token, name in zeros:
        column = data.source.vocabulary.get(name)
        if column >= 0:
            states.seen[column, data.codes[token]] = True
    return states, _count_moves(data)


def _count_moves(data):
    N, K = data.codes.size, data.classes.size
    inside = np.ones(N, bool)  # tokens with one before them in their sequence
    inside[data.sequences.starts[:-1][np.diff(data.sequences.starts) > 0].astype(np.int64)] = False
    here = np.flatnonzero(inside)
    moves = np.bincount(data.codes[here - 1] * K + data.codes[here], minlength=K * K).reshape(K, K)
    return Pairs(moves > 0, moves)


def in_order_of_appearance(data: LabelledSequences) -> LabelledSequences:
    """The same with labels numbered as CRFsuite does; of labels that score the same the first one wins."""
    order = np.argsort(np.unique(data.codes, return_index=True)[1])
    places = np.argsort(order)
    return replace(data, codes=places[data.codes], classes=data.classes[order])
