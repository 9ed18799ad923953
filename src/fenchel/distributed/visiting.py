"""Visits to the examples of a place: the local half of CoCoA+ (Ma et al. 2015, Smith et al. 2018).

With K places the dual is, μ_p the marginals of place p and u_p = Σ_{i in p} m_i A_iᵀ(y_i − μ_i),

    D(μ) = Σ_p Σ_{i in p} m_i H_i(μ_i) − g*(Σ_p u_p),    g* convex

Where all places change at once, u_p by δ_p, then by Jensen, for σ′ = K,

    g*(u + Σ_p δ_p) ≤ (1 − K/σ′) g*(u) + Σ_p g*(u + σ′ δ_p)/σ′

so each place may climb Σ m_i H_i(μ_i) − g*(u + σ′ δ_p)/σ′ alone, and D rises by no less than all gained. That
is our own dual with λ/σ′ and λ₁/σ′, whose weights v = (u + σ′ δ_p)/λ begin at the common ones: the solver's
own steps climb it, and δ_p/λ = (v after − v before)/σ′. No kernel is written twice.
"""

import json
import os
import tempfile
import zipfile
from copy import deepcopy
from dataclasses import asdict

import numpy as np

from fenchel.choosing import solver_name
from fenchel.distributed.place import Place
from fenchel.distributed.vectors import Packed, add_to, packed
from fenchel.snapshots import freeze, thaw
from fenchel.solvers import SOLVERS, make
from fenchel.solvers.base import Solver, Start


class VisitedPlace(Place):
    """A place with dual variables: those of a solver, whose steps a round is made of.

    v: the common weights. before: the state that the last round began with, until it is judged.
    """

    solver = state = before = v = None

    def begin(self, name: str, options: dict, start: tuple | None) -> np.ndarray | Packed:
        """Make dual variables; what they add to the common weights v = u/λ. start: fields of a `Start`."""
        self.solver, self.before = make(name, **options), None
        self.state = self.solver.init(self.problem, None if start is None else Start(*start))
        self.state.alone = False
        share = self.state.v.copy()
        share[self.problem.penalised :] -= self.state.centre
        return packed(share)

    def restart(self, start: tuple | None) -> None:
        """Begin anew at the marginals of these weights; None: there is no need to."""
        if start is not None:
            self.begin(*name_and_options(self.solver), start)

    def take(self, v) -> None:
        """Let these be the common weights."""
        self.v = np.array(v)

    def judge(self, accepted: bool, change) -> None:
        """Keep what the last round made of the dual variables, or not; and move the common weights."""
        if not accepted and self.before is not None:
            self.state = self.before
        self.before = None
        if change is not None:
            add_to(self.v, change)

    def round(self, accepted: bool, change, widened: float, steps: int) -> tuple:
        """Judge the last round, then make steps of the solver with λ/σ′, σ′ = widened.

        Returns δ/λ, Σ m_i H_i, the gap that was met, and visits.
        """
        self.judge(accepted, change)
        problem = self.problem
        local = problem.with_penalty(problem.lam / widened, problem.design.constant, problem.l1 / widened)
        self.before, visits = deepcopy(self.state), -self.state.passes * problem.n
        self.state.v = self.v.copy()
        for _ in range(steps):
            self.solver.step(local, self.state)
        moved = (self.state.v - self.v) / widened
        concave = self.solver.concave(problem, self.state)
        visits += self.state.passes * problem.n
        return packed(moved), concave, self.state.gap, visits

    def share(self) -> np.ndarray | Packed:
        """What the dual variables add to the common weights, anew: sums of changes drift by rounding."""
        if hasattr(self.state, "fresh"):
            self.state.fresh = False  # they are counted from now on, a first pass or not
        return packed(self.problem.residuals(self.state.mu) / self.problem.lam)

    # ---- copies

    def export(self) -> tuple:
        """The dual variables, all that the solver knows, and the common weights: text, and arrays by name."""
        arrays, encoded = freeze({"state": self.state, "before": None, "v": self.v}, self.problem)
        return json.dumps(encoded), arrays

    def restore(self, kept: tuple) -> None:
        """Go on from there; the place has begun already."""
        text, arrays = kept
        found = thaw(json.loads(text), arrays, {"state": self.state}, self.problem)
        self.state, self.v, self.before = found["state"], found["v"], None

    def write_copy(self, path: str) -> None:
        """The same in a file, which takes its name when it is whole."""
        text, arrays = self.export()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
            np.savez(file, encoded=np.frombuffer(text.encode(), np.uint8), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path)

    def read_copy(self, path: str) -> bool:
        """Go on from a file; False where there is none that can be read."""
        try:
            with np.load(path) as file:
                arrays = dict(file)
        except (OSError, ValueError, zipfile.BadZipFile):
            return False
        self.restore((arrays.pop("encoded").tobytes().decode(), arrays))
        return True

    # ---- for certificates

    def concave_now(self) -> float:
        """Σ m_i H_i of the dual variables."""
        return self.solver.concave(self.problem, self.state)

    def marginals(self, which: str) -> np.ndarray:
        return self.tilted if which == "tilted" else getattr(self.state, which)

    def entropies(self, which: str) -> np.ndarray:
        told = self.problem.tells_entropy or which != "mu"
        return np.empty(0) if told else self.state.entropies


def name_and_options(solver: Solver) -> tuple[str, dict]:
    """What `make` makes the solver of."""
    name = solver_name(solver)
    own = asdict(solver)
    return name, {option: own[option] for option in own if option not in SOLVERS[name][1]}
