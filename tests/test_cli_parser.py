"""fenchel train, predict, evaluate, inspect, race and path for parsers."""

import json

import pytest

import fenchel
from commands import fails, run
from fenchel.io.treebanks import read_treebank
from fenchel.metrics import attachment_scores, scores_by_length

RULES = {"D": ("the", "a"), "N": ("cat", "dog", "bird"), "V": ("sees", "likes")}
SETTINGS = ("--min-count", "1", "--solver", "eg-gap", "--threads", "1")


def row(k, word, tag, head, label):
    return f"{k}\t{word}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_"


def sentence(i):
    """the cat sees a dog ."""
    nouns, verbs = RULES["N"], RULES["V"]
    words = ["the", nouns[i % 3], verbs[i % 2], "a", nouns[(i + 1) % 3], "."]
    heads, labels = [2, 3, 0, 5, 3, 3], ["det", "subj", "root", "det", "obj", "p"]
    tags = ["D", "N", "V", "D", "N", "."]
    return "\n".join(map(row, range(1, 7), words, tags, heads, labels)) + "\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("parser")
    crossing = "\n".join(map(row, range(1, 5), "abcd", "XXXX", (0, 4, 1, 3), "rrrr")) + "\n\n"
    (place / "train.conll").write_text("".join(map(sentence, range(12))) + crossing)
    (place / "test.conll").write_text("".join(map(sentence, range(5))))
    result = run("train", "parser", place / "train.conll", *SETTINGS, "-o", place / "model", "-C", "3")
    assert result.exit_code == 0, result.output
    said = "13 sentences (1 with arcs that cross left out), 76 words"
    assert said in result.stderr and "5 labels" in result.stderr, result.stderr
    return place


def test_predict_fills_heads_and_labels_in(folder):
    result = run("predict", folder / "model", folder / "test.conll")
    assert result.exit_code == 0 and result.stdout.strip() == (folder / "test.conll").read_text().strip()
    (folder / "words.txt").write_text("the\tD\ncat\tN\nsees\tV\n\na\tD\nbird\tN\n")
    result = run("predict", folder / "model", folder / "words.txt", "--nbest", "2", "--marginals")
    lines = result.stdout.split("\n")
    assert result.exit_code == 0 and lines[0].startswith("# 1 -") and lines[5].startswith("# 2 -")
    assert lines[1].startswith("the\tD\t2\t0.")


def test_predict_heads_alone_and_as_json(folder):
    trees = read_treebank(folder / "test.conll")
    lines = run("predict", folder / "model", folder / "test.conll", "--labels-only").stdout.split("\n")
    assert lines[:7] == ["2\tdet", "3\tsubj", "0\troot", "5\tdet", "3\tobj", "3\tp", ""]
    given = ("--json", "--probabilities")
    found = [
        json.loads(one)
        for one in run("predict", folder / "model", folder / "test.conll", *given).stdout.splitlines()
    ]
    assert [one["heads"] for one in found] == trees.heads and found[0]["labels"] == trees.labels[0]
    assert all(sum(row) == pytest.approx(1.0) for row in found[0]["probabilities"])
    assert "--json has all" in fails("predict", folder / "model", folder / "test.conll", "--probabilities")
    for nothing in ("", "\n"):
        assert run("predict", folder / "model", "-", input=nothing).exit_code == 0
    scores = json.loads(run("evaluate", folder / "model", folder / "test.conll", "--json").stdout)
    assert scores["words"][0]["uas_percent"] == 100.0 and scores["sentences"] == {"count": 5, "right": 5}
    dumped = run("dump", folder / "model").stdout.splitlines()
    weights = fenchel.load(folder / "model").coef_
    assert sorted(float(line.split("\t")[2]) for line in dumped[3:]) == sorted(
        weights[weights != 0.0].tolist()
    )


def test_evaluate_tells_attachment_with_and_without_punctuation(folder):
    wrong = (folder / "test.conll").read_text().replace("\t3\tp\t", "\t2\tp\t")
    (folder / "wrong.conll").write_text(wrong)
    result = run("evaluate", folder / "model", folder / "wrong.conll")
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.split("\n") if line.strip()]
    assert ["all", "30", "83.33", "83.33"] in rows and [
        "without",
        "punctuation",
        "25",
        "100.00",
        "100.00",
    ] in rows
    scores = attachment_scores(["a", "¿"], [[2, 0]], [[2, 1]])
    assert scores == {"all": (2, 0.5, None), "without punctuation": (1, 1.0, None)}


def test_inspect_and_path(folder):
    result = run("inspect", folder / "model", "--top", "3")
    assert result.exit_code == 0 and "heaviest features" in result.stdout, result.output
    assert "certificate of labels" in result.stdout
    made = (
        "--from",
        "0.1",
        "--to",
        "1",
        "--steps",
        "2",
        "--valid",
        folder / "test.conll",
        "-o",
        folder / "best",
    )
    result = run("path", "parser", folder / "train.conll", *SETTINGS, "--no-labels", *made)
    assert result.exit_code == 0, result.output
    model = fenchel.load(folder / "best")
    found = read_treebank(folder / "test.conll")
    assert model.labels_ is None and model.score(found.tokens, found.heads) == 1.0


def test_race(folder):
    settings = ("--no-labels", "--min-count", "1", "--threads", "1", "--tol", "0.01")
    result = run("race", "parser", folder / "train.conll", *settings, "--solvers", "eg,eg-gap")
    assert result.exit_code == 0, result.output
    ends = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[-2:]}
    assert ends == {"eg": "converged", "eg-gap": "converged"}


def test_what_is_wrong_is_said_with_file_and_line(folder):
    bad = folder / "bad.conll"
    bad.write_text(sentence(0).replace("\t3\tsubj", "\t1\tsubj"))
    assert (
        fails("train", "parser", bad, "-o", folder / "x")
        == f"{bad}:1: heads go round in a circle: 1 -> 2 -> 1"
    )
    bad.write_text(sentence(0).replace("\t3\tobj", "\t0\tobj"))
    said = fails("train", "parser", bad, "-o", folder / "x")
    assert said == f"{bad}:5: a second root, after word 3; expected one; --multi-root allows it"


def test_a_mistake_in_three_columns_is_no_other_kind_of_file(folder):
    bad = folder / "bad.tab"
    roots = "3: a second root, after word 2; expected one; --multi-root allows it"
    for heads, said in (("200", roots), ("210", "1: heads go round in a circle: 1 -> 2 -> 1")):
        bad.write_text("".join(f"w\tN\t{head}\n" for head in heads) + "\nw\tN\t0\n")
        assert fails("train", "parser", bad, "-o", folder / "x") == f"{bad}:{said}"


def test_a_page_of_a_parser_has_scores_by_length_and_of_labels(folder):
    page = folder / "page.html"
    result = run("report", folder / "model", "--test", folder / "test.conll", "-o", page)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    for expected in ("heads by the length of the arc", "labels of the true arcs", "confusion"):
        assert f"<caption>{expected}" in text
    assert "<td>root</td><td class=number>1.0000</td>" in text


def test_scores_by_length():
    found = scores_by_length(
        [[2, 3, 0], [2, 0], [2, 0, 2, 3, 2, 2, 2, 2, 2]], [[2, 0, 2], [0, 1], [9] * 8 + [2]]
    )
    assert found["root"] == (0.0, 0.0, 0.0, 3) and found["7 and more"] == (1 / 3, 1.0, 0.5, 1)
    assert found["1"] == (1 / 4, 1 / 6, 0.2, 6) and sum(row[-1] for row in found.values()) == 14
