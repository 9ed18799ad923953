"""Every solver on small chain problems: one optimum, and a true certificate on the way."""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from chains import assert_certified, random_data
from fenchel import problems, solvers
from fenchel.loop import solve
from fenchel.losses import LOSSES
from fenchel.offers import REGULARISED, offered
from fenchel.solvers import SOLVERS, make, solver_class
from fenchel.structures.chain import Chain
from fenchel.trace import Status

LENGTHS = tuple(1 + np.arange(30) * 5 % 8)
SAMPLINGS = ("uniform", "importance", "gap", "gap-importance", "max")
CONSTANTS = (1e-2, 1.0, 1e2)


def able(loss):
    """The solvers that minimise the loss; the perceptron has its own tests."""
    kinds = {name: solver_class(name) for name in SOLVERS if name != "perceptron"}
    return [name for name, kind in kinds.items() if kind.needs <= offered(Chain, LOSSES[loss]) | REGULARISED]


@cache
def data():
    return random_data(20, LENGTHS, A=12, K=4)


@cache
def problem(C=1.0, loss="log"):
    return data().problem(loss, C=C)


@cache
def optimum(C=1.0, loss="log"):
    """P* and w, proven to ten digits (at the weakest regulariser eight); of the hinge loss to six."""
    if loss == "log":
        result = solve(problem(C), "tron", tol=1e-10 if C < 1e6 else 1e-8, max_passes=1e5)
    else:
        result = solve(problem(C, loss), solvers.CuttingPlane(slack="1"), tol=1e-6)
    assert result.status is Status.CONVERGED
    return result.certificate.primal, result.w


# ---- the log loss


def log_solvers():
    named = {name: make(name) for name in able("log") if name != "sdca"}
    return named | {f"sdca-{kind}": solvers.SDCA(sampling=kind) for kind in SAMPLINGS}


def test_these_solvers_take_chains():
    dual = {"sgd", "eg", "eg-gap", "eg-batch", "sdca"}
    assert set(able("log")) == dual | {"lbfgs", "tron", "sag", "sag-nus"}
    assert set(able("hinge")) == dual | {"cutting-plane", "cd-outputs"}


SLOW = {("sgd", 1e2), ("eg-batch", 1e2)}  # they crawl where the regulariser is weak


@pytest.mark.parametrize("C", CONSTANTS)
@pytest.mark.parametrize("name", log_solvers())
def test_every_solver_of_the_log_loss_reaches_one_optimum(name, C):
    tol = 1e-2 if name == "sgd" else 1e-5
    passes = 500 if (name, C) in SLOW else 2e4
    result = solve(problem(C), log_solvers()[name], tol=tol, max_passes=passes)
    best, w = optimum(C)
    assert_certified(result, best, accuracy=1e-9)
    if (name, C) in SLOW:
        return
    assert result.status is Status.CONVERGED
    assert result.certificate.primal <= best / (1.0 - tol)
    # P is λ-strongly convex: a small gap leaves w little room.
    assert ((result.w - w) ** 2).sum() <= 2.0 * (tol + 1e-9) * best / problem(C).lam * 1.01


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("name", ["lbfgs", "tron", "sgd", "sag-nus", "eg", "eg-batch", "sdca-gap"])
def test_extreme_constants_leave_true_certificates(name, C):
    passes = 300 if C > 1.0 else 2000
    result = solve(problem(C), log_solvers()[name], tol=1e-4, max_passes=passes)
    assert_certified(result, optimum(C)[0], accuracy=2e-8)
    if C < 1.0:
        assert result.status is Status.CONVERGED


