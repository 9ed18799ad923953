"""What a user is told: errors name the argument that was given, certificates say what they prove."""

import os
from math import inf, nan

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from fenchel import (
    ChainCRF,
    DependencyParser,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    MaxEnt,
    MaxEntTagger,
)
from fenchel.compat import CRF
from fenchel.estimators.base import describe_gap
from fenchel.estimators.settings import EXPECTED
from fenchel.io.files import open_output
from fenchel.trace import Certificate, Status, percent

TABLE = np.arange(8.0).reshape(4, 2), [0, 1, 1, 0]
EVENTS = [{"f": 1}, {"g": 1}], ["a", "b"]
WORDS = [["the", "dog"], ["a"]], [["D", "N"], ["D"]]
SEQUENCES = [[["a"], ["b"]], [["a"]]], [["P", "N"], ["P"]]
DATA = {
    LogisticRegression: TABLE,
    LinearSVC: TABLE,
    MaxEnt: EVENTS,
    MaxEntTagger: WORDS,
    ChainCRF: SEQUENCES,
    CRF: SEQUENCES,
    DependencyParser: ([[("a", "A"), ("b", "B")], [("b", "B")]], [[2, 0], [0]]),
    LogisticRegressionCV: TABLE,
}

# ---- the certificate's sentence


def certificate(primal, gap, status=Status.MAX_PASSES):
    return Certificate(primal, primal - gap, gap, 0.5, 3.0, 0.25, status)


PERCENTAGES = {
    **{1.2e-7: "1.2e-05 %", 0.00083: "0.083 %", 0.0384: "3.8 %", 0.97: "97 %"},
    **{0.994: "99 %", 1.0: "100 %", 3.704: "370 %", 20.0: "2,000 %"},
}


@pytest.mark.parametrize("fraction", PERCENTAGES)
def test_a_percentage_reads_like_one(fraction):
    assert percent(fraction) == PERCENTAGES[fraction]


@pytest.mark.parametrize("gap", [0.5, 0.4999, 0.7, 20.0])
def test_a_gap_as_large_as_the_objective_proves_nothing(gap):
    found = certificate(0.5, gap)
    assert not found.proves_something
    assert "objective 0.5, nothing proven (gap " in str(found)
    assert "%" not in str(found)
    assert "nothing is proven" in describe_gap(found, 1e-3)


def test_a_smaller_gap_is_a_share_of_the_objective():
    found = certificate(0.5, 0.485)
    assert found.proves_something
    assert "is proven within 97 % of the optimum" in str(found)
    assert describe_gap(found, 1e-3) == "a gap of 97 %, above tol=0.001"


@pytest.mark.parametrize(("primal", "gap"), [(0.0, 0.1), (0.5, inf), (inf, inf)])
def test_no_certificate_is_made_of_infinities(primal, gap):
    assert not certificate(primal, gap).proves_something
    assert "nothing proven" in str(certificate(primal, gap))


def test_an_optimum_of_zero_is_proven():
    assert "proven within 0 %" in str(certificate(0.0, 0.0, Status.CONVERGED))


def test_the_warning_of_a_fit_says_that_nothing_is_proven():
    X, y = np.array([[0.0], [1e3], [-1e3], [2e3]]), [0, 1, 1, 0]
    with pytest.warns(ConvergenceWarning) as caught:
        model = LogisticRegression(solver="sgd", max_iter=1, tol=1e-9).fit(X, y)
    assert not model.certificate_.proves_something
    assert "nothing is proven" in str(caught[0].message) and "raise max_iter" in str(caught[0].message)


# ---- settings

WHOLE, SWITCH = "a whole number of at least 1", "True or False"
LIMIT = "a whole number, at least 0, or inf for no limit"
SECONDS, SEED = (
    "a number of seconds, at least 0, or None",
    "a whole number, at least 0, a RandomState or None",
)
FINITE = "a finite number, at least 0, or None"
JOBS, CALLBACKS = "a whole number other than 0, or None", "a list of functions, or None"
WRONG = [
    *(("max_iter", value, LIMIT) for value in (-5, 2.5, "a", nan, None, True)),
    ("max_iterations", -5, LIMIT),
    *(("tol", value, "a number, at least 0") for value in ("x", -1.0, nan)),
    *(("max_seconds", value, SECONDS) for value in ("1", -1, nan)),
    *(("n_jobs", value, JOBS) for value in ("a", 1.5, 0)),
    *(("random_state", value, SEED) for value in ("x", -1, 1.5)),
    *(("callbacks", value, CALLBACKS) for value in (print, [1])),
    *(("intercept_scaling", value, "a positive finite number, or None") for value in ("a", 0, inf)),
    *(
        (name, "x", SWITCH)
        for name in ("warm_start", "fit_intercept", "observed", "transitions", "single_root")
    ),
    *(
        (name, 1, SWITCH)
        for name in ("bias", "boundaries", "tag_dictionary", "refit", "use_legacy_attributes")
    ),
    *(("hash_bits", value, "a whole number from 1 to 30, or None") for value in (0, 31, 1.5)),
    *((name, 2, SWITCH) for name in ("all_possible_states", "all_possible_transitions")),
    *((name, value, WHOLE) for name in ("min_count", "beam", "rare") for value in (0, 1.5, "2", None)),
    ("num_memories", 0, WHOLE),
    *(("columns", value, "a whole number, at least 0") for value in (-1, 1.5, "2")),
    *((name, value, FINITE) for name in ("c1", "c2") for value in (-1, inf, "x")),
    *(("l1_ratio", value, "a number between 0 and 1") for value in (-0.1, 1.1, nan, None)),
    ("min_freq", "a", "a number"),
    ("verbose", "x", "True, False or a whole number"),
    ("loss", ["log"], "'log' or 'hinge'"),
    ("template", 3, "None, the name of a preset or of a file, a Template or a function"),
    ("banned", 3, "a list of pairs (label, label that must not follow), or None"),
]
CASES = [(model, *case) for model in DATA for case in WRONG if case[0] in model().get_params(deep=False)]


