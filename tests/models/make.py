"""Small models of every estimator in every format of model files, kept for good: they must load for ever.

    python tests/models/make.py          makes the files that are missing, with the fenchel that is installed

A file that is here is never made anew: it is what users of that fenchel have on their disks. Whoever adds an
estimator or a format adds models to MODELS and runs this; `tests/test_old_models.py` then reads the files.
expected.json holds what each model said of its data when it was made.
"""

import json
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

import fenchel
from fenchel import compat
from fenchel.features.templates import parse_template
from fenchel.features.tokens import Tokens

HERE = Path(__file__).parent
RNG = np.random.default_rng(1)
X = np.hstack([RNG.normal(size=(40, 3)), np.zeros((40, 9))])  # nine columns whose weights are 0
TWO, FOUR = np.where(X[:, 0] > 0.3, "ja", "nein"), (2 * (X[:, 0] > 0) + (X[:, 1] > 0)).astype(int)
EVENTS = [{"tag": "NN", "ü\n": 2.0}, ["", "plain"], {"tag": "VB"}, ["other", "plain"]]
CANDIDATES = [{"a": ["f", "g"], "b": ["g"]}, {"c": ["h"], "b": ["f"]}]
SENTENCES = [["the", "dog", "barks"], ["a", "cat", "sleeps", "2-X"], ["the", "cat"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB", "NUM"], ["DET", "NOUN"]]
NAMED = [[{"w": word, "last": word[-1:], "bias": 1.0} for word in sentence] for sentence in SENTENCES]
PAIRS = [[(word, word[-1:]) for word in sentence] for sentence in SENTENCES]
TAGGED = [list(zip(*pair, strict=True)) for pair in zip(SENTENCES, TAGS, strict=True)]
HEADS = [[2, 3, 0], [2, 3, 0, 3], [2, 0]]
ARCS = [["det", "subj", "root"], ["det", "subj", "root", "num"], ["det", "root"]]
GRAPHS = [([["a"], {"b": 2.0}], [(0, 1)], [["near"]]), ([["b"], ["c"]], [(1, 0)], [["far"]])]
TABLES = [(X[:4], [(0, 1), (1, 2), (0, 3)]), (X[4:6], [(0, 1)])]
TEMPLATE = parse_template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\n")


class Recipe(NamedTuple):
    """What a model is fitted to, with which settings, by which method; the first of `given` is asked."""

    given: tuple
    settings: dict = MappingProxyType({})
    method: str = "fit"


# Class, what is special, and the number of the format: 1 holds all weights, 2 leaves zeros out.
MODELS = {
    "LogisticRegression-two.1": Recipe((X[:, :3], TWO), {"C": 0.3}),
    "LogisticRegression-four.1": Recipe((X[:, :3], FOUR)),
    "LogisticRegression-two.2": Recipe((X, TWO)),
    "LogisticRegressionCV.1": Recipe((X[:, :3], FOUR), {"Cs": [0.1, 1.0], "cv": 2}),
    "LogisticRegressionCV.2": Recipe((X, TWO), {"Cs": [0.1, 1.0], "cv": 2}),
    "LinearSVC-two.1": Recipe((X[:, :3], TWO), {"class_weight": {"ja": 2.0}}),
    "LinearSVC-four.2": Recipe((X, FOUR)),
    "MaxEnt-crossed.1": Recipe((EVENTS, ["a", "b", "a", "c"]), {"sigma2": 2.5}),
    "MaxEnt-joint.1": Recipe((CANDIDATES, ["a", "b"]), method="fit_joint"),
    "MaxEnt-mixed.1": Recipe((EVENTS, [1, "one", 2.5, True]), {"loss": "hinge"}),
    "MaxEnt-observed.2": Recipe((EVENTS, ["a", "b", "a", "c"]), {"observed": True}),
    "ChainCRF-named.1": Recipe((NAMED, TAGS), {"banned": [("VERB", "DET")]}),
    "ChainCRF-template.1": Recipe((Tokens.from_sentences(PAIRS), TAGS), {"template": TEMPLATE}),
    "ChainCRF-numbers.1": Recipe(([X[:3, :3], X[3:7, :3], X[7:9, :3]], TAGS), {"loss": "hinge"}),
    "ChainCRF-observed.2": Recipe((NAMED, TAGS), {"observed": True}),
    "MaxEntTagger.1": Recipe((SENTENCES, TAGS), {"rare": 2, "beam": 2}),
    "MaxEntTagger-observed.2": Recipe((SENTENCES, TAGS), {"rare": 2, "observed": True}),
    "CRF.1": Recipe((NAMED, TAGS), {"c2": 0.5, "all_possible_states": True}),
    "CRF-sparse.2": Recipe((NAMED, TAGS), {"c1": 0.3, "c2": 0.1}),
    "GraphCRF.1": Recipe((GRAPHS, [["x", "y"], ["y", "x"]])),
    "GraphCRF-numbers.2": Recipe((TABLES, [[0, 1, 0, 1], [1, 1]])),
    "DependencyParser.1": Recipe((TAGGED, HEADS, ARCS), {"min_count": 3}),
    "DependencyParser-hashed.2": Recipe((TAGGED, HEADS), {"hash_bits": 12, "loss": "hinge"}),
}


def fitted(name):
    """The model of that name."""
    kind, (given, settings, method) = name.partition(".")[0].partition("-")[0], MODELS[name]
    model = getattr(compat if kind == "CRF" else fenchel, kind)(**settings)
    return getattr(model, method)(*given)


def answers(model, asked) -> dict:
    """What a model says: labels as lists, and numbers behind them where it has some."""
    out = {"labels": _listed(model.predict(asked))}
    if hasattr(model, "decision_function"):
        out["numbers"] = np.ravel(model.decision_function(asked)).tolist()
    elif hasattr(model, "predict_marginals") and getattr(model, "loss", "log") == "log":
        out["numbers"] = _numbers(model.predict_marginals(asked))
    if getattr(model, "labels_", None) is not None:
        out["arcs"] = _listed(model.predict_labels(asked))
    return out


def _listed(labels):
    return [list(map(_plain, some)) if isinstance(some, list) else _plain(some) for some in labels]


def _plain(label):
    return label.item() if isinstance(label, np.generic) else label


def _numbers(found):
    """All numbers of lists of arrays, or of dicts by label, in order."""
    if isinstance(found, dict):
        return [float(found[label]) for label in sorted(found)]
    if isinstance(found, list):
        return [number for some in found for number in _numbers(some)]
    return np.ravel(found).tolist()


def main():
    listed = HERE / "expected.json"
    expected = json.loads(listed.read_text()) if listed.exists() else {}
    for name in MODELS:
        path = HERE / f"{name}.fenchel"
        if not path.exists():
            expected |= make_one(name, path)
    listed.write_text(json.dumps(expected, indent=0, sort_keys=True, ensure_ascii=False) + "\n")


def make_one(name, path) -> dict:
    """Write the model of that name; {name: what it says}, or nothing where this fenchel has no such model."""
    try:
        model = fitted(name)
        model.save(path)
    except (AttributeError, TypeError, ImportError) as error:
        print(f"{name}: not with this fenchel ({error})")
        return {}
    if f'"format_version":"{name[-1]}"' not in path.read_bytes()[:10_000].decode("latin-1"):
        path.unlink()
        print(f"{name}: this fenchel writes another format")
        return {}
    print(f"{name}: {path.stat().st_size} bytes")
    return {name: answers(model, MODELS[name].given[0])}


if __name__ == "__main__":
    main()
