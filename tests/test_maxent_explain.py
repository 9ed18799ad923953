"""Looking inside a MaxEnt: explanations of an event, and the heaviest weights."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from fenchel import MaxEnt
from fenchel.estimators.explanation import Explanation, FeatureWeight, heaviest

EVENTS = [{"tag": "NN", "length": 2.0}, {"tag": "VB", "length": 1.0}, {"tag": "NN"}, {"length": 3.0}]
LABELS = ["noun", "verb", "noun", "other"]
CANDIDATES = [
    {"x": {"f": 1.0, "g": 2.0}, "y": {"f": -1.0}},
    {"x": {"f": 1.0}, "z": {"h": 0.5}, "y": ["g"]},
]


@pytest.fixture(scope="module")
def crossed():
    return MaxEnt(C=10.0, tol=1e-8).fit(EVENTS, LABELS)


@pytest.fixture(scope="module")
def joint():
    return MaxEnt(C=10.0, tol=1e-8).fit_joint(CANDIDATES, ["x", "y"])


def weight_of(model, feature, label=None):
    row = 0 if label is None else model.classes_.tolist().index(label)
    return model.coef_[row, model.vocabulary_.get(feature)]


@pytest.mark.parametrize("event", EVENTS)
def test_contributions_add_up_to_the_probabilities(crossed, event):
    told = crossed.explain(event)
    proba = crossed.predict_proba([event])[0]
    assert (
        list(told.probabilities) == list(told.scores) == list(told.contributions) == crossed.classes_.tolist()
    )
    np.testing.assert_allclose(list(told.probabilities.values()), proba, rtol=1e-12)
    for label, shares in told.contributions.items():
        assert told.scores[label] == pytest.approx(sum(share for _, share in shares))
        sizes = [abs(share) for _, share in shares]
        assert sizes == sorted(sizes, reverse=True)
    assert told.label == crossed.predict([event])[0]


def test_a_contribution_is_value_times_weight(crossed):
    told = crossed.explain({"tag": "NN", "length": 2.0})
    for label in crossed.classes_:
        shares = dict(told.contributions[label])
        assert shares["length"] == pytest.approx(2.0 * weight_of(crossed, "length", label))
        assert shares["tag=NN"] == pytest.approx(weight_of(crossed, "tag=NN", label))


def test_unknown_features_are_listed_and_count_nothing(crossed):
    told = crossed.explain({"tag": "NN", "never": 5.0, "shape": "Xx"})
    assert told.unknown == ["never", "shape=Xx"]
    assert told.scores == crossed.explain({"tag": "NN"}).scores


def test_an_event_without_features_is_explained_too(crossed):
    told = crossed.explain({})
    assert set(told.scores.values()) == {0} and told.contributions["noun"] == []
    assert "probability" in str(told)


def test_candidates_are_explained_one_by_one(joint):
    told = joint.explain(CANDIDATES[1])
    assert told.probabilities == pytest.approx(joint.predict_proba(CANDIDATES[1:])[0])
    assert told.contributions["z"] == [("h", pytest.approx(0.5 * weight_of(joint, "h")))]
    assert told.label == joint.predict(CANDIDATES[1:])[0]


def test_an_explanation_prints_as_a_table(crossed):
    lines = str(crossed.explain({"tag": "NN", "length": 1.0, "new": 1.0})).splitlines()
    assert lines[0].split()[0] == "noun"  # the likeliest label first
    assert [line.split()[0] for line in lines[1:3]] == ["probability", "score"]
    assert {line.split()[0] for line in lines[3:5]} == {"tag=NN", "length"}
    assert lines[-1] == "unknown to the model: new"
    assert len({len(line) for line in lines[:5]}) == 1


def test_a_long_table_says_what_it_left_out():
    labels = [f"label{k}" for k in range(9)]
    shares = {label: [(f"f{j}", j + k / 10) for j in range(31)] for k, label in enumerate(labels)}
    lines = str(Explanation.of(shares, [], log_loss=True)).splitlines()
    assert lines[0].split()[0] == "label8"
    assert lines[-2:] == ["... and 1 more feature", "... and 3 more labels"]


def test_the_hinge_loss_explains_by_scores_alone():
    model = MaxEnt(loss="hinge").fit(EVENTS, LABELS)
    told = model.explain(EVENTS[0])
    assert told.probabilities is None and "probability" not in str(told)


def test_top_features_are_the_heaviest_weights(crossed):
    found = crossed.top_features(3)
    assert all(isinstance(one, FeatureWeight) for one in found)
    sizes = np.sort(np.abs(crossed.coef_).ravel())[::-1]
    np.testing.assert_allclose([abs(one.weight) for one in found], sizes[:3])
    for feature, label, weight in found:
        assert weight == weight_of(crossed, feature, label)


def test_top_features_of_a_label(crossed):
    found = crossed.top_features(100, label="verb")
    assert {one.label for one in found} == {"verb"}
    assert len(found) == np.count_nonzero(crossed.coef_[crossed.classes_.tolist().index("verb")])
    assert crossed.top_features(0) == []


def test_top_features_of_a_joint_model_have_no_label(joint):
    assert [one.label for one in joint.top_features()] == [None] * 3


def test_an_unknown_label_is_an_error(crossed, joint):
    with pytest.raises(ValueError, match="label 'adverb' is unknown to the model; there are 'noun', 'other'"):
        crossed.top_features(label="adverb")
    with pytest.raises(ValueError, match="a joint model has none"):
        joint.top_features(label="x")


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 9])
def test_heaviest_is_a_stable_sort_by_size(n):
    numbers = np.array([1.0, -3.0, 3.0, 0.0, -1.0])
    expected = np.argsort(-np.abs(numbers), kind="stable")[:n]
    assert heaviest(numbers, n).tolist() == expected.tolist()


def test_the_example_cuts_text_into_sentences(capsys):
    example = Path(__file__).resolve().parent.parent / "examples" / "sentences.py"
    runpy.run_path(str(example), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    ends = {line.split()[0]: float(line.split()[-1]) for line in lines if "with probability" in line}
    assert ends["Ltd."] < 0.1 and ends["Jan."] < 0.1 and ends["mill."] > 0.9


def test_an_explanation_is_short_at_a_prompt_and_a_table_in_a_notebook():
    found = Explanation.of({"a": [("f", 1.0)], "b<": [("f", 0.0)]}, [], log_loss=True)
    assert repr(found) == "<Explanation of 'a', probability 0.731, of 2 labels; print() shows it>"
    assert found._repr_html_().startswith("<pre>") and "b&lt;" in found._repr_html_()
