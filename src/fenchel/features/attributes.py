"""Attributes of tokens by a template, on integers only.

A string is looked at once for each distinct one: each source of the template (a column, its lower case, its
suffix, ...) maps the distinct strings of a column to value ids, and an attribute is a tuple of value ids.
Names such as `U01:the` are made only when asked for.
"""

from itertools import pairwise

import numpy as np

from fenchel._sparse import Rows
from fenchel.features import interning
from fenchel.features.counting import AttributeCounts
from fenchel.features.interning import ABSENT, Plan, Table
from fenchel.features.lines import PLACES
from fenchel.features.templates import Template, read_template
from fenchel.features.tokens import Tokens
from fenchel.features.values import Words
from fenchel.features.vocabulary import Vocabulary


class Extractor:
    """Turns tokens into sparse rows of attributes, by a template.

    Attributes are numbered in the order first seen, token by token, in the order of the template's lines.
    They are told apart by their line's text and their values, not by the joined string.

    Parameters
    ----------
    template : Template, or the name of a preset or a file
    """

    def __init__(self, template):
        self.template = template if isinstance(template, Template) else read_template(template)
        self.n_columns = None

    @property
    def transitions(self) -> bool:
        """Whether the model has plain weights for pairs of labels."""
        return self.template.transitions

    @property
    def n_attributes(self) -> int:
        return self._fitted()._unary.size

    @property
    def n_edge_attributes(self) -> int:
        return self._fitted()._edges.size

    def fit(self, tokens: Tokens, min_count: int = 1) -> tuple[Rows, Rows | None]:
        """Learn the attributes of the tokens, those that occur at least min_count times.

        Returns
        -------
        unary : Rows (N, n_attributes); an attribute a token has twice counts 2
        edges : Rows (N, n_edge_attributes), that of token t for the labels of t − 1 and t, empty where a
            sentence starts; None if the template has no such line
        """
        if min_count < 1:
            raise ValueError(f"min_count is {min_count}; it must be at least 1")
        if tokens.n_tokens == 0:
            raise ValueError("no tokens to take attributes from")
        self._begin(tokens.n_columns)
        grid = self._words.lay_out(tokens)
        unary = self._unary.learn(grid, min_count)
        edges = self._edges.learn(grid, min_count) if self._edges.lines else None
        self._forget_unused()
        return unary, edges

    def fit_batches(self, batches, min_count: int = 1) -> None:
        """Learn the attributes of Tokens that come some at a time; all have the columns of the first."""
        counts = None
        for tokens in batches:
            if counts is None:
                self._begin(tokens.n_columns)
                counts = self._unary.counts(), self._edges.counts()
            self._require_same_columns(tokens)
            grid = self._words.lay_out(tokens)
            for some in counts:
                some.add(grid)
        if counts is None:
            raise ValueError("no tokens to take attributes from")
        self._unary.choose(counts[0], min_count)
        self._edges.choose(counts[1], min_count)
        self._forget_unused()

    def transform(self, tokens: Tokens) -> tuple[Rows, Rows | None]:
        """The rows of tokens, as `fit` gives them; attributes it did not learn are dropped."""
        self._require_width(tokens)
        grid = self._words.lay_out(tokens)
        return self._unary.look_up(grid), self._edges.look_up(grid) if self._edges.lines else None

    def _require_same_columns(self, tokens):
        if tokens.n_columns != self.n_columns:
            raise ValueError(f"{tokens.n_columns} columns, expected {self.n_columns} as before")

    def _require_width(self, tokens):
        """Refuse tokens that lack columns."""
        self._fitted()
        if tokens.n_tokens and tokens.n_columns < self._width:
            self.template.lines_for(tokens.n_columns)  # names the line
            raise ValueError(
                f"the data have {tokens.n_columns} columns, the model was trained on {self._width}"
            )

    def names(self, ids=None) -> list:
        """The names of attributes, all by default."""
        return self._fitted()._unary.names(self._words.vocabulary.names, ids)

    def edge_names(self, ids=None) -> list:
        """The names of attributes of edges, all by default."""
        return self._fitted()._edges.names(self._words.vocabulary.names, ids)

    def to_facts(self) -> dict:
        """What a model's header holds of it, together with `to_arrays`."""
        return {"template": self.template.to_facts(), "columns": self._fitted().n_columns}

    def to_arrays(self) -> dict:
        """The values as text, and of each attribute its group of lines and its key: see `from_arrays`."""
        values = self._fitted()._words.vocabulary.to_arrays()
        return {
            "value_text": values["text"],
            "value_offsets": values["offsets"],
            "groups": self._unary.groups,
            "keys": self._unary.keys,
            "edge_groups": self._edges.groups,
            "edge_keys": self._edges.keys,
        }

    @classmethod
    def from_arrays(cls, facts: dict, arrays: dict) -> "Extractor":
        """The extractor whose `to_facts` and `to_arrays` gave these; ValueError if they are damaged."""
        missing = {"template", "columns"} - set(facts)
        names = ("value_text", "value_offsets", "groups", "keys", "edge_groups", "edge_keys")
        missing |= set(names) - set(arrays)
        if missing:
            raise ValueError(f"damaged attributes: no {sorted(missing)[0]!r}")
        if type(facts["columns"]) is not int or facts["columns"] < 1:
            raise ValueError(f"damaged attributes: {facts['columns']!r} columns")
        self = cls(Template.from_facts(facts["template"]))
        self._compile(facts["columns"])
        vocabulary = Vocabulary.from_arrays(arrays["value_text"], arrays["value_offsets"])
        self._unary.restore(arrays["groups"], arrays["keys"], len(vocabulary))
        self._edges.restore(arrays["edge_groups"], arrays["edge_keys"], len(vocabulary))
        self._words = Words(self._sources, self.template.dialect, self._reach, vocabulary, grow=False)
        return self

    def _begin(self, n_columns):
        """Before the first token."""
        self._compile(n_columns)
        self._words = Words(self._sources, self.template.dialect, self._reach, Vocabulary(), grow=True)

    def _compile(self, n_columns):
        """Plans of the lines that fit data of so many columns."""
        lines = self.template.lines_for(n_columns)
        macros = [macro for line in lines for macro in line.macros]
        self._sources = sorted({macro.source for macro in macros})
        self._reach = max((abs(macro.offset) for macro in macros), default=0)
        self._width = max((source.column + 1 for source in self._sources), default=0)
        self._unary = _Attributes([k for k in lines if k.kind != "edge"], self._sources, edges=False)
        self._edges = _Attributes([k for k in lines if k.kind != "unary"], self._sources, edges=True)
        self.n_columns = n_columns

    def _forget_unused(self):
        """Keep only the values that occur in a key, and no memory of the others."""
        vocabulary = self._words.vocabulary
        used = np.zeros(len(vocabulary), bool)
        used[self._unary.keys] = True
        used[self._edges.keys] = True
        if not used.all():
            new = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
            self._unary.keys, self._edges.keys = new[self._unary.keys], new[self._edges.keys]
            vocabulary = vocabulary.keep(used)
        self._unary.index()
        self._edges.index()
        self._words = Words(self._sources, self.template.dialect, self._reach, vocabulary, grow=False)

    def _fitted(self):
        if self.n_columns is None:
            raise ValueError("this extractor has not learned its attributes yet; call fit first")
        return self