@pytest.mark.parametrize(
    "solver",
    [
        solvers.EG(eta="search"),
        solvers.EG(anneal=10.0),
        solvers.EG(first=0.0),
        solvers.SDCA(step_size="one-newton"),
        solvers.SDCA(first=1.0),
        solvers.SDCA(first=0.0),
        solvers.SDCA(non_uniform=1.0),
    ],
    ids=[
        "eg-search",
        "eg-anneal",
        "eg-uniform",
        "sdca-one-newton",
        "sdca-uniform",
        "sdca-truth",
        "sdca-adaptive",
    ],
)
def test_settings_of_the_dual_solvers(solver):
    result = solve(problem(1.0), solver, tol=1e-5, max_passes=500)
    assert_certified(result, optimum(1.0)[0], accuracy=1e-9)
    assert result.status is Status.CONVERGED


# ---- the hinge loss

HINGE = {
    "sdca": (solvers.SDCA(), 1e-3),
    "sdca-uniform": (solvers.SDCA(sampling="uniform"), 1e-3),
    "sdca-max": (solvers.SDCA(sampling="max"), 1e-3),
    "eg": (solvers.EG(), 1e-2),
    "sgd": (solvers.SGD(), 1e-2),
    "cutting-plane": (solvers.CuttingPlane(slack="1"), 1e-3),
    "cd-outputs": (solvers.CDOutputs(), 1e-5),
}


@pytest.mark.parametrize("C", [1e-2, 1.0])
@pytest.mark.parametrize("name", HINGE)
def test_every_solver_of_the_hinge_loss_reaches_one_optimum(name, C):
    solver, tol = HINGE[name]
    result = solve(problem(C, "hinge"), solver, tol=tol, max_passes=2e4)
    best, _ = optimum(C, "hinge")
    assert result.status is Status.CONVERGED
    assert_certified(result, best, accuracy=2e-5)
    assert result.certificate.primal <= best / (1.0 - tol)


@pytest.mark.parametrize("C", [1e-6, 1e2, 1e6])
def test_at_any_constant_no_bound_of_one_solver_passes_the_objective_of_another(C):
    lowest, highest = np.inf, -np.inf
    for solver, _ in HINGE.values():
        for row in solve(problem(C, "hinge"), solver, tol=1e-3, max_passes=60).trace:
            assert row.primal >= row.dual - 1e-12 * abs(row.primal)
            lowest, highest = min(lowest, row.primal), max(highest, row.dual)
    assert highest <= lowest * (1.0 + 1e-12)


# ---- against all sequences written out


def small(**more):
    return random_data(21, (1, 2, 3, 3, 2, 1, 3), A=4, K=3, **more)


@pytest.mark.parametrize("name", ["tron", "eg", "sdca"])
@pytest.mark.parametrize("B", [0, 2])
def test_the_optimum_of_the_log_loss_is_that_of_all_sequences_written_out(name, B):
    examples = small(B=B)
    problem = examples.problem(C=2.0)
    best, w, _ = examples.written_out(problem.lam).optimum()
    result = solve(problem, name, tol=1e-9, max_passes=1e4)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(result.w, w, atol=1e-3)


def test_the_optimum_of_the_hinge_loss_is_that_of_the_quadratic_program():
    examples = small()
    examples.costs = np.random.default_rng(0).integers(1, 4, size=len(examples.y)) / 2.0
    problem = examples.problem("hinge", C=2.0)
    best, _ = examples.written_out(problem.lam, hinge=True).hinge_optimum()
    for solver, tol in ((solvers.SDCA(), 1e-3), (solvers.CuttingPlane(slack="1"), 1e-6)):
        result = solve(problem, solver, tol=tol, max_passes=1e4)
        assert result.status is Status.CONVERGED
        assert result.certificate.primal == pytest.approx(best, rel=2 * tol)
        assert result.certificate.dual <= best * (1.0 + 1e-6)


@pytest.mark.parametrize("name", ["lbfgs", "tron", "sag", "eg", "sdca"])
def test_weights_that_the_data_do_not_show_stay_zero(name):
    problem = small(B=2).problem(observed=True)
    result = solve(problem, name, tol=1e-6, max_passes=1e4)
    assert result.status is Status.CONVERGED
    assert not result.w[~problem.structure.mask].any()
    best = solve(problem, "tron", tol=1e-10).certificate.primal
    assert_certified(result, best, accuracy=1e-9)


