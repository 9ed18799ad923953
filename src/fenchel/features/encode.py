"""Events, given as Python objects with names, become sparse rows with numbers.

The features of an event are one of

    a dict name -> number, bool (1 or 0) or string: {"tag": "NN"} is the feature "tag=NN" of value 1
    a list, tuple or set of names, each of value 1
    an object with `names` and `values`, two lists of one length, as readers yield them

and what is given more than once adds up.

Training and prediction call the same functions, with grow=True and grow=False.
"""

import gc
from array import array
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice, repeat

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import Rows, as_rows
from fenchel.features.naming import PLAIN, in_order
from fenchel.features.vocabulary import Vocabulary

_NAMES = (list, tuple, set, frozenset)
_LISTS, _DICTS = {list, tuple}, {dict}
_AT_ONCE = 4096  # events: numbered in one call that runs in C but for what is new


def encode(events, vocabulary, grow=False, min_count=1, naming=PLAIN, first=0) -> tuple[Rows, Vocabulary]:
    """One row for each event.

    Parameters
    ----------
    events : iterable of events, read once
    vocabulary : Vocabulary
        The columns; left as it is.
    grow : bool
        Whether names it does not hold become new columns, in the order first seen; if not, they are dropped.
    min_count : int
        With grow, a new name is dropped unless so many events give it a value other than 0.
    naming : Naming
        How dicts name their attributes.
    first : int
        The number of the first event, for errors.

    Returns
    -------
    rows : Rows, columns of each row increasing, no zeros stored (but with grow where the naming keeps them)
    vocabulary : Vocabulary
        The columns of the rows: the one given, or with grow a new one that begins with it.
    """
    builder, events = _Builder(vocabulary, grow, min_count, naming), iter(events)
    with _garbage_left_alone():
        while some := list(islice(events, _AT_ONCE)):
            try:
                builder.extend(some)
            except (TypeError, ValueError) as error:
                raise type(error)(f"event {first + builder.n}: {error}") from None
    return _finish(builder, None, lambda row: f"event {first + row}")


