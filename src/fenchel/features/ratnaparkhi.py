"""The attributes of a token for a tagger, after Ratnaparkhi (1996), as columns of a sparse matrix.

    the word itself, if it is frequent: seen at least `rare` times in training
    else its spelling: prefixes and suffixes of up to four letters; a digit, a capital, a hyphen in it
    the word before, the word two before, the word after, the word two after
    of each further column that is looked at, its value here and in the two tokens on either side
    the tag before, the two tags before

Beyond the ends of a sentence stands a boundary, a word and a tag of its own. Strings are looked at once for
each distinct word of a text; from there on attributes are numbers, looked up in tables by the numbers of
words and tags. Training and prediction call the same function, `ContextFeatures.tokens`.
"""

from array import array
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from fenchel._cache import njit
from fenchel._sparse import Rows
from fenchel.features.vocabulary import Vocabulary

AFFIX = 4  # the letters of the longest prefix and suffix
OFFSETS = (-1, -2, 1, 2)
AROUND = ("word before", "word two before", "word after", "word two after")
NEAR = (0, *OFFSETS)
PLACES = ("here", "before", "two before", "after", "two after")


class Text(NamedTuple):
    """Sentences as numbers of words; those of sentence i are word[starts[i]:starts[i + 1]]."""

    starts: np.ndarray  # (sentences + 1,) int64
    word: np.ndarray  # (n,) int64, into `words`
    words: Vocabulary  # the distinct words, in the order first met
    further: tuple = ()  # a Text of each further column


class Column(NamedTuple):
    """A further column: its values, and the columns of attributes that each has at the places of NEAR."""

    values: Vocabulary
    near: np.ndarray  # (5, V + 1) int32

    def attributes(self, text: Text) -> list:
        """(n,) of each place; a value never met in training has no column."""
        names = text.words.names
        known = np.fromiter(self.values.numbering()(names), np.int64, len(names))
        codes = known[text.word]
        return [
            _look_up(table, neighbours(codes, text.starts, offset, len(self.values)))
            for table, offset in zip(self.near, NEAR, strict=True)
        ]


class Tokens(NamedTuple):
    """The attributes of the tokens of a text but for those of tags, as columns; −1 is no column.

    Token t has own[own_starts[word[t]]:own_starts[word[t] + 1]] and around[t].
    """

    starts: np.ndarray  # (sentences + 1,) int64
    word: np.ndarray  # (n,) int64
    own_starts: np.ndarray  # (distinct words + 1,) int64
    own: np.ndarray  # int32, increasing for each word
    around: np.ndarray  # (n, 4 or more) int32, in the order of OFFSETS, then of further columns
    frequent: np.ndarray  # (distinct words,) int32, the number among the frequent words of training, or −1


