"""From the strings of tokens to numbers of values, for the sources of a template."""

import numpy as np

from fenchel.features import interning
from fenchel.features.interning import ABSENT, Grid
from fenchel.features.patterns import function_of

_MEMO = 1_000_000  # distinct strings of a column that are remembered with their values
_NONE = int(ABSENT)  # for lists, which become arrays faster if all are plain integers


class Words:
    """From the strings of tokens to value ids, for all sources of a template."""

    def __init__(self, sources, dialect, reach, vocabulary, grow):
        self.vocabulary = vocabulary
        self._reach = max(reach, 1)  # Wapiti's @0 is one before the first
        number = _Adder(vocabulary) if grow else _Getter(vocabulary)
        columns = [source.column for source in sources]
        self._used = sorted(set(columns))
        functions = [function_of(source) for source in sources]
        self._memos = [
            _Memo([f for f, k in zip(functions, columns, strict=True) if k == j], number) for j in self._used
        ]
        self._column = np.array(columns, np.uint64)
        # sources are sorted by column: which column is whose, where its sources begin, how many they are
        looks = {"return_inverse": True, "return_index": True, "return_counts": True}
        _, begin, order, sizes = np.unique(np.array(columns, np.int64), **looks)
        self._stride = sizes[order].astype(np.uint64)
        # the place of a source among those of its column
        self._place = (np.arange(order.size) - begin[order]).astype(np.uint64)
        self._order = order
        self._pads = _pad_ids(functions, dialect, self._reach, number)

    def lay_out(self, tokens):
        """The values of all sources at all tokens, for the kernels."""
        ids, begins = [], []
        for j, memo in zip(self._used, self._memos, strict=True):
            begins.append(len(ids))
            for value in tokens.values[j] if tokens.n_tokens else ():
                ids += memo[value]
        base = self._place + np.array(begins, np.uint64)[self._order]
        ids = np.array(ids, np.uint32)
        size = tokens.n_tokens + 2 * self._reach * len(tokens)
        out = np.empty((base.size, size), np.uint32)
        where = (self._column, ids, base, self._stride, self._pads, self._reach)
        interning.lay_out(tokens.starts, np.ascontiguousarray(tokens.codes), *where, out)
        return Grid(out.reshape(-1), tokens.starts, self._reach, size)


class _Memo(dict):
    """From a string to the value ids of all sources of its column."""

    def __init__(self, functions, number):
        self._functions = functions
        self._number = number

    def __missing__(self, value):
        if len(self) >= _MEMO:
            self.clear()
        self[value] = ids = [self._number(function(value)) for function in self._functions]
        return ids


class _Adder:
    """Ids of values, new ones for new values; none for None."""

    def __init__(self, vocabulary):
        self._vocabulary = vocabulary

    def __call__(self, value):
        return _NONE if value is None else self._vocabulary.add(value)


class _Getter:
    """Ids of known values."""

    def __init__(self, vocabulary):
        self._vocabulary = vocabulary

    def __call__(self, value):
        return self._vocabulary.get(value, _NONE)


def _pad_ids(functions, dialect, reach, number):
    """(D, 2, P) what each source gives before and behind a sentence, by distance."""
    if dialect == "preset":
        return np.full((len(functions), 2, 1), ABSENT, np.uint32)
    if dialect == "crf++":
        pads = [[f"_B{sign}{k}" for k in range(1, reach + 1)] for sign in "-+"]
    else:
        pads = [[f"_x{sign}{k}" for k in (1, 2, 3, 4, "#")] for sign in "-+"]
    ids = [[[number(function(pad)) for pad in side] for side in pads] for function in functions]
    return np.array(ids, np.uint32).reshape(len(functions), 2, len(pads[0]))
