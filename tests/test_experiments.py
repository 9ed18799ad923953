"""The harness of the papers' experiments, on made-up data: kept runs, missing data, verdicts, pages."""

import os
import shutil
import subprocess
import sys
import time
from itertools import pairwise, product
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.append(str(Path(__file__).resolve().parent.parent))

from experiments import __main__ as program
from experiments import batches, data, figures, page, tasks
from experiments.claims import Claim, Item, Table, Verdict, examine, faster, ratio
from experiments.lab import Lab, Missing, NotRun, Run, Task, essence, file_name, optimum, proven, spaced
from experiments.lepriol2018 import chains, methods
from fenchel import problems, solvers
from fenchel.trace import Row, Trace
from matrix import sparse_features


def made_up():
    X = sparse_features(np.random.default_rng(0))
    y = np.arange(X.shape[0]) % 2 == 0
    return problems.binary(X, y, C=1.0, threads=1), lambda w, b: float(np.mean((X @ w > 0) == y))


def nowhere():
    raise FileNotFoundError("the set 'moon' needs the file moon.gz")


HERE, GONE = Task("here", made_up), Task("gone", nowhere)


def both(lab):
    run = lambda task: {  # noqa: E731
        name: lab.run(task, name, solvers.make(name), max_seconds=5.0, tol=1e-8)
        for name in ("lbfgs", "newton")
    }
    return lab.each([GONE, HERE], run)


def test_a_run_is_made_once_and_again_only_if_its_settings_change(tmp_path):
    said = []
    lab = Lab(tmp_path, say=said.append)
    first = lab.run(HERE, "a run", solvers.LBFGS(), max_seconds=5.0)
    again = Lab(tmp_path, say=said.append).run(GONE_BUT_KEPT, "a run", solvers.LBFGS(), max_seconds=5.0)
    assert len(said) == 1 and again.trace.rows == first.trace.rows
    assert first.facts["status"] == "CONVERGED" and first.trace[0].validation >= 0.0
    lab.run(HERE, "a run", solvers.LBFGS(memory=3), max_seconds=5.0)
    Lab(tmp_path, fresh=True, say=said.append).run(HERE, "a run", solvers.LBFGS(memory=3), max_seconds=5.0)
    assert len(said) == 3
    assert sorted(path.name for path in tmp_path.rglob("*.gz")) == ["a-run.jsonl.gz"]
    assert file_name("SGD η₀ = 0.1") == "SGD-eta0-0.1" and file_name("SAG-NUS*") == "SAG-NUS-star"


GONE_BUT_KEPT = Task("here", nowhere)


def test_a_run_without_a_limit_is_kept_too(tmp_path):
    said = []
    for task in (HERE, GONE_BUT_KEPT):
        lab = Lab(tmp_path, say=said.append)
        lab.run(task, "a run", solvers.LBFGS(), max_seconds=5.0, max_passes=inf)
    assert len(said) == 1


def test_an_option_that_is_new_since_a_run_was_made_does_not_make_it_anew():
    before, now = {"solver": "LBFGS(memory=3)", "tol": 1e-6}, {"solver": repr(solvers.LBFGS(memory=3))}
    assert essence(before) == essence(now | {"tol": 1e-6})
    assert essence(now) != essence({"solver": repr(solvers.LBFGS(memory=3, rounded=False))})
    assert essence({"solver": "auto"}) == {"solver": "auto"} and essence({"seed": 1}) == {"seed": 1}


def test_measurements_are_kept_too(tmp_path):
    lab = Lab(tmp_path)
    assert lab.measure(HERE, "count", lambda: [1, 2], seed=0) == [1, 2]
    assert lab.measure(HERE, "count", lambda: [3], seed=0) == [1, 2]
    assert lab.measure(HERE, "count", lambda: [3], seed=1) == [3]
    with pytest.raises(Missing, match=r"here: the set 'moon' needs the file moon\.gz"):
        lab.measure(HERE, "moons", nowhere)


