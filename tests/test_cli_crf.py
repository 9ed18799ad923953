"""fenchel train, predict, evaluate, inspect, race, path and attributes for taggers."""

import gzip
import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import fenchel
from commands import fails, misused, run
from fenchel.cli.sentences import are_spans, guess_format
from fenchel.io.columns import read_columns
from fenchel.io.trace import read_trace
from fenchel.spans import span_scores

SAMPLE = files("fenchel") / "samples" / "ingredients.txt"
TRAIN = ("train", "crf", "train.txt", "-q", "-o")
SENTENCE = "2 B-QUANTITY\ncups B-UNIT\nflour B-NAME\n\n"


@pytest.fixture(scope="module")
def blocks():
    """The text of each sentence of the sample."""
    return SAMPLE.read_text(encoding="utf-8").strip().split("\n\n")


@pytest.fixture
def folder(blocks, tmp_path, monkeypatch):
    """train.txt and test.txt: words and labels. wide.txt: a column more."""
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("\n\n".join(blocks[:60]) + "\n\n")
    Path("test.txt").write_text("\n\n".join(blocks[60:80]) + "\n\n")
    Path("wide.txt").write_text(
        "".join(
            f"{line.replace(' ', f' T{len(line) % 3} ')}\n" for line in "\n\n".join(blocks[:20]).split("\n")
        )
    )
    return tmp_path


@pytest.fixture(scope="module")
def trained(blocks, tmp_path_factory):
    """A model of train.txt, and that of the hinge loss, made once."""
    place = tmp_path_factory.mktemp("models")
    data = place / "train.txt"
    data.write_text("\n\n".join(blocks[:60]) + "\n\n")
    assert run("train", "crf", data, "-q", "-o", place / "model", "-C", "3").exit_code == 0
    hinge = ("--loss", "hinge", "--tol", "0.3")
    assert run("train", "crf", data, "-q", "-o", place / "hinge", *hinge).exit_code == 0
    return place


@pytest.fixture
def model(folder, trained):
    return trained / "model"


def labelled(path):
    X, y = read_columns(path).without_last()
    return X, [[label for (label,) in sentence] for sentence in y.sentences()]


def test_tokens_with_blanks_in_them_have_tabs_between_columns(folder):
    Path("tabs.txt").write_text("2 1/2\tB-QUANTITY\nsoup spoons\tB-UNIT\n\nice cream\tB-NAME\n\n" * 5)
    result = run("train", "crf", "tabs.txt", "-o", "m", "--separator", "tab", "--valid", "tabs.txt")
    assert result.exit_code == 0 and "10 sentences, 15 tokens, 2 columns" in result.stderr
    assert "w[0]=soup spoons" in fenchel.load("m").attribute_names_
    assert "accuracy   1" in run("evaluate", "m", "tabs.txt").stdout
    Path("new.txt").write_text("ice cream\n2 1/2\n")
    assert run("predict", "m", "new.txt").stdout.splitlines()[0].split()[:2] == ["ice", "cream"]
    shown = run("attributes", "tabs.txt", "--template", "pos", "--separator", "tab").stdout
    assert "w[0]=soup spoons" in shown.splitlines()[1].split("\t")
    wrong = run("train", "crf", "tabs.txt", "-o", "m", "--separator", "tab", "--format", "crfsuite")
    assert wrong.exit_code == 2 and "--separator goes with columns" in wrong.stderr


# ---- train