@dataclass(frozen=True)
class ContextFeatures:
    """Which attributes have a column, and which: tables over the numbers of V words and K tags; −1 is none.

    Columns come in the order of the fields, so that those of a token increase. The boundary is word V, tag K.
    """

    words: Vocabulary
    frequent: np.ndarray  # (V,) int32
    spellings: Vocabulary
    around: np.ndarray  # (4, V + 1) int32, in the order of OFFSETS
    previous: np.ndarray  # (K + 1,) int32, of the tag before
    pair: np.ndarray  # (K + 1, K + 1) int32, of the tag two before and the tag before
    further: tuple[Column, ...] = ()  # their columns come before those of tags

    @property
    def size(self) -> int:
        """The number of columns."""
        return len(self.spellings) + sum(
            int(np.count_nonzero(table >= 0)) for table in self._tables().values()
        )

    def _tables(self) -> dict:
        """In the order of their columns."""
        further = {f"further column {k}": column.near for k, column in enumerate(self.further, 1)}
        first, last = ("frequent", "around"), ("previous", "pair")
        return (
            {name: getattr(self, name) for name in first}
            | further
            | {name: getattr(self, name) for name in last}
        )

    @property
    def n_frequent(self) -> int:
        return int(np.count_nonzero(self.frequent >= 0))

    def check(self) -> None:
        """ValueError unless columns are numbered as `learn_features` does: one beyond reads other memory."""
        first = 0
        for name, table in self._tables().items():
            if not np.array_equal(table, _number(table >= 0, first)):
                raise ValueError(f"the columns of {name} are not numbered from {first} on")
            first += int(np.count_nonzero(table >= 0)) + (len(self.spellings) if name == "frequent" else 0)

    def tokens(self, text: Text) -> Tokens:
        """The tokens of a text; words and spellings never met in training have no columns."""
        names, boundary = text.words.names, len(self.words)
        known = np.fromiter(self.words.numbering()(names), np.int64, len(names))
        frequent = _look_up(self.frequent, known)
        own_starts, own = _spell(names, frequent < 0, self.spellings)
        own[own >= 0] += self.n_frequent
        own[own_starts[:-1][frequent >= 0]] = frequent[frequent >= 0]
        around = [
            _look_up(table, neighbours(known[text.word], text.starts, offset, boundary))
            for table, offset in zip(self.around, OFFSETS, strict=True)
        ]
        for column, values in zip(self.further, text.further, strict=True):
            around += column.attributes(values)
        return Tokens(text.starts, text.word, own_starts, own, np.column_stack(around), frequent)

    def rows(self, tokens: Tokens, tags: np.ndarray) -> Rows:
        """The training matrix (n, columns), all entries 1, with the true tags as those before; tags (n,)."""
        boundary = self.previous.size - 1
        one, two = (neighbours(tags, tokens.starts, offset, boundary) for offset in (-1, -2))
        of_tags = np.column_stack([self.previous[one], self.pair[two, one]])
        most = int(np.diff(tokens.own_starts)[tokens.word].sum())
        most += (tokens.around.shape[1] + 2) * tokens.word.size
        indptr, indices = np.zeros(tokens.word.size + 1, np.uint64), np.empty(most, np.uint32)
        nnz = _write_rows(tokens, of_tags, indptr, indices)
        return Rows(indptr, indices[:nnz].copy(), np.ones(nnz), self.size)

    def names(self, tags: list) -> list:
        """The attributes in words, by column: 'suffix=ing', 'word before=the', 'tags before=DT JJ'."""
        words, tags = [*self.words.names, "(boundary)"], [*tags, "(boundary)"]
        of_word = [f"word={words[v]}" for v in np.flatnonzero(self.frequent >= 0)]
        of_around = [
            f"{name}={words[v]}"
            for name, table in zip(AROUND, self.around, strict=True)
            for v in np.flatnonzero(table >= 0)
        ]
        of_further = [
            f"column {j} {place}={[*column.values.names, '(boundary)'][v]}"
            for j, column in enumerate(self.further, 1)
            for place, table in zip(PLACES, column.near, strict=True)
            for v in np.flatnonzero(table >= 0)
        ]
        of_tag = [f"tag before={tags[k]}" for k in np.flatnonzero(self.previous >= 0)]
        of_pair = [f"tags before={tags[j]} {tags[k]}" for j, k in np.argwhere(self.pair >= 0)]
        return [*of_word, *self.spellings.names, *of_around, *of_further, *of_tag, *of_pair]


def number_words(sentences: list) -> Text:
    """Lists of words as a Text; TypeError where a word is no string."""
    words, starts = Vocabulary(), np.zeros(len(sentences) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)), out=starts[1:])
    number = words.numbering(grow=True)
    return Text(starts, np.fromiter(number(chain.from_iterable(sentences)), np.int64, starts[-1]), words)


def learn_features(text: Text, tags: np.ndarray, labels: int, rare: int, min_count: int) -> ContextFeatures:
    """The attributes of a training text; tags (n,) are numbers below `labels`.

    An attribute that fewer than min_count tokens have is left out, but for frequent words, as in
    Ratnaparkhi (1996).
    """
    V, counts = len(text.words), np.bincount(text.word, minlength=len(text.words))
    frequent = _number(counts >= rare, 0)
    spellings = _learn_spellings(text.words.names, counts, rare, min_count)
    first = np.count_nonzero(frequent >= 0) + len(spellings)
    seen = [_count(neighbours(text.word, text.starts, offset, V), V + 1) for offset in OFFSETS]
    around = _number(np.array(seen) >= min_count, first)
    first += np.count_nonzero(around >= 0)
    further = []
    for of in text.further:
        further.append(_learn_column(of, min_count, first))
        first += np.count_nonzero(further[-1].near >= 0)
    one, two = (neighbours(tags, text.starts, offset, labels) for offset in (-1, -2))
    previous = _number(_count(one, labels + 1) >= min_count, first)
    first += np.count_nonzero(previous >= 0)
    pairs = _count(two * (labels + 1) + one, (labels + 1) ** 2).reshape(labels + 1, labels + 1)
    pair = _number(pairs >= min_count, first)
    return ContextFeatures(text.words, frequent, spellings, around, previous, pair, tuple(further))


