"""The surrogates of iterative scaling and of surrogate maximisation: their order, and what steps optimise.

huang2010 Table 1, (33), (39) bound the change of P along one weight from above; zhang2005 (9), (13), (14),
(20) bound the log-likelihood from below. All are written naively here, from the papers.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fenchel import Start, solvers
from fenchel.loop import solve
from flat_matrix import Case, base, cases, ragged, soft

Z = np.concatenate([-np.geomspace(30.0, 1e-3, 25), [0.0], np.geomspace(1e-3, 30.0, 25)])


# ---- huang2010


class Huang:
    """The four functions of Table 1 and (39) at w, for every weight t at once: z (d,) to (d,)."""

    def __init__(self, dense, w):
        self.dense, self.w = dense, w
        self.mass = dense.mass[dense.owner]
        self.p = dense.marginals(dense.F @ w)
        self.expected = dense.F.T @ (self.mass * self.p)
        self.largest = dense.F.max(axis=0)
        self.sums = dense.F.sum(axis=1)

    def Q(self, z):
        """(11)."""
        empirical = self.dense.F.T @ (self.mass * self.dense.y)
        return 0.5 * self.dense.lam * (2.0 * self.w * z + z**2) - z * empirical

    def gis(self, z):
        return self.Q(z) + np.expm1(z * self.sums.max()) / self.sums.max() * self.expected

    def scgis(self, z):
        return self.Q(z) + np.expm1(z * self.largest) / self.largest * self.expected

    def iis(self, z):
        f, total = self.dense.F, np.maximum(self.sums, 1e-300)[:, None]
        return self.Q(z) + (self.mass * self.p) @ (f * np.expm1(np.outer(self.sums, z)) / total)

    def cd(self, z):
        growth = self.p[:, None] * np.expm1(z * self.dense.F)
        ratio = np.add.reduceat(growth, self.dense.first, axis=0)
        return self.Q(z) + self.dense.mass @ np.log1p(ratio)

    def log_bound(self, z):
        """(39), between cd and scgis; P̃_t is the mass of the examples that have the feature at all."""
        has = np.maximum.reduceat(self.dense.F, self.dense.first, axis=0) > 0.0
        covered = self.dense.mass @ has
        ratio = np.expm1(z * self.largest) / (self.largest * covered) * self.expected
        return self.Q(z) + covered * np.log1p(ratio)

    def argmin(self, surrogate):
        """Minimise a function of every weight: (d,)."""
        d = self.w.size

        def along(z, t):
            return surrogate(np.where(np.arange(d) == t, z, 0.0))[t]

        found = [minimize_scalar(along, bracket=(-1.0, 1.0), args=(t,), tol=1e-12) for t in range(d)]
        return np.array([one.x for one in found])


HUANG = {
    "crossed": Case("", *base("dense", seed=1), labels=3),
    "sparse": Case("", *base("sparse", seed=2), labels=3),
    "soft": Case("", base("dense", seed=3)[0], soft(), C=10.0, labels=3),
    "joint": cases()["joint-real-C=1"],
    "binary-features": cases()["joint-binary-C=1"],
}


def huang(name, seed=0, scale=1.0):
    case = HUANG[name]
    dense = case.dense()
    w = scale * np.random.default_rng(seed).normal(size=dense.F.shape[1])
    return case.problem(), Huang(dense, w), w


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("name", HUANG)
def test_coordinate_descent_is_below_scgis_and_iis_which_are_below_gis(name, scale):
    """(33), pointwise, and (39) between the first two."""
    _, surrogates, w = huang(name, scale=scale)
    for z in Z / surrogates.sums.max():
        values = {
            kind: getattr(surrogates, kind)(np.full(w.size, z)) for kind in ("cd", "scgis", "iis", "gis")
        }
        values["log"] = surrogates.log_bound(np.full(w.size, z))
        slack = 1e-12 * (1.0 + np.abs(values["gis"]))
        for below, above in [
            ("cd", "log"),
            ("log", "scgis"),
            ("scgis", "gis"),
            ("cd", "iis"),
            ("iis", "gis"),
        ]:
            assert (values[below] <= values[above] + slack).all(), (below, above, z)
        if z == 0.0:
            assert all((value == 0.0).all() for value in values.values())


@pytest.mark.parametrize("name", HUANG)
def test_the_function_of_coordinate_descent_is_the_change_of_the_objective(name):
    _, surrogates, w = huang(name)
    dense = surrogates.dense
    z = np.random.default_rng(1).normal(size=w.size)
    changes = [dense.primal(w + z[t] * np.eye(w.size)[t]) - dense.primal(w) for t in range(w.size)]
    np.testing.assert_allclose(surrogates.cd(z), changes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", HUANG)
def test_parallel_surrogates_bound_the_change_of_all_weights_together(name):
    """(9): the sum over t bounds P(w + z) − P(w)."""
    _, surrogates, w = huang(name)
    dense = surrogates.dense
    for seed in range(5):
        z = np.random.default_rng(seed).normal(size=w.size)
        change = dense.primal(w + z) - dense.primal(w)
        for bound in (surrogates.iis, surrogates.gis):
            assert change <= bound(z).sum() + 1e-12 * (1.0 + abs(change))


@pytest.mark.parametrize("solver", ["gis", "iis"])
@pytest.mark.parametrize("name", HUANG)
def test_a_parallel_step_minimises_its_surrogate(name, solver):
    problem, surrogates, w = huang(name)
    method = solvers.make(solver)
    state = method.init(problem, Start(w))
    method.step(problem, state)
    z = state.evaluation.w - w
    surrogate = getattr(surrogates, solver)
    np.testing.assert_allclose(z, surrogates.argmin(surrogate), rtol=1e-5, atol=1e-7)
    assert_stationary(surrogate, z)


@pytest.mark.parametrize("bound", ["linear", "log"])
@pytest.mark.parametrize("name", HUANG)
def test_a_sweep_of_scgis_minimises_its_surrogate_weight_by_weight(name, bound):
    problem, surrogates, w = huang(name)
    method = solvers.SCGIS(bound=bound, order="cyclic")
    state = method.init(problem, Start(w))
    method.step(problem, state)
    now, after = w.copy(), state.evaluation.w
    for t in range(w.size):
        here = Huang(surrogates.dense, now)
        surrogate = here.scgis if bound == "linear" else here.log_bound
        z = np.where(np.arange(w.size) == t, after - w, 0.0)
        assert_stationary(surrogate, z, t)
        now[t] = after[t]


def assert_stationary(surrogate, z, t=slice(None)):
    """z is where the surrogate's central difference vanishes, relative to its curvature there."""
    h = 1e-4
    above, here, below = surrogate(z + h)[t], surrogate(z)[t], surrogate(z - h)[t]
    slope, curvature = (above - below) / (2.0 * h), (above - 2.0 * here + below) / h**2
    assert (np.abs(slope) <= 1e-6 * np.maximum(curvature, 1e-3)).all()