class _Attributes:
    """The attributes of the unary lines of a template, or of its edge lines.

    groups: (A,) the group of lines of each.  keys: (K,) the value ids of all, one after the other.
    """

    def __init__(self, lines, sources, edges):
        self.lines = lines
        self.groups, self.keys = np.empty(0, np.uint32), np.empty(0, np.uint32)
        heads = [(line.texts, line.place) for line in lines]
        self._heads = list(dict.fromkeys(heads))
        place = {head: g for g, head in enumerate(self._heads)}
        group = [place[head] for head in heads]
        self._width = np.array([len(texts) - 1 for texts, _ in self._heads], np.uint64)
        self.plan = _plan(lines, group, sources, edges)

    @property
    def size(self):
        return self.groups.size

    def learn(self, grid, min_count):
        """Rows of all tokens; groups and keys become those of the attributes met."""
        plan, n = self.plan, int(grid.starts[-1])
        numbers = np.empty((len(self.lines), n), np.uint32)
        keys, begin = [], np.zeros(len(self._heads) + 1, np.uint64)
        for g, width in enumerate(self._width):
            lines = np.flatnonzero(plan.group == g).astype(np.uint64)
            met = interning.intern_group(plan, grid, lines, interning.nothing_met(width), numbers)
            keys.append(met.keys[: met.count * width].reshape(met.count, width))
            begin[g + 1] = begin[g] + np.uint64(met.count)
        new = interning.renumber(numbers, plan.group, begin, min_count)
        self._arrange(keys, begin, new, np.count_nonzero(new != ABSENT))
        rows = empty_rows(n, numbers.size - np.count_nonzero(numbers == ABSENT))
        nnz = interning.fill_rows(numbers, plan.group, begin, new, *rows)
        return trimmed(rows, nnz, self.size)

    def counts(self) -> AttributeCounts:
        """Of no token yet: for `choose`, where all tokens do not fit memory."""
        return AttributeCounts(self.plan, self._width)

    def choose(self, counts: AttributeCounts, min_count) -> None:
        """Make groups and keys those of the attributes counted so often."""
        self._arrange(*counts.chosen(min_count))

    def _arrange(self, keys, begin, new, size):
        """groups and keys in the order of the new numbers."""
        self.groups = np.empty(size, np.uint32)
        for g, (first, last) in enumerate(pairwise(begin)):
            kept = new[first:last] != ABSENT
            self.groups[new[first:last][kept]] = g
        at = _ends_of(self._width[self.groups])
        self.keys = np.empty(at[-1], np.uint32)
        for g, (first, last) in enumerate(pairwise(begin)):
            kept = new[first:last] != ABSENT
            where = at[new[first:last][kept]]
            self.keys[where[:, None] + np.arange(self._width[g], dtype=np.uint64)] = keys[g][kept]

    def index(self):
        """Make the hash table of the keys."""
        sizes = 1 << np.ceil(np.log2(2 * np.bincount(self.groups, minlength=len(self._heads)) + 1)).astype(
            int
        )
        begin = _ends_of(sizes)
        slots = np.zeros(begin[-1], np.uint64)
        key_begin = _ends_of(self._width[self.groups])
        mask = (sizes - 1).astype(np.uint64)
        self._table = Table(self.keys, key_begin, self._width, slots, begin, mask)
        twice = interning.fill_table(self.groups, self._table)
        if twice >= 0:
            raise ValueError(f"damaged attributes: number {twice} comes twice")

    def restore(self, groups, keys, n_values):
        """Take groups and keys from a file."""
        groups, keys = np.asarray(groups), np.asarray(keys)
        for name, array, limit in (("groups", groups, len(self._heads)), ("keys", keys, n_values)):
            if array.dtype.kind not in "iu" or array.ndim != 1:
                kind = f"{array.dtype} of {array.ndim} axes"
                raise ValueError(f"damaged attributes: {name} are {kind}, expected uint32 of 1")
            if array.size and (array.min() < 0 or array.max() >= limit):
                raise ValueError(f"damaged attributes: {name} are not all below {limit}")
        if keys.size != self._width[groups].sum():
            raise ValueError(f"damaged attributes: {keys.size} values in keys of {groups.size} attributes")
        self.groups, self.keys = groups.astype(np.uint32), keys.astype(np.uint32)
        self.index()

    def look_up(self, grid):
        """Rows of the tokens, attributes that are not here left out."""
        n = int(grid.starts[-1])
        rows = empty_rows(n, n * len(self.lines))
        nnz = interning.look_up_rows(self.plan, grid, self._table, *rows)
        return trimmed(rows, nnz, self.size)

    def names(self, values, ids=None):
        """The texts of the lines with the values of the macros in between."""
        chosen = range(self.size) if ids is None else [_checked_id(a, self.size) for a in ids]
        groups, keys = self.groups.tolist(), self.keys.tolist()
        begin = self._table.key_begin.tolist()
        return [self._name(values, groups[a], keys[begin[a] : begin[a + 1]]) for a in chosen]

    def _name(self, values, group, key):
        texts = self._heads[group][0]
        return texts[0] + "".join(values[k] + text for k, text in zip(key, texts[1:], strict=True))