@pytest.mark.parametrize("name", ["tron", "sag", "eg", "sdca"])
def test_banned_pairs_leave_one_optimum(name):
    examples = small()
    y = examples.y
    banned = np.ones((3, 3), bool)
    banned[y[:-1], y[1:]] = False
    assert banned.any()
    examples.banned = banned
    problem = examples.problem(C=2.0)
    best, _, _ = examples.written_out(problem.lam).optimum()
    result = solve(problem, name, tol=1e-7, max_passes=1e4)
    assert result.status is Status.CONVERGED
    assert_certified(result, best, accuracy=1e-8)


# ---- degenerate chains


@pytest.mark.parametrize("name", log_solvers())
def test_transitions_alone_and_nothing_at_all(name):
    y, starts = np.array([0, 1, 1, 0, 2, 1]), [0, 2, 3, 6]
    for transitions, columns in ((True, 0), (True, 2), (False, 2)):
        bare = problems.chain(np.zeros((6, columns)), y, starts, transitions=transitions)
        result = solve(bare, log_solvers()[name], tol=1e-3)
        assert result.status is Status.CONVERGED
        best = 1.933334 if transitions else 2.0 * np.log(3.0)
        assert best * (1.0 - 1e-6) <= result.certificate.primal <= best * (1.0 + 1e-3)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_chains_of_one_token_are_labels_without_neighbours(loss):
    examples = random_data(22, (1,) * 25, A=6, K=3)
    chain = examples.problem(loss, C=2.0)
    flat = problems.flat(examples.X, examples.y, labels=3, loss=loss, C=2.0, merge=False)
    w = np.random.default_rng(0).normal(size=18)
    here, there = chain.evaluate(np.append(w, np.zeros(9))), flat.evaluate(w)
    assert here.value == pytest.approx(there.value, rel=1e-13)
    np.testing.assert_allclose(here.gradient, np.append(there.gradient, np.zeros(9)), atol=1e-14)


@pytest.mark.parametrize("name", ["tron", "eg", "sdca"])
def test_chains_of_one_token_are_multinomial_regression(name):
    examples = random_data(22, (1,) * 25, A=6, K=3)
    result = solve(examples.problem(C=2.0), name, tol=1e-9, max_passes=1e4)
    model = LogisticRegression(C=2.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    model.fit(examples.X, examples.y)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.w[:18].reshape(6, 3), model.coef_.T, atol=1e-3)
    assert not result.w[18:].any()  # no neighbours, no transitions


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_one_label_leaves_nothing_to_learn(loss):
    examples = random_data(23, (1, 3, 2), K=1)
    for name in able(loss):
        solver = solvers.CuttingPlane(slack="1") if name == "cutting-plane" else name
        result = solve(examples.problem(loss), solver, max_passes=20)
        assert result.certificate.primal == 0.0 and not result.w.any(), name


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_one_sequence(loss):
    examples = random_data(24, (6,), K=3)
    problem = examples.problem(loss)
    values = []
    for name in able(loss):
        if name == "sgd":
            continue
        solver = solvers.CuttingPlane(slack="1") if name == "cutting-plane" else name
        tol = 1e-6 if loss == "log" else 1e-3
        result = solve(problem, solver, tol=tol, max_passes=1e5)
        assert result.status is Status.CONVERGED, name
        values.append(result.certificate.primal)
    np.testing.assert_allclose(values, min(values), rtol=tol)


# ---- warm starts, seeds, threads