def test_train_tells_what_it_read_and_what_is_proven(folder):
    result = run("train", "crf", "train.txt", "-o", "m", "--valid", "test.txt", "--trace", "t.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "train.txt: 60 sentences, " in result.stderr
    assert " 2 columns, " in result.stderr and " by the template pos, " in result.stderr
    assert "converged: objective" in result.stderr
    X, y = labelled("test.txt")
    f1 = span_scores(y, fenchel.load("m").predict(X)).f1
    assert f"F1 {f1:.6g} on test.txt" in result.stderr
    assert read_trace("t.jsonl")[-1].validation == f1


def test_train_is_the_estimator(folder):
    chosen = ("--min-count", "2", "--observed", "--bias", "--boundaries", "--ban", "O I-NAME", "--seed", "3")
    assert run(*TRAIN, "m", "--c2", "0.25", "--template", "pos", *chosen).exit_code == 0
    settings = dict(min_count=2, observed=True, bias=True, boundaries=True, banned=[("O", "I-NAME")])
    expected = fenchel.ChainCRF(C=2.0, template="pos", random_state=3, **settings).fit(*labelled("train.txt"))
    found = fenchel.load("m")
    np.testing.assert_array_equal(found.weights_, expected.weights_)
    assert found.c2 == 0.25


def test_accuracy_where_labels_are_no_spans(folder):
    text = Path("train.txt").read_text().replace("B-", "").replace("I-", "")
    Path("plain.txt").write_text(text)
    result = run("train", "crf", "plain.txt", "-o", "m", "--valid", "plain.txt")
    accuracy = fenchel.load("m").score(*labelled("plain.txt"))
    assert f"accuracy {accuracy:.6g} on plain.txt" in result.stderr
    shown = run("evaluate", "m", "plain.txt").stdout
    assert f"accuracy   {accuracy:.6g}\n" in shown and "QUANTITY" in shown


def test_standard_input_gzip_and_attributes_give_the_same_model(folder):
    text = Path("train.txt").read_bytes()
    Path("train.txt.gz").write_bytes(gzip.compress(text))
    Path("train.crf").write_text(run("attributes", "train.txt", "--template", "pos", "--crfsuite").stdout)
    assert run("train", "crf", "-", "-o", "piped", input=text).exit_code == 0
    assert run("train", "crf", "train.txt.gz", "-o", "zipped").exit_code == 0
    assert run("train", "crf", "train.crf", "-o", "attributes").exit_code == 0
    assert run(*TRAIN, "m").exit_code == 0
    expected = fenchel.load("m")
    for other in ("piped", "zipped", "attributes"):
        np.testing.assert_array_equal(fenchel.load(other).weights_, expected.weights_)
    X, _ = labelled("test.txt")
    Path("test.crf").write_text(run("attributes", "test.txt", "--template", "pos", "--crfsuite").stdout)
    lines = run("predict", "attributes", "test.crf").stdout
    assert lines == "".join("\n".join(labels) + "\n\n" for labels in expected.predict(X))
    assert run("evaluate", "attributes", "test.crf").stdout == run("evaluate", "m", "test.txt").stdout


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("a b c\nd e f\n", "columns"),
        ("a\tb\tc\nd\te\tf\n\n", "columns"),
        ("a\tb\tc\nd\te\tf\ng\th\ti\nj\tk\tl\nm\tn\n", "columns"),
        ("", "columns"),
        ("A\tw=a\tw=b\nB\tw=c\tw=d\n", "crfsuite"),
        ("A\tx\ty\nB\tx\nB\tx\ty\tz\n\n", "crfsuite"),
    ],
)
def test_the_format_is_seen_in_the_first_lines(tmp_path, text, format):
    (tmp_path / "data").write_text(text)
    assert guess_format(str(tmp_path / "data")) == format


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        (["B-NP", "I-NP", "O"], True),
        (["O"], False),
        (["NN", "O"], False),
        (["S-X", "E-X"], True),
        (["X-Y"], False),
    ],
)
def test_spans_are_seen_in_the_labels(labels, answer):
    assert are_spans(labels) is answer


