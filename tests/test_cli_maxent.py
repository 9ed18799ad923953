"""fenchel train, predict, evaluate, inspect and race on event files."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run, write_events
from fenchel.io.events import read_events
from fenchel.io.trace import read_trace

OPENNLP = ("--format", "opennlp")
TRAIN = ("train", "maxent", "train.events", *OPENNLP)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_events(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder):
    assert run(*TRAIN, "-o", "model", "-q").exit_code == 0
    return "model"


@pytest.fixture
def joint(folder):
    assert run("train", "maxent", "train.tadm", "--format", "tadm", "-o", "joint", "-q").exit_code == 0
    return "joint"


def events_of(path, **options):
    """Features and labels as Python objects."""
    events = list(read_events(path, "opennlp", **{"real_values": False} | options))
    return [event.attributes for event in events], [event.label for event in events]


# ---- train


def test_train_tells_what_it_read_and_what_is_proven(folder):
    result = run(*TRAIN, "-o", "m", "--valid", "test.events", "--trace", "t.jsonl", "--sigma2", "10")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "train.events: 90 events, 3 labels, " in result.stderr
    assert "converged: objective" in result.stderr
    model = fenchel.load("m")
    accuracy = model.score(*events_of("test.events"))
    assert f"accuracy {accuracy:.6g} on test.events" in result.stderr
    assert read_trace("t.jsonl")[-1].validation == accuracy
    header = json.loads(Path("t.jsonl").read_text().splitlines()[0])
    assert header["sigma2"] == 10.0 and "C" not in header


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_train_is_the_estimator(folder, loss):
    options = ("-C", "3", "--loss", loss, "--min-count", "2", "--tol", "1e-6", "--max-passes", "10000")
    assert run(*TRAIN, *options, "-o", "m", "-q").exit_code == 0
    settings = dict(C=3.0, loss=loss, min_count=2, tol=1e-6, max_iter=10_000, random_state=0)
    expected = fenchel.MaxEnt(**settings).fit(*events_of("train.events"))
    model = fenchel.load("m")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.get_params() == expected.get_params()


def test_digits_are_part_of_a_name_unless_told(folder):
    assert run(*TRAIN, "-o", "names", "-q").exit_code == 0
    assert run(*TRAIN, "-o", "values", "-q", "--real-values").exit_code == 0
    assert "length=3" in fenchel.load("names").vocabulary_
    assert "length" in fenchel.load("values").vocabulary_
    assert "length" not in fenchel.load("names").vocabulary_


def test_standard_input_and_gzip_give_the_same_model(folder, model):
    text = Path("train.events").read_bytes()
    Path("train.events.gz").write_bytes(gzip.compress(text))
    assert run("train", "maxent", "-", *OPENNLP, "-o", "piped", input=text).exit_code == 0
    assert run("train", "maxent", "train.events.gz", *OPENNLP, "-o", "zipped").exit_code == 0
    for other in ("piped", "zipped"):
        np.testing.assert_array_equal(fenchel.load(other).coef_, fenchel.load(model).coef_)


def test_megam_files_with_weights_values_and_sections(folder):
    Path("m.megam").write_text(
        "yes $$$WEIGHT 3 a 1 b 2\nno a 1 c 1.5\nno c 1\nDEV\nyes b 1\nno c 2\nTEST\nyes b 3\n"
    )
    megam = ("m.megam", "--format", "megam", "--values")
    assert run("train", "maxent", *megam, "-o", "m", "-q").exit_code == 0
    events = [{"a": 1, "b": 2}, {"a": 1, "c": 1.5}, {"c": 1}]
    expected = fenchel.MaxEnt(random_state=0).fit(events, ["yes", "no", "no"], sample_weight=[3, 1, 1])
    np.testing.assert_array_equal(fenchel.load("m").coef_, expected.coef_)
    assert run("predict", "m", "m.megam", "--section", "dev").stdout.split() == ["yes", "no"]
    assert run("predict", "m", "m.megam", "--section", "test").stdout.split() == ["yes"]
    assert run("evaluate", "m", "m.megam").stdout.startswith("events    3\nweight    5; ")


def test_megam_candidates(folder):
    Path("m.megam").write_text("0 # a b # b\n1 # b # a c # c\n")
    explicit = ("m.megam", "--format", "megam", "--explicit")
    assert run("train", "maxent", *explicit, "-o", "m", "-C", "10", "-q").exit_code == 0
    assert fenchel.load("m").layout_ == "joint"
    assert run("predict", "m", "m.megam").stdout.split() == ["0", "1"]


def test_not_converged_saves_the_model_warns_and_exits_with_1(folder):
    result = run(*TRAIN, "-o", "m", "--solver", "gis", "--max-passes", "2", "--tol", "1e-9", "-q")
    assert result.exit_code == 1
    assert "to reach --tol 1e-09, raise --max-passes" in result.stderr
    assert not fenchel.load("m").certificate_.converged


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", OPENNLP, "bad: no events found"),
        ("a f\nb g=-1\n", (*OPENNLP, "--real-values"), "bad:2: feature 'g' is -1; OpenNLP has no negative"),
        ("a f 1\nb g\n", ("--format", "megam", "--values"), "bad:2: feature 'g' has no value"),
        ("a f\nb g\n", (*OPENNLP, "--min-count", "2"), "no feature occurs in --min-count 2 events; lower it"),
        ("a\nb\n", OPENNLP, "no event has a feature"),
        ("2\n1 1 0 1\n1 1 1 1\n", ("--format", "tadm", "--loss", "hinge"), "event 0: y gives probabilities"),
    ],
)
def test_bad_files_are_named(folder, text, options, sentence):
    Path("bad").write_text(text)
    assert sentence in fails("train", "maxent", "bad", "-o", "m", "-q", *options)
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "Missing option '--format'"),
        (("--format", "conll"), "'--format'"),
        (("--format", "tadm", "--explicit"), "--explicit is an option of megam files, but --format is tadm"),
        (("--format", "megam", "--real-values"), "--real-values is an option of opennlp files"),
        ((*OPENNLP, "-C", "1", "--sigma2", "1"), "-C and --sigma2 are two ways to say the same"),
        ((*OPENNLP, "--sigma2", "0"), "'--sigma2'"),
        ((*OPENNLP, "--solver", "sm-q", "--loss", "hinge", "-q"), "cannot train a flat crossed model"),
        ((*OPENNLP, "--valid", "-", "--zero-based"), "No such option"),
    ],
)
def test_wrong_options_are_refused(folder, options, sentence):
    assert sentence in misused("train", "maxent", "train.events", "-o", "m", *options)


# ---- predict, evaluate, inspect


def test_predict_reads_as_the_model_was_trained(folder, model):
    events, _ = events_of("test.events")
    header, *lines = run("predict", model, "test.events", "--probabilities").stdout.splitlines()
    assert header == "label\tlaw\tsport\ttrade"
    rows = [line.split("\t") for line in lines]
    fitted = fenchel.load(model)
    assert [row[0] for row in rows] == fitted.predict(events).tolist()
    np.testing.assert_allclose(
        [[float(p) for p in row[1:]] for row in rows], fitted.predict_proba(events), rtol=1e-5
    )


def test_predict_tells_the_number_of_a_candidate(folder, joint):
    events = list(read_events("train.tadm", "tadm"))
    fitted = fenchel.load(joint)
    proba = fitted.predict_proba([event.candidates for event in events])
    header, *rows = [
        line.split("\t")
        for line in run("predict", joint, "train.tadm", "--probabilities").stdout.splitlines()
    ]
    assert header == ["label", "0", "1", "2", "3"]
    for row, expected in zip(rows, proba, strict=True):
        assert int(row[0]) == max(expected, key=expected.get)
        np.testing.assert_allclose([float(p) for p in row[1:]], list(expected.values()), rtol=1e-5)


def test_evaluate_prints_the_scores_of_scikit_learn(folder, model):
    from sklearn.metrics import log_loss, precision_recall_fscore_support

    events, y = events_of("test.events")
    result = run("evaluate", model, "test.events")
    fitted = fenchel.load(model)
    facts = dict(line.split()[:2] for line in result.stdout.splitlines()[:3])
    assert float(facts["accuracy"]) == pytest.approx(fitted.score(events, y), abs=1e-6)
    assert float(facts["log-loss"]) == pytest.approx(log_loss(y, fitted.predict_proba(events)), rel=1e-5)
    shown = [line.split() for line in result.stdout.splitlines()[-3:]]
    assert [row[0] for row in shown] == ["law", "sport", "trade"]
    expected = np.transpose(precision_recall_fscore_support(y, fitted.predict(events)))
    np.testing.assert_allclose([[float(c) for c in row[1:]] for row in shown], expected, atol=1e-4)


def test_labels_new_to_the_model_count_as_wrong(folder, model):
    Path("odd.events").write_text("sport ball goal\nwar team\n")
    shown = run("evaluate", model, "odd.events").stdout
    assert "accuracy  0.5\n" in shown
    assert "1 of 2 events have a label that is new to the model" in shown
    Path("new.events").write_text("war team\n")
    assert "log-loss  none" in run("evaluate", model, "new.events").stdout


def test_evaluate_candidates_by_their_counts(folder, joint):
    events = list(read_events("train.tadm", "tadm"))
    proba = fenchel.load(joint).predict_proba([event.candidates for event in events])
    total = sum(sum(event.counts) for event in events)
    right = sum(e.counts[max(p, key=p.get)] for e, p in zip(events, proba, strict=True)) / total
    loss = -sum(c * np.log(p[k]) for e, p in zip(events, proba, strict=True) for k, c in enumerate(e.counts))
    facts = dict(line.split(maxsplit=1) for line in run("evaluate", joint, "train.tadm").stdout.splitlines())
    assert float(facts["accuracy"]) == pytest.approx(right, abs=1e-6)
    assert float(facts["log-loss"].split()[0]) == pytest.approx(loss / total, rel=1e-5)


def test_a_max_margin_model_has_no_probabilities(folder):
    run(*TRAIN, "-o", "svm", "--loss", "hinge", "-q")
    assert fails("predict", "svm", "test.events", "--probabilities").endswith("train with --loss log")
    assert "log-loss" not in run("evaluate", "svm", "test.events").stdout


def test_another_layout_or_kind_of_file_is_refused(folder, model, joint):
    assert "trained on files of labels and features" in fails(
        "predict", model, "train.tadm", "--format", "tadm"
    )
    assert "trained on files of candidates" in fails("predict", joint, "test.events", *OPENNLP)
    assert "--zero-based has no meaning for a MaxEnt" in misused(
        "predict", model, "test.events", "--zero-based"
    )
    assert "--section is an option of megam files" in misused(
        "predict", model, "test.events", "--section", "dev"
    )


def test_a_file_without_a_known_feature_is_a_warning(folder, model):
    result = run("predict", model, "train.tadm")
    assert result.exit_code == 0
    assert "train.tadm: the model knows none of its features; is it of another format?" in result.stderr
    assert run("predict", model, "test.events").stderr == ""


def test_a_model_of_python_must_be_told_the_format(folder):
    fenchel.MaxEnt().fit(*events_of("train.events")).save("python")
    assert fails("predict", "python", "test.events").endswith("give --format")
    assert run("predict", "python", "test.events", *OPENNLP).exit_code == 0


def test_inspect_shows_labels_sizes_and_heaviest_weights(folder, model, joint):
    shown = run("inspect", model, "--top", "2").stdout
    best = fenchel.load(model).top_features(2)
    assert "labels       law, sport, trade\n" in shown
    assert "read as      format=opennlp, real_values=False\n" in shown
    expected = [[one.feature, f"{one.weight:+.6g}", one.label] for one in best]
    assert [line.split() for line in shown.splitlines()[-2:]] == expected
    shown = run("inspect", joint, "--top", "1").stdout
    assert "layout       joint" in shown and len(shown.splitlines()[-1].split()) == 2


# ---- race


@pytest.mark.parametrize("options", [["-C", "1"], ["--sigma2", "5"], ["--loss", "hinge"]])
def test_race_on_events(folder, options):
    names = "cd-dual,eg" if "hinge" in options else "cd-dual,lbfgs,scgis"
    arguments = ("--solvers", names, "--output", "race", "--max-passes", "10000", "-q")
    result = run("race", "maxent", "train.events", *OPENNLP, *arguments, *options)
    assert result.exit_code == 0, result.output
    header = json.loads(Path("race/cd-dual.jsonl").read_text().splitlines()[0])
    assert ("sigma2" in header) == ("--sigma2" in options) != ("C" in header)


def test_race_on_candidates(folder):
    arguments = ("--format", "tadm", "--solvers", "cd-dual,newton,sm-q", "-q")
    assert "'sm-q' cannot train a flat joint model" in fails("race", "maxent", "train.tadm", *arguments)
    arguments = ("--format", "tadm", "--solvers", "cd-dual,newton,gis", "-q")
    assert run("race", "maxent", "train.tadm", *arguments).exit_code == 0
