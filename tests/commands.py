"""Running the command line in the test's own process, and the small files it works on."""

import numpy as np
from click.testing import CliRunner

from fenchel.cli import cli

WORDS = {
    "sport": ["ball", "goal", "team", "win", "match"],
    "trade": ["market", "price", "goods", "team", "win"],
    "law": ["court", "judge", "case", "price", "match"],
}


def run(*arguments, **settings):
    """The finished command: exit_code, stdout, stderr."""
    return CliRunner().invoke(cli, list(map(str, arguments)), prog_name="fenchel", **settings)


def fails(*arguments, code=2, **settings):
    """The one sentence that a command which must fail says."""
    result = run(*arguments, **settings)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("fenchel: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("fenchel: ").rstrip()


def misused(*arguments):
    """What a command says of options it cannot take."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return result.stderr


def write_classes(folder):
    """train.svm and test.svm: two noisy classes, labels +1 and -1. three.svm, three-test.svm: 0, 1 and 2."""
    rng = np.random.default_rng(0)
    for name, n in (("train.svm", 60), ("test.svm", 30), ("three.svm", 90), ("three-test.svm", 30)):
        X = rng.random((n, 4)).round(3) + 0.001
        score = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n)
        labels = np.where(score > 0.0, "+1", "-1")
        if name.startswith("three"):
            labels = np.digitize(score, [-0.2, 0.2]).astype(str)
        (folder / name).write_text("".join(map(_line, labels, X)))


def _line(label, row):
    features = " ".join(f"{j}:{value:.3f}" for j, value in enumerate(row, start=1))
    return f"{label} {features}\n"


def write_events(folder):
    """train.events and test.events in OpenNLP's format, train.tadm: events of two to four candidates."""
    rng = np.random.default_rng(1)
    for name, n in (("train.events", 90), ("test.events", 40)):
        (folder / name).write_text("".join(_event(rng) for _ in range(n)))
    (folder / "train.tadm").write_text("".join(_candidates(rng) for _ in range(40)))


def _event(rng):
    label, other = (str(rng.choice(list(WORDS))) for _ in range(2))
    words = [*rng.choice(WORDS[label], 2), rng.choice(WORDS[other])]
    return f"{label} {' '.join(words)} length={rng.integers(1, 9)}\n"


def _candidates(rng):
    n = int(rng.integers(2, 5))
    right = rng.integers(n)
    lines = [
        f"{2 if j == right else int(rng.random() < 0.2)} 2 {rng.integers(4)} {1.5 if j == right else 1} 7 0.5"
        for j in range(n)
    ]
    return "\n".join([str(n), *lines]) + "\n"