@pytest.mark.parametrize("name", ["lbfgs", "tron", "sag", "eg", "eg-batch", "sdca"])
def test_a_warm_start_from_another_constant(name):
    before = solve(problem(0.3), name, tol=1e-4, max_passes=1e4)
    best, _ = optimum(1.0)
    cold = solve(problem(1.0), name, tol=1e-4, max_passes=1e4, check_every=1.0)
    warm = solve(problem(1.0), name, tol=1e-4, max_passes=1e4, check_every=1.0, start=before.start)
    assert warm.status is Status.CONVERGED
    assert_certified(warm, best, accuracy=1e-9)
    assert warm.certificate.passes <= cold.certificate.passes + 1.0


def test_a_start_for_eg_may_come_from_sdca_and_the_other_way_round():
    best, _ = optimum(1.0)
    for first, then in (("eg", "sdca"), ("sdca", "eg"), ("tron", "sdca"), ("tron", "eg")):
        before = solve(problem(1.0), first, tol=1e-3, max_passes=1e4)
        after = solve(problem(1.0), then, tol=1e-4, max_passes=1e4, start=before.start, check_every=1.0)
        assert after.status is Status.CONVERGED
        assert_certified(after, best, accuracy=1e-9)
        assert after.trace[0].dual >= 0.99 * best


@pytest.mark.parametrize("first, then", [("eg", "sdca"), ("sdca", "eg")])
def test_marginals_of_both_layouts_are_told_apart_where_they_are_as_many(first, then):
    """Where sequences have two tokens on average both layouts hold as many numbers."""
    examples = random_data(25, (1, 3, 1, 3, 2), A=4, K=3)
    problem = examples.problem()
    assert problem.shape == problem.entropic.shape
    before = solve(problem, first, tol=1e-4, max_passes=1e4)
    best = solve(problem, "tron", tol=1e-10).certificate.primal
    after = solve(problem, then, tol=1e-6, max_passes=1e4, start=before.start, check_every=1.0)
    assert_certified(after, best, accuracy=1e-9)
    assert after.status is Status.CONVERGED


@pytest.mark.parametrize("name", ["sgd", "sag", "sag-nus", "eg", "sdca"])
def test_the_same_seed_gives_the_same_bits(name):
    one, two = (solve(problem(1.0), make(name, seed=3), tol=1e-3, max_passes=20) for _ in range(2))
    other = solve(problem(1.0), make(name, seed=4), tol=1e-3, max_passes=20)
    np.testing.assert_array_equal(one.w, two.w)
    assert [row.primal for row in one.trace] == [row.primal for row in two.trace]
    assert (one.w != other.w).any()


@pytest.mark.parametrize("name", ["lbfgs", "tron", "eg-batch", "sdca"])
def test_numbers_do_not_depend_on_the_threads(name):
    # Large enough for the work to be split.
    examples = random_data(26, tuple(1 + np.arange(1500) * 7 % 11), A=60, K=4)
    one, two = (solve(examples.problem(threads=threads), name, tol=1e-2, max_passes=10) for threads in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.certificate.primal == two.certificate.primal


# ---- refusals, and the default


def test_residual_sampling_needs_outputs_that_can_be_listed():
    for loss in ("log", "hinge"):
        with pytest.raises(ValueError, match="sampling='residual' needs outputs that can be listed"):
            solve(problem(1.0, loss), solvers.SDCA(sampling="residual"))


@pytest.mark.parametrize("name", ["newton", "cd-dual", "gis", "cd-primal", "sm-q"])
def test_solvers_that_list_outputs_are_refused(name):
    with pytest.raises(ValueError, match=f"solver '{name}' cannot train a chain model"):
        solve(problem(1.0), name)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_the_default_solver_takes_chains(loss):
    result = solve(problem(1.0, loss), tol=1e-2)
    assert result.status is Status.CONVERGED


def test_without_a_regulariser_a_method_of_the_primal_is_left():
    free = data().problem(C=np.inf)
    result = solve(free, "lbfgs", tol=1e-2, max_passes=500)
    assert np.isfinite(result.certificate.primal)
    with pytest.raises(ValueError, match="no regulariser and so no dual"):
        solve(free, "sdca")
