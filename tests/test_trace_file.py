"""io/trace.py: what is written is read back, and damage is named; the plot drawn from it."""

import json
import os
import sys
from math import inf, isnan, nan

import pytest

from fenchel.errors import DataError
from fenchel.io.trace import read_trace, write_trace
from fenchel.report.plots import plot_race
from fenchel.trace import Row, Step, Trace, distances_to_optimum

ROWS = [
    Row(1.0, 10, 1, 0.1, 0.7, -inf, inf, 0.5, nan),
    Row(2.5, 25, 2, 0.2, 0.5, 0.3, 0.2, nan, 0.75),
    Row(3.0, 30, 3, 0.3, 0.6, 0.45, 0.05),
]


@pytest.fixture
def trace():
    return Trace("cd-dual", "binary log, λ = 0.1", list(ROWS), [Step(1.0, 0.1, inf), Step(2.0, 0.2, 0.3)])


@pytest.fixture
def path(tmp_path, trace):
    path = tmp_path / "run.jsonl"
    write_trace(path, trace, seed=3, C=inf, tol=1e-3)
    return path


def test_round_trip(path, trace):
    again = read_trace(path)
    assert (again.solver, again.problem) == (trace.solver, trace.problem)
    assert repr(again.rows) == repr(trace.rows)  # repr: nan equals nan
    assert again.steps == trace.steps


def test_files_of_before_there_were_steps_are_read(path, trace):
    header, *lines = path.read_text("utf-8").splitlines(keepends=True)
    facts = {name: value for name, value in json.loads(header).items() if name != "steps"}
    path.write_text(json.dumps(facts) + "\n" + "".join(lines), "utf-8")
    assert repr(read_trace(path).rows) == repr(trace.rows) and read_trace(path).steps == []


def test_every_line_is_strict_json_and_the_header_says_what_ran_where(path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    header, first, *_ = [
        json.loads(line, parse_constant=refuse) for line in path.read_text("utf-8").splitlines()
    ]
    assert (header["format_version"], header["seed"], header["C"], header["tol"]) == (1, 3, "inf", 1e-3)
    assert {"fenchel", "python", "numpy"} <= header["versions"].keys()
    assert header["machine"]["cores"] == os.cpu_count()
    assert os.uname().nodename not in header["machine"].values()
    assert first["validation"] is None
    assert first["dual"] == "-inf"


def test_an_existing_file_is_replaced_whole_and_nothing_else_is_left(path, trace):
    write_trace(path, Trace("sdca", "", trace.rows[:1]))
    assert len(read_trace(path)) == 1
    assert os.listdir(path.parent) == [path.name]


def test_a_failed_write_leaves_the_old_file(path, trace, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_trace(path, Trace("sdca", "", []))
    assert read_trace(path).solver == trace.solver
    assert os.listdir(path.parent) == [path.name]


def test_a_device_is_written_to_and_not_replaced(trace):
    write_trace("/dev/null", trace)
    assert not os.path.isfile("/dev/null")


def _damage(line, text):
    def change(lines):
        lines[line - 1] = text
        return lines

    return change


@pytest.mark.parametrize(
    ("change", "line", "sentence"),
    [
        (lambda lines: [], 1, "not JSON"),
        (_damage(1, '{"a": 1}'), 1, "not the header of a fenchel trace"),
        (_damage(1, '{"format_version": 9, "solver": ""}'), 1, "trace format 9"),
        (_damage(1, '{"format_version": 1, "solver": "", "steps": [[1, 2]]}'), 1, "lists of three numbers"),
        (_damage(1, "[]"), 1, "a list, expected an object"),
        (_damage(3, '{"passes": 1'), 3, "not JSON"),
        (_damage(3, "{}"), 3, "is missing"),
        (lambda lines: [*lines[:2], lines[2].replace("gap", "gasp"), lines[3]], 3, "'gap' is missing"),
        (lambda lines: [*lines[:2], lines[2].replace("}", ', "x": 1}')], 3, "field 'x' is unknown"),
        (lambda lines: [*lines[:2], lines[2].replace("0.75", '"high"')], 3, "validation is 'high'"),
        (lambda lines: [*lines[:2], lines[2].replace("0.75", "true")], 3, "validation is True"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(path, change, line, sentence):
    lines = change(path.read_text("utf-8").splitlines())
    path.write_text("".join(f"{text}\n" for text in lines), "utf-8")
    with pytest.raises(DataError, match=sentence) as caught:
        read_trace(path)
    assert (caught.value.source, caught.value.line) == (str(path), line)


def test_a_file_cut_short_is_noticed(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match="cut short"):
        read_trace(path)


def test_a_binary_file_is_no_trace(path):
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a text file"):
        read_trace(path)


def test_the_distance_is_the_gap_over_the_best_objective_so_far(trace):
    assert trace.measure == "relative gap"
    assert trace.distances() == [inf, 0.2 / 0.5, 0.05 / 0.5]


def test_without_a_gap_the_gradient_tells_the_distance():
    trace = Trace("lbfgs", "", [Row(k, 1, 1, k, 1.0, nan, nan, 4.0 / k) for k in (1, 2)])
    assert trace.measure == "relative gradient norm"
    assert trace.distances() == [1.0, 0.5]


def test_a_diverged_run_is_infinitely_far_and_an_unmeasured_one_unknown():
    diverged = Trace("sgd", "", [Row(1.0, 1, 1, 0.1, nan, 0.1, 0.5)])
    assert diverged.distances() == [inf]
    unmeasured = Trace("sgd", "", [Row(1.0, 1, 1, 0.1, 1.0, nan, nan)])
    assert isnan(unmeasured.distances()[0])


def test_the_plot_of_a_run_has_its_checks_and_the_estimates_between_them(trace):
    figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    checks, estimates = trace.plot(figure.Figure().add_subplot()).get_lines()
    assert checks.get_xdata().tolist() == [2.5, 3.0] and checks.get_ydata().tolist() == [0.4, 0.1]
    assert estimates.get_xdata().tolist() == [2.0] and estimates.get_linestyle() == ":"


def test_the_plot_is_a_png_and_leaves_pyplot_alone(tmp_path, trace):
    empty = Trace("gis", trace.problem, [Row(1.0, 1, 1, 0.1, nan, nan, nan)])
    loaded = "matplotlib.pyplot" in sys.modules
    plot_race([trace, empty], tmp_path / "race.png", tol=1e-3)
    assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_rivals_are_measured_from_the_best_bound_of_all():
    first = Trace("a", "p", [Row(0, 0, 0, 0.0, 4.0, 1.0, 3.0), Row(1, 0, 0, 1.0, 2.5, 1.5, 1.0)])
    second = Trace("b", "p", [Row(0, 0, 0, 0.0, 2.2, 2.0, 0.2), Row(1, 0, 0, 1.0, 3.0, 1.0, 0.2)])
    assert distances_to_optimum([first, second]) == [[1.0, 0.25], pytest.approx([0.1, 0.1])]
    bare = Trace("c", "p", [Row(0, 0, 0, 0.0, 4.0, nan, nan), Row(1, 0, 0, 1.0, 2.0, nan, nan)])
    assert distances_to_optimum([bare]) == [[1.0, 0.0]]
