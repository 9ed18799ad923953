"""Spread: a problem whose examples are at places. Solvers see a Problem, and do not know."""

import time
from collections import deque
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from fenchel import curvature
from fenchel._sparse import Rows
from fenchel.certificates import Evaluation, Extent
from fenchel.choosing import BATCH, LITTLE, MANY, MOST, NEAR, PATIENTLY, ROUND, solver_name
from fenchel.coordinates import UNEVEN, WORTH, Centred, Whitened, loss_curvature, spread
from fenchel.data import Examples
from fenchel.design import IN_BLAS, SIDE_BY_SIDE, Design
from fenchel.distributed.place import KEPT, Facts, shared_weights, with_mask
from fenchel.distributed.places import Here, Places, parts
from fenchel.distributed.rounds import Rounds
from fenchel.distributed.widths import Groups
from fenchel.points import NO_WEIGHTS
from fenchel.problem import Problem
from fenchel.structures.offsets import Moments, offset_of_labels, offset_of_two

BY_SUMS, IN_ROUNDS = ("lbfgs", "tron", "gis"), ("cd-dual", "eg", "eg-gap", "eg-batch", "sdca")
WIDEST = 2000  # columns of a matrix that is sent
# Places up to which sequences and trees go in rounds. To 1e-4, 300 sentences of CoNLL-2000 take 29, 48, 72
# passes at 2, 4, 8 places, 200 Spanish trees 25, 53, 56, in about twice as many rounds; lbfgs 43 and 35.
FEW = 2


class Kept(NamedTuple):
    """Scores that places keep, under this number; at those of weights v they may be computed anew."""

    number: int

    def copy(self) -> "Kept":
        return self