def test_an_interrupted_run_leaves_no_file(tmp_path):
    class Interrupted(solvers.LBFGS):
        def step(self, problem, state):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Lab(tmp_path).run(HERE, "a run", Interrupted(), max_seconds=5.0)
    assert not list(tmp_path.rglob("*.gz"))


def test_no_run_begins_after_the_time(tmp_path):
    with pytest.raises(NotRun, match="here: a run"):
        Lab(tmp_path, minutes=-1.0).run(HERE, "a run", solvers.LBFGS(), max_seconds=5.0)


def test_missing_data_are_named_and_the_rest_is_done(tmp_path):
    lab = Lab(tmp_path / "traces")
    item = Item("made.fig1", "A figure", "What it shows.", both, draw, tables, CLAIMS)
    outcome = examine(item, lab, tmp_path)
    assert lab.missing == {"gone": "gone: the set 'moon' needs the file moon.gz"}
    assert [verdict.word for verdict in outcome.verdicts] == ["holds", "does not hold", "data not available"]
    assert "here: " in outcome.verdicts[0].margin
    nothing = examine(
        Item(
            "made.fig2", "", "", lambda lab: lab.each([GONE], lambda task: task.problem), None, claims=CLAIMS
        ),
        lab,
        tmp_path,
    )
    assert nothing.missing.startswith("data not available: gone: ") and page.counts([nothing]) == {
        "data not available": 3
    }
    page.write(
        [outcome, nothing],
        tmp_path / "p.html",
        tmp_path / "R.md",
        {"made": "A paper"},
        page.conditions(lab),
    )
    html, text = (tmp_path / "p.html").read_text(), (tmp_path / "R.md").read_text()
    summary = "6 claims: 1 holds, 1 does not hold, 4 data not available"
    assert summary in html and summary in text
    assert "fenchel" in next(iter(lab.machines)) and next(iter(lab.machines)) in text
    assert "data:image/png;base64," in html and "![A figure](made.fig1.png)" in text
    assert "| lbfgs |" in text and "because so" in text and "moon.gz" in text
    assert (tmp_path / "made.fig1.png").read_bytes().startswith(b"\x89PNG")


CLAIMS = (
    Claim(
        "they are compared",
        lambda results: Verdict(faster("newton", "lbfgs")(results).holds is not None, "here: 1"),
    ),
    Claim("pigs fly", lambda results: Verdict(False, "none of 3"), reason="because so"),
    Claim("on the moon", faster("newton", "lbfgs", sets=("gone",))),
)


def draw(results, path):
    runs = results["here"]
    curves = {name: (run.column("seconds"), run.excess(optimum(runs.values()))) for name, run in runs.items()}
    figures.draw([figures.Panel("here", "seconds", "difference", curves, log_y=True)] * 2, path)


def tables(results):
    return [
        Table(
            ("solver", "passes"), [(name, run.column("passes")[-1]) for name, run in results["here"].items()]
        )
    ]


def made_run(label, primal, dual):
    rows = [Row(k, k, k, 0.5 * k, p, d, p - d) for k, (p, d) in enumerate(zip(primal, dual, strict=True))]
    return Run(label, Trace("x", "y", rows), {})


def test_speeds_are_compared_by_when_each_level_is_reached():
    quick, slow = (
        made_run("quick", [2.0, 1.0, 1.0], [0.0, 0.9, 1.0]),
        made_run("slow", [2.0, 1.5, 1.5, 1.0], [nan] * 4),
    )
    runs = {"quick": quick, "slow": slow}
    assert optimum(runs.values()) == 1.0 and proven(runs.values()) == 0.0
    assert quick.reach(0.1, 1.0) == 0.5 and slow.reach(0.1, 1.0, "passes") == 3
    assert faster("quick", "slow")({"a": runs}).holds
    assert "3.00 at 0.01" in faster("quick", "slow")({"a": runs}).margin
    assert "1.00 at 0.6, 3.00 at 0.01" in faster("quick", "slow", levels=(0.6, 0.01))({"a": runs}).margin
    assert not faster("slow", "quick")({"a": runs}).holds
    assert ratio(inf, inf) is None and ratio(inf, 1.0) == 0.0 and ratio(1.0, inf) == inf