@pytest.mark.parametrize(("model", "name", "value", "expected"), CASES)
def test_a_wrong_setting_is_named_as_the_user_gave_it(model, name, value, expected):
    with pytest.raises(ValueError) as caught:
        model(**{name: value}).fit(*DATA[model])
    assert str(caught.value) == f"{name}={value!r} must be {expected}"


def test_every_setting_in_the_table_is_tried():
    assert {name for name, _, _ in WRONG} == set(EXPECTED)


@pytest.mark.parametrize("model", [LogisticRegression, ChainCRF])
def test_a_constant_in_quotes_is_no_number(model):
    with pytest.raises(ValueError, match="C='1' is not a number"):
        model(C="1").fit(*DATA[model])


RIGHT = [
    dict(max_iter=np.int64(50), warm_start=np.True_, fit_intercept=np.False_, n_jobs=np.int32(1)),
    dict(max_iter=1e5, tol=np.float32(0.01), max_seconds=60, random_state=np.random.RandomState(0)),
    dict(max_iter=inf, max_seconds=inf, n_jobs=-1, random_state=np.int64(3), callbacks=(), verbose=0),
]


@pytest.mark.parametrize("settings", RIGHT)
def test_numbers_of_numpy_and_infinite_limits_are_fine(settings):
    assert LogisticRegression(**settings).fit(*TABLE).certificate_.converged


def test_a_joint_fit_checks_its_settings_too():
    with pytest.raises(ValueError, match="max_iter=-5 must be"):
        MaxEnt(max_iter=-5).fit_joint([{"a": ["f"], "b": ["g"]}], ["a"])


# ---- data

LABELS = "expected a list with the label of each token"
SAYS = [
    (ChainCRF, [[{"a": 1}]], [0], f"y[0] is of type int, {LABELS}"),
    (ChainCRF, SEQUENCES[0], [["P", "N"], None], f"y[1] is None, {LABELS}"),
    (ChainCRF, SEQUENCES[0], [{"a": 1, "b": 2}, ["P"]], f"y[0] is of type dict, {LABELS}"),
    (ChainCRF, SEQUENCES[0], None, "y is None, expected a list with the labels of each sequence"),
    (ChainCRF, SEQUENCES[0], "PN", "y is the string 'PN', expected a list with the labels of each sequence"),
    (ChainCRF, SEQUENCES[0], [["P", None], ["P"]], "y[0][1] is None, which is no label"),
    (ChainCRF, SEQUENCES[0], [[1.0, 2.0], [nan]], "y[1][0] is NaN, which is no label"),
    (ChainCRF, SEQUENCES[0], [["P", ["N"]], ["P"]], "y[0][1] is of type list, which is no label"),
    (ChainCRF, None, SEQUENCES[1], "X is None, expected a list of sequences, each a list of tokens"),
    (ChainCRF, {"a": []}, SEQUENCES[1], "X is of type dict, expected a list of sequences"),
    (ChainCRF, np.ones((2, 3)), [["P", "N"]], "X is a matrix, expected a list of sequences; write [X]"),
    (ChainCRF, sp.csr_matrix(np.ones((2, 3))), [["P", "N"]], "X is a matrix, expected a list of sequences"),
    (ChainCRF, [np.ones((1, 2)), [["a"]]], [["P"], ["P"]], "sequence 1 holds something else than numbers"),
    (CRF, 3, SEQUENCES[1], "X is of type int, expected a list of sequences"),
    (CRF, SEQUENCES[0], [0, 1], f"y[0] is of type int, {LABELS}"),
    (MaxEnt, None, EVENTS[1], "events is None, expected a list of events, each a dict or a list of names"),
    (MaxEnt, {"a": {"f": 1}}, ["a"], "events is of type dict, expected a list of events"),
    (MaxEnt, EVENTS[0], "ab", "y is the string 'ab', expected a list with the label of each event"),
    (MaxEnt, EVENTS[0], 3, "y is of type int, expected a list with the label of each event"),
    (MaxEnt, EVENTS[0], ["a", nan], "y contains NaN, which is no label, as that of event 1"),
    (
        LogisticRegression,
        [{"a": 1}, {"a": 2}],
        [0, 1],
        "X[0] is a dict, but LogisticRegression",
    ),
    (LogisticRegression, TABLE[0], ["a", "b", None, "a"], "y[2] is None, which is no label"),
    (LogisticRegression, TABLE[0], [0, 1, nan, 0], "y[2] is nan, which is no label"),
]