@pytest.mark.parametrize("fast", ["fast", "plain"])
@pytest.mark.parametrize("name", HUANG)
def test_a_sweep_of_primal_coordinate_descent_decreases_enough_at_every_weight(name, fast):
    """(34), (35): z is the Newton direction times a power of ½, and the first one that decreases P enough."""
    problem, surrogates, w = huang(name, scale=3.0)
    method = solvers.CDPrimal(line_search=fast, order="cyclic")
    state = method.init(problem, Start(w))
    method.step(problem, state)
    now, after = w.copy(), state.evaluation.w
    dense = surrogates.dense
    for t in range(w.size):
        here = Huang(dense, now)
        mean = np.add.reduceat(here.p * dense.F[:, t], dense.first)
        curvature = (here.mass * here.p) @ dense.F[:, t] ** 2 - dense.mass @ mean**2 + dense.lam
        slope = dense.gradient(now)[0][t]
        halvings = np.log2(-slope / curvature / (after[t] - now[t]))
        assert halvings == pytest.approx(round(halvings), abs=1e-6)
        z = np.where(np.arange(w.size) == t, after - now, 0.0)
        assert here.cd(z)[t] <= 0.01 * z[t] * slope + 1e-12
        if round(halvings) > 0:
            assert here.cd(2.0 * z)[t] > 0.02 * z[t] * slope
        now[t] = after[t]


