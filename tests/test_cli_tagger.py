"""fenchel train, predict, evaluate, inspect, race and path for taggers of words."""

import gzip
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run
from fenchel.io.columns import read_columns
from fenchel.io.trace import read_trace
from fenchel.spans import span_scores

SAMPLE = files("fenchel") / "samples" / "ingredients.txt"
TRAIN = ("train", "tagger", "train.txt", "-q", "-o")


def write_sentences(folder):
    """train.txt and test.txt: words and labels of spans. plain.txt: labels that are no spans."""
    blocks = SAMPLE.read_text(encoding="utf-8").strip().split("\n\n")
    (folder / "train.txt").write_text("\n\n".join(blocks[:60]) + "\n\n")
    (folder / "test.txt").write_text("\n\n".join(blocks[60:80]) + "\n\n")
    plain = (folder / "train.txt").read_text().replace("B-", "").replace("I-", "")
    (folder / "plain.txt").write_text(plain)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sentences(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of train.txt, made once."""
    place = tmp_path_factory.mktemp("models")
    write_sentences(place)
    data = place / "train.txt"
    assert run("train", "tagger", data, "-q", "-o", place / "model", "-C", "3", "--rare", "2").exit_code == 0
    return place / "model"


@pytest.fixture
def model(folder, trained):
    return trained


def words_and_tags(path):
    sentences = list(read_columns(path).sentences())
    return [[[token[k] for token in sentence] for sentence in sentences] for k in (0, -1)]


# ---- train


def test_words_with_blanks_in_them_have_tabs_between_columns(folder):
    Path("tabs.txt").write_text("2 1/2\tNUMBER\nsoup spoons\tUNIT\n\nice cream\tNAME\n\n" * 5)
    result = run("train", "tagger", "tabs.txt", "-o", "m", "--separator", "tab", "--valid", "tabs.txt")
    assert result.exit_code == 0 and "10 sentences, 15 tokens, 2 columns" in result.stderr
    assert "soup spoons" in fenchel.load("m").features_.words
    assert "accuracy   1" in run("evaluate", "m", "tabs.txt").stdout


def test_train_tells_what_it_read_and_what_is_proven(folder):
    result = run("train", "tagger", "train.txt", "-o", "m", "--valid", "test.txt", "--trace", "t.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("train.txt: 60 sentences, ") and " 2 columns, " in lines[0]
    assert lines[1] == "test.txt: 20 sentences"
    assert "converged: objective" in result.stderr
    X, y = words_and_tags("test.txt")
    f1 = span_scores(y, fenchel.load("m").predict(X)).f1
    assert f"F1 {f1:.6g} on test.txt" in result.stderr
    assert read_trace("t.jsonl")[-1].validation == f1


def test_train_is_the_estimator(folder):
    chosen = ("--beam", "3", "--rare", "2", "--min-count", "2", "--no-tag-dictionary", "--seed", "3")
    assert run(*TRAIN, "m", "--sigma2", "10", "--tol", "1e-5", *chosen).exit_code == 0
    settings = dict(beam=3, rare=2, min_count=2, tag_dictionary=False, random_state=3)
    expected = fenchel.MaxEntTagger(sigma2=10.0, tol=1e-5, **settings).fit(*words_and_tags("train.txt"))
    found = fenchel.load("m")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.get_params() == expected.get_params()


def test_accuracy_where_tags_are_no_spans(folder):
    result = run("train", "tagger", "plain.txt", "-o", "m", "--valid", "plain.txt")
    accuracy = fenchel.load("m").score(*words_and_tags("plain.txt"))
    assert f"accuracy {accuracy:.6g} on plain.txt" in result.stderr
    shown = run("evaluate", "m", "plain.txt").stdout
    assert f"accuracy   {accuracy:.6g}\n" in shown and "QUANTITY" in shown


def test_columns_between_standard_input_and_gzip_give_the_same_model(folder, model):
    text = Path("train.txt").read_bytes()
    Path("train.txt.gz").write_bytes(gzip.compress(text))
    Path("wide.txt").write_bytes(text.replace(b" ", b" between "))
    same = ("-q", "-C", "3", "--rare", "2")
    assert run("train", "tagger", "-", "-o", "piped", *same, input=text).exit_code == 0
    assert run("train", "tagger", "train.txt.gz", "-o", "zipped", *same).exit_code == 0
    assert run("train", "tagger", "wide.txt", "-o", "wide", *same).exit_code == 0
    for other in ("piped", "zipped", "wide"):
        np.testing.assert_array_equal(fenchel.load(other).coef_, fenchel.load(model).coef_)
    assert run("evaluate", "wide", "wide.txt").stdout == run("evaluate", model, "train.txt").stdout


def test_what_falls_short_is_saved_with_a_warning(folder):
    result = run(*TRAIN, "m", "--solver", "lbfgs", "--max-passes", "2", "--tol", "1e-9")
    assert result.exit_code == 1
    assert "to reach --tol 1e-09, raise --max-passes" in result.stderr
    assert not fenchel.load("m").certificate_.converged


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", (), "bad: no tokens found"),
        ("a b c\nd e\n", (), "bad:2: 2 columns, expected 3"),
        ("a\nb\n", (), "bad: 1 column, expected at least a word and, last, its label"),
        (
            "A\tw=a\tw=b\nB\tw=c\n",
            (),
            "bad: looks like a CRFsuite file, which holds no words",
        ),
        ("a b\n", ("--min-count", "9"), "no attribute occurs --min-count 9 times; lower it"),
        ("a b\n", ("--valid", "none.txt"), "none.txt: no such file or directory"),
    ],
)
def test_bad_files_are_named(folder, text, options, sentence):
    Path("bad").write_text(text)
    assert sentence in fails("train", "tagger", "bad", "-o", "m", "-q", *options)
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("-C", "1", "--sigma2", "1"), "-C and --sigma2 are two ways to say the same"),
        (("--beam", "0"), "'--beam'"),
        (("--valid", "-"), "only one of DATA and --valid"),
        (("--template", "pos"), "No such option"),
    ],
)
def test_wrong_options_are_refused(folder, options, sentence):
    data = "-" if "--valid" in options else "train.txt"
    assert sentence in misused("train", "tagger", data, "-o", "m", *options)


# ---- predict, evaluate, inspect


def test_predict_prints_the_lines_with_tags_behind(model):
    expected = fenchel.load(model).predict(words_and_tags("test.txt")[0])
    lines = run("predict", model, "test.txt").stdout
    assert [line.rpartition(" ")[0] for line in lines.split("\n")] == Path("test.txt").read_text().split("\n")
    found = [[line.split()[-1] for line in block.split("\n")] for block in lines.strip().split("\n\n")]
    assert found == expected
    assert run("predict", model, "-", input="2\ncups\n\n").stdout.startswith("2 B-QUANTITY\ncups ")


def test_predict_several_taggings(model):
    lines = run("predict", model, "-", "--nbest", "2", input="2\nunheard\n").stdout
    (first, p), (second, q) = fenchel.load(model).predict_nbest([["2", "unheard"]], 2)[0]
    expected = [
        f"# {rank} {score:.6f}\n2 {tags[0]}\nunheard {tags[1]}\n\n"
        for rank, tags, score in ((1, first, p), (2, second, q))
    ]
    assert lines == "".join(expected)


def test_what_has_no_meaning_for_a_tagger_is_refused(model):
    assert "--nbest gives those of whole sentences" in fails("predict", model, "test.txt", "--marginals")
    assert "--zero-based has no meaning for a MaxEntTagger model" in misused(
        "predict", model, "test.txt", "--zero-based"
    )


def test_evaluate_prints_accuracy_and_spans(model):
    X, y = words_and_tags("test.txt")
    scores = span_scores(y, fenchel.load(model).predict(X))
    result = run("evaluate", model, "test.txt")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"accuracy   {scores.accuracy:.6g}\n" in result.stdout
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()}
    assert rows["all"][:3] == [f"{100 * share:.2f}" for share in (scores.precision, scores.recall, scores.f1)]


def test_inspect_shows_sizes_and_attributes(model):
    fitted, shown = fenchel.load(model), run("inspect", model, "--top", "1").stdout
    assert f"attributes   {len(fitted.attribute_names_):,}\n" in shown
    assert f"words        {len(fitted.features_.words):,}, " in shown
    best = fitted.top_features(1, label=str(fitted.classes_[-1]))[0]
    last = shown.splitlines()[-1]
    assert last.split()[0] == best.label and best.feature in last and f"{best.weight:+.4f}" in last
    assert "heaviest" not in run("inspect", model, "--top", "0").stdout


# ---- race, path


@pytest.mark.parametrize("constant", [("-C", "0.5"), ("--sigma2", "5")])
def test_race(folder, constant):
    solvers = ("--solvers", "cd-dual,lbfgs", "--output", "race", "-q")
    result = run("race", "tagger", "train.txt", "--min-count", "2", *solvers, *constant)
    assert result.exit_code == 0, result.output
    header = json.loads(Path("race/lbfgs.jsonl").read_text().splitlines()[0])
    assert header[constant[0].lstrip("-")] == float(constant[1])
    assert ("C" in header) != ("sigma2" in header)


def test_path_by_folds_and_by_held_out_sentences(folder):
    steps = ("--from", "0.1", "--to", "10", "--steps", "2", "-q", "--solver", "cd-dual")
    result = run("path", "tagger", "train.txt", "--cv", "2", *steps, "-o", "best")
    assert result.exit_code == 0, result.output
    assert "best  C = 10, F1 " in result.stdout
    assert fenchel.load("best").C == 10.0
    valid = ("--valid", "test.txt", "--constant", "sigma2")
    result = run("path", "tagger", "train.txt", *valid, *steps, "-o", "best")
    X, y = words_and_tags("test.txt")
    model = fenchel.load("best")
    score = span_scores(y, model.predict(X)).f1
    assert f"best  sigma2 = {model.sigma2:g}, F1 {score:.6g}" in result.stdout
    assert run("evaluate", "best", "test.txt").exit_code == 0
