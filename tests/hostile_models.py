"""Small models of every class as the bytes of their files, made without training, and a use of each."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from fenchel import (
    ChainCRF,
    Checkpoint,
    DependencyParser,
    Graph,
    GraphCRF,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    MaxEnt,
    MaxEntTagger,
    problems,
    solve,
    solvers,
)
from fenchel.compat import CRF
from fenchel.estimators.arc_labels import ArcLabels
from fenchel.estimators.encoded import encode_events, encode_joint
from fenchel.features.naming import CRFSUITE
from fenchel.features.sequences import NamedAttributes
from fenchel.features.tokens import Tokens
from fenchel.trace import Certificate, Status

EVENTS = [{"tag": "NN", "ü\n": 2.0}, ["", "plain"], {"tag": "VB"}]
CANDIDATES = [{"a": ["f", "g"], "b": ["g"]}, [["h"], ["f"]]]
SENTENCES = [["the", "dog", "barks"], ["a", "cat", "sleeps", "2-X"], ["the", "cat"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB", "NUM"], ["DET", "NOUN"]]
PAIRS = [[(word, word[-1:]) for word in sentence] for sentence in SENTENCES]
ATTRIBUTES = [[[word, "bias"] for word in sentence] for sentence in SENTENCES]
ARRAYS = [np.eye(3), np.ones((4, 3)), np.zeros((2, 3))]
TAGGED = [list(zip(*pair, strict=True)) for pair in zip(SENTENCES, TAGS, strict=True)]
HEADS = [[2, 3, 0], [2, 3, 0, 3], [2, 0]]
PAIR = Graph([["a"], {"b": 2.0}], [(0, 1)], [["near"]], types=["x", "y"])
TRIANGLE = Graph([["b"], ["a", "c"], ["d"]], [(2, 0)], [["far"]], [(0, 1, 2)], ["y", "x", "x"])
WAPITI = 'u:%x[0,0]\nu:%m[-1,0,"..?$"]/%x[0,1]\n*:%x[1,1]\nb\n'


CERTIFICATE = Certificate(0.5, 0.4999, 1e-4, float("nan"), 3.0, 0.1, Status.CONVERGED)


def saved(*models) -> list[bytes]:
    """The bytes of the models' files."""
    with tempfile.TemporaryDirectory() as folder:
        path, contents = Path(folder) / "m", []
        for model in models:
            trained = getattr(model, "chain_", model)
            trained.certificate_ = CERTIFICATE
            trained.n_iter_ = 3
            model.save(path)
            contents.append(path.read_bytes())
    return contents


def _weights(size):
    return np.random.default_rng(0).normal(size=size)


# ---- flat models


def _flat(kind, classes, **settings):
    model, classes = kind(**settings), np.array(classes)
    outputs = 1 if classes.size == 2 else classes.size
    model.classes_, model.n_features_in_ = classes, 3
    model.coef_, model.intercept_ = _weights((outputs, 3)), _weights(outputs)
    return model


def flat_samples():
    named = _flat(LogisticRegression, ["ja", "nein"], C=0.3, class_weight={"ja": 2.0})
    named.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    others = (
        _flat(LinearSVC, [-1.0, 1.0], solver=solvers.CDDual(xi=0.5)),
        _flat(LogisticRegression, [0, 1, 2, 5], random_state=3),
        _cross_validated(),
    )
    return saved(named, *others)


def _cross_validated():
    model = _flat(LogisticRegressionCV, [0, 1, 2, 5], Cs=[0.1, 1.0], cv=3)
    model.Cs_, model.l1_ratios_, model.C_, model.l1_ratio_ = np.array([0.1, 1.0]), np.zeros(1), 1.0, 0.0
    model.scores_, model.certificates_ = np.ones((3, 1, 2)), np.full((3, 1, 2), CERTIFICATE)
    return model


def use_flat(model):
    assert np.isin(model.predict(_named(model)), model.classes_).all()
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(_named(model)).shape == (4, model.classes_.size)
    _inspect(model)