# ---- zhang2005


class Zhang:
    """L and its surrogates around W(t), (A, K); features f (n, A), not negative, of row sum at most one."""

    def __init__(self, f, targets, mass, W):
        self.f, self.targets, self.mass, self.W = f, targets, mass, W
        self.scores = f @ W
        self.logz = np.logaddexp.reduce(self.scores, axis=1)
        self.p = np.exp(self.scores - self.logz[:, None])

    def linear(self, W):
        return self.mass @ (self.targets * (self.f @ W)).sum(axis=1)

    def L(self, W):
        """(5)."""
        return self.linear(W) - self.mass @ np.logaddexp.reduce(self.f @ W, axis=1)

    def M(self, W):
        """(9)."""
        growth = (self.p * (self.f @ np.expm1(W - self.W))).sum(axis=1)
        return self.linear(W) - self.mass @ (self.logz + growth)

    def J(self, W):
        """(13): Jensen's inequality only."""
        rest = 1.0 - self.f.sum(axis=1)
        inside = np.logaddexp.reduce((W - self.W)[None] + self.scores[:, None, :], axis=2)  # (n, A)
        return self.linear(W) - self.mass @ (rest * self.logz + (self.f * inside).sum(axis=1))

    def T(self, W):
        """(14): the Taylor approximation only."""
        return self.linear(W) - self.mass @ (
            self.logz + (self.p * np.expm1(self.f @ (W - self.W))).sum(axis=1)
        )

    def quadratic(self, W):
        """(20), with B = −½ (I − 11ᵀ/c) ⊗ F D̃ Fᵀ."""
        step = W - self.W
        gradient = self.f.T @ (self.mass[:, None] * (self.targets - self.p))
        moved = self.f @ (step - step.mean(axis=1, keepdims=True))
        return self.L(self.W) + (step * gradient).sum() - 0.25 * self.mass @ (moved**2).sum(axis=1)


def zhang(kind, seed=0, scale=1.0):
    """A case, its features divided by their largest row sum, and the surrogates around a random W."""
    case = HUANG[kind]
    X = case.X.toarray() if hasattr(case.X, "toarray") else case.X
    rate = X.sum(axis=1).max()
    W = scale * np.random.default_rng(seed).normal(size=(X.shape[1], 3))
    mass = np.full(case.n, 1.0 / case.n)
    return case, rate, Zhang(X / rate, case.targets(), mass, rate * W), W


CROSSED = ("crossed", "sparse", "soft")


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("kind", CROSSED)
def test_surrogates_are_below_the_likelihood_and_touch_it(kind, scale):
    """L ≥ Q_J ≥ Q_M and L ≥ Q_T ≥ Q_M, pointwise; SM-Q's bound Q_Q ≤ L; all equal at the current point."""
    _, _, around, _ = zhang(kind)
    for seed in range(20):
        W = around.W + scale * np.random.default_rng(seed).normal(size=around.W.shape)
        L, J, T, M, quadratic = (getattr(around, name)(W) for name in ("L", "J", "T", "M", "quadratic"))
        assert L >= J - 1e-12 and J >= M - 1e-12
        assert L >= T - 1e-12 and T >= M - 1e-12
        assert quadratic <= L + 1e-12
    here = around.L(around.W)
    for name in ("J", "T", "M", "quadratic"):
        assert getattr(around, name)(around.W) == pytest.approx(here, rel=1e-13)


