"""Sentences with the heads of their words, as numbers; what is wrong with them is said by its number."""

from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from fenchel import trees
from fenchel._sparse import Rows
from fenchel.estimators.inputs import require_list
from fenchel.estimators.sequence_labels import code_labels, label_lists
from fenchel.features.arcs import ArcFeatures, require_tags
from fenchel.features.tokens import Tokens
from fenchel.io.shards import Shards


@dataclass(frozen=True)
class Treebank:
    """What a DependencyParser is fitted to, with what was learnt of it.

    starts: (n + 1,) of the sentences whose trees are projective. heads: (N,) of their words. rows: a row of
    features for each arc. codes, classes: the labels of arcs, None where there are none. left_out: the
    numbers of the sentences whose arcs cross. true_rows: where there are labels, features of true arcs.
    disk: where they lie, if they are not in memory.
    """

    starts: np.ndarray
    heads: np.ndarray
    rows: Rows
    features: ArcFeatures
    codes: np.ndarray | None
    classes: np.ndarray | None
    weight: np.ndarray | None
    left_out: list[int]
    true_rows: Rows | None = None
    disk: Shards | None = None
    models_of_labels: dict = field(default_factory=dict)  # by C: labels do not depend on the weights of arcs

    def without_labels(self) -> "Treebank":
        """The same to learn heads from alone."""
        return replace(self, codes=None, classes=None, true_rows=None)


def as_tokens(sentences) -> Tokens:
    """Sentences of (word, tag, ...), or Tokens."""
    if not isinstance(sentences, Tokens):
        require_list("sentences", sentences, "a list of sentences, each a list of (word, tag)")
        sentences = Tokens.from_sentences(sentences)
    require_tags(sentences)
    return sentences


def as_heads(heads, tokens: Tokens, single_root: bool) -> list[list[int]]:
    """The heads of each sentence, checked to be a tree."""
    lists = label_lists("heads", heads, np.diff(tokens.starts).tolist())
    out = []
    for i, given in enumerate(lists):
        found = [_whole(i, word, head) for word, head in enumerate(given, 1)]
        wrong = trees.fault(found, single_root)
        if wrong is not None:
            raise ValueError(f"sentence {i}, word {wrong[0]}: {wrong[1]}")
        out.append(found)
    return out


def _whole(i, word, head) -> int:
    if isinstance(head, bool) or not isinstance(head, int | np.integer):
        raise ValueError(f"sentence {i}, word {word}: head {head!r} is no whole number")
    return int(head)


def usable(tokens: Tokens, heads: list, labels, weight):
    """What is left of a treebank without empty sentences and those whose arcs cross, and which these are."""
    crossing = [i for i, found in enumerate(heads) if not trees.is_projective(found)]
    kept = np.array([i for i in range(len(heads)) if heads[i] and i not in set(crossing)], np.int64)
    if kept.size == 0:
        raise ValueError(
            "no sentence has words and a projective tree; at least one is needed"
            + f" ({len(crossing)} have arcs that cross)" * bool(crossing)
        )
    flat = np.fromiter(chain.from_iterable(heads[i] for i in kept), np.int64)
    codes = classes = None
    if labels is not None:
        lists = label_lists("labels", labels, np.diff(tokens.starts).tolist())
        tokens_kept = tokens[kept]
        codes, classes = code_labels([lists[i] for i in kept], tokens_kept.starts)
    weight = None if weight is None else np.asarray(weight)[kept]
    return tokens[kept], flat, codes, classes, weight, crossing
