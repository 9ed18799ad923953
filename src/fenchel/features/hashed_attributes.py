"""Attributes of tokens by a template, in columns by the hash of line and values: none is learnt or kept."""

from zlib import crc32

import numpy as np

from fenchel._cache import njit
from fenchel._sparse import Rows
from fenchel.features.attributes import Extractor, empty_rows, trimmed
from fenchel.features.hashing import ODD, Hashed, unnamed
from fenchel.features.interning import find_key, finish_row, is_placed, key_tag, shifts
from fenchel.features.templates import Template
from fenchel.features.tokens import Tokens
from fenchel.features.values import Words

VALUE_BITS = 31  # of the hash of a value; all of 32 is ABSENT


class HashedExtractor(Extractor):
    """An `Extractor` of 2^bits attributes, which share weights by chance. Edge lines are refused."""

    def __init__(self, template, bits: int):
        super().__init__(template)
        self.bits = bits

    @property
    def n_attributes(self) -> int:
        return 2**self.bits

    @property
    def n_edge_attributes(self) -> int:
        return 0

    def fit(self, tokens: Tokens, min_count: int = 1) -> tuple[Rows, None]:
        """The rows of tokens; only the number of their columns is learnt."""
        if tokens.n_tokens == 0:
            raise ValueError("no tokens to take attributes from")
        self._begin(tokens.n_columns)
        return self.transform(tokens)

    def fit_batches(self, batches, min_count: int = 1) -> None:
        """The same of Tokens that come some at a time; all are gone through."""
        for tokens in batches:
            if self.n_columns is None:
                self._begin(tokens.n_columns)
            self._require_same_columns(tokens)
        if self.n_columns is None:
            raise ValueError("no tokens to take attributes from")

    def transform(self, tokens: Tokens) -> tuple[Rows, None]:
        self._require_width(tokens)
        grid, n = self._words.lay_out(tokens), tokens.n_tokens
        rows = empty_rows(n, n * len(self._salts))
        shift = np.uint64(64 - self.bits)
        nnz = _hash_rows(self._unary.plan, grid, self._salts, shift, *rows)
        return trimmed(rows, nnz, self.n_attributes), None

    def names(self, ids=None) -> list:
        raise unnamed(self.bits)

    def edge_names(self, ids=None) -> list:
        return []

    def to_facts(self) -> dict:
        return super().to_facts() | {"hash_bits": self.bits}

    def to_arrays(self) -> dict:
        return {}

    @classmethod
    def from_facts(cls, facts: dict) -> "HashedExtractor":
        """The extractor whose `to_facts` gave these; ValueError if they are damaged."""
        bits, columns = facts["hash_bits"], facts.get("columns")
        if type(bits) is not int or not 1 <= bits <= 30 or type(columns) is not int or columns < 1:
            raise ValueError(f"damaged attributes: {bits!r} bits of {columns!r} columns")
        self = cls(Template.from_facts(facts["template"]), bits)
        self._begin(columns)
        return self

    def _begin(self, n_columns):
        self._compile(n_columns)
        if self._edges.lines:
            raise ValueError(
                "hash_bits goes with attributes of tokens; leave B lines with macros out of the template"
            )
        self._words = Words(self._sources, self.template.dialect, self._reach, Hashed(VALUE_BITS), grow=True)
        texts = ["\0".join(line.texts) + f"\0{line.place}" for line in self._unary.lines]
        salts = [crc32(text.encode("utf-8", "surrogatepass")) * ODD % 2**64 for text in texts]
        self._salts = np.array(salts, np.uint64)


@njit(cache=True, nogil=True)
def _hash_rows(plan, grid, salts, shift, indptr, indices, data):
    """Rows of the tokens, of each line the upper bits of a hash of its values; written. Returns their number.

    salts: (L,) uint64, alike for lines of the same text.
    """
    values, starts, anchor, shift_of = grid.values, grid.starts, plan.anchor, shifts(plan, grid.size)
    key, reach, odd = np.empty(plan.source.size, np.uint32), np.uint64(grid.reach), np.uint64(ODD)
    nnz, token, at, zero, one = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(1)
    for s in range(np.uint64(starts.size - 1)):
        first = at + reach
        end = first + np.uint64(starts[s + one] - starts[s])
        at = end + reach
        for t in range(first, end):
            row = nnz
            for k in range(np.uint64(salts.size)):
                if not is_placed(plan.place[k], plan.skip_first, t, first, end):
                    continue
                begin, last = plan.begin[k], plan.begin[k + one]
                if not find_key(values, shift_of, anchor, begin, last, t, first, end, key):
                    continue
                hashed = (key_tag(key, zero, last - begin) ^ salts[k]) * odd
                indices[nnz] = ((hashed ^ (hashed >> np.uint64(29))) * odd) >> shift
                nnz += one
            nnz = finish_row(indices, data, row, nnz)
            token += one
            indptr[token] = nnz
    return nnz