def one_step(solver, case, W):
    """W after a step of the solver from W."""
    problem, method = case.problem(), solvers.make(solver)
    state = method.init(problem, Start(W.ravel().copy()))
    method.step(problem, state)
    return state.evaluation.w.reshape(W.shape)


def numerical_gradient(function, W, h=1e-5):
    out = np.empty_like(W)
    for index in np.ndindex(*W.shape):
        e = np.zeros_like(W)
        e[index] = h
        out[index] = (function(W + e) - function(W - e)) / (2.0 * h)
    return out


@pytest.mark.parametrize("solver, surrogate", [("sm-s", "M"), ("sm-q", "quadratic")])
@pytest.mark.parametrize("kind", CROSSED)
def test_a_step_maximises_the_regularised_surrogate(kind, solver, surrogate):
    """On f/f#, with W f# and λ/f#²: the gradient of surrogate less penalty vanishes after the step."""
    case, rate, around, W = zhang(kind)
    after = rate * one_step(solver, case, W)
    function, lam = getattr(around, surrogate), case.lam / rate**2
    slopes = numerical_gradient(lambda U: function(U) - 0.5 * lam * (U**2).sum(), after)
    scale = np.abs(numerical_gradient(lambda U: function(U) - 0.5 * lam * (U**2).sum(), around.W)).max()
    assert np.abs(slopes).max() <= 1e-7 * scale + 1e-10


@pytest.mark.parametrize("kind", CROSSED)
def test_a_step_of_the_gradient_methods_is_a_newton_step_on_their_surrogate(kind):
    """(15) and (16), each with λI: the matrices written out, the step halved while P rises."""
    case, rate, around, W = zhang(kind, scale=0.1)
    lam, dense = case.lam, case.dense()
    f, mass, p = rate * around.f, around.mass, around.p
    gradient = f.T @ (mass[:, None] * (around.targets - p)) - lam * W
    by_label, by_attribute = np.empty_like(W), np.empty_like(W)
    for k in range(3):
        matrix = (f.T * (mass * p[:, k])) @ f + lam * np.eye(len(W))
        by_label[:, k] = np.linalg.solve(matrix, gradient[:, k])
    covariance = np.einsum("ik,kl->ikl", p, np.eye(3)) - np.einsum("ik,il->ikl", p, p)
    for j in range(len(W)):
        matrix = rate * np.einsum("i,ikl->kl", mass * f[:, j], covariance) + lam * np.eye(3)
        by_attribute[j] = np.linalg.solve(matrix, gradient[j])
    for solver, step in (("sm-g1", by_label), ("sm-g2", by_attribute)):
        while dense.primal((W + step).ravel()) > dense.primal(W.ravel()):
            step = 0.5 * step
        np.testing.assert_allclose(one_step(solver, case, W), W + step, rtol=1e-8, atol=1e-10)


def test_closer_surrogates_take_fewer_steps():
    """zhang2005 section 5: sm-g1, sm-q and newton need few iterations where sm-s and sm-g2 need more."""
    problem = HUANG["crossed"].problem()
    steps = {
        s: len(solve(problem, s, tol=1e-6, max_passes=1e4).trace)
        for s in ("newton", "sm-g1", "sm-g2", "sm-s")
    }
    assert steps["newton"] <= steps["sm-g1"] <= steps["sm-s"]
    assert steps["sm-g2"] <= steps["sm-s"]


def test_candidates_of_a_ragged_set_share_the_bounds():
    """A set of one candidate adds nothing to any bound but Q."""
    F, y, starts = ragged("real", one=True)
    dense = Case("", F, y, starts=starts).dense()
    surrogates = Huang(dense, np.ones(F.shape[1]))
    z = np.full(F.shape[1], 0.3)
    np.testing.assert_allclose(surrogates.cd(z), 0.5 * dense.lam * (2.0 * z + z**2), atol=1e-12)
