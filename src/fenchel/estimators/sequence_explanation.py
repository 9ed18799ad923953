"""Why the tokens of a sequence get their labels: what attributes and transitions add to the scores."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fenchel._sparse import as_csr
from fenchel.estimators.explanation import SHORT, Shown

SHOWN = 4  # attributes of a token in the printed table


class TokenExplanation(NamedTuple):
    """A token's label, its probability (None with the hinge loss), and what speaks for it.

    attributes: list of (name, value · weight), the heaviest first, be it for or against the label.
    transition: what coming from the label before adds.
    """

    label: object
    probability: float | None
    attributes: list
    transition: float


@dataclass(frozen=True, repr=False)
class SequenceExplanation(Shown):
    """One TokenExplanation for each token; str() is a table."""

    tokens: list

    def _brief(self):
        return f"{len(self.tokens)} tokens: {' '.join(str(token.label) for token in self.tokens[:SHORT])}"

    def __str__(self):
        rows = [("", "label", "p", "from before", "attributes")]
        for t, token in enumerate(self.tokens):
            heavy = ", ".join(f"{name} {share:+.2f}" for name, share in token.attributes[:SHOWN])
            probability = "" if token.probability is None else f"{token.probability:.3f}"
            rows.append((str(t), str(token.label), probability, f"{token.transition:+.2f}", heavy))
        return as_text(rows)


def as_text(rows) -> str:
    """Rows of five columns as lines, the last column ragged."""
    widths = [max(len(row[j]) for row in rows) for j in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip()
        for row in rows
    )


def explain_sequence(model, sequence) -> SequenceExplanation:
    """The explanation of one sequence's best labels."""
    data, labels = model.encode([sequence]), model.predict([sequence])[0]
    where = {label: k for k, label in enumerate(model.classes_.tolist())}
    codes = [where[label] for label in labels]
    marginals = model.predict_marginals([sequence])[0] if model.loss == "log" else None
    rows, edges, names = as_csr(data.rows), as_csr(data.edges), model.attribute_names_
    tokens = []
    for t, code in enumerate(codes):
        entries = range(rows.indptr[t], rows.indptr[t + 1])
        shares = [
            (names[rows.indices[e]], rows.data[e] * model.coef_[code, rows.indices[e]]) for e in entries
        ]
        shares.sort(key=lambda pair: -abs(pair[1]))
        moved = 0.0
        if t > 0:
            tables = model.edge_coef_[
                edges.indices[edges.indptr[t] : edges.indptr[t + 1]], codes[t - 1], code
            ]
            moved = float(model.transitions_[codes[t - 1], code] + np.sum(tables))
        probability = None if marginals is None else float(marginals[t, code])
        tokens.append(TokenExplanation(labels[t], probability, shares, moved))
    return SequenceExplanation(tokens)