def test_interrupted_training_saves_the_best_model_so_far(folder, monkeypatch):
    from fenchel.solvers.lbfgs import LBFGS

    step, calls = LBFGS.step, []

    def interrupt(self, problem, state):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(LBFGS, "step", interrupt)
    result = run(*TRAIN, "m", "--solver", "lbfgs")
    assert result.exit_code == 1
    assert "lbfgs interrupted: objective" in result.stderr
    assert fenchel.load("m").certificate_.status.value == "interrupted"
    assert run("predict", "m", "test.txt").exit_code == 0


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", (), "bad: no tokens found"),
        ("a b c\nd e\n", (), "bad:2: 2 columns, expected 3"),
        ("a\nb\n", (), "bad: 1 column, expected at least a word and, last, its label"),
        ("a b c d e\n", (), "bad: there is no default for 5 columns; give --template"),
        (
            "a b\n",
            ("--template", "chunk"),
            "chunk: the template needs words and parts of speech, but the data",
        ),
        ("a b\n", ("--template", "own"), "own:2: %x[0,3] names column 3, but the data have 1 column"),
        ("a b\n", ("--template", "none"), "none: no such template file, nor a preset (chunk, ner, pos)"),
        ("a b\n", ("--min-count", "2"), "no token has an attribute that counts; lower --min-count"),
        ("a O\nb I-X\n", ("--ban", "O I-X"), "bad: sentence 1, token 2: I-X follows O, which --ban forbids"),
        ("a O\n", ("--ban", "O I-X"), "--ban names the label 'I-X', which bad does not have"),
        ("A\tx:y\n", ("--format", "crfsuite"), "bad:1: value 'y' of 'x' is not a number"),
        ("a b\n", ("--valid", "wide.txt"), "wide.txt: 3 columns, expected 2 as in bad"),
    ],
)
def test_bad_files_are_named(folder, text, options, sentence):
    Path("bad").write_text(text)
    Path("own").write_text("U0:%x[0,0]\nU1:%x[0,3]\n")
    assert sentence in fails("train", "crf", "bad", "-o", "m", "-q", *options)
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--ban", "O"), "'O' is not two labels with a blank between"),
        (("-C", "1", "--c2", "1"), "-C and --c2 are two ways to say the same"),
        (("--format", "crfsuite", "--template", "pos"), "a CRFsuite file has its attributes already"),
        (("--valid", "-"), "only one of DATA and --valid"),
    ],
)
def test_wrong_options_are_refused(folder, options, sentence):
    data = "-" if "--valid" in options else "train.txt"
    assert sentence in misused("train", "crf", data, "-o", "m", *options)


def test_a_solver_that_cannot_train_chains_is_refused(folder):
    assert "cannot train a chain" in fails(*TRAIN, "m", "--solver", "gis")


# ---- predict


def test_predict_prints_the_lines_with_labels_behind(model):
    expected = fenchel.load(model).predict(labelled("test.txt")[0])
    lines = run("predict", model, "test.txt").stdout
    assert [line.rpartition(" ")[0] for line in lines.split("\n")] == Path("test.txt").read_text().split("\n")
    found = [[line.split()[-1] for line in block.split("\n")] for block in lines.strip().split("\n\n")]
    assert found == expected


def test_predict_keeps_tabs_blank_lines_and_columns_without_a_label(model):
    assert run("predict", model, "-", input="\n2\ncups\n\n\n\nsalt\n").stdout.startswith(
        "\n2 B-QUANTITY\ncups "
    )
    assert run("predict", model, "-", input="\n2\ncups\n\n\n\nsalt\n").stdout.count("\n") == 7
    assert run("predict", model, "-", input="2\tO\r\n").stdout == "2\tO\tB-QUANTITY\n"
    assert run("predict", model, "-", input="2\n\n\n \n").stdout == "2 B-QUANTITY\n\n\n \n"


def test_predict_marginals(model):
    fitted, X = fenchel.load(model), labelled("test.txt")[0]
    lines = run("predict", model, "test.txt", "--marginals").stdout.split("\n")
    found = [line.split()[-2:] for line in lines if line]
    labels = [label for labels in fitted.predict(X) for label in labels]
    assert [label for label, _ in found] == labels
    places = np.searchsorted(fitted.classes_, labels)
    mu = np.concatenate(fitted.predict_marginals(X))
    np.testing.assert_allclose([float(p) for _, p in found], mu[np.arange(len(labels)), places], atol=1e-6)


def test_predict_all_probabilities_below_their_names(model):
    fitted, X = fenchel.load(model), labelled("test.txt")[0]
    header, *lines = run("predict", model, "test.txt", "--probabilities").stdout.split("\n")
    assert header.split() == ["column1", "column2", "label", *fitted.classes_]
    found = [[float(p) for p in line.split()[3:]] for line in lines if line]
    np.testing.assert_allclose(found, np.concatenate(fitted.predict_marginals(X)), atol=1e-6)


def test_predict_labels_alone_and_as_json(model):
    expected = fenchel.load(model).predict(labelled("test.txt")[0])
    alone = run("predict", model, "test.txt", "--labels-only").stdout
    assert alone.strip() == "\n\n".join(map("\n".join, expected))
    lines = run("predict", model, "test.txt", "--json", "--marginals").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [one["labels"] for one in found] == expected
    assert all(len(one["labels"]) == len(one["probabilities"]) for one in found)
    best = json.loads(run("predict", model, "-", "--json", "--nbest", "2", input=SENTENCE).stdout)["nbest"]
    assert best[0]["log_probability"] >= best[1]["log_probability"]


