"""Why a model says what it says of one event: each feature's share in each label's score."""

from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

COLUMNS, ROWS = 6, 30  # labels and features that a printed explanation shows


class FeatureWeight(NamedTuple):
    """A weight of the model; without a label where features are joint, of event and label together."""

    feature: str
    label: object
    weight: float


SHORT = 8  # labels that stand for all of a sequence or graph at a prompt


class Shown:
    """What explanations share: short at a prompt, a table in a notebook and by print()."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._brief()}; print() shows it>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """How the score of each label of an event comes about; str() of it is a table.

    contributions: label -> list of (feature, value · weight), the largest first, be it for or against.
    scores: label -> their sum. probabilities: label -> probability; None with the hinge loss.
    unknown: features of the event that the model was not trained on, and so ignores.
    """

    contributions: dict
    scores: dict
    probabilities: dict | None
    unknown: list

    @classmethod
    def of(cls, shares: dict, unknown: list, log_loss: bool) -> "Explanation":
        """shares: label -> list of (feature, contribution), in any order."""
        scores = {label: sum(share for _, share in of) for label, of in shares.items()}
        ordered = {label: sorted(of, key=lambda pair: -abs(pair[1])) for label, of in shares.items()}
        if not log_loss:
            return cls(ordered, scores, None, unknown)
        probabilities = softmax(list(scores.values())).tolist()
        return cls(ordered, scores, dict(zip(scores, probabilities, strict=True)), unknown)

    @property
    def label(self):
        """The label of highest score, the one predicted."""
        return max(self.scores, key=self.scores.get)

    def _brief(self):
        share = "" if self.probabilities is None else f", probability {self.probabilities[self.label]:.3g}"
        return f"{self.label!r}{share}, of {len(self.scores)} labels"

    def __str__(self):
        labels = sorted(self.scores, key=self.scores.get, reverse=True)
        shown = labels[:COLUMNS]
        table = [["", *map(str, shown)]]
        if self.probabilities is not None:
            table.append(["probability", *(f"{self.probabilities[label]:.4f}" for label in shown)])
        table.append(["score", *(f"{self.scores[label]:+.4f}" for label in shown)])
        features = self._heaviest(shown)
        table += [[name, *shares] for name, shares in features[:ROWS]]
        lines = _aligned(table)
        lines += _more(len(features) - ROWS, "feature") + _more(len(labels) - COLUMNS, "label")
        if self.unknown:
            lines.append(f"unknown to the model: {', '.join(self.unknown)}")
        return "\n".join(lines)

    def _heaviest(self, labels):
        """(feature, a cell for each of the labels), the largest contribution first."""
        shares = {label: dict(self.contributions[label]) for label in labels}
        size = {}
        for of_label in shares.values():
            for name, share in of_label.items():
                size[name] = max(size.get(name, 0.0), abs(share))
        return [
            (name, [f"{of[name]:+.4f}" if name in of else "" for of in shares.values()])
            for name in sorted(size, key=size.get, reverse=True)
        ]


def heaviest(numbers: np.ndarray, n: int) -> np.ndarray:
    """The places of the n numbers of largest size, the largest first and equals in their order."""
    size = np.abs(numbers)
    some = np.arange(size.size)
    if 0 < n < size.size:  # a part of millions is found faster than all of them are sorted
        some = np.flatnonzero(size >= np.partition(size, -n)[-n])
    return some[np.argsort(-size[some], kind="stable")][: max(n, 0)]


def _aligned(table):
    """Rows of text as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table
    ]


def _more(number, noun):
    return [f"... and {number} more {noun}{'' if number == 1 else 's'}"] if number > 0 else []
