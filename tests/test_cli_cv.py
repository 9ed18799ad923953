"""fenchel cv: folds, means, and what it refuses."""

import pytest

from commands import fails, run, write_classes, write_events
from fenchel.report.tables import Table, mean_table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    write_events(tmp_path)
    (tmp_path / "train.txt").write_text("the D\ndog N\n\na D\ncat N\n\nthe D\ncat N\nsits V\n\n" * 4)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [("lr", "three.svm"), ("maxent", "train.events", "--format", "opennlp"), ("crf", "train.txt")],
)
def test_each_fold_is_scored_and_the_mean_is_theirs(folder, arguments):
    result = run("cv", *arguments, "-k", "3", "-q")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    scores = [float(line.split()[2]) for line in lines if line.split()[:1] in (["1"], ["2"], ["3"])][:3]
    measure, mean, _, _ = lines[-1].split()
    assert measure == "accuracy"
    assert float(mean) == pytest.approx(sum(scores) / 3, rel=1e-4)
    assert "means over 3 folds" in result.stdout


def test_means_of_tables_row_by_row():
    first = Table(["class", "F1"], [["a", "0.5"], ["b", "1"]], {"F1"})
    second = Table(["class", "F1"], [["a", "0.7"]], {"F1"})
    means = mean_table([first, second], "t")
    assert [list(map(str, row)) for row in means.rows] == [["a", "0.6"], ["b", "1"]]


def test_more_folds_than_examples_are_refused(folder):
    assert "needs as many examples; there are 60" in fails("cv", "lr", "train.svm", "-k", "61", "-q")


def test_models_that_fall_short_are_told(folder):
    result = run("cv", "lr", "train.svm", "--solver", "gis", "--max-passes", "1", "-k", "2")
    assert result.exit_code == 1
    assert "2 of 2 models fell short" in result.stderr
