"""What CRFsuite makes of tokens and labels: which weights there are, the order of labels, its models."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fenchel._sparse import as_csr, as_rows
from fenchel.estimators.chain import ChainCRF
from fenchel.estimators.sequence_labels import LabelledSequences
from fenchel.features.naming import CRFSUITE
from fenchel.features.sequences import NamedAttributes
from fenchel.features.vocabulary import Vocabulary
from fenchel.io.lcrf import read_lcrf
from fenchel.trace import Certificate


class Counts(NamedTuple):
    """Which pairs training shows, and what their values add up to: both of one shape."""

    seen: np.ndarray
    total: np.ndarray

    def at_least(self, least: float, every) -> np.ndarray:
        """Flat bool: of the pairs seen, or of all, those that add up to so much. Values may be negative."""
        return ((self.seen | bool(every)) & (self.total >= least)).ravel()


def count_pairs(data: LabelledSequences) -> tuple[Counts, Counts]:
    """Of attributes with labels (A, K), and of labels with the next label (K, K).

    An attribute of amount 0 has been seen: rows hold those too.
    """
    N, K = data.codes.size, data.classes.size
    labels = sp.csr_matrix((np.ones(N), data.codes, np.arange(N + 1)), shape=(N, K))
    rows = as_csr(data.sequences.rows)
    total = (rows.T @ labels).toarray()
    if rows.nnz == 0 or rows.data.min() > 0.0:  # no second product then, nor ones for all entries
        return Counts(total > 0.0, total), _count_moves(data)
    there = sp.csr_matrix((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    return Counts((there.T @ labels).toarray() > 0.0, total), _count_moves(data)


def without_zeros(data: LabelledSequences) -> LabelledSequences:
    """The same sequences, their rows without the attributes of amount 0."""
    rows = as_csr(data.sequences.rows)
    if np.count_nonzero(rows.data) == rows.nnz:
        return data
    rows = rows.copy()
    rows.eliminate_zeros()
    return replace(data, sequences=replace(data.sequences, rows=as_rows(rows)))


def _count_moves(data):
    N, K = data.codes.size, data.classes.size
    inside = np.ones(N, bool)  # tokens with one before them in their sequence
    inside[data.sequences.starts[:-1][np.diff(data.sequences.starts) > 0].astype(np.int64)] = False
    here = np.flatnonzero(inside)
    moves = np.bincount(data.codes[here - 1] * K + data.codes[here], minlength=K * K).reshape(K, K)
    return Counts(moves > 0, moves)


def in_order_of_appearance(data: LabelledSequences) -> LabelledSequences:
    """The same with labels numbered as CRFsuite does; of labels that score the same the first one wins."""
    order = np.argsort(np.unique(data.codes, return_index=True)[1])
    places = np.argsort(order)
    return replace(data, codes=places[data.codes], classes=data.classes[order])


def read_chain(path) -> ChainCRF:
    """The ChainCRF of CRFsuite's binary file; its tokens are named as CRFsuite does."""
    found, source = read_lcrf(path), NamedAttributes(naming=CRFSUITE)
    source.vocabulary = Vocabulary(found.attributes)
    labels = np.fromiter(found.labels, object, len(found.labels))
    data = LabelledSequences(source.read([]), np.empty(0, np.int64), labels, source)
    weights = np.concatenate([found.states.ravel(), found.transitions.ravel()])
    chain = ChainCRF().set_weights(data, weights)
    chain.certificate_, chain.n_iter_ = Certificate.unknown(), np.array([0])
    return chain