@dataclass(frozen=True)
class Spread(Problem):
    """The problem of the examples of all places: its sums are theirs, added up.

    `examples` has none: what would look at them one by one fails. Scores are `Kept`, marginals a name.
    """

    places: Places | None = None
    facts: Facts | None = None

    @classmethod
    def over(cls, places: Places, like: Problem) -> "Spread":
        """Of these places; like: a problem of the same kind, such as that of one of them."""
        facts = reduce(Facts.joined, places.each("facts"))
        if like.free and not (facts.shares > 0.0).all():
            raise ValueError(
                f"the class {int(np.argmin(facts.shares))} (from 0) has no examples of positive weight"
            )
        structure, columns = with_mask(like.structure, facts.mask), like.examples.rows.n_columns
        empty = Rows(np.zeros(1, np.uint64), np.empty(0, np.uint32), np.empty(0), columns)
        starts = None if like.examples.starts is None else np.zeros(1, np.uint64)
        none = Examples(empty, np.empty(0), np.empty(0), starts)
        design = Design(empty, structure.outputs, like.threads, structure.extra, like.free, shifts=False)
        if like.free:
            design = design.with_constant(curvature.constant(facts.mass_squares, facts.shares, like.lam))
        design.__dict__.update(largest_row_sum=float(facts.row_sum), least_entry=-float(facts.negative))
        # One σ′ where rows are dense, thresholds have to be the same of all weights, examples are no rows, or
        # rows that are multiplied by a scale have no room.
        alike = bool(facts.dense or facts.cramped) or like.l1 > 0.0 or starts is not None
        places.each("settle", design.constant, facts.shares, facts.mask, facts.counts, facts.users, alike)
        own = none, structure, like.loss, like.regularizer, like.free, like.threads, like.total
        whole = cls(*own, places, facts)
        known = {"design": design, "shares": facts.shares, "groups": Groups.by(facts.counts, alike)}
        whole.__dict__.update(known, issued=deque(maxlen=KEPT))
        whole.__dict__["shared"] = shared_weights(facts.users, design.outputs, whole.dim)
        return whole

    @property
    def n(self) -> int:
        return int(self.facts.n)

    @property
    def traffic(self) -> float:
        """Bytes sent and received so far."""
        return self.places.bytes

    @property
    def company(self) -> str:
        return str(self.places)

    def __str__(self) -> str:
        empty = super().__str__().replace("n = 0", f"n = {self.n}")
        whole = empty.replace(", 0 non-zeros", f", {int(self.facts.entries)} non-zeros")
        return f"{whole}, at {self.places.count} places"

    def adapted(self, solver):
        """Solvers of the dual go in rounds, those that go by sums are as they are; others cannot be."""
        if isinstance(solver, Rounds):
            return solver
        name = solver_name(solver)
        if name in IN_ROUNDS:
            return Rounds(solver)
        if name == "gis" and self.lam == 0.0:
            raise ValueError("solver 'gis' needs a finite C on examples that are elsewhere; use lbfgs")
        if name not in BY_SUMS:
            able = ", ".join((*BY_SUMS, *IN_ROUNDS))
            raise ValueError(f"solver {name!r} does not work on examples that are elsewhere; use {able}")
        return solver

    def plan(self) -> list:
        """The rule behind solver="auto", as `choosing.plan` has it for examples that are here.

        Dual coordinates, in rounds, where blocks are easy or examples few: on text they take a tenth of the
        passes. Else a method that goes by sums.
        """
        if not self.structure.listed:
            apart = self.places.count > FEW and not self.loss.hinge
            return ["eg-gap"] if self.lam > 0.0 and not (self.facts.dense or apart) else ["lbfgs"]
        if self.examples.starts is not None:
            return ["lbfgs"]
        if self.loss.hinge:
            return ["cd-dual"]
        facts, columns = self.facts, self.design.n_columns
        kind = 0 if self.structure.name == "binary" else 1 if facts.dense else 2
        curved = facts.squares / self.n**2 / max(self.lam, 1e-300)
        density = facts.entries / max(facts.rows * columns, 1)
        easy = self.n <= columns or (curved >= LITTLE[kind] and curved * density <= MOST[kind])
        if self.l1 > 0.0:
            near = self.l1 * np.sqrt(facts.squares / facts.rows) <= NEAR[kind] * self.lam
            return (
                [("cd-dual" if kind == 0 else "eg-gap", PATIENTLY), "lbfgs"] if near and easy else ["lbfgs"]
            )
        easy &= self._passes_to_whiten > ROUND[kind]  # else L-BFGS in round coordinates, as on one machine
        quickly = facts.dense or self._passes_to_whiten <= WORTH
        first, last = ("lbfgs", "tron") if quickly else ("tron", "lbfgs")
        return [*([("cd-dual", MANY)] if easy and self.lam > 0.0 else []), (first, BATCH), last]

    @cached_property
    def extent(self) -> Extent:
        f, depth = self.facts, 1.0 + np.sqrt(self.facts.rows) / 16.0
        return Extent(
            f.peaks,
            float(f.norm),
            float(f.edge_norm),
            float(f.parts),
            depth,
            self.design.outputs,
            float(f.cost),
        )

    @cached_property
    def value_at_zero(self) -> float:
        if self.examples.starts is not None:
            return self.value_at(np.zeros(self.penalised))[0]
        return Problem.value_at_zero.func(self)

    @cached_property
    def empirical(self) -> np.ndarray:
        return self.places.sum("empirical")

    # ---- the primal

    def scores(self, w) -> Kept:
        kept = self._new()
        self.places.each("scores", kept.number, w)
        return kept

    def moved_by(self, scores: Kept, delta) -> Kept:
        kept = self._new()
        self.places.each("move", kept.number, scores.number, delta)
        return kept

    def pull_at(self, w, scores: Kept | None = None) -> tuple:
        kept = self._new()
        known = None if scores is None else scores.number
        return *self.places.sum("pull", kept.number, w, known), kept

    def curved_along(self, evaluation: Evaluation, direction) -> np.ndarray:
        if evaluation.scores.number not in self.issued:  # of a run that was taken up again, or long ago
            *_, evaluation.scores = self.pull_at(evaluation.w)
        return self.places.sum("curved_along", evaluation.scores.number, direction)

    def _balance(self, v, scores: Kept | None = None, enough=0.0, left=0.0, last=False):
        known = scores is not None and scores.number in self.issued
        return super()._balance(v, scores if known else None, enough, left, last)

    def _new(self) -> Kept:
        """A number that places have not met, not in this run and not in one that is taken up again."""
        number = max(time.time_ns(), self.issued[-1] + 1 if self.issued else 0)
        self.issued.append(number)
        return Kept(number)

    @cached_property
    def coordinates(self) -> Centred | Whitened | None:
        """As `coordinates_of` a problem, from sums over the places."""
        if self.structure.mask is not None or self.examples.starts is not None:
            return None
        design = self.design
        if self.l1 == 0.0 and self._passes_to_whiten <= WORTH:
            matrix = self.places.sum("quadratic", loss_curvature(self.shares))
            own = np.arange(design.n_columns)
            matrix[own, own] += self.lam
            return Whitened(matrix, design.outputs, self.n)
        centre, squares, counts = self.places.sum("columns")
        variance = squares - centre**2 if self.free else squares
        if not self.facts.dense:
            variance = variance / np.maximum(counts / self.n, 1.0 / self.n)
        roots = np.sqrt(0.25 * np.maximum(variance, 0.0) + self.lam)
        roots[roots == 0.0] = roots.max(initial=0.0) or 1.0
        return Centred(design.centred(centre), None, roots) if self.free or spread(roots) > UNEVEN else None

    @property
    def _passes_to_whiten(self) -> float:
        """How many passes the matrix takes as long as, about."""
        facts, columns, count = self.facts, float(self.design.n_columns), self.places.count
        if columns > WIDEST:
            return np.inf
        by_rows = np.inf if facts.dense else 0.5 * facts.entries**2 / max(facts.rows, 1)  # pairs in rows
        gram = min(0.5 * IN_BLAS * self.n * columns**2, by_rows) / count + 0.5 * IN_BLAS * columns**3
        pace = SIDE_BY_SIDE if facts.dense else 1.0
        return gram / (3.0 * pace * facts.entries * self.design.outputs / count + 1e5)

    def offset_range(self, w, b, radius: float) -> None:
        """Too much to compute."""

    # ---- free offsets

    def best_offset(self, scores: Kept, enough=0.0, left=0.0):
        if self.structure.name == "binary":
            return offset_of_two(_PlacedPairs(self, scores.number), left)
        return offset_of_labels(_PlacedLabels(self, scores.number), enough, left)

    def tilt(self, mu: str, overwrite=False) -> str:
        kept = self._new()
        self.places.each("logarithms", kept.number, mu)
        tilted = self.moved_by(kept, self.best_offset(kept))
        self.places.each("tilt", tilted.number)
        return "tilted"

    # ---- the dual

    def residuals(self, mu: str) -> np.ndarray:
        return self.places.sum("residuals", mu)

    def concave(self, mu: str) -> float:
        return self.places.sum("concave", mu)

    def value_and_gap(self, v, scores: Kept | None, mu: str | None, gaps=None, entropies=None) -> tuple:
        number = None if scores is None else scores.number
        return self.places.sum("value_and_gap", number, v if scores is None else NO_WEIGHTS, mu)


