"""Sequences and trees that shards hold, as the data of ChainCRF and DependencyParser."""

import numpy as np

from fenchel._sparse import Rows
from fenchel.estimators.restored import read_classes
from fenchel.estimators.sequence_labels import LabelledSequences, check_sequence_weights, sorted_labels
from fenchel.estimators.treebank import Treebank
from fenchel.features.arcs import ArcFeatures
from fenchel.features.sequences import SOURCES, Sequences
from fenchel.features.templates import Template
from fenchel.io.shards import Shards


def require_settings(model, shards: Shards, names: tuple[str, ...], min_count: int = 1) -> None:
    """ValueError where the model was made with other settings than the shards were written with.

    min_count: its default, which stands for that of the shards.
    """
    for name in names:
        theirs, ours = shards.facts.get(name), getattr(model, name)
        if ours != theirs and not (name == "min_count" and ours == min_count):
            way_out = f"give the model {name}={theirs!r}, or write them anew"
            raise ValueError(f"the shards were written with {name}={theirs!r}, not {ours!r}; {way_out}")


def refuse_targets(*targets) -> None:
    if any(target is not None for target in targets):
        raise ValueError("shards hold their labels; call fit(shards) without them")


def sequences_on_disk(model, shards: Shards, weight=None) -> LabelledSequences:
    """The sequences that shards hold, known to be as they were written; weight: (n,), times their own."""
    shards.require("sequences", type(model).__name__)
    shards.verify()
    require_settings(model, shards, ("bias", "boundaries", "hash_bits", "min_count"), min_count=1)
    starts, codes = shards.starts("starts", shards.n), shards.array("labels")
    tokens, classes = int(starts[-1]), _classes(shards)
    if codes.size != tokens or (codes.size and codes.max() >= classes.size):
        raise shards.damaged("labels")
    rows = shards.matrix("", tokens, shards.fact("columns", int))
    pairs = shards.fact("edge_columns", int)
    edges = shards.matrix("edge_", tokens, pairs) if pairs else _nothing(tokens)
    own, weight = shards.array_of_examples("weight"), check_sequence_weights(weight, shards.n)
    own = None if (own == 1.0).all() else own
    both = weight if own is None else own if weight is None else own * weight
    source = _restored(shards, "source", "source.", _source)
    _require_template(model, source)
    return LabelledSequences(Sequences(rows, edges, starts), codes, classes, source, both, disk=shards)


def _nothing(tokens) -> Rows:
    return Rows(np.zeros(tokens + 1, np.uint64), np.empty(0, np.uint32), np.empty(0), 0)


def _classes(shards) -> np.ndarray:
    try:
        labels = read_classes({"classes": shards.fact("classes", list), "classes_dtype": "object"})
    except ValueError as error:
        raise shards.unreadable(str(error)) from None
    return sorted_labels(labels)[0]


def _source(facts, arrays):
    return SOURCES[facts["kind"]].from_file(facts, arrays)


def _restored(shards, fact, prefix, restore):
    """What `restore` makes of a fact and the arrays with this prefix; DataError where they are damaged."""
    arrays = {name.removeprefix(prefix): a for name, a in shards.arrays.items() if name.startswith(prefix)}
    try:
        return restore(shards.fact(fact, dict), arrays)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise shards.unreadable(f"{fact}: {error}") from None


def _require_template(model, source):
    """Attributes are those of the shards; a model that names a template must name theirs."""
    if model.template is None or callable(model.template):
        return
    theirs = source.extractor.template.name if source.kind == "template" else None
    ours = model.template.name if isinstance(model.template, Template) else model.template
    if ours != theirs:
        found = f"by the template {theirs}" if theirs else "without a template"
        raise ValueError(f"the shards were written {found}, not {ours}; leave the model's template out")


def trees_on_disk(model, shards: Shards, weight=None) -> Treebank:
    """The sentences that shards hold, likewise."""
    shards.require("trees", type(model).__name__)
    shards.verify()
    require_settings(model, shards, ("observed", "hash_bits", "single_root", "min_count"), min_count=3)
    starts, heads = shards.starts("starts", shards.n), shards.array("heads")
    lengths = np.diff(starts.view(np.int64))
    words, arcs = int(starts[-1]), int((lengths * lengths).sum())
    if heads.size != words:
        raise shards.damaged("heads")
    features = _restored(shards, "features", "features.", ArcFeatures.from_file)
    if features.n_columns != shards.fact("columns", int):
        raise shards.damaged("features.keys")
    rows, labels = shards.matrix("", arcs, features.n_columns), shards.fact("classes", list)
    codes = classes = true = None
    if labels:
        codes, classes = shards.array("labels"), _classes(shards)
        true = shards.matrix("true_", words, features.n_columns)
        if codes.size != words or codes.max() >= classes.size:
            raise shards.damaged("labels")
    weight, left_out = check_sequence_weights(weight, shards.n), shards.fact("left_out", list)
    return Treebank(starts, heads, rows, features, codes, classes, weight, left_out, true, shards)