@contextmanager
def _garbage_left_alone():
    """New names would let Python look for garbage among all tokens that the user has: a tenth of a second for
    200,000 dicts, and none is found.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def encode_candidates(
    events, vocabulary, grow=False, min_count=1
) -> tuple[Rows, np.ndarray, list, Vocabulary]:
    """One row for each candidate of each event, for features f(x, y) that differ from label to label.

    Parameters
    ----------
    events : iterable of events, read once
        Each a dict label -> features, or a list of features, whose labels are then 0, 1, 2, ...
    vocabulary, grow, min_count : as in `encode`

    Returns
    -------
    rows : Rows, candidates in the order of the events and of their dicts
    starts : (n + 1,) int64; the candidates of event i are the rows starts[i]:starts[i + 1]
    labels : list of lists, the labels of each event's candidates
    vocabulary : Vocabulary, as in `encode`
    """
    builder, starts, labels = _Builder(vocabulary, grow, min_count), array("q", [0]), []
    for number, event in enumerate(events):
        try:
            labels.append(_add_candidates(builder, event))
        except (TypeError, ValueError) as error:
            raise type(error)(f"event {number}{error}") from None
        starts.append(starts[-1] + len(labels[-1]))
    starts = np.array(starts, np.int64)
    rows, vocabulary = _finish(builder, starts, partial(_name_candidate, starts, labels))
    return rows, starts, labels, vocabulary


def _add_candidates(builder, event):
    """Add a row for each candidate; return their labels.  Errors go on where "event 17" ends."""
    if not isinstance(event, dict | list | tuple):
        kind = type(event).__name__
        raise TypeError(f": a {kind}, expected a dict of the candidates' features or a list of them")
    if not event:
        raise ValueError(" has no candidates; it needs at least one")
    labels, before = list(event) if isinstance(event, dict) else list(range(len(event))), builder.n
    try:
        builder.extend(list(event.values()) if isinstance(event, dict) else event)
    except (TypeError, ValueError) as error:
        raise type(error)(f", candidate {labels[builder.n - before]!r}: {error}") from None
    return labels


def _name_candidate(starts, labels, row):
    event = int(np.searchsorted(starts, row, "right")) - 1
    return f"event {event}, candidate {labels[event][row - starts[event]]!r}"


class _Builder:
    """Rows in the making: flat arrays of machine numbers, 12 bytes for each feature of each event.

    Without grow, names unknown to the vocabulary go to one more column behind the others, to be cut off.
    """

    def __init__(self, vocabulary, grow, min_count, naming=PLAIN):
        if min_count < 1:
            raise ValueError(f"min_count is {min_count}; it must be at least 1")
        self.vocabulary = vocabulary.copy() if grow else vocabulary
        self.known = len(vocabulary)
        self.grow = grow
        self.min_count = min_count
        self.naming = naming
        self.sizes = array("q")
        self.indices = array("I")
        self.data = array("d")
        self._number = self.vocabulary.numbering(grow, unknown=self.known)

    @property
    def n(self) -> int:
        """The number of rows; where one was refused, its place."""
        return len(self.sizes)

    def extend(self, events):
        """Append a row for each of several events: dicts and lists at once, others one by one."""
        kinds = set(map(type, events))
        try:
            known = self._of_dicts(events) if kinds == _DICTS else self._of_lists(events, kinds)
        except (TypeError, ValueError, OverflowError):
            known = None  # dicts within dicts, or something wrong: one by one it has a place
        if known is None:
            for features in events:
                self._add(features)
        else:
            for out, numbers in zip((self.indices, self.data), known, strict=True):
                out.frombytes(numbers.view(np.uint8))
            self.sizes.extend(map(len, events))

    def _of_dicts(self, events):
        """Columns and amounts of all pairs, one after the other."""
        pairs, places = self.vocabulary.pairs(self.naming, self.grow), array("I")
        places.extend(map(pairs.__getitem__, chain.from_iterable(map(dict.items, events))))
        places = np.asarray(places)
        return pairs.columns[places], pairs.amounts[places]

    def _of_lists(self, events, kinds):
        """Columns and ones; None where an event is no list."""
        if not kinds <= _LISTS:
            return None
        columns = array("I", self._number(chain.from_iterable(events)))
        return np.asarray(columns), np.ones(len(columns))

    def _add(self, features):
        if isinstance(features, dict):
            features = self.naming.attributes(features)
        if hasattr(features, "names"):  # before tuples, of which this may be one
            names, values = features.names, _numbers(features.names, features.values)
        elif isinstance(features, _NAMES):
            names, values = in_order(features), repeat(1.0, len(features))
        else:
            raise TypeError(_explain_kind(features))
        columns = self._columns(names)
        if hasattr(values, "__len__") and len(values) != len(columns):
            raise ValueError(f"{len(columns)} names but {len(values)} values; they must match")
        self.indices.extend(columns)
        self.data.extend(values)
        self.sizes.append(len(columns))

    def _columns(self, names):
        try:
            return array("I", self._number(names))
        except TypeError:
            wrong = next((name for name in names if not isinstance(name, str)), names)
            raise TypeError(f"the name {wrong!r} is a {type(wrong).__name__}, expected a string") from None


def _numbers(names, values):
    try:
        return array("d", values)
    except (TypeError, OverflowError):
        _refuse(names, values)


def _explain_kind(features):
    if isinstance(features, str):
        return f"the string {features!r}, expected a dict or a list of names (write [{features!r}] for one)"
    return f"a {type(features).__name__}, expected a dict or a list of names"


def _refuse(names, values):
    """Raise the error that says which value is no number."""
    for name, value in zip(names, values, strict=False):
        try:
            array("d", [value])
        except OverflowError:
            message = f"feature {name!r} is too large a number; features must be finite numbers"
            raise ValueError(message) from None
        except TypeError:
            kind = "None" if value is None else f"a {type(value).__name__}"
            message = f"feature {name!r} is {kind}, expected a number, a bool or a string"
            raise TypeError(message) from None
    raise TypeError("the values are not a list of numbers")


def _finish(builder, starts, describe):
    """Rows in canonical form and their vocabulary; `describe` names a row in errors."""
    X, vocabulary = _canonical(builder), builder.vocabulary
    _check_finite(X, vocabulary, describe)
    if builder.grow and not (builder.min_count == 1 and _all_stand(builder, X)):
        kept = _count_events(X, starts) >= builder.min_count
        kept[: builder.known] = True
        if not kept.all():
            X, vocabulary = X[:, np.flatnonzero(kept)], vocabulary.keep(kept)
    return as_rows(X), vocabulary


def _all_stand(builder, X):
    """Whether nothing was added up, and nothing is zero: then each name that is new has occurred."""
    return X.nnz == len(builder.indices) and np.count_nonzero(X.data) == X.nnz


def _canonical(builder):
    """The rows as a SciPy matrix: columns sorted, repeated ones added up, no zeros, no unknown names."""
    width, ends = len(builder.vocabulary), np.zeros(builder.n + 1, np.int64)
    np.cumsum(builder.sizes, out=ends[1:])
    indices = np.asarray(builder.indices).view(np.int32)
    shape = builder.n, width if builder.grow else width + 1
    X = sp.csr_matrix((np.asarray(builder.data), indices, ends), shape=shape)
    X.sum_duplicates()
    X.resize(X.shape[0], width)
    if not (builder.grow and builder.naming.zeros):
        X.eliminate_zeros()
    return X


def _check_finite(X, vocabulary, describe):
    wrong = np.flatnonzero(~np.isfinite(X.data))
    if wrong.size:
        at = wrong[0]
        row = int(np.searchsorted(X.indptr, at, "right")) - 1
        name, value = vocabulary.name_of(X.indices[at]), X.data[at]
        raise ValueError(f"{describe(row)}: feature {name!r} is {value}; features must be finite numbers")


def _count_events(X, starts):
    """In how many events each column occurs; `starts` tells which rows make an event, if not each its own."""
    if starts is not None:
        indptr, occurs = X.indptr[starts], np.ones(X.nnz, bool)
        X = sp.csr_matrix((occurs, X.indices.copy(), indptr), shape=(starts.size - 1, X.shape[1]))
        X.sum_duplicates()
    return np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