class _PlacedPairs:
    """`PairSums` of all places."""

    def __init__(self, problem: Spread, number: int):
        self.places, self.number = problem.places, number

    def ends(self):
        ones, others, least, most = zip(*self.places.each("pair_ends", self.number), strict=True)
        return sum(ones), sum(others), min(least), max(most)

    def excess(self, b):
        return self.places.sum("pair_excess", self.number, b)


class _PlacedLabels:
    """`LabelSums` of all places."""

    def __init__(self, problem: Spread, number: int, centre=None, temperature=1.0):
        self.problem, self.at = problem, (number, centre, temperature)
        self.shape = problem.n, problem.structure.outputs

    @property
    def largest(self) -> float:
        return max(self.problem.places.each("label_size", *self.at))

    @property
    def centre(self) -> np.ndarray:
        return self.problem.places.sum("label_centre", self.at[0])

    def moments(self, b, curved) -> Moments:
        found = self.problem.places.sum("label_moments", *self.at, b, curved)
        return Moments(*found, *([] if curved else [None]))

    def cooled(self, centre, temperature) -> "_PlacedLabels":
        return _PlacedLabels(self.problem, self.at[0], centre, temperature)


def spread_here(problem: Problem, count: int, seed: int | None = 0) -> Spread:
    """The problem in parts of this process: the same optimum, found by sums over places and in rounds."""
    return Spread.over(Here(parts(problem, count, seed)), problem)
