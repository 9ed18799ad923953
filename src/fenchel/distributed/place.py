"""Place: a part of the examples, and what is asked of it: sums over them, all arrays and numbers."""

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fenchel._memory import available_bytes
from fenchel._sparse import Rows, Table, column_counts
from fenchel.certificates import Evaluation
from fenchel.design import Design, Features
from fenchel.distributed.widths import Groups
from fenchel.matrices import quadratic
from fenchel.problem import Problem
from fenchel.structures.base import Structure
from fenchel.structures.layouts.rows import NO_MASK
from fenchel.structures.offsets import LabelSums, PairSums

KEPT = 4  # evaluations and scores that a place remembers: those at the last weights it was asked about


SUMS = 9  # of the facts
ENTRY, ROOM = 8, 0.25  # bytes of a number that is multiplied by a scale; share of memory that copies may take


class Facts(NamedTuple):
    """What is known of the examples of a place; those of all places are the sum, or the largest."""

    n: int
    rows: int
    entries: int
    squares: float  # Σ ‖x‖²
    mass_squares: float  # Σ m ‖x‖²
    parts: float  # of an output, weighted by mass
    shares: np.ndarray  # the mass of each label, where an offset may be free
    counts: np.ndarray  # how many rows have each column
    users: np.ndarray  # how many places do
    peaks: np.ndarray  # from here on the largest: |x| of each column
    norm: float  # ‖x‖
    edge_norm: float
    cost: float
    dense: bool
    row_sum: float  # Σ_t x_t of a row
    negative: float  # −x, where one is below 0
    cramped: bool  # whether a copy of the examples' numbers would be too much
    mask: np.ndarray  # (d,) uint8, 1 where there is a weight; empty where all are there

    def joined(self, other: "Facts") -> "Facts":
        """Of both."""
        sums = (a + b for a, b in zip(self[:SUMS], other[:SUMS], strict=True))
        return Facts(*sums, *(np.maximum(a, b) for a, b in zip(self[SUMS:], other[SUMS:], strict=True)))


