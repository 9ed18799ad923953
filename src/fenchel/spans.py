"""Spans that labels such as B-NP I-NP O stand for, and scores of them: the measure of CoNLL tasks.

A label is a letter and a type: B begins a span, I goes on, E (or L) ends it, S (or U) is a span of one token,
O is outside.  What starts and ends a span is decided as conlleval does: an I after O, or of another type than
the label before, begins one too.  With a scheme, IOB2, IOE2 or IOBES, only what follows its rules is a span,
as in seqeval's strict mode.
"""

import warnings
from collections import defaultdict
from itertools import chain, count, pairwise
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit

_OUTSIDE, _BEGIN, _INSIDE, _END, _SINGLE, _OTHER = range(6)
_LETTERS = {"O": _OUTSIDE, ".": _OUTSIDE, "B": _BEGIN, "I": _INSIDE}
_LETTERS |= {"E": _END, "L": _END, "S": _SINGLE, "U": _SINGLE}


# Of each scheme the letters that it has, those that begin a span, and those that end one.
_SCHEMES = {
    "IOB2": ({_OUTSIDE, _BEGIN, _INSIDE}, {_BEGIN}, {_BEGIN, _INSIDE}),
    "IOE2": ({_OUTSIDE, _INSIDE, _END}, {_INSIDE, _END}, {_END}),
    "IOBES": ({_OUTSIDE, _BEGIN, _INSIDE, _END, _SINGLE}, {_BEGIN, _SINGLE}, {_END, _SINGLE}),
}


class Averages(NamedTuple):
    """Means over the types of spans."""

    precision: float
    recall: float
    f1: float


class TypeScores(NamedTuple):
    """Scores of spans, from 0 to 1, and the numbers of spans they rest on."""

    precision: float
    recall: float
    f1: float
    n_true: int
    n_predicted: int
    n_right: int


class SpanScores(NamedTuple):
    """Scores of all spans; accuracy is that of single labels; types maps each type to its TypeScores."""

    precision: float
    recall: float
    f1: float
    accuracy: float
    n_true: int
    n_predicted: int
    n_right: int
    n_tokens: int
    types: dict

    @property
    def macro(self) -> Averages:
        """All types count alike."""
        return self._averages([1] * len(self.types))

    @property
    def weighted(self) -> Averages:
        """A type counts by its number of true spans."""
        return self._averages([row.n_true for row in self.types.values()])

    def _averages(self, weights):
        total = sum(weights)
        if total == 0:
            return Averages(0.0, 0.0, 0.0)
        rows = [row[:3] for row in self.types.values()]
        return Averages(*(float(np.dot(weights, column)) / total for column in zip(*rows, strict=True)))

    def __str__(self):
        return format_scores(self)


def spans(labels, scheme: str | None = None) -> list:
    """(type, start, stop) of each span of a sequence of labels, which covers the tokens start:stop.

    scheme: None for conlleval's rules, or "IOB2", "IOE2", "IOBES": then only what follows them is a span.
    """
    _require_labels("labels", labels)
    codes, letters, types, names = _encode([labels])
    found = _found(codes, np.array([0, codes.size]), letters, types, _rules(scheme, letters, labels, codes))
    return [(names[kind], start, stop) for kind, start, stop in found.tolist()]


def span_scores(truth, predicted, scheme: str | None = None) -> SpanScores:
    """How well the spans of predicted label sequences match the true ones; both are lists of lists of labels.

    A span is right if type, start and stop are.  precision = right / predicted, recall = right / true, f1 is
    their harmonic mean; 0 where the denominator is.  scheme: as in `spans`.
    """
    truth, predicted = list(truth), list(predicted)
    starts = _common_starts(truth, predicted)
    codes, letters, types, names = _encode([*truth, *predicted])
    n = int(starts[-1])
    if not truth:
        raise ValueError("no labels to score")
    if n == 0:
        warnings.warn("there are no labels to score: all scores are 0", stacklevel=2)
        return SpanScores(0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, {})
    rules = _rules(scheme, letters, chain.from_iterable([*truth, *predicted]), codes)
    true, guessed = (_found(part, starts, letters, types, rules) for part in (codes[:n], codes[n:]))
    right = np.zeros(len(names), np.int64)
    _count_right(true, guessed, right)
    counts = (
        np.bincount(true[:, 0], minlength=len(names)),
        np.bincount(guessed[:, 0], minlength=len(names)),
        right,
    )
    by_type = {
        name: _scores(*(int(c[k]) for c in counts))
        for k, name in enumerate(names)
        if counts[0][k] or counts[1][k]
    }
    total = _scores(*(int(c.sum()) for c in counts))
    accuracy = float(np.mean(codes[:n] == codes[n:]))
    return SpanScores(*total[:3], accuracy, *total[3:], n, dict(sorted(by_type.items())))


def format_scores(scores: SpanScores) -> str:
    """A table in percent, as conlleval's."""
    found = f"{scores.n_tokens} tokens, {scores.n_true} spans, "
    found += f"{scores.n_predicted} predicted, {scores.n_right} right"
    width = max(map(len, ("spans", *scores.types)))
    rows = [("all", scores), *scores.types.items()]
    lines = [f"{name:>{width}}  {_percent(row)}  {row.n_predicted:8d}" for name, row in rows]
    head = f"{'spans':>{width}}  precision   recall       F1  predicted"
    return "\n".join([found, f"accuracy {100 * scores.accuracy:.2f}%", head, *lines])


def _percent(row):
    return f"{100 * row.precision:8.2f}% {100 * row.recall:7.2f}% {100 * row.f1:7.2f}% "


