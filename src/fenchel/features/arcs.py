"""Features of arcs between words and their heads, from tagged sentences: the preset "mcdonald"."""

from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np

from fenchel._memory import require_memory
from fenchel._sparse import Rows
from fenchel._threads import for_each_share
from fenchel.features.arc_keys import (
    ABSENT,
    ATTACHMENTS,
    BETWEEN,
    DISTANCES,
    FIELDS,
    FIXED,
    LEXICAL,
    TAGS,
    TEMPLATES,
    Sentences,
    Table,
    arc_keys,
    count_keys,
    fill_rows,
    fill_slots,
    look_up,
    nothing_counted,
    score_arcs,
)
from fenchel.features.hashing import ODD
from fenchel.features.tokens import Tokens
from fenchel.features.vocabulary import Vocabulary
from fenchel.trees import arc_offsets

PRESETS = ("mcdonald",)
AT_ONCE = 500  # sentences that are counted before anybody hears of Ctrl-C
WORDS, TAGS_FROM = 2, 3  # codes of the first word and of the first tag
BASES = (
    0xD6E8FEB86659FD93,
    0xA0761D6478BD642F,
)  # in the place of how many there are, for digits that are hashes


@dataclass(frozen=True)
class ArcFeatures:
    """What was learnt: words and tags, and the features that have a weight; or how many share 2^hash_bits.

    Then words and tags are not numbered but stand for their hash, and none of them is kept: a feature has the
    same column whatever the order of the text, and one of a new word has one, too.

    Tokens have two columns, the word and its tag; any further ones are not looked at.
    """

    words: Vocabulary
    tags: Vocabulary
    table: Table

    @classmethod
    def learn(cls, tokens: Tokens, heads, *, min_count=1, observed=True, hash_bits=None) -> "ArcFeatures":
        """The features of these sentences with the heads of all words.

        min_count: how many arcs must have a feature. observed: whether only features of true arcs count; else
        those of all arcs that could be. hash_bits: no table, but 2^hash_bits weights, shared by chance.
        """
        return cls.learn_batches(
            [(tokens, heads)], min_count=min_count, observed=observed, hash_bits=hash_bits
        )

    @classmethod
    def learn_batches(cls, batches, *, min_count=1, observed=True, hash_bits=None) -> "ArcFeatures":
        """The same of (tokens, heads, ...) that come some at a time, and again with each iter()."""
        words, tags = Vocabulary(), Vocabulary()
        for tokens, *_ in batches:
            require_tags(tokens)
            for column, names in enumerate((words, tags)):
                for value in _used(tokens, column) if hash_bits is None else ():
                    names.add(value)
        none = np.zeros(1, np.uint32), np.zeros(0, np.uint64)
        features = cls(words, tags, Table(*none, 0 if hash_bits is None else 2**hash_bits))
        if hash_bits is not None:
            return features
        counted = nothing_counted()
        for tokens, heads, *_ in batches:
            sentences = features.code(tokens)
            room = features.room(sentences)
            for at in range(0, len(tokens), AT_ONCE):
                some = sentences._replace(starts=sentences.starts[at : at + AT_ONCE + 1])
                counted = count_keys(some, heads, bool(observed), room, counted)
        return cls(words, tags, table_of(counted.often(min_count)))

    @property
    def _nameless(self) -> bool:
        """Whether words stand for their hash: hashed features of older models have words by number."""
        return self.table.hashed > 0 and not len(self.words)

    @property
    def n_columns(self) -> int:
        """How many weights there are."""
        return self.table.hashed or self.table.keys.size

    def code(self, tokens: Tokens) -> Sentences:
        """Sentences as codes; 0 for words and tags never seen."""
        require_tags(tokens)
        if self._nameless:
            codes = (_hashes(tokens.values[k])[tokens.codes[k]] for k in range(2))
            return Sentences(tokens.starts.astype(np.uint64), *codes, *map(np.uint64, BASES))
        columns = []
        for column, (names, first) in enumerate(((self.words, WORDS), (self.tags, TAGS_FROM))):
            ids = np.fromiter(names.numbering(unknown=-first)(tokens.values[column]), np.int64)
            columns.append((ids + first).astype(np.uint64)[tokens.codes[column]])
        sizes = len(self.words) + WORDS, len(self.tags) + TAGS_FROM
        _require_keys(*sizes)
        return Sentences(tokens.starts.astype(np.uint64), *columns, *map(np.uint64, sizes))

    def room(self, sentences: Sentences) -> np.ndarray:
        """For the keys of an arc."""
        longest = int(np.diff(sentences.starts).max(initial=1))
        return np.empty(FIXED + 2 * min(longest, int(sentences.n_tags)), np.uint64)

    def rows(self, tokens: Tokens, heads=None) -> Rows:
        """A row for each arc, or for that of each word and its head where heads (N,) are given.

        Every entry is a 1, and none of them is stored.
        """
        sentences = self.code(tokens)
        lengths = np.diff(tokens.starts)
        arcs = tokens.n_tokens if heads is not None else int((lengths * lengths).sum())
        room = self.room(sentences)
        most = FIXED * arcs + 2 * _most_between(lengths, int(sentences.n_tags))
        most = most if heads is None else min(most, room.size * arcs)
        require_memory(4 * most, f"features of {arcs} arcs", "leave out the longest sentences")
        indptr, indices = np.zeros(arcs + 1, np.uint64), np.empty(most, np.uint32)
        chosen = np.zeros(0, np.int64) if heads is None else np.asarray(heads, np.int64)
        count = fill_rows(sentences, self.table, chosen, room, indptr, indices)
        indices.resize(int(count), refcheck=False)
        ones = np.lib.stride_tricks.as_strided(np.ones(1), (int(count),), (0,))
        return Rows(indptr, indices, ones, self.n_columns)

    def scores(self, tokens: Tokens, w, threads=None) -> np.ndarray:
        """(M,) the scores of all arcs at the weights w, without rows of them."""
        sentences, offsets = self.code(tokens), arc_offsets(tokens.starts)
        out = np.empty(int(offsets[-1]))

        def part(start, stop):
            room = self.room(sentences)
            score_arcs(sentences, start, stop, self.table, w, room, offsets[start], out)

        for_each_share(len(tokens), FIXED * out.size, threads, part)
        return out

    def places_in(self, other: "ArcFeatures") -> tuple[np.ndarray, np.ndarray]:
        """The columns of features that both have, here and there."""
        if self.table.hashed or other.table.hashed:
            same = self.table.hashed == other.table.hashed and self._names == other._names
            both = np.arange(self.table.hashed if same else 0)
            return both, both
        if self._names == other._names:
            _, here, there = np.intersect1d(self.table.keys, other.table.keys, True, True)
            return here, there
        where = {name: k for k, name in enumerate(other.names())}
        pairs = [(k, where[name]) for k, name in enumerate(self.names()) if name in where]
        return tuple(np.array(pairs, np.int64).reshape(-1, 2).T)

    # ---- names

    def names_of_arc(self, sentences: Sentences, i: int, head: int, word: int) -> list[tuple[str, int]]:
        """Name and column of each feature of an arc; those without a weight are left out."""
        room = self.room(sentences)
        keys = room[: arc_keys(sentences, np.uint64(i), head, word, room)]
        columns = np.empty(keys.size, np.uint32)
        look_up(self.table, keys, columns)
        named = zip(keys.tolist(), columns.tolist(), strict=True)
        if self._nameless:
            return [(self.name_of_column(column), column) for _, column in named]
        return [(self.name(key), column) for key, column in named if column != ABSENT]

    def name(self, key: int) -> str:
        """What a key says: "head tag=VB, tag=NN, left 2"."""
        value, attached = divmod(key, ATTACHMENTS)
        value, template = divmod(value, TEMPLATES)
        W, T = len(self.words) + WORDS, len(self.tags) + TAGS_FROM
        if template < BETWEEN:
            value, tag = divmod(value, T)
            value, head_tag = divmod(value, T)
            head, word = divmod(value, W)
            codes = head, head_tag, word, tag
            said = [f"{FIELDS[f]}={self._spell(codes[f], f % 2)}" for f in LEXICAL[template]]
        else:
            fields = TAGS[template - BETWEEN]
            codes = [value // T**place % T for place in range(len(fields) - 1, -1, -1)]
            said = [f"{field}={self._spell(code, 1)}" for field, code in zip(fields, codes, strict=True)]
        if attached:
            side, far = divmod(attached - 1, len(DISTANCES))
            said.append(f"{('left', 'right')[side]} {DISTANCES[far]}")
        return ", ".join(said)

    def _spell(self, code, tag) -> str:
        special = ("?", "ROOT", "NONE")[: TAGS_FROM if tag else WORDS]
        if code < len(special):
            return special[code]
        return self._names[tag][code - len(special)]

    @cached_property
    def _names(self):
        return self.words.names, self.tags.names

    def name_of_column(self, j: int) -> str:
        """What the feature of a column says; of a hashed one its number."""
        return f"column {j}" if self.table.hashed else self.name(int(self.table.keys[j]))

    def names(self) -> list[str]:
        """Of all columns."""
        return list(map(self.name_of_column, range(self.n_columns)))

    # ---- the model file

    def to_file(self) -> tuple[dict, dict]:
        """Facts and arrays."""
        arrays = {"keys": self.table.keys}
        for kind, names in (("words", self.words), ("tags", self.tags)):
            arrays |= {f"{kind}.{name}": array for name, array in names.to_arrays().items()}
        return {"hashed": int(self.table.hashed)}, arrays

    @classmethod
    def from_file(cls, facts, arrays) -> "ArcFeatures":
        words, tags = (
            Vocabulary.from_arrays(arrays[f"{kind}.text"], arrays[f"{kind}.offsets"])
            for kind in ("words", "tags")
        )
        hashed = facts["hashed"]
        if not isinstance(hashed, int) or hashed < 0 or hashed & (hashed - 1) or hashed > 2**31:
            raise ValueError(f"hashed is {hashed!r}, expected 0 or a power of two")
        keys = np.asarray(arrays["keys"])
        if keys.dtype != np.uint64 or keys.ndim != 1:
            raise ValueError("keys must be one row of unsigned numbers of 64 bits")
        W, T = len(words) + WORDS, len(tags) + TAGS_FROM
        most = max(W * W * T * T, T**4) * TEMPLATES * ATTACHMENTS
        if keys.size and (hashed or int(keys.max()) >= most):
            raise ValueError("keys are not those of the words and tags")
        table = table_of(keys)
        return cls(words, tags, table._replace(hashed=hashed))


def table_of(keys: np.ndarray) -> Table:
    """The hash table of these keys, numbered in their order."""
    slots = np.zeros(1 << max(10, int(2 * keys.size).bit_length()), np.uint32)
    twice = fill_slots(keys, keys.size, slots)
    if twice >= 0:
        raise ValueError(f"key {twice} is there twice")
    return Table(slots, np.ascontiguousarray(keys), 0)


def require_tags(tokens: Tokens) -> None:
    if tokens.n_tokens and tokens.n_columns < 2:
        raise ValueError("each token must be a word and its tag: (word, tag)")


def _hashes(names) -> np.ndarray:
    """Names as the digits of hashed features."""
    found = (crc32(name.encode("utf-8", "surrogatepass")) * ODD % 2**64 for name in names)
    return np.fromiter(found, np.uint64, len(names))


def _used(tokens, column):
    """The strings of a column, in the order first seen."""
    if not tokens.n_columns:
        return []
    present = np.zeros(len(tokens.values[column]), bool)
    present[tokens.codes[column]] = True
    return [value for value, used in zip(tokens.values[column], present, strict=True) if used]


def _most_between(lengths, tags) -> int:
    """How many tags are between head and word, at most, over all arcs of sentences of these lengths."""
    total = 0
    tags = min(tags, 2**31)  # hashes have no largest number
    for n, sentences in zip(*np.unique(lengths, return_counts=True), strict=True):
        gaps = np.arange(1, n + 1)
        total += int(sentences) * 2 * int(((n + 1 - gaps) * np.minimum(gaps - 1, tags)).sum())
    return total


def _require_keys(words, tags):
    if max(words * words * tags * tags, tags**4) * TEMPLATES * ATTACHMENTS >= 2**64:
        raise ValueError(
            f"{words} words and {tags} tags are too many for features of 64 bits; use coarser tags, or make "
            f"rare words one"
        )