def _named(model):
    import pandas

    X = np.vstack([np.eye(model.n_features_in_)[:3], np.zeros((1, model.n_features_in_))])
    X = np.resize(X, (4, model.n_features_in_))
    return pandas.DataFrame(X, columns=model.feature_names_in_) if hasattr(model, "feature_names_in_") else X


def _inspect(model):
    from fenchel.cli.kinds import kind_of

    kind = kind_of(model)
    kind.inspect(model, kind.top)


# ---- events


def events_samples():
    crossed = encode_events(EVENTS, ["a", "b", "a"])
    model = MaxEnt(sigma2=2.5).set_weights(crossed, _weights(2 * len(crossed.vocabulary)))
    model.read_as = {"format": "opennlp", "real_values": True}
    mixed = encode_events(EVENTS, [1, "one", 2.5])
    other = MaxEnt(loss="hinge").set_weights(mixed, _weights(3 * len(mixed.vocabulary)))
    joint = encode_joint(CANDIDATES, ["a", 0])
    return saved(model, other, MaxEnt().set_weights(joint, _weights(len(joint.vocabulary))))


def use_events(model):
    events = CANDIDATES if model.layout_ == "joint" else EVENTS
    assert len(model.predict(events)) == len(events)
    if hasattr(model, "predict_proba"):
        model.predict_proba(events)
    str(model.explain(events[0]))
    _inspect(model)


# ---- taggers


def _chain(X, size=None, **settings):
    model = ChainCRF(**settings)
    data = model.encode_training(X, TAGS if size is None else [tags[:size] for tags in TAGS])
    A, B, K = data.sequences.rows.n_columns, data.sequences.edges.n_columns, data.classes.size
    table = model._has_table(data.source)
    return model.set_weights(data, _weights(A * K + (B + table) * K * K))


def chain_samples():
    from fenchel.features.templates import parse_template

    return saved(
        _chain(ATTRIBUTES, banned=[("VERB", "DET")], bias=True),
        _chain(Tokens.from_sentences(PAIRS), template=parse_template(WAPITI)),
        _chain(
            Tokens.from_sentences(PAIRS), template="pos", loss="hinge", boundaries=True, transitions=False
        ),
        _chain(ARRAYS),
    )


def use_chain(model):
    kind = model.source_.kind
    X = {"named": ATTRIBUTES, "template": Tokens.from_sentences(PAIRS)}.get(kind)
    if kind == "numbered":
        X = [np.ones((2, model.source_.columns))] if model.source_.columns < 1000 else []
    try:
        found = model.predict(X)
    except ValueError as error:  # what the user asks for, or of the user's data, is no matter of the file
        if "no labels satisfy the constraints" in str(error) or "template=<a Python function>" in str(error):
            return
        if "the data have 2 columns" in str(error) or "but the data have" in str(error):
            return
        raise
    assert [len(labels) for labels in found] == [len(x) for x in (X if kind == "numbered" else SENTENCES)][
        : len(found)
    ]
    assert {label for labels in found for label in labels} <= set(model.classes_.tolist())
    _inspect(model)


def compat_samples():
    """CRFs of fenchel.compat."""
    models = []
    for settings in ({"c1": 0.1, "model_filename": "m"}, {"algorithm": "lbfgs", "c2": 0.5, "verbose": True}):
        model, source = CRF(**settings), NamedAttributes(naming=CRFSUITE)
        data = ChainCRF().encode_training(ATTRIBUTES, TAGS, source=source)
        model.chain_ = ChainCRF().set_weights(data, _weights(len(source.names()) * 4 + 16))
        models.append(model)
    return saved(*models)


def use_compat(model):
    found = model.predict(ATTRIBUTES)
    assert [len(labels) for labels in found] == [3, 4, 2]
    assert {label for labels in found for label in labels} <= set(model.classes_)