@pytest.mark.parametrize(("model", "X", "y", "message"), SAYS)
def test_wrong_data_are_named(model, X, y, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        model().fit(X, y)
    assert str(caught.value).startswith(message)


def test_a_table_of_pandas_is_told_how_to_become_events():
    pd = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"events is a DataFrame, .* events\.to_dict\('records'\)"):
        MaxEnt().fit(pd.DataFrame({"a": [1, 2]}), ["x", "y"])


@pytest.fixture(scope="module")
def tagger():
    return ChainCRF().fit(*SEQUENCES)


CALLS = [
    (lambda m: m.score(SEQUENCES[0], [["P", "N"]]), "X has 2 sequences but y has 1; they must match"),
    (lambda m: m.score(SEQUENCES[0], ["PN", "P"]), f"y[0] is a string, {LABELS}"),
    (lambda m: m.score(*SEQUENCES, [1.0]), "sample_weight has shape (1,), expected (2,)"),
    (lambda m: m.score(*SEQUENCES, "ab"), "sample_weight is the string 'ab', expected a list of numbers"),
    (lambda m: m.predict(None), "X is None, expected a list of sequences"),
    (lambda m: m.predict(SEQUENCES[0], allowed=3), "allowed is of type int, expected for each sequence"),
    (
        lambda m: m.predict(SEQUENCES[0], allowed=[3, None]),
        "allowed[0] is of type int, expected None",
    ),
    (
        lambda m: m.predict(SEQUENCES[0], allowed=[["P", {}], None]),
        "allowed[0][1] names the label {}, which the model does not know",
    ),
    (lambda m: m.predict(SEQUENCES[0], banned=[3]), "banned holds 3, expected pairs"),
    (lambda m: m.predict(SEQUENCES[0], banned=[("P", [])]), "banned names the label []"),
    (lambda m: m.predict_nbest(SEQUENCES[0], "x"), "k='x' must be a whole number of at least 1"),
    (lambda m: m.fit(*SEQUENCES, token_weight=3), "token_weight is of type int"),
    (
        lambda m: m.fit(*SEQUENCES, token_weight=[["a"], [1]]),
        "token_weight[0] holds something else",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_wrong_arguments_of_a_tagger_are_named(tagger, call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(tagger)
    assert str(caught.value).startswith(message)


def test_a_tagger_is_scored_by_the_labels_of_a_column(tagger):
    from fenchel.features.tokens import Tokens

    assert tagger.score(SEQUENCES[0], Tokens.from_sentences(SEQUENCES[1])) == tagger.score(*SEQUENCES)


def test_held_out_labels_are_checked_by_their_name():
    with pytest.raises(ValueError, match=r"y_dev\[0\] is of type int"):
        CRF().fit(*SEQUENCES, SEQUENCES[0], [0, 1])


def test_a_candidate_that_cannot_be_looked_up_is_named():
    with pytest.raises(
        TypeError, match=r"event 0: the label \['a'\] is a list, expected a string or a number"
    ):
        MaxEnt().fit_joint([{"a": ["f"], "b": ["g"]}], [["a"]])


def test_numbers_of_looking_inside_are_checked():
    model = MaxEntTagger(rare=1).fit(*WORDS)
    with pytest.raises(ValueError, match="n='x' must be a whole number"):
        model.top_features("x")
    with pytest.raises(ValueError, match=r"position=0\.5 must be a whole number"):
        model.explain(["a"], 0.5)


# ---- files


def write(path):
    with open_output(path) as stream:
        stream.write(b"something")


@pytest.mark.parametrize("name", ["no/dir/x", "file/x"])
def test_a_file_in_no_folder_is_named_as_given(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=f"there is no folder {os.path.dirname(name)}: '{name}'") as caught:
        write(name)
    assert isinstance(caught.value, FileNotFoundError | NotADirectoryError)
    assert caught.value.filename == name


def test_a_model_saved_to_no_folder_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = LogisticRegression().fit(*TABLE)
    with pytest.raises(FileNotFoundError, match=r"there is no folder no/dir: 'no/dir/x'$"):
        model.save("no/dir/x")


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left")])
def test_a_temporary_file_is_never_the_one_named(tmp_path, monkeypatch, error):
    def fail(path, *_):
        error.filename = str(path)
        raise error

    monkeypatch.setattr("builtins.open", fail)
    with pytest.raises(type(error)) as caught:
        write(tmp_path / "x")
    assert caught.value.filename == str(tmp_path / "x") and caught.value.errno == error.errno
    assert "tmp." not in str(caught.value) and ".tmp" not in str(caught.value)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_names_the_file():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write("/dev/full")


def test_an_error_of_something_else_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, open_output(tmp_path / "x"):
        (tmp_path / "other").read_bytes()
    assert caught.value.filename == str(tmp_path / "other")
    assert list(tmp_path.iterdir()) == []