def test_dump_has_every_weight_with_all_digits(model):
    fitted, found = fenchel.load(model), {}
    for line in run("dump", model).stdout.splitlines():
        if not line.startswith("#"):
            what, *names, weight = line.split("\t")
            found[what, *names] = float(weight)
    labels, names = fitted.classes_.tolist(), fitted.attribute_names_
    for what, rows, table in (
        ("transition", labels, fitted.transitions_),
        ("feature", names, fitted.coef_.T),
    ):
        for (i, k), weight in np.ndenumerate(table):
            assert found.pop((what, rows[i], labels[k]), 0.0) == weight
    assert not found


def test_predict_several_labellings(model):
    lines = run("predict", model, "-", "--nbest", "2", input=SENTENCE).stdout
    (first, p), (second, q) = fenchel.load(model).predict_nbest([[("2",), ("cups",), ("flour",)]], 2)[0]
    block = "".join(f"{line} {{}}\n" for line in SENTENCE.split("\n")[:3])
    expected = [
        f"# {rank} {score:.6f}\n{block.format(*x)}\n" for rank, x, score in ((1, first, p), (2, second, q))
    ]
    assert lines == "".join(expected)


def test_predict_answers_each_sentence_of_a_pipe_at_once(model):
    command = [sys.executable, "-m", "fenchel", "predict", str(model), "-"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        for _ in range(2):
            process.stdin.write(SENTENCE.encode())
            process.stdin.flush()
            answer = [process.stdout.readline().decode() for _ in range(4)]  # would wait for ever
            assert [line.count(" ") for line in answer] == [2, 2, 2, 0]
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_wrong_data_for_a_model_are_named(model, trained):
    assert fails("predict", model, "wide.txt").startswith(
        "wide.txt: 3 columns, but the model was trained on 2; give those, or all but the label"
    )
    assert "wide.txt: 3 columns, but the model was trained on 2" in fails("evaluate", model, "wide.txt")
    assert "words.txt: 1 column, expected" in fails("evaluate", model, _written("words.txt", "a\nb\n"))
    assert fails("evaluate", model, _written("none.txt", "")) == "none.txt: no tokens found"
    assert fails("predict", trained / "hinge", "test.txt", "--marginals").endswith("train with --loss log")
    assert "--zero-based has no meaning for a ChainCRF model" in misused(
        "predict", model, "test.txt", "--zero-based"
    )


def _written(name, text):
    Path(name).write_text(text)
    return name


def test_other_models_are_told_apart(folder):
    Path("two.svm").write_text("1 1:1\n-1 2:1\n1 1:2\n")
    assert run("train", "lr", "two.svm", "-o", "lr", "-q").exit_code == 0
    assert "test.txt:1: " in fails("predict", "lr", "test.txt")
    assert "--nbest has no meaning for a LogisticRegression model" in misused(
        "predict", "lr", "two.svm", "--nbest", "2"
    )
    fenchel.ChainCRF().fit([np.eye(2)], [["X", "Y"]]).save("numbers")
    assert "use it there, by fenchel.load" in fails("predict", "numbers", "test.txt")
    assert run("inspect", "numbers").exit_code == 0


# ---- evaluate, inspect, attributes


def test_evaluate_prints_accuracy_and_spans(model):
    X, y = labelled("test.txt")
    scores = span_scores(y, fenchel.load(model).predict(X))
    result = run("evaluate", model, "test.txt")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"accuracy   {scores.accuracy:.6g}\n" in result.stdout
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()}
    shares = [f"{100 * share:.2f}" for share in (scores.precision, scores.recall, scores.f1)]
    assert rows["all"] == [*shares, *map(str, (scores.n_true, scores.n_predicted, scores.n_right))]
    assert set(scores.types) <= set(rows)


def test_labels_new_to_the_model_count_as_wrong(model):
    Path("odd.txt").write_text(SENTENCE.replace("B-UNIT", "B-MEASURE"))
    result = run("evaluate", model, "odd.txt")
    assert result.stderr == (
        "fenchel: warning: odd.txt has 1 label new to the model, counted as wrong (1 token): B-MEASURE\n"
    )
    assert result.exit_code == 0
    assert "sentences  1, 0 of them without an error" in result.stdout


