"""Sentences as columns of integer codes: strings are looked at once for each distinct one."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

import numpy as np


@dataclass(frozen=True, eq=False)
class Tokens:
    """n sentences of N tokens in all, each token with C columns (its word, its part of speech, ...).

    starts: (n + 1,) int64; sentence i is the tokens starts[i]:starts[i + 1].
    codes: (C, N) uint32; what column j holds at token t is values[j][codes[j, t]].
    values: C lists of distinct strings, in the order first seen.
    """

    starts: np.ndarray
    codes: np.ndarray
    values: list

    @classmethod
    def from_sentences(cls, sentences: Iterable) -> "Tokens":
        """Tokens of sentences, each a list of tokens; a token is a tuple of strings, or one string.

        All tokens have the same number of strings. `[[("He", "PRP"), ("runs", "VBZ")]]` is one sentence of
        two tokens with two columns.
        """
        tokens, starts = [], [0]
        for sentence in sentences:
            _require_list(sentence, len(starts) - 1)
            tokens.extend(sentence)
            starts.append(len(tokens))
        kinds = set(map(type, tokens))
        if all(issubclass(kind, str) for kind in kinds):
            return cls.from_columns([tokens] if tokens else [], starts)
        if not all(issubclass(kind, tuple | list) for kind in kinds) or len(set(map(len, tokens))) > 1:
            _refuse(tokens, starts)
        return cls.from_columns(list(zip(*tokens, strict=True)), starts)

    @classmethod
    def from_columns(cls, columns: list, starts) -> "Tokens":
        """Tokens of C lists of N strings each, and the places where sentences start, N at the end."""
        codes = np.empty((len(columns), len(columns[0]) if columns else 0), np.uint32)
        values = []
        for j, column in enumerate(columns):
            ids = defaultdict(count().__next__)  # runs in C for known and new strings alike
            codes[j] = np.fromiter(map(ids.__getitem__, column), np.uint32, codes.shape[1])
            values.append(list(ids))
            _require_strings(values[-1], j)
        return cls(np.asarray(starts, np.int64), codes, values)

    def __len__(self) -> int:
        """The number of sentences."""
        return self.starts.size - 1

    def __repr__(self):
        return f"<Tokens: {len(self)} sentences, {self.n_tokens} tokens, {self.n_columns} columns>"

    @property
    def n_tokens(self) -> int:
        return self.codes.shape[1]

    @property
    def n_columns(self) -> int:
        return self.codes.shape[0]

    def column(self, j: int) -> list:
        """The strings of a column, one for each token."""
        return list(map(self.values[j].__getitem__, self.codes[j].tolist()))

    def sentences(self):
        """Yield each sentence as a list of tuples of strings."""
        rows = list(zip(*(self.column(j) for j in range(self.n_columns)), strict=True))
        for i in range(len(self)):
            yield rows[self.starts[i] : self.starts[i + 1]]

    def __getitem__(self, which) -> "Tokens":
        """The sentences that a slice, a list of numbers or a mask gives, in its order; one for a number."""
        if isinstance(which, slice) and which.step in (None, 1):
            return self._between(*which.indices(len(self))[:2])
        if np.ndim(which) == 0 and not isinstance(which, slice):
            which = [which]
        return self._take(np.arange(len(self))[which])

    def _between(self, first, last):
        starts = self.starts[first : max(first, last) + 1]
        return _compact(Tokens(starts - starts[0], self.codes[:, starts[0] : starts[-1]], self.values))

    def _take(self, sentences):
        first, sizes = self.starts[sentences], np.diff(self.starts)[sentences]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.repeat(first - starts[:-1], sizes) + np.arange(starts[-1])
        return _compact(Tokens(starts, self.codes[:, at], self.values))

    def without_last(self) -> tuple["Tokens", "Tokens"]:
        """All columns but the last, and the last alone: features and labels of a training file."""
        if self.n_columns < 2:
            found = f"the data have {self.n_columns} column" + "s" * (self.n_columns != 1)
            raise ValueError(f"{found}, expected the label in the last one and at least one before it")
        return (
            Tokens(self.starts, self.codes[:-1], self.values[:-1]),
            Tokens(self.starts, self.codes[-1:], self.values[-1:]),
        )

    def derive(self, column: int, function: Callable[[str], str]) -> "Tokens":
        """One more column behind the others: `function` of what another holds, called once per string."""
        if not 0 <= column < self.n_columns:
            raise ValueError(f"there is no column {column}; the data have {self.n_columns}, from 0")
        ids = defaultdict(count().__next__)
        new = np.fromiter((ids[function(value)] for value in self.values[column]), np.uint32)
        _require_strings(list(ids), self.n_columns)
        codes = np.concatenate([self.codes, new[self.codes[column]][None]])
        return Tokens(self.starts, codes, [*self.values, list(ids)])


def _compact(tokens):
    """The same tokens with only the strings they hold, where a small part of a corpus was taken."""
    if tokens.n_tokens >= max(map(len, tokens.values), default=0):
        return tokens
    codes, values = np.empty_like(tokens.codes, order="C"), []
    for j, old in enumerate(tokens.values):
        present, codes[j] = np.unique(tokens.codes[j], return_inverse=True)
        values.append([old[k] for k in present.tolist()])
    return Tokens(tokens.starts, codes, values)


def _require_list(sentence, number):
    if not isinstance(sentence, list | tuple):
        kind = type(sentence).__name__
        raise TypeError(f"sentence {number} is a {kind}, expected a list of tokens")


def _require_strings(values, j):
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"column {j} holds {value!r}, a {type(value).__name__}, expected strings")


def _refuse(tokens, starts):
    """Raise the error that names the first token unlike the others."""
    width = (
        None if isinstance(tokens[0], str) else len(tokens[0]) if isinstance(tokens[0], tuple | list) else 0
    )
    for at, token in enumerate(tokens):
        sentence = int(np.searchsorted(starts, at, "right")) - 1
        where = f"sentence {sentence}, token {at - starts[sentence]}"
        if isinstance(token, dict):
            raise TypeError(
                f"{where} is a dict; templates want a string or a tuple of strings for each token"
            )
        if not isinstance(token, str | tuple | list):
            raise TypeError(f"{where} is a {type(token).__name__}, expected a string or a tuple of strings")
        found = None if isinstance(token, str) else len(token)
        if found != width:
            words = ["a string" if n is None else f"{n} strings" for n in (found, width)]
            raise ValueError(f"{where} has {words[0]}, expected {words[1]} as the first token has")
