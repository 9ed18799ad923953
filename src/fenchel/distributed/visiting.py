"""Visits to the examples of a place: the local half of CoCoA+ (Ma et al. 2015, Smith et al. 2018).

With K places the dual is, μ_p the marginals of place p and u_p = Σ_{i in p} m_i A_iᵀ(y_i − μ_i),

    D(μ) = Σ_p Σ_{i in p} m_i H_i(μ_i) − g*(Σ_p u_p),    g* convex

Where all places change at once, u_p by δ_p, then by Jensen, for σ′ = K,

    g*(u + Σ_p δ_p) ≤ (1 − K/σ′) g*(u) + Σ_p g*(u + σ′ δ_p)/σ′

so each place may climb Σ m_i H_i(μ_i) − g*(u + σ′ δ_p)/σ′ alone, and D rises by no less than all gained. That
is our own dual with λ/σ′ and λ₁/σ′, whose weights v = (u + σ′ δ_p)/λ begin at the common ones: the solver's
own steps climb it, and δ_p/λ = (v after − v before)/σ′. No kernel is written twice.

Weights of columns that only one place has are nobody else's business: they stay there until somebody asks.
What is sent are vectors of the others, `shared`.
"""

import json
import os
import tempfile
import zipfile
from copy import deepcopy
from dataclasses import asdict, replace
from math import sqrt

import numpy as np

from fenchel.choosing import solver_name
from fenchel.distributed.place import Place, unshifted
from fenchel.distributed.vectors import Packed, dense, packed
from fenchel.problem import Problem
from fenchel.snapshots import freeze, thaw
from fenchel.solvers import SOLVERS, make
from fenchel.solvers.base import Solver, Start