def _learn_column(text: Text, min_count: int, first: int) -> Column:
    V = len(text.words)
    seen = [_count(neighbours(text.word, text.starts, offset, V), V + 1) for offset in NEAR]
    return Column(text.words, _number(np.array(seen) >= min_count, first))


def neighbours(codes: np.ndarray, starts: np.ndarray, offset: int, boundary: int) -> np.ndarray:
    """(n,) for each token the code of the one `offset` further in its sentence, or the boundary's."""
    lengths = np.diff(starts)
    place = np.arange(codes.size) - np.repeat(starts[:-1], lengths) + offset
    inside = np.flatnonzero((place >= 0) & (place < np.repeat(lengths, lengths)))
    found = np.full(codes.size, boundary, np.int64)
    found[inside] = codes[inside + offset]
    return found


def spelling(word: str) -> list[str]:
    """The names of the attributes that a rare word has."""
    lengths = range(1, min(AFFIX, len(word)) + 1)
    names = [f"prefix={word[:k]}" for k in lengths] + [f"suffix={word[-k:]}" for k in lengths]
    if any(map(str.isdigit, word)):
        names.append("has a digit")
    if any(map(str.isupper, word)):
        names.append("has a capital")
    if "-" in word:
        names.append("has a hyphen")
    return names


def _learn_spellings(names, counts, rare, min_count) -> Vocabulary:
    """The spellings of the rare words that enough tokens have."""
    spellings, is_rare = Vocabulary(), counts < rare
    starts, ids = _spell(names, is_rare, spellings, grow=True)
    if not len(spellings):
        return spellings
    tokens = np.repeat(np.where(is_rare, counts, 0), np.diff(starts))  # of the word that each id belongs to
    return spellings.keep(np.bincount(ids[ids >= 0], tokens[ids >= 0], len(spellings)) >= min_count)


def _spell(names, is_rare, spellings, grow=False):
    """(starts, ids): of each rare word its spellings, increasing; of each other room for one id, a −1."""
    number, ids, starts = spellings.numbering(grow), array("i"), array("q", [0])
    for name, rare in zip(names, is_rare.tolist(), strict=True):
        ids.extend(sorted(number(spelling(name))) if rare else (-1,))
        starts.append(len(ids))
    return np.array(starts, np.int64), np.array(ids, np.int32)


def _look_up(table, ids):
    """table[ids], and −1 where an id is −1."""
    return np.append(table, np.int32(-1))[ids]


def _number(keep, first) -> np.ndarray:
    """The columns first, first + 1, … for the entries to keep, in their order; −1 for the others."""
    return np.where(keep, first + np.cumsum(keep).reshape(keep.shape) - 1, -1).astype(np.int32)


def _count(codes, size):
    return np.bincount(codes, minlength=size)


@njit(cache=True, nogil=True)
def _write_rows(tokens, of_tags, indptr, indices):
    """Write the columns of each token one after the other; of_tags (n, 2). Return how many there are."""
    end = np.uint64(0)
    for t in range(np.uint64(tokens.word.size)):
        v = np.uint64(tokens.word[t])
        for p in range(np.uint64(tokens.own_starts[v]), np.uint64(tokens.own_starts[v + np.uint64(1)])):
            end = _append(tokens.own[p], indices, end)
        for j in range(np.uint64(tokens.around.shape[1])):
            end = _append(tokens.around[t, j], indices, end)
        for j in range(np.uint64(of_tags.shape[1])):
            end = _append(of_tags[t, j], indices, end)
        indptr[t + np.uint64(1)] = end
    return end


@njit(cache=True, nogil=True)
def _append(column, indices, end):
    if column < 0:
        return end
    indices[end] = np.uint32(column)
    return end + np.uint64(1)