def test_inspect_shows_sizes_transitions_and_attributes(model):
    fitted, shown = fenchel.load(model), run("inspect", model, "--top", "1").stdout
    assert "read as      2 columns, template pos\n" in shown
    assert f"attributes   {len(fitted.attribute_names_):,}\n" in shown
    assert f"\n 1 {fitted.classes_[0]} " in shown  # a table with numbers for headings
    tables = shown.partition("transitions, from")[2].split("\n")
    assert max(map(len, tables)) <= 100
    last = np.argmax(np.abs(fitted.coef_[-1]))
    expected = [fitted.classes_[-1], fitted.attribute_names_[last], f"{fitted.coef_[-1, last]:+.4f}"]
    assert shown.splitlines()[-1].split() == expected
    assert "transitions, from" not in run("inspect", model, "--top", "0").stdout


def test_inspect_names_few_labels_and_lists_the_heaviest_of_many(folder):
    Path("few.txt").write_text("a A\nb B\nc A\n\n")
    assert run("train", "crf", "few.txt", "-o", "few", "-q", "--ban", "B B").exit_code == 0
    shown = run("inspect", "few").stdout
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith((" A ", " B "))][1] == "ban"
    Path("many.txt").write_text("".join(f"w{k} label{k}\n" for k in range(20)))
    assert run("train", "crf", "many.txt", "-o", "many", "-q").exit_code == 0
    assert "heaviest transitions (20 of 400)" in run("inspect", "many").stdout


def test_attributes_are_shown_in_the_order_of_the_template(folder):
    Path("own").write_text("U0:%x[0,0]\nU1:%x[-1,0]\nB0:%x[0,0]\nB\n")
    Path("two.txt").write_text("a X\nb Y\n\na X\n")
    shown = run("attributes", "two.txt", "--template", "own").stdout
    assert shown == "a X\tU0:a\tU1:_B-1\nb Y\tU0:b\tU1:a\tB0:b (edge)\n\na X\tU0:a\tU1:_B-1\n\n"
    shown = run("attributes", "two.txt", "--template", "chunk", "--unlabelled").stdout
    assert shown.splitlines()[1].split("\t")[:3] == ["b Y", "w[-1]=a", "w[0]=b"]
    arguments = ("attributes", "two.txt", "--template", "own", "--crfsuite")
    assert "pairs of labels, which CRFsuite's format cannot hold" in fails(*arguments)
    assert "leave --unlabelled out" in misused(*arguments, "--unlabelled")
    Path("words.txt").write_text("a\n")
    assert "1 column, expected" in fails("attributes", "words.txt", "--template", "pos")


# ---- race, path


def test_race(folder):
    solvers = ("--solvers", "eg,sdca,lbfgs", "--output", "race", "-q")
    result = run("race", "crf", "train.txt", "--min-count", "2", *solvers)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in Path("race").glob("*.jsonl")) == [
        "eg.jsonl",
        "lbfgs.jsonl",
        "sdca.jsonl",
    ]


def test_path_by_folds_and_by_held_out_sentences(folder):
    steps = ("--from", "0.1", "--to", "10", "--steps", "2", "-q")
    banned = ("--ban", "O I-NAME", "--solver", "sdca", "-o", "best")
    result = run("path", "crf", "train.txt", "--cv", "2", *steps, *banned)
    assert result.exit_code == 0, result.output
    assert " F1 " in result.stdout and "best  C = 10, F1 " in result.stdout
    assert fenchel.load("best").get_params()["C"] == 10.0
    result = run("path", "crf", "train.txt", "--valid", "test.txt", "--constant", "c2", *steps, "-o", "best")
    score = span_scores(labelled("test.txt")[1], fenchel.load("best").predict(labelled("test.txt")[0])).f1
    assert f"best  c2 = 0.1, F1 {score:.6g}" in result.stdout
    assert fenchel.load("best").c2 == 0.1


def test_the_sample_is_well_formed():
    tokens = read_columns(SAMPLE)
    _, y = labelled(SAMPLE)
    assert 400 <= len(tokens) <= 500 and tokens.n_columns == 2
    for labels in y:
        for before, label in zip(["O", *labels], labels, strict=False):
            assert not label.startswith("I-") or before[2:] == label[2:], labels