def _scores(n_true, n_predicted, n_right):
    precision = n_right / n_predicted if n_predicted else 0.0
    recall = n_right / n_true if n_true else 0.0
    f1 = 2 * n_right / (n_true + n_predicted) if n_right else 0.0
    return TypeScores(precision, recall, f1, n_true, n_predicted, n_right)


def _common_starts(truth, predicted):
    """(n + 1,) where sequences start; ValueError unless they are as long in both."""
    if len(truth) != len(predicted):
        raise ValueError(f"{len(truth)} true sequences but {len(predicted)} predicted; they must match")
    for name, sequences in (("true", truth), ("predicted", predicted)):
        for i, labels in enumerate(sequences):
            _require_labels(f"sequence {i} of the {name} ones", labels)
    sizes = np.fromiter(map(len, truth), np.int64, len(truth))
    wrong = np.flatnonzero(sizes != np.fromiter(map(len, predicted), np.int64, len(truth)))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"sequence {i} has {len(truth[i])} true labels but {len(predicted[i])} predicted")
    return np.concatenate([[0], np.cumsum(sizes)])


def _require_labels(name, labels) -> None:
    """A string would be taken for a sequence of letters."""
    if isinstance(labels, str):
        raise TypeError(f"{name} is the string {labels!r}, expected a list of labels")


def _encode(sequences):
    """codes (N,) of all labels; of each code the letter and the type, as numbers; and the types."""
    ids = defaultdict(count().__next__)
    codes = np.fromiter(map(ids.__getitem__, chain.from_iterable(sequences)), np.int64)
    kinds, letters = defaultdict(count().__next__), []
    for label in ids:
        letter, _, kind = str(label).partition("-")
        if kind in _LETTERS and letter not in _LETTERS:
            raise ValueError(f"the label {label!r} has its letter behind the type; write {kind}-{letter}")
        letters.append((_LETTERS.get(letter, _OTHER if kind else _OUTSIDE), kinds[kind]))
    table = np.array(letters, np.int64).reshape(-1, 2)
    return codes, np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]), list(kinds)


def _rules(scheme, letters, labels, codes):
    """The letters that begin and that end a span, None for conlleval's rules; a label of none is an error."""
    if scheme is None:
        return None
    if scheme not in _SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; there are {', '.join(_SCHEMES)}, or None")
    allowed, first, last = _SCHEMES[scheme]
    wrong = ~np.isin(letters, list(allowed))
    if wrong.any():
        at = int(np.flatnonzero(wrong[codes])[0])
        label = next(label for k, label in enumerate(labels) if k == at)
        raise ValueError(f"the label {label!r} is none of {scheme}; give another scheme, or None")
    return first, last


def _found(codes, starts, letters, types, rules):
    """(n, 3) type, start and stop of each span."""
    if rules is None:
        found = np.empty((codes.size, 3), np.int64)
        return found[: _find_spans(codes, starts, letters, types, found)]
    rows = []
    for begin, end in pairwise(starts.tolist()):
        here = codes[begin:end]
        rows += _strict_spans(letters[here].tolist(), types[here].tolist(), begin, *rules)
    return np.array(rows, np.int64).reshape(-1, 3)


def _strict_spans(letters, types, begin, first, last):
    """Spans whose letters are one to begin with and one to end with, and between them go on in one type."""
    found, start = [], None
    for t, (letter, kind) in enumerate([*zip(letters, types, strict=True), (_OUTSIDE, -1)]):
        before = letters[t - 1] if t > 0 else _OUTSIDE
        goes_on = t > 0 and kind == types[t - 1] and before in (_BEGIN, _INSIDE) and letter in (_INSIDE, _END)
        if start is not None and not goes_on:
            if before in last:
                found.append((types[t - 1], begin + start, begin + t))
            start = None
        if start is None and letter in first:
            start = t
    return found


@helper(cache=True, nogil=True)
def _starts_span(before, letter, changed):
    """Whether a span starts at a label; `changed`: it has another type than the label before."""
    if letter in (_BEGIN, _SINGLE):
        return True
    if letter == _OUTSIDE:
        return False
    opens = before in (_OUTSIDE, _END, _SINGLE)
    return changed or (letter != _OTHER and opens)


@helper(cache=True, nogil=True)
def _ends_span(before, letter, changed):
    """Whether a span that holds the label before ends there."""
    if before in (_END, _SINGLE):
        return True
    if before == _OUTSIDE:
        return False
    closes = letter in (_BEGIN, _SINGLE, _OUTSIDE)
    return changed or (before != _OTHER and closes)


@njit(cache=True, nogil=True)
def _find_spans(codes, starts, letters, types, out):
    """Fill out (N, 3) with type, start and stop of each span; return their number."""
    n = 0
    for s in range(starts.size - 1):
        before, kind, start = _OUTSIDE, -1, -1
        for t in range(starts[s], starts[s + 1]):
            letter, new = letters[codes[t]], types[codes[t]]
            changed = kind != new
            if start >= 0 and _ends_span(before, letter, changed):
                out[n, 0], out[n, 1], out[n, 2] = kind, start, t
                n += 1
                start = -1
            if _starts_span(before, letter, changed):
                start = t
            before, kind = letter, new
        if start >= 0:
            out[n, 0], out[n, 1], out[n, 2] = kind, start, starts[s + 1]
            n += 1
    return n


@njit(cache=True, nogil=True)
def _count_right(true, guessed, right):
    """Add one to right[type] for each span in both lists, which are sorted by start."""
    i, j = 0, 0
    while i < true.shape[0] and j < guessed.shape[0]:
        if true[i, 1] < guessed[j, 1]:
            i += 1
        elif true[i, 1] > guessed[j, 1]:
            j += 1
        else:
            if true[i, 0] == guessed[j, 0] and true[i, 2] == guessed[j, 2]:
                right[true[i, 0]] += 1
            i += 1
            j += 1