def _plan(lines, group, sources, edges):
    """Lines as arrays."""
    macros = [macro for line in lines for macro in line.macros]
    place = {source: d for d, source in enumerate(sources)}
    anchors = [_anchor(macro) for macro in macros]
    return Plan(
        begin=_ends_of([len(line.macros) for line in lines]),
        group=np.array(group, np.uint64),
        place=np.array([PLACES.index(line.place) for line in lines], np.uint64),
        source=np.array([place[macro.source] for macro in macros], np.uint64),
        offset=np.array([offset for _, offset in anchors], np.int64),
        anchor=np.array([anchor for anchor, _ in anchors], np.uint64),
        skip_first=edges,
    )


def _anchor(macro):
    """From where a macro's offset counts, and the offset from there."""
    if not macro.absolute:
        return interning.FROM_TOKEN, macro.offset
    if macro.offset < 0:
        return interning.FROM_LAST, macro.offset  # from the end, one behind the last token
    return interning.FROM_FIRST, macro.offset - 1


def _ends_of(sizes):
    """(n + 1,) 0 and the running sums."""
    ends = np.zeros(len(sizes) + 1, np.uint64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def empty_rows(n, capacity):
    return np.zeros(n + 1, np.uint64), np.empty(capacity, np.uint32), np.empty(capacity)


def trimmed(rows, nnz, n_columns):
    indptr, indices, data = rows
    return Rows(indptr, indices[:nnz], data[:nnz], n_columns)


def _checked_id(a, size):
    if not 0 <= a < size:
        raise ValueError(f"there is no attribute {a}; there are {size}, from 0")
    return int(a)