class Place:
    """A part of the examples.

    problem: of these alone; masses and λ are those of the whole, so that sums over places are the whole's.
    Scores and evaluations stay here, under the numbers that the one who asks gives them.
    """

    def __init__(self, problem: Problem):
        self.problem, self._kept, self.tilted = unshifted(problem, 1.0), {}, None

    def facts(self) -> Facts:
        """What has to be known before σ, the constant of free offsets, can be chosen for all."""
        problem, extent = self.problem, self.problem.extent
        examples, design = problem.examples, problem.design
        rows, mask = examples.starts is None, problem.structure.mask
        return Facts(
            examples.n,
            design.rows.shape[0],
            design.rows.nnz,
            float(design.norms.sum()),
            float(examples.mass @ design.norms) if rows else 0.0,
            extent.parts * float(examples.mass.sum()),
            problem.shares if rows else np.ones(1),
            counts_of(design.rows),
            (counts_of(design.rows) > 0).astype(np.int32),
            extent.peaks,
            extent.norm,
            extent.edge_norm,
            extent.cost,
            isinstance(design.rows, Table),
            design.largest_row_sum,
            -design.least_entry,
            examples.disk is not None and ENTRY * design.rows.nnz > ROOM * available_bytes(),
            NO_MASK if mask is None else mask.view(np.uint8),
        )

    def settle(self, constant: float, shares, mask, counts, users, alike: bool) -> None:
        """Take this σ, the labels' shares, the weights that there are, and how many rows and places have each
        column: the same everywhere. alike: as in `Groups.by`.
        """
        known = replace(self.problem, structure=with_mask(self.problem.structure, mask))
        self.problem = unshifted(known, constant)
        self.problem.__dict__.update(shares=shares, used_elsewhere=counts > counts_of(known.design.rows))
        self.groups, design = Groups.by(counts, alike), self.problem.design
        self.shared = shared_weights(users, design.outputs, self.problem.dim)
        here = (users == 1) & (counts_of(known.design.rows) > 0)
        self.own = np.flatnonzero(np.repeat(here, design.outputs))

    # ---- the primal

    def pull(self, number: int, w, known: int | None) -> tuple:
        """`Problem.pull_at` w, kept under this number; known: the number of the scores there, if kept."""
        scores = self._scores(known) if known in self._kept else None  # not at a place that was made anew
        pulled, value, moved, scores = self.problem.pull_at(w, scores)
        self._keep(number, Evaluation(w, value, None, moved, scores))
        return pulled, value, moved

    def _keep(self, number, evaluation):
        self._kept[number] = evaluation
        for old in sorted(self._kept)[:-KEPT]:
            del self._kept[old]

    def curved_along(self, number: int, direction) -> np.ndarray:
        """`Problem.curved_along` at the weights of that number."""
        return self.problem.curved_along(self._kept[number], direction)

    def scores(self, number: int, w) -> None:
        """Keep the scores at w under this number."""
        self._keep(number, Evaluation(w, np.nan, None, np.nan, self.problem.scores(w)))

    def move(self, number: int, known: int, delta) -> None:
        """Keep scores + delta under a number of their own."""
        if known not in self._kept:
            return  # likewise: nobody asks for these scores any more
        self._keep(number, Evaluation(self._kept[known].w, np.nan, None, np.nan, self._scores(known) + delta))

    def _scores(self, number) -> np.ndarray:
        return self.problem.scores_at(self._kept[number])

    def empirical(self) -> np.ndarray:
        return self.problem.empirical

    def columns(self) -> tuple:
        """Of each column Σ m x, Σ m x² and the number of entries."""
        design, mass = self.problem.design, self.problem.examples.mass
        return design.centre(mass), design.squares(mass), counts_of(design.rows).astype(np.float64)

    def quadratic(self, curvature: float) -> np.ndarray:
        """`matrices.quadratic` of these examples, without λ."""
        return quadratic(self.problem.design, curvature * self.problem.examples.mass, 0.0)

    # ---- free offsets

    def pair_ends(self, number: int) -> tuple:
        return self._pairs(number).ends()

    def pair_excess(self, number: int, b: float) -> tuple:
        return self._pairs(number).excess(b)

    def _pairs(self, number) -> PairSums:
        return PairSums(self.problem.blocks, self._scores(number), self.problem.each_part)

    def label_size(self, number: int, centre, temperature: float) -> float:
        return self._labels(number, centre, temperature).largest

    def label_centre(self, number: int) -> np.ndarray:
        return self.problem.examples.mass @ self._scores(number)

    def label_moments(self, number: int, centre, temperature: float, b, curved: bool) -> tuple:
        """`Moments` as a tuple; without its Hessian where that was not asked for."""
        moments = self._labels(number, centre, temperature).moments(b, curved)
        return tuple(moments)[: 4 if curved else 3]

    def _labels(self, number, centre, temperature) -> LabelSums:
        sums = LabelSums(self.problem.blocks, self._scores(number), self.problem.each_part)
        return sums if centre is None else sums.cooled(centre, temperature)

    # ---- the dual; which: "mu", or what `tilt` has made of it

    @property
    def dual_problem(self) -> Problem:
        """The problem in the layout of the dual variables."""
        return self.problem

    def marginals(self, which: str) -> np.ndarray:
        """Those of the dual point of this name."""
        raise NotImplementedError("this place has no dual variables")

    def entropies(self, which: str) -> np.ndarray:
        """H of them, where they do not tell; empty where they do."""
        return np.empty(0)

    def logarithms(self, number: int, which: str) -> None:
        """Keep scores whose marginals are those."""
        scores = self.problem.structure.logarithms(self.marginals(which))
        self._keep(number, Evaluation(np.empty(0), np.nan, None, np.nan, scores))

    def tilt(self, number: int) -> None:
        """Make "tilted" the marginals at the scores of that number."""
        self.tilted = self.problem.marginals(self._scores(number))

    def residuals(self, which: str) -> np.ndarray:
        return self.dual_problem.residuals(self.marginals(which))

    def concave(self, which: str) -> float:
        return self.dual_problem.concave(self.marginals(which))

    def value_and_gap(self, number: int | None, v, which: str | None) -> tuple:
        """`Problem.value_and_gap` at kept scores, or at the weights v."""
        scores = None if number is None else self._scores(number)
        if which is None:
            return self.problem.value_and_gap(v, scores, None)
        mu, entropies = self.marginals(which), self.entropies(which)
        return self.dual_problem.value_and_gap(v, scores, mu, entropies=entropies)


def counts_of(rows: Features) -> np.ndarray:
    """(A,) how many rows have each column."""
    return column_counts(rows) if isinstance(rows, Rows) else np.full(rows.n_columns, rows.shape[0])


def shared_weights(users, outputs: int, dim: int) -> np.ndarray:
    """Which weights several places know: of columns that examples of several have, transitions and offsets.

    users (A,): how many places have a column; dim: of all weights.
    """
    known = np.ones(dim, bool)
    known[: users.size * outputs] = np.repeat(users > 1, outputs)
    return np.flatnonzero(known)


def with_mask(structure: Structure, mask: np.ndarray) -> Structure:
    """The structure with these weights: (d,) uint8, or none to leave it as it is."""
    if mask.size == 0:
        return structure
    other = copy(structure)
    vars(other)["mask"] = mask.astype(bool)  # past frozen dataclasses
    return other


def unshifted(problem: Problem, constant: float) -> Problem:
    """The problem with features as they are and this constant: places cannot know of each other's columns."""
    other = replace(problem)
    rows, structure = problem.examples.rows, problem.structure
    design = Design(rows, structure.outputs, problem.threads, structure.extra, problem.free, shifts=False)
    other.__dict__["design"] = design.with_constant(constant) if problem.free else design
    return other
