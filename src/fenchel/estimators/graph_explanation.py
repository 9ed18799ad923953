"""Why the nodes of a graph get their labels: what their attributes and their links add to the scores."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fenchel._sparse import as_csr
from fenchel.estimators.explanation import SHORT, Shown
from fenchel.estimators.sequence_explanation import SHOWN, as_text


class NodeExplanation(NamedTuple):
    """A node's label, its probability (None with the hinge loss), and what speaks for it.

    attributes: list of (name, value · weight), the heaviest first, be it for or against the label.
    links: list of (nodes of the link, what it adds given the labels of all of them), the heaviest first.
    """

    label: object
    probability: float | None
    attributes: list
    links: list


@dataclass(frozen=True, repr=False)
class GraphExplanation(Shown):
    """One NodeExplanation for each node; str() is a table."""

    nodes: list

    def _brief(self):
        return f"{len(self.nodes)} nodes: {' '.join(str(node.label) for node in self.nodes[:SHORT])}"

    def __str__(self):
        rows = [("", "label", "p", "links", "attributes")]
        for v, node in enumerate(self.nodes):
            heavy = ", ".join(f"{name} {share:+.2f}" for name, share in node.attributes[:SHOWN])
            probability = "" if node.probability is None else f"{node.probability:.3f}"
            linked = f"{sum(share for _, share in node.links):+.2f}"
            rows.append((str(v), str(node.label), probability, linked, heavy))
        return as_text(rows)


def explain_graph(model, graph) -> GraphExplanation:
    """The explanation of one graph's best labels."""
    data, codes = model.encode([graph]), model.predict_codes([graph])
    marginals = model.predict_marginals([graph])[0] if model.loss == "log" else None
    rows, names, shares = as_csr(data.rows), model.attribute_names_, link_shares(model, data.graphs, codes)
    nodes = []
    for v, code in enumerate(codes.tolist()):
        entries = range(rows.indptr[v], rows.indptr[v + 1])
        own = [(names[rows.indices[e]], rows.data[e] * model.coef_[code, rows.indices[e]]) for e in entries]
        probability = None if marginals is None else float(marginals[v, code])
        linked = [(link, share) for link, share in shares if v in link]
        heaviest = [sorted(some, key=lambda pair: -abs(pair[1])) for some in (own, linked)]
        nodes.append(NodeExplanation(model.classes_[code], probability, *heaviest))
    return GraphExplanation(nodes)


def link_shares(model, graphs, codes) -> list:
    """(link, what it adds to the score of these labels, counted among all) of the links of one graph."""
    links, tables, firsts = as_csr(graphs.rows), list(model.tables_.values()), model.first_labels_
    out = []
    for f, link in enumerate(graphs.links_of(0)):
        own = tuple(int(codes[v] - firsts[graphs.types[v]]) for v in link)
        entries = range(links.indptr[f], links.indptr[f + 1])
        out.append((link, float(np.sum([links.data[e] * tables[links.indices[e]][own] for e in entries]))))
    return out
