"""What CRFsuite makes of tokens and labels: the names of attributes, and which weights there are."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import as_csr
from fenchel.estimators.sequence_labels import LabelledSequences

MOST_MET = 2**18  # pairs of key and value that are remembered


class Attributes(NamedTuple):
    """Names and their values, as `features.encode` takes them."""

    names: list
    values: list


class _Met(dict):
    """(key, value) of a dict token -> (name, amount): whoever is met again costs no work on strings."""

    def __missing__(self, item):
        found = _named("", *item)
        if type(item[1]) is not float or item[1] in (0.0, 1.0):  # other numbers are seldom met again
            if len(self) >= MOST_MET:
                self.clear()
            self[item] = found
        return found


class TokenAttributes:
    """The attributes of a token, named as python-crfsuite does.

    {"k": "v"} is "k:v" of value 1; {"k": number or bool} is "k" of that value; dicts, lists and sets within
    put their key and ":" before each of their own; a list holds names of value 1.
    """

    def __init__(self):
        self._met = _Met()

    def __call__(self, sentence, t):
        token = sentence[t]
        if isinstance(token, str) or not hasattr(token, "__iter__"):
            return token  # `features.encode` refuses it, and says where
        if isinstance(token, dict):
            try:
                pairs = list(map(self._met.__getitem__, token.items()))
                return Attributes(*map(list, zip(*pairs, strict=True))) if pairs else Attributes([], [])
            except TypeError:  # dicts, lists and sets within cannot be looked up
                pass
        found = Attributes([], [])
        _collect(token, "", found)
        return found

    def __reduce__(self):
        return "token_attributes"  # copies and pickles are the one of this module


token_attributes = TokenAttributes()


def _collect(item, prefix, found):
    """Add the attributes of a dict, list or set to those found."""
    if not isinstance(item, dict):
        names = sorted(item, key=str) if isinstance(item, set | frozenset) else item
        found.names.extend([_joined(prefix, name) for name in names])
        found.values.extend([1.0] * len(names))
        return
    for key, value in item.items():
        if isinstance(value, dict | list | set):
            _collect(value, f"{_joined(prefix, key)}:", found)
        else:
            name, amount = _named(prefix, key, value)
            found.names.append(name)
            found.values.append(amount)


def _named(prefix, key, value):
    """The name of an attribute and its value."""
    name = _joined(prefix, key)
    return (_joined(f"{name}:", value), 1.0) if isinstance(value, str | bytes) else (name, value)


def _joined(prefix, name):
    name = name.decode() if isinstance(name, bytes) else name
    return prefix + name if isinstance(name, str) else name


class Recorder(TokenAttributes):
    """token_attributes that remembers attributes of value 0: CRFsuite counts them as seen with the label."""

    def __init__(self):
        super().__init__()
        self.tokens, self.zeros = 0, ([], [])

    def __call__(self, sentence, t):
        found = super().__call__(sentence, t)
        if isinstance(found, Attributes) and 0.0 in found.values:
            names = [name for name, value in zip(found.names, found.values, strict=True) if value == 0.0]
            self.zeros[0].extend([self.tokens] * len(names))
            self.zeros[1].extend(names)
        self.tokens += 1
        return found


class Pairs(NamedTuple):
    """Which pairs training shows, and what their values add up to: both of one shape."""

    seen: np.ndarray
    total: np.ndarray

    def at_least(self, least: float, every) -> np.ndarray:
        """Flat bool: of the pairs seen, or of all, those that add up to so much. Values may be negative."""
        return ((self.seen | bool(every)) & (self.total >= least)).ravel()


def count_pairs(data: LabelledSequences, zeros=((), ())) -> tuple[Pairs, Pairs]:
    """Of attributes with labels (A, K), and of labels with the next label (K, K).

    zeros: tokens and names of attributes of value 0, which the rows of the data do not hold.
    """
    N, K = data.codes.size, data.classes.size
    labels = sp.csr_matrix((np.ones(N), data.codes, np.arange(N + 1)), shape=(N, K))
    rows = as_csr(data.sequences.rows)
    there = sp.csr_matrix((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    states = Pairs((there.T @ labels).toarray() > 0.0, (rows.T @ labels).toarray())
    columns = np.fromiter(map(data.source.vocabulary.get, zeros[1]), np.int64, len(zeros[1]))
    tokens = np.asarray(zeros[0], np.int64)[columns >= 0]
    states.seen[columns[columns >= 0], data.codes[tokens]] = True
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