class VisitedPlace(Place):
    """A place with dual variables: those of a solver, a step of which is a round.

    v: the common weights, and those that only this place has. before: the state that the last round began
    with, moved: by how much it changed the weights that only this place has; until it is judged.
    """

    solver = state = before = moved = v = None

    def begin(self, name: str, options: dict, start: tuple | None) -> np.ndarray | Packed:
        """Make dual variables; what they add to the common weights v = u/λ. start: fields of a `Start`."""
        self.solver, self.before, self.moved = make(name, **options), None, None
        self.state = self.solver.init(self.problem, None if start is None else Start(*start))
        self.state.alone = False
        if self._lane is not None:
            self.v = np.zeros(self.problem.dim)
            return self.share()
        self.v = self.state.v.copy()
        self.v[self.problem.penalised :] -= self.state.centre
        return packed(self.v[self.shared])

    def restart(self, start: tuple | None, copy: str) -> None:
        """Go on from this copy, or begin anew at the marginals of these weights; None: no need to."""
        if start is not None and not (copy and self.read_copy(copy)):
            self.begin(*name_and_options(self.solver), start)

    def take(self, v) -> None:
        """Let these be the common weights."""
        self.v[self.shared] = v

    def judge(self, accepted: bool, change) -> None:
        """Keep what the last round made of the dual variables, or not; and move the common weights."""
        if not accepted and self.before is not None:
            self.state = self.before
            if self._lane is not None:
                self._lane.settle(self.problem, self.state.entropies)
        elif self.moved is not None:
            self.v[self.own] += self.moved
        self.before = self.moved = None
        if change is not None:
            self.v[self.shared] += dense(change)

    def round(self, accepted: bool, change, widths: np.ndarray) -> tuple:
        """Judge the last round, then make a step of the solver with λ/σ′, widths: as `widths.py` has them.

        Returns δ/λ, Σ m_i H_i less g* of the weights that only this place has, the gap that was met, visits,
        and ‖δ/λ‖² of each group: of all weights, and of those that only this place has.
        """
        self.judge(accepted, change)
        problem = self.problem
        local, scale = self._stretched(widths)
        self.before, visits = deepcopy(self.state), -self.state.passes * problem.n
        self.state.v = self.v / scale
        self.solver.step(local, self.state)
        self.state.v = self.state.v * scale
        moved = (self.state.v - self.v) * (local.lam / problem.lam) / scale**2
        self.moved = moved[self.own]
        concave = self._concave_with(self.v[self.own] + self.moved)
        visits += self.state.passes * problem.n
        sizes = problem.design.outputs, problem.dim - problem.penalised
        of_all, sent = self.groups.squares(moved, *sizes), moved[self.shared]
        moved[self.shared] = 0.0
        return packed(sent), concave, self.state.gap, visits, of_all, self.groups.squares(moved, *sizes)

    def _stretched(self, widths) -> tuple[Problem, np.ndarray]:
        """The problem of a round with λ/σ′, σ′ that of the first group, and (dim,) by what features are
        multiplied so that the others have theirs.
        """
        problem, scale = self.problem, np.ones(self.problem.dim)
        of_groups, of_offsets = np.sqrt(widths[:-1] / widths[0]), sqrt(widths[-1] / widths[0])
        scale[problem.penalised :], constant = of_offsets, problem.design.constant * of_offsets
        if self.groups.count > 1:
            of_columns, rows = of_groups[self.groups.of], problem.examples.rows
            scale[: problem.penalised] = np.repeat(of_columns, problem.design.outputs)
            rows = rows._replace(data=rows.data * of_columns[rows.indices])
            problem = unshifted(replace(problem, examples=replace(problem.examples, rows=rows)), constant)
        lam, l1 = problem.lam / widths[0], problem.l1 / widths[0]
        return problem.with_penalty(lam, constant, l1), scale

    def share(self) -> np.ndarray | Packed:
        """What the dual variables add to the common weights, anew: sums of changes drift by rounding."""
        if hasattr(self.state, "fresh"):
            self.state.fresh = False  # they are counted from now on, a first pass or not
        whole = self.residuals("mu") / self.problem.lam
        self.v[self.own] = whole[self.own]
        return packed(whole[self.shared])

    def alone(self) -> np.ndarray | Packed:
        """The weights that only this place has, among zeros."""
        weights = np.zeros(self.problem.dim)
        weights[self.own] = self.v[self.own]
        return packed(weights)

    @property
    def _lane(self):
        """The layout of its own that dual variables of sequences may have: `eg/chain.py`."""
        return getattr(self.state, "arranged", None)

    # ---- copies

    def export(self) -> tuple:
        """The dual variables, all that the solver knows, and the common weights: text, and arrays by name."""
        arrays, encoded = freeze(self._kept_state(), self.problem)
        return json.dumps(encoded), arrays

    def _kept_state(self) -> dict:
        return {"state": self.state, "v": self.v, "moved": self.moved}

    def restore(self, kept: tuple) -> None:
        """Go on from there; the place has begun already."""
        text, arrays = kept
        found = thaw(json.loads(text), arrays, {"state": self.state}, self.problem)
        self.state, self.v, self.moved, self.before = found["state"], found["v"], found["moved"], None

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
        except (OSError, EOFError, ValueError, zipfile.BadZipFile):
            return False
        self.restore((arrays.pop("encoded").tobytes().decode(), arrays))
        return True

    # ---- for certificates

    @property
    def dual_problem(self):
        """Marginals of sequences that tell their entropy are in a layout of their own."""
        return self.problem.entropic if "entropy" in self.solver.needs else self.problem

    def concave_now(self) -> float:
        """Σ m_i H_i of the dual variables, less g* of the weights that only this place has."""
        return self._concave_with(self.v[self.own])

    def _concave_with(self, own) -> float:
        penalty = self.problem.regularizer
        return self.solver.concave(self.dual_problem, self.state) - penalty.conjugate(penalty.read(own))

    def residuals(self, which: str) -> np.ndarray:
        if self._lane is None:
            return super().residuals(which)
        return self.problem.lam * self._lane.share(self.problem, self.state.entropies)

    def value_and_gap(self, number: int | None, v, which: str | None) -> tuple:
        if self._lane is None or which is None:
            return super().value_and_gap(number, v, which)
        return self._lane.sums_at(self.problem, v, self.state.entropies)

    def marginals(self, which: str) -> np.ndarray:
        return self.tilted if which == "tilted" else getattr(self.state, which)

    def entropies(self, which: str) -> np.ndarray:
        told = self.dual_problem.tells_entropy or which != "mu"
        return np.empty(0) if told else self.state.entropies


def name_and_options(solver: Solver) -> tuple[str, dict]:
    """What `make` makes the solver of."""
    name = solver_name(solver)
    own = asdict(solver)
    return name, {option: own[option] for option in own if option not in SOLVERS[name][1]}