def test_what_no_run_reached_is_not_decided():
    near = made_run("near", [2.0, 1.001], [0.0, 1.0])
    far, farther = made_run("far", [2.0, 1.5], [nan] * 2), made_run("farther", [2.0, 1.6], [nan] * 2)
    results = {"ocr": {"near": near, "far": far, "farther": farther}}
    undecided = methods.compare("far", "farther", "updates", ("ocr",))(results)
    assert undecided.holds is None and undecided.word == "not decided"
    assert methods.compare("near", "far", "updates", ("ocr",))(results).holds
    assert methods.compare("far", "farther", "updates", ("ocr",), levels=(0.6,))(results).holds is False
    assert methods.both(undecided, Verdict(True, "")).holds and methods.both(undecided).holds is None


def test_runs_of_two_problems_are_not_compared():
    runs = [made_run("a", [2.0], [0.0]), made_run("b", [1.0], [0.5])]
    assert optimum(runs) == 1.0
    runs[1].trace.problem = "flat log, n = 5, d = 3, λ = 0.1"
    with pytest.raises(ValueError, match="not of one problem"):
        optimum(runs)


def test_tokens_that_are_alike_are_one_context():
    X = sp.csr_matrix([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    problem = tasks.contexts(X, np.array([0, 1, 0, 1]), 2)
    assert problem.n == 2 and problem.lam == pytest.approx(1.0 / (10.0 * 2))
    np.testing.assert_allclose(problem.examples.mass, [0.75, 0.25])
    w = np.array([0.3, -0.2, 0.1, 0.5])
    plain = problems.flat(X, np.array([0, 1, 0, 1]), labels=2, observed=True, merge=False)
    plain = plain.with_penalty(problem.lam)
    assert problem.evaluate(w).value == pytest.approx(plain.evaluate(w).value, rel=1e-12)


def test_scores_are_taken_at_growing_distances():
    validate = spaced(lambda w, b: 1.0)
    taken = [k for k in range(1, 20) if validate(None, 0.0) == 1.0]
    assert taken == [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 18]


def test_every_item_has_a_name_of_its_own_and_claims_to_check():
    items = batches.items()
    assert {name.split(".")[0] for name in items} == set(batches.PAPERS)
    assert all(item.name == name and item.statement for name, item in items.items())
    assert [item.name for item in program.chosen(items, ["zhang2005"])] == [
        name for name in items if name.startswith("zhang2005.")
    ]
    with pytest.raises(SystemExit, match="there is no 'fig99'"):
        program.chosen(items, ["fig99"])


def test_an_interrupted_session_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    interrupted = []

    def second(lab):
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return {"here": lab.run(HERE, "second", solvers.make("newton"), max_seconds=5.0)}

    def first(lab):
        return {"here": lab.run(HERE, "first", solvers.make("lbfgs"), max_seconds=5.0)}

    monkeypatch.setattr(program, "HERE", tmp_path)
    monkeypatch.setattr(
        batches,
        "items",
        lambda: {n: Item(n, n, "", f) for n, f in (("zhang2005.a", first), ("zhang2005.b", second))},
    )
    with pytest.raises(KeyboardInterrupt):
        program.main(["--quick"])
    assert "here: first" in capsys.readouterr().err
    assert program.main(["--quick"]) == 0
    said = capsys.readouterr().err
    assert "here: second" in said and "here: first" not in said


def test_a_session_names_the_set_that_is_missing_and_does_the_rest(tmp_path, monkeypatch, capsys):
    item = Item("zhang2005.a", "A figure", "", both, draw, tables, CLAIMS)
    gone = Item(
        "zhang2005.b", "Another", "", lambda lab: lab.each([GONE], lambda task: task.problem), claims=CLAIMS
    )
    monkeypatch.setattr(program, "HERE", tmp_path)
    monkeypatch.setattr(batches, "items", lambda: {one.name: one for one in (gone, item)})
    assert program.main(["--quick"]) == 0
    told = capsys.readouterr()
    assert "data not available: gone: the set 'moon' needs the file moon.gz" in told.err
    assert "6 claims: 1 holds, 1 does not hold, 4 data not available" in told.out
    assert "moon.gz" in (tmp_path / ".quick" / "RESULTS.md").read_text()


def test_two_papers_are_run_by_two_processes(tmp_path):
    """As a program of its own: processes that begin anew do not know its `__main__`."""
    names = ["lepriol2018.table1", "zhang2005.data"]
    assert batches.parts(names) == [[name] for name in names]
    root = Path(__file__).resolve().parent.parent
    shutil.copytree(
        root / "experiments", tmp_path / "experiments", ignore=shutil.ignore_patterns("traces", ".*")
    )
    told = subprocess.run(
        [sys.executable, "-m", "experiments", "--quick", "--jobs", "2", "--only", *names],
        env=os.environ | {"FENCHEL_DATA": str(tmp_path), "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert all(f"data not available: {word}" in told.stderr for word in ("webkb", "crf-ocr", "crf-pos"))
    text = (tmp_path / "experiments" / ".quick" / "RESULTS.md").read_text()
    assert text.index("zhang2005.data") < text.index("lepriol2018.table1")  # in the order of the papers


def test_what_shares_problems_is_run_by_one_process():
    parts = batches.parts(batches.items())
    assert sorted(name for part in parts for name in part) == sorted(batches.items())
    assert len(parts) == len(batches.BATCHES)
    assert all({"yu2011.fig2", "huang2010.fig3"} <= set(part) for part in parts if "yu2011.fig2" in part)


def test_no_run_begins_that_could_end_after_the_time(tmp_path):
    with pytest.raises(NotRun, match="here: a run"):
        Lab(tmp_path, minutes=1.0).run(HERE, "a run", solvers.LBFGS(), max_seconds=61.0)


def test_seconds_are_the_processors(tmp_path):
    def waits():
        problem, score = made_up()
        return problem, lambda w, b: time.sleep(0.05) or score(w, b)

    class Idle(solvers.LBFGS):
        def step(self, problem, state):
            time.sleep(0.2)
            super().step(problem, state)

    run = Lab(tmp_path, quick=True).run(Task("slow", waits), "idle", Idle(), max_seconds=5.0)
    assert run.facts["clock"] == "processor" and run.column("seconds")[-1] < 0.2


def test_a_fault_of_one_item_does_not_cost_the_others(tmp_path, capsys):
    item = Item(
        "made.fig1", "", "", lambda lab: {}, None, lambda results: [], (Claim("", lambda results: 1 / 0),)
    )
    outcome = batches.attempt(item, Lab(tmp_path), tmp_path)
    assert outcome.missing.startswith("failed: ZeroDivisionError") and outcome.verdicts[0].holds is None
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_best_labels_of_letters_are_those_of_all():
    rng = np.random.default_rng(0)
    s, T = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    scores = {
        y: sum(s[t, k] for t, k in enumerate(y)) + sum(T[a, b] for a, b in pairwise(y))
        for y in product(range(3), repeat=4)
    }
    assert tuple(chains.viterbi(s, T)) == max(scores, key=scores.get)


def test_information_gain_is_that_of_the_counts():
    X, y = (
        sp.csr_matrix([[1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]]),
        np.array([0, 0, 1, 1]),
    )
    third = -(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3))
    np.testing.assert_allclose(
        data.information_gain(X, y), [np.log(2), np.log(2) - 0.75 * third, 0.0], atol=1e-12
    )
