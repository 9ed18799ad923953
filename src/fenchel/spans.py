"""Spans that labels such as B-NP I-NP O stand for, and scores of them: the measure of CoNLL tasks.

A label is a letter and a type: B begins a span, I goes on, E (or L) ends it, S (or U) is a span of one token,
O is outside.  What starts and ends a span is decided as conlleval does, whatever the scheme: an I after O, or
of another type than the label before, begins one too.
"""

from collections import defaultdict
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from fenchel._cache import helper, njit

_OUTSIDE, _BEGIN, _INSIDE, _END, _SINGLE, _OTHER = range(6)
_LETTERS = {"O": _OUTSIDE, ".": _OUTSIDE, "B": _BEGIN, "I": _INSIDE}
_LETTERS |= {"E": _END, "L": _END, "S": _SINGLE, "U": _SINGLE}


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

    def __str__(self):
        return format_scores(self)


def spans(labels) -> list:
    """(type, start, stop) of each span of a sequence of labels, which covers the tokens start:stop."""
    codes, letters, types, names = _encode([labels])
    found = np.empty((codes.size, 3), np.int64)
    n = _find_spans(codes, np.array([0, codes.size]), letters, types, found)
    return [(names[kind], start, stop) for kind, start, stop in found[:n].tolist()]


def span_scores(truth, predicted) -> SpanScores:
    """How well the spans of predicted label sequences match the true ones; both are lists of lists of labels.

    A span is right if type, start and stop are.  precision = right / predicted, recall = right / true, f1 is
    their harmonic mean; 0 where the denominator is.
    """
    truth, predicted = list(truth), list(predicted)
    starts = _common_starts(truth, predicted)
    codes, letters, types, names = _encode([*truth, *predicted])
    n = int(starts[-1])
    if n == 0:
        raise ValueError("no labels to score")
    true, guessed = np.empty((n, 3), np.int64), np.empty((n, 3), np.int64)
    true = true[: _find_spans(codes[:n], starts, letters, types, true)]
    guessed = guessed[: _find_spans(codes[n:], starts, letters, types, guessed)]
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
    sizes = np.fromiter(map(len, truth), np.int64, len(truth))
    wrong = np.flatnonzero(sizes != np.fromiter(map(len, predicted), np.int64, len(truth)))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"sequence {i} has {len(truth[i])} true labels but {len(predicted[i])} predicted")
    return np.concatenate([[0], np.cumsum(sizes)])


def _encode(sequences):
    """codes (N,) of all labels; of each code the letter and the type, as numbers; and the types."""
    ids = defaultdict(count().__next__)
    codes = np.fromiter(map(ids.__getitem__, chain.from_iterable(sequences)), np.int64)
    kinds, letters = defaultdict(count().__next__), []
    for label in ids:
        letter, _, kind = str(label).partition("-")
        letters.append((_LETTERS.get(letter, _OTHER if kind else _OUTSIDE), kinds[kind]))
    table = np.array(letters, np.int64).reshape(-1, 2)
    return codes, np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]), list(kinds)


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
