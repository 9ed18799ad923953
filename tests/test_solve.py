"""The loop: when it ends, what it returns, what it calls, and what it refuses."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from math import inf, isfinite, isnan, nan

import numpy as np
import pytest

import fenchel
from fenchel import problems, solvers
from fenchel.loop import Stop, solve
from fenchel.solvers import SOLVERS as ALL
from fenchel.solvers.base import Start
from fenchel.trace import Certificate, Row, Status, Trace
from matrix import cases, optimum

SOLVERS = [name for name in ALL if name != "perceptron"]  # which proves nothing, and has its own tests
CASES = {case.name: case for case in cases()}
CASE = CASES["sparse-C=1"]
BEST = optimum(CASE.name)[0]


def margin_problem():
    """Three labels and the hinge loss, for the solvers that train nothing else."""
    return problems.flat(CASE.X, np.random.default_rng(0).integers(3, size=48), loss="hinge")


def able(problem):
    return [name for name in SOLVERS if solvers.solver_class(name).needs <= problem.offers]


def problem_for(solver):
    return CASE.problem() if solver in able(CASE.problem()) else margin_problem()


@cache
def margin_bounds():
    """Below and above the optimum of the margin problem, by a solver that has its own tests."""
    certificate = solve(margin_problem(), "cd-dual", tol=1e-9, max_passes=1e5).certificate
    assert certificate.converged
    return certificate.dual, certificate.primal


def check(certificate, solver="newton"):
    """True of the returned model, whatever ended the run."""
    low, high = (BEST, BEST) if solver in able(CASE.problem()) else margin_bounds()
    assert certificate.dual <= high * (1 + 1e-12) and certificate.primal >= low * (1 - 1e-12)
    assert certificate.primal - high <= certificate.gap + 1e-12 * high


# ---- when it ends


@pytest.mark.parametrize("solver", SOLVERS)
def test_max_passes_ends_the_run(solver):
    result = solve(problem_for(solver), solver, tol=0.0, max_passes=20)
    assert result.status in {Status.MAX_PASSES, Status.STALLED}
    # A step of tron is one system of equations, one of cutting planes a quadratic program.
    longest = {"tron": 2 * CASE.problem().n, "cutting-plane": 1}.get(solver, 40)
    assert result.certificate.passes <= 20 + longest
    assert result.status is Status.STALLED or result.certificate.passes >= 20
    check(result.certificate, solver)


def test_no_passes_at_all_are_one_step():
    result = solve(CASE.problem(), "newton", tol=0.0, max_passes=0)
    assert result.status is Status.MAX_PASSES and result.w.any()
    assert len(result.trace) == 2
    check(result.certificate)


@pytest.mark.parametrize("solver", ["newton", "cd-dual", "sgd"])
def test_max_seconds_ends_the_run(solver):
    result = solve(CASE.problem(), solver, tol=0.0, max_passes=inf, max_seconds=0.0)
    assert result.status is Status.MAX_SECONDS
    check(result.certificate)
    assert "time limit" in str(result.certificate)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tolerance_of_zero_ends_cleanly(solver):
    """Batch solvers notice that rounding stops them, the others run to their limit; none claims more."""
    result = solve(problem_for(solver), solver, tol=0.0, max_passes=3000)
    assert result.status in {Status.STALLED, Status.MAX_PASSES} or result.certificate.gap == 0.0
    check(result.certificate, solver)
    if solver in {"newton", "tron", "lbfgs", "cd-dual", "cd-primal"}:
        assert result.certificate.relative_gap <= 1e-13


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_converged_means_within_the_tolerance(tol):
    result = solve(CASE.problem(), "lbfgs", tol=tol)
    assert result.status is Status.CONVERGED and result.certificate.converged
    assert result.certificate.relative_gap <= tol
    assert all(row.gap > tol * row.primal for row in result.trace.rows[:-1])


@pytest.mark.parametrize("name", ["tol", "max_passes", "max_seconds"])
@pytest.mark.parametrize("value", [-1.0, nan])
def test_limits_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name}=.* at least 0"):
        Stop(**{name: value})
    with pytest.raises(ValueError, match=f"{name}=.* at least 0"):
        solve(CASE.problem(), "newton", **{name: value})


# ---- Ctrl-C


@pytest.mark.parametrize("solver", ["lbfgs", "cd-dual", "sdca", "sgd", "gis"])
@pytest.mark.parametrize("row", [1, 3])
def test_an_interrupt_in_a_callback_returns_the_best_model(solver, row):
    interrupted = []

    def press(trace):
        if len(trace) == row and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt

    result = solve(CASE.problem(), solver, tol=1e-12, check_every=1, callbacks=[press])
    assert result.status is Status.INTERRUPTED and interrupted
    check(result.certificate)
    assert result.certificate.primal <= min(result.trace.column("primal"))
    assert result.certificate.primal == pytest.approx(CASE.dense().primal(result.w, result.b), rel=1e-12)
    assert str(result.certificate).startswith("interrupted: objective")


def test_a_callback_that_keeps_interrupting_ends_the_run_too():
    def press(trace):
        raise KeyboardInterrupt

    try:
        result = solve(CASE.problem(), "lbfgs", callbacks=[press])
    except KeyboardInterrupt:
        pytest.fail("the second interrupt escaped")
    assert result.status is Status.INTERRUPTED
    check(result.certificate)


@pytest.mark.parametrize("solver", ["newton", "cd-dual", "sdca", "eg", "sgd", "sag", "scgis"])
@pytest.mark.parametrize("at", [0, 1, 4])
def test_an_interrupt_inside_a_step_returns_the_best_model(solver, at, monkeypatch):
    method = solvers.make(solver)
    steps, step = [], type(method).step

    def interrupted(self, problem, state):
        steps.append(True)
        if len(steps) > at:
            raise KeyboardInterrupt
        step(self, problem, state)

    monkeypatch.setattr(type(method), "step", interrupted)
    result = solve(CASE.problem(), method, tol=1e-14)
    assert result.status is Status.INTERRUPTED and len(steps) == at + 1
    assert result.certificate.primal == pytest.approx(CASE.dense().primal(result.w, result.b), rel=1e-12)
    check(result.certificate)


def test_other_exceptions_are_not_swallowed():
    def fail(trace):
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        solve(CASE.problem(), "newton", callbacks=[fail])


# ---- what it calls


def test_callbacks_see_the_trace_grow():
    lengths, others = [], []
    callbacks = [lambda trace: lengths.append(len(trace)), lambda trace: others.append(trace[-1])]
    result = solve(CASE.problem(), "lbfgs", tol=1e-6, callbacks=callbacks)
    assert lengths == list(range(1, len(result.trace) + 1))
    assert others == result.trace.rows


class Listener:
    """A callback that hears of steps too."""

    def __init__(self):
        self.heard = []

    def __call__(self, trace):
        self.heard.append(("check", trace[-1].passes))

    def stepped(self, passes, estimate):
        self.heard.append(("step", passes, estimate))


def test_callbacks_hear_of_the_first_pass_and_of_what_the_solver_thinks():
    listener = Listener()
    result = solve(CASE.problem(), "cd-dual", tol=1e-6, callbacks=[listener])
    first = listener.heard[0]
    assert first[0] == "step", "a dual solver is not checked at its start"
    assert 0.0 < first[1] <= result.trace[-1].passes
    assert any(kind == "step" and rest[-1] > 0.0 for kind, *rest in listener.heard), "an estimate of the gap"
    assert listener.heard[-1] == ("check", result.trace[-1].passes)


def test_validation_scores_are_noted_in_each_row():
    seen = []

    def validate(w, b):
        seen.append((w.copy(), b))
        return float(len(seen))

    result = solve(CASES["sparse-C=1-free"].problem(), "lbfgs", tol=1e-6, validate=validate)
    assert result.trace.column("validation") == [float(k + 1) for k in range(len(result.trace))]
    np.testing.assert_array_equal(seen[-1][0], result.w)
    assert seen[-1][1] == result.b
    assert all(isnan(value) for value in solve(CASE.problem(), "lbfgs").trace.column("validation"))


def test_between_checks_the_solver_tells_what_it_makes_of_the_gap():
    trace = solve(CASE.problem(), "cd-dual", tol=1e-6).trace
    assert len(trace.steps) > len(trace) and trace.steps[-1].passes == trace[-1].passes
    assert trace.steps[-1].relative_gap < 0.1 * trace.steps[0].relative_gap
    assert solve(CASE.problem(), "cd-dual", tol=1e-6, check_every=1).trace.steps == []


@pytest.mark.parametrize("solver", ["cd-dual", "sdca", "sgd", "sag"])
def test_check_every_gives_a_row_for_that_many_passes(solver):
    often = solve(CASE.problem(), solver, tol=0.0, max_passes=32, check_every=2)
    passes = np.array(often.trace.column("passes"))
    assert passes[0] <= 6 and (np.diff(passes[:-1]) >= 2).all() and (np.diff(passes) < 6).all()
    seldom = solve(CASE.problem(), solver, tol=0.0, max_passes=32)
    assert len(seldom.trace) < len(often.trace)


@pytest.mark.parametrize("solver", SOLVERS)
def test_counts_grow_along_the_trace(solver):
    trace = solve(problem_for(solver), solver, tol=1e-8, max_passes=60, check_every=1).trace
    for name in ("passes", "oracle_calls", "updates", "seconds"):
        assert (np.diff(trace.column(name)) >= 0).all()
    assert trace[-1].oracle_calls >= CASE.problem().n and trace[-1].seconds > 0.0


# ---- warm starts, seeds


@pytest.mark.parametrize("solver", ["lbfgs", "tron", "cd-primal", "gis", "sag", "cd-dual", "sdca", "eg"])
@pytest.mark.parametrize("name", ["sparse-C=1", "dense-C=1-free"])
def test_a_warm_start_needs_fewer_passes(solver, name):
    problem, limits = CASES[name].problem(), dict(tol=1e-6, max_passes=1e4, check_every=1)
    cold = solve(problem, solver, **limits)
    again = solve(problem, solver, **limits, start=cold.start)
    assert cold.status is again.status is Status.CONVERGED
    assert again.certificate.passes < cold.certificate.passes
    weights_only = solve(problem, solver, **limits, start=Start(cold.w, cold.b))
    assert weights_only.certificate.passes < cold.certificate.passes


def test_a_warm_start_without_a_regulariser_is_measured_by_the_gradient_at_zero():
    """Begun at the optimum the run is over: its gradient is small against that at w = 0."""
    rng = np.random.default_rng(11)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    problem = problems.binary(X, (rng.uniform(size=60) < 0.5).astype(float), C=inf)
    cold = solve(problem, "lbfgs", tol=1e-6)
    again = solve(problem, "lbfgs", tol=1e-6, start=cold.start)
    assert cold.status is again.status is Status.CONVERGED
    assert again.certificate.passes == 0.0


@pytest.mark.parametrize("problem", [CASE.problem(), margin_problem()], ids=["log", "hinge"])
def test_a_start_is_not_changed(problem):
    first = solve(problem, "cd-dual", tol=1e-3)
    w, mu = first.w.copy(), first.mu.copy()
    for solver in able(problem):
        solve(problem, solver, tol=1e-5, max_passes=5, start=first.start)
        np.testing.assert_array_equal(first.w, w)
        np.testing.assert_array_equal(first.mu, mu)


@pytest.mark.parametrize(
    "start", [Start(np.zeros(3)), Start(np.zeros(60), 0.0, np.full((5, 2), 0.5))], ids=["w", "mu"]
)
def test_a_start_of_the_wrong_size_is_refused(start):
    with pytest.raises(ValueError, match="start"):
        solve(CASE.problem(), "cd-dual", start=start, max_passes=1)


def test_the_dual_variables_come_back_from_dual_solvers_only():
    assert solve(CASE.problem(), "cd-dual").mu.shape == (48, 2)
    assert solve(CASE.problem(), "newton").mu is None


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_seed_gives_the_same_bits(solver):
    runs = [solve(problem_for(solver), solver, tol=1e-8, max_passes=30) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert runs[0].trace.column("primal") == runs[1].trace.column("primal")


@pytest.mark.parametrize("solver", ["cd-dual", "sdca", "eg", "sag", "sag-nus", "sgd", "cd-primal", "scgis"])
def test_another_seed_gives_another_path_to_the_same_optimum(solver):
    runs = [solve(CASE.problem(), solvers.make(solver, seed=k), tol=1e-3, max_passes=3000) for k in (0, 1)]
    assert (runs[0].w != runs[1].w).any()
    for run in runs:
        check(run.certificate)


# ---- what it refuses


def test_a_mismatch_names_solver_model_and_alternatives():
    X, y = CASE.X, CASE.y
    message = (
        "solver 'lbfgs' cannot train a binary model with the hinge loss here: it offers no gradient; "
        "use sgd, cd-dual, eg, eg-gap, eg-batch, sdca"
    )
    with pytest.raises(ValueError, match=message):
        solve(problems.binary(X, y, loss="hinge"), "lbfgs")
    with pytest.raises(
        ValueError, match=r"'sdca' .*: it has no regulariser and so no dual; use gis, .*, tron, .*sag-nus$"
    ):
        solve(problems.binary(X, y, C=inf), solvers.SDCA())


def test_an_unknown_solver_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"'cddual'; did you mean 'cd-dual'\? there are gis, "):
        solve(CASE.problem(), "cddual")
    with pytest.raises(ValueError, match="unknown solver 'qqq'; there are gis, "):
        solve(CASE.problem(), "qqq")


def test_auto_chooses_a_solver_that_fits():
    X, y = CASE.X, CASE.y
    for problem in (
        CASE.problem(),
        problems.binary(X, y, loss="hinge"),
        problems.binary(X, y, C=inf, fit_intercept=True),
    ):
        assert solve(problem, "auto", max_passes=3).trace.solver in SOLVERS
    assert solve(CASE.problem()).status is Status.CONVERGED


# ---- certificate and trace


def certificate(**changes):
    values = {"primal": 0.5, "dual": 0.4995, "gap": 5e-4, "gradient_norm": 0.1}
    values |= {"passes": 12.0, "seconds": 0.25, "status": Status.CONVERGED}
    return Certificate(**values | changes)


def test_the_sentence_of_a_certificate():
    assert str(certificate()) == (
        "converged: objective 0.5 is proven within 0.1 % of the optimum (gap 0.0005), after 12 passes, 0.25 s"
    )
    assert str(certificate(status=Status.MAX_PASSES)).startswith("stopped at the limit of passes: objective")
    unregularised = certificate(dual=nan, gap=nan, status=Status.MAX_PASSES)
    assert str(unregularised) == (
        "stopped at the limit of passes: certificate none: unregularised; "
        "objective 0.5, gradient norm 0.1, after 12 passes, 0.25 s"
    )


def test_the_relative_gap():
    assert certificate().relative_gap == pytest.approx(1e-3)
    assert certificate(primal=0.0, dual=0.0, gap=0.0).relative_gap == 0.0
    assert certificate(primal=0.0, dual=-1.0, gap=1.0).relative_gap == inf


def test_a_certificate_survives_a_dictionary():
    first = certificate(status=Status.STALLED)
    values = first.to_dict()
    assert values["status"] == "STALLED" and json.loads(json.dumps(values)) == values
    assert Certificate.from_dict(values) == first


def test_trace_columns():
    result = solve(CASE.problem(), "newton", tol=1e-8)
    trace = result.trace
    assert isinstance(trace, Trace) and len(trace) == len(trace.rows) and list(trace) == trace.rows
    assert trace.column("primal") == [row.primal for row in trace]
    assert trace[0].passes == 0.0 and isinstance(trace[-1], Row)
    assert result.certificate.gap == trace[-1].gap
    assert trace.solver == "newton" and trace.problem == str(CASE.problem())
    assert all(isfinite(row.gradient_norm) for row in trace)
    with pytest.raises(KeyError, match="no column 'loss'; there are passes, oracle_calls"):
        trace.column("loss")


def test_solve_stays_a_function_of_the_package():
    """However often and in whatever order its names are imported."""
    program = (
        "import fenchel\n"
        "first, second = fenchel.solve, fenchel.solve\n"
        "from fenchel import solve\n"
        "import fenchel.solvers\n"
        "from fenchel import solve as again\n"
        "assert callable(first) and callable(second) and callable(solve) and callable(again)\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_the_package_names_what_it_offers():
    assert {"solve", "Start", "problems", "solvers"} <= set(dir(fenchel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fenchel.nothing
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        solvers.Nothing


@pytest.mark.parametrize("fill", [0.0, -1.0, 0.7])
def test_a_start_outside_the_simplex_is_refused(fill):
    problem = CASE.problem()
    start = fenchel.Start(np.zeros(problem.dim), 0.0, np.full((problem.n, 2), fill))
    with pytest.raises(ValueError, match=r"start\.mu must hold probabilities"):
        solve(problem, "cd-dual", start=start)


@pytest.mark.parametrize("solver", [solvers.CDDual, None, 5])
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises(ValueError, match="neither a solver's name nor an instance"):
        solve(CASE.problem(), solver)


@pytest.mark.parametrize(
    "limits", [dict(tol="a"), dict(tol=None), dict(max_passes=None), dict(check_every=0)]
)
def test_limits_that_are_no_numbers_are_refused(limits):
    with pytest.raises(ValueError, match="must be"):
        solve(CASE.problem(), "newton", **limits)


def test_certificates_with_an_unknown_number_are_equal():
    """On Python 3.13 a dataclass compares numbers one by one, and nan is not nan."""
    one, other = (Certificate(1.0, 0.5, 0.5, float("nan"), 3.0, 0.1, Status.CONVERGED) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != replace(one, dual=0.4) and one != 1.0