def tagger_samples():
    taggers = []
    for settings in ({"rare": 2}, {"rare": 1, "beam": 2, "tag_dictionary": False}):
        model = MaxEntTagger(**settings)
        data = model.encode_training(SENTENCES, TAGS)
        taggers.append(model.set_weights(data, _weights(data.classes.size * data.features.size)))
    return saved(*taggers)


def use_tagger(model):
    found = model.predict(SENTENCES)
    assert [len(tags) for tags in found] == [3, 4, 2]
    assert {tag for tags in found for tag in tags} <= set(model.classes_.tolist())
    model.top_features(3)
    _inspect(model)


# ---- graphs and trees


def graph_samples():
    typed, plain = GraphCRF(), GraphCRF(C=0.5, loss="hinge")
    graphs = [PAIR, TRIANGLE], [["on", 1], [2, "on", "off"]]
    pairs = [Graph.chain(np.eye(3)), Graph.chain(np.ones((2, 3)))], [[0, 1, 0], [1, 1]]
    models = []
    for model, (given, labels) in ((typed, graphs), (plain, pairs)):
        data = model.encode_training(given, labels)
        models.append(model.set_weights(data, _weights(model.problem(data).dim)))
    return saved(*models)


def use_graph(model):
    graphs = [PAIR, TRIANGLE] if model.source_.edges else [Graph.chain(np.ones((2, 3)))]
    try:
        found = model.predict(graphs)
    except ValueError as error:  # other types, links or columns than the file's model knows: of the user's
        if "the model knows" in str(error) or "columns" in str(error) or "no link" in str(error):
            return
        raise
    assert [len(labels) for labels in found] == [len(graph.types or (0, 0)) for graph in graphs]
    assert {label for labels in found for label in labels} <= set(model.classes_.tolist())
    str(model.explain(graphs[0]))
    _ = model.tables_


def parser_samples():
    models = []
    for settings in ({"min_count": 1}, {"hash_bits": 6, "loss": "hinge", "single_root": False}):
        model = DependencyParser(**settings)
        data = model.encode_training(TAGGED, HEADS)
        models.append(model.set_weights(data, _weights(data.features.n_columns)))
    columns = np.array([0, 3, 9], np.uint32)
    models[0].labels_ = ArcLabels(np.array(["det", "subj"]), columns, _weights((3, 2)), CERTIFICATE)
    return saved(*models)


def use_parser(model):
    found = model.predict(TAGGED)
    assert [len(heads) for heads in found] == [3, 4, 2]
    assert all(0 <= head <= len(heads) for heads in found for head in heads)
    if model.labels_ is not None:
        labels = model.predict_labels(TAGGED)
        assert {label for some in labels for label in some} <= set(model.labels_.classes.tolist())
    _inspect(model)


# ---- checkpoints


def _small_run(path, passes, resume=False):
    """A run that is kept in a file, or that goes on from there."""
    X = np.random.default_rng(2).random((30, 3))
    problem = problems.flat(X, (3 * X[:, 0]).astype(int), C=1.0)
    return solve(
        problem, "lbfgs", tol=1e-9, max_passes=passes, keeper=Checkpoint(path, every=0.0, resume=resume)
    )


def checkpoint_samples():
    with tempfile.TemporaryDirectory() as folder:
        path, contents = Path(folder) / "run.ckpt", []
        for passes in (2, 4):
            _small_run(path, passes)
            contents.append(path.read_bytes())
    return contents


def go_on(path):
    """The weights in the end are the same from wherever the run went on."""
    assert np.array_equal(_small_run(path, 10**6, resume=True).w, _weights_in_the_end())


@cache
def _weights_in_the_end():
    with tempfile.TemporaryDirectory() as folder:
        return _small_run(Path(folder) / "run.ckpt", 10**6).w


MODELS = {
    "flat": (flat_samples, use_flat),
    "events": (events_samples, use_events),
    "chain": (chain_samples, use_chain),
    "tagger": (tagger_samples, use_tagger),
    "graph": (graph_samples, use_graph),
    "parser": (parser_samples, use_parser),
}
