"""Exponentiated gradient on the dual: collins2008 Figures 1 to 3, yu2011 Algorithm 8."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel._math import TINY
from fenchel._memory import available_bytes
from fenchel._mixed import Mixed
from fenchel._sparse import inner, sum_of_squares
from fenchel.solvers.dual import RENEWAL, DualSolver, DualState, Due, array_bytes
from fenchel.solvers.eg import general
from fenchel.solvers.eg.chain import FASTER, SLOWER, Arrangement, keeps_pairs
from fenchel.solvers.eg.sentences import dual_numbers, suits

TRIALS = 30  # halvings of a rate before a step is given up
SAMPLE, SHARE = 0.1, 0.95  # the search for a first rate: on this part of the examples, for so many of them
GROWTH = 2.0  # of the gap of an example that is left out, per pass
ARRANGED = 3  # times the examples and dual variables: what the fast lane of chains has in memory, at most
HOT, DECAY = 5, 0.7  # annealing: passes at the first λ, and the factor of each after


@dataclass
class EGState(DualState):
    """theta: μ_i is the marginals at θ_i; entropies of μ, gaps last met, rates: (n,), or a rate for all.

    due: which examples a pass visits. lam: of this pass. arranged: `chain.Arrangement`,
    which then holds θ and μ instead.
    """

    theta: np.ndarray | None = None
    entropies: np.ndarray | None = None
    rates: np.ndarray | None = None
    gaps: np.ndarray | None = None
    due: Due | None = None
    lam: float = 0.0
    arranged: Arrangement | None = None
    renewed: float = 0.0  # passes when the lane's weights were last computed anew
    summed: bool = False  # μ holds sums over edges, which do not tell the dual point

    @property
    def dual_variables(self):
        return None if self.summed else self.mu


@dataclass(frozen=True)
class EG(DualSolver):
    """Multiplies the dual variables by e^{−η·gradient}: an addition to their scores θ.

        log:    θ_i ← θ_i − η (θ_i − A_i w)        hinge:  θ_i ← θ_i + η (cost_i + A_i w)

    batch=False visits one example at a time; each has its own rate, which starts at `eta`, is halved until
    the dual increases, and grows by 5 % after (7.1). batch=True moves all at once.
    order: "random" draws, "cyclic", or "gap": a pass visits, in random order, the examples whose gap is above
    the mean, where a gap not looked at is taken to double with each pass (lepriol2018 section 7 asks for it).
    eta "search": the first of 1, ½, ¼, … with which 95 % of a tenth of the examples improve; those visits
    are counted.
    first: by how much θ of the true outcome (of a node: its label) is ahead at the start; 0 is uniform. None:
    10, and for sequences log(C·o/5) if that is more, o = ‖Σ_t x_t‖²/tokens what a token shares with all of
    them, at least their number: no first score is then more than a few units (80 attributes a token, Dutch
    names, to 1e-3: 9.6 passes from 12.6, 18.9 from 10, and 60 are too few from 7).
    cap: the most a rate grows to with the log loss, where 1 already moves θ to the scores. adapt=False: the
    rate stays `eta` and every step is taken, as Theorems 1 and 2 have it.
    lane: whether sequences may be visited in a layout of their own, which is faster (`chain.py`).
    anneal: λ starts at this multiple for 5 passes, λ(1 + (anneal − 1)·0.7^(t − 5)) after t passes (7.1.1).
    """

    order: str = "random"
    batch: bool = False
    eta: float | str = 0.5
    first: float | None = None
    anneal: float = 1.0
    cap: float = 1.0
    adapt: bool = True
    lane: bool = True
    seed: int = 0
    needs: ClassVar[frozenset] = frozenset(
        {"blocks", "bound"}
    )  # a dual, or a lane with a centre in its place

    def __post_init__(self):
        if self.order not in {"random", "cyclic", "gap"}:
            raise ValueError(f"order={self.order!r}; there are 'random', 'cyclic', 'gap'")
        if self.eta != "search" and not (isinstance(self.eta, (int, float)) and 0.0 < self.eta < np.inf):
            raise ValueError(f"eta={self.eta!r} must be 'search' or a positive number")
        if self.first is not None and not np.isfinite(self.first):
            raise ValueError(f"first={self.first!r} must be a finite number")
        if not self.cap > 0.0:
            raise ValueError(f"cap={self.cap!r} must be positive")
        if not 1.0 <= self.anneal < np.inf:
            raise ValueError(f"anneal={self.anneal!r} must be a number, at least 1")

    def copies(self, problem) -> float:
        """On the fast lane θ and μ alone, perhaps without the μ of edges; else two more for a trial."""
        if not self.has_a_lane(problem):
            return 4
        tables = problem.n * problem.structure.labels**2
        left_out = 0 if keeps_pairs(problem) else tables
        return (2 * dual_numbers(problem) - left_out) / problem.shape[0]

    def has_a_lane(self, problem) -> bool:
        """Whether sequences are visited in the layout of `chain.py`."""
        plain = self.anneal == 1.0 and self.cap == 1.0 and self.adapt and self.lane
        plain &= problem.used_elsewhere is None or problem.l1 == 0.0
        return not self.batch and self.eta != "search" and plain and suits(problem) and _has_room(problem)

    def init(self, problem, start):
        self.reserve(problem)
        n = problem.n
        state = EGState(entropies=np.empty(n), lam=problem.lam, gaps=np.full(n, np.inf))
        state.rng, state.due = np.random.default_rng(self.seed), Due(n, GROWTH)
        state.summed = not problem.tells_entropy
        if self.has_a_lane(problem):
            state.arranged, state.rates = self._arranged(problem, start), np.full(n, float(self.eta))
            if state.arranged.settle(problem, state.entropies):
                return state
            if problem.lam == 0.0:  # what follows knows no centre: begin where scores are near each other
                state.arranged = self._arranged(problem, None)
                state.arranged.settle(problem, state.entropies)
                return state
            state.arranged = None
        if problem.lam == 0.0:
            raise ValueError(
                "without an L2 term (c2 = 0) exponentiated gradient trains sequences in memory, with its own "
                "settings; use lbfgs"
            )
        state.theta, state.mu = self._first_theta(problem, start), problem.structure.room(problem.examples)
        general.settle(problem.blocks, state.theta, state.mu, state.entropies)
        state.centre = self.first_centre(problem, start)
        state.v = problem.proximal_weights(state.mu, state.centre)
        eta = self._search(problem, state) if self.eta == "search" else float(self.eta)
        state.rates = np.full(1 if self.batch else n, eta)
        return state

    def _arranged(self, problem, start) -> Arrangement:
        arranged = Arrangement(problem)
        if start is None:
            arranged.begin_ahead(problem, self._ahead(problem, arranged.lam))
        else:
            arranged.begin_at(problem, self._first_theta(problem, start))
        return arranged

    def _first_theta(self, problem, start):
        """θ whose marginals are the warm start's; where they do not tell θ, the better of two."""
        if start is None:
            return self._fresh_theta(problem)
        if not problem.structure.listed:
            scores = problem.scores(start.w)
            if problem.used_elsewhere is not None or problem.lam == 0.0:  # D is not known here
                return scores
            choices = scores, self._fresh_theta(problem)
            return max(choices, key=lambda theta: self._dual_of(problem, theta))
        mu = self.first_mu(problem, start, problem.near_target(0.0))
        return np.log(np.maximum(mu, TINY))

    def _fresh_theta(self, problem):
        theta = problem.structure.room(problem.examples)
        general.first(problem.blocks, self._ahead(problem, problem.lam), theta)
        return theta

    def _ahead(self, problem, lam) -> float:
        """By how much the truth is ahead at the start."""
        if self.first is not None:
            return float(self.first)
        if problem.structure.listed:
            return 10.0
        rows = problem.examples.rows
        parts = rows.apart() if isinstance(rows, Mixed) else (rows,)
        sums = [np.asarray(part.matrix.sum(axis=0)).ravel() for part in parts]
        shared = sum(float(each @ each) for each in sums) / rows.shape[0]
        return max(10.0, np.log(max(shared, rows.shape[0]) / (problem.n * lam) / 5.0))

    def _dual_of(self, problem, theta):
        """D at the marginals of θ."""
        mu, entropies = np.empty(problem.shape), np.empty(problem.n)
        general.settle(problem.blocks, theta, mu, entropies)
        return self._dual_at(problem, mu, problem.proximal_weights(mu), entropies, 0.0)

    def _search(self, problem, state):
        """The first rate of 1, ½, ¼, … that improves the dual at once for 95 % of a tenth of the examples."""
        sample = state.rng.permutation(problem.n)[: max(1, int(SAMPLE * problem.n))]
        eta = 1.0
        for _ in range(TRIALS):
            kept = state.theta, state.mu, state.entropies, state.gaps, np.full(problem.n, eta), state.v
            copies = [array.copy() for array in kept]
            trials, improved = general.epoch(
                problem.loss, problem.dual_blocks, sample, (1, True, np.inf), *copies
            )
            state.passes += trials / problem.n
            state.oracle_calls += trials
            if improved >= SHARE * sample.size:
                break
            eta *= SLOWER
        return eta

    def step(self, problem, state):
        if state.arranged is not None:
            self._arranged_step(problem, state)
            return
        now = self._annealed(problem, state)
        gap = self._batch_step(now, state) if self.batch else self._online_step(now, state)
        state.updates += problem.n
        partial = self.batch or self.order == "gap"  # one step for all, or some examples left out
        self.recentre(now, state, gap if partial else 0.0)
        self.refresh(now, state)
        self.note_gap(now, state, gap)
        if now is not problem:  # the gap met is that of another λ
            state.relative_gap_estimate = np.nan

    def _arranged_step(self, problem, state):
        order = self._order(problem, state)
        arrays = state.rates, state.entropies, state.gaps
        if not state.alone:
            state.arranged.set_out(problem, state.v)
        trials, lost = state.arranged.visit(order, TRIALS, *arrays)
        state.passes += trials / problem.n
        state.oracle_calls += trials
        state.updates += order.size
        state.epochs += 1
        state.gap = inner(problem.examples.mass, state.gaps)
        if state.alone:
            self._keep_up(problem, state)
        else:
            state.v = state.arranged.come_back(problem, state.v)
        if lost > 0 and problem.lam == 0.0:
            state.stalled = True  # the general kernels know no centre
        elif lost > 0:
            self._leave_the_lane(problem, state)

    def _keep_up(self, problem, state):
        """Now and then what is kept up by increments anew; the estimate of the gap; and the centre."""
        if state.passes >= state.renewed + RENEWAL:
            state.arranged.weigh(state.entropies)
            state.renewed = state.passes
        if state.epochs & (state.epochs - 1) == 0:  # as `note_gap` has it
            state.dual = self.concave(problem, state) - state.arranged.penalty()
        whole = state.gap + state.arranged.follow(state.gap)
        state.relative_gap_estimate = whole / max(state.dual, 1e-300)

    def _leave_the_lane(self, problem, state):
        """Go on with the general kernels, which know logarithms; all at once, or an interrupt finds half."""
        theta, mu, entropies = self._in_own_layout(problem, state)
        v, centre = problem.proximal_weights(mu) if state.alone else state.v, np.zeros(0)
        vars(state).update(theta=theta, mu=mu, entropies=entropies, v=v, centre=centre, arranged=None)

    def _in_own_layout(self, problem, state):
        """θ, μ and its entropies as the general kernels have them."""
        theta, mu, entropies = state.arranged.theta(problem), np.empty(problem.shape), np.empty(problem.n)
        general.settle(problem.blocks, theta, mu, entropies)
        return theta, mu, entropies

    def _annealed(self, problem, state):
        """The problem with the λ of this pass; w(μ) is carried over to it."""
        if not state.alone:
            return problem
        extra = (self.anneal - 1.0) * DECAY ** max(state.epochs - HOT, 0)
        lam = problem.lam * (1.0 + extra) if extra > 1e-3 else problem.lam
        if lam != state.lam:
            state.free_weights(problem)[:] -= state.centre
            state.v *= state.lam / lam
            state.free_weights(problem)[:] += state.centre
            state.lam = lam
        return problem if lam == problem.lam else problem.with_penalty(lam, problem.design.constant)

    def point(self, problem, state):
        if state.arranged is not None:
            point, state.renewed = state.arranged.point(problem, state.entropies), state.passes
            if point is None and problem.lam == 0.0:
                return problem.bare_point(state.arranged.weights(problem))
            return problem.dual_point(*self._in_own_layout(problem, state)[1:]) if point is None else point
        offset = state.free_weights(problem) if problem.free else 0.0
        return problem.dual_point(state.mu, state.entropies, offset)

    def concave(self, problem, state):
        hinge = problem.loss.hinge
        return problem.concave(state.mu) if hinge else inner(problem.examples.mass, state.entropies)

    def _online_step(self, problem, state):
        order = self._order(problem, state)
        arrays = state.theta, state.mu, state.entropies, state.gaps, state.rates, state.v
        search, trials = (TRIALS, self.adapt, np.inf if problem.loss.hinge else self.cap), 0
        for some in problem.examples.visits(order):
            trials += general.epoch(problem.loss, problem.dual_blocks, some, search, *arrays)[0]
        state.passes += trials / problem.n
        state.oracle_calls += trials
        return inner(problem.examples.mass, state.gaps)

    def _order(self, problem, state):
        """The examples of the next pass."""
        n = problem.n
        if self.order == "cyclic":
            return np.arange(n)
        if self.order == "random":
            return state.rng.integers(n, size=n)
        order = state.rng.permutation(n)
        return order if state.epochs < 2 else state.due.among(order, problem.examples.mass * state.gaps)

    def _batch_step(self, problem, state):
        """Figure 1: one rate for all, halved until the dual increases."""
        loss, blocks = problem.loss, problem.dual_blocks
        before = self._dual_at(problem, state.mu, state.v, state.entropies, state.centre)
        now = state.theta, state.mu, state.entropies, state.v
        theta, mu, entropies = np.empty_like(state.theta), np.empty_like(state.mu), np.empty(problem.n)
        for _ in range(TRIALS):
            gap = general.move_all(loss, blocks, state.rates[0], *now, theta, mu, entropies)
            v = self._weights_at(problem, state, mu)
            state.passes += 1.0
            state.oracle_calls += problem.n
            if not self.adapt or self._dual_at(problem, mu, v, entropies, state.centre) >= before:
                # all at once: an interrupt must not find new marginals with old entropies
                vars(state).update(theta=theta, mu=mu, entropies=entropies, v=v)
                state.rates[0] *= FASTER if self.adapt else 1.0
                return gap
            state.rates[0] *= SLOWER
        state.stalled = True
        return gap

    def _weights_at(self, problem, state, mu):
        """v with μ in the place of the state's; at a place among others the rest of it stays."""
        if state.alone:
            return problem.proximal_weights(mu, state.centre)
        return state.v + (problem.residuals(mu) - problem.residuals(state.mu)) / problem.lam

    def _dual_at(self, problem, mu, v, entropies, centre):
        """D(μ) with the proximal penalty λ/2 ‖β − β₀‖² of free offsets, v the weights at μ."""
        squares = sum_of_squares(problem.read(v)) - float(np.sum(np.square(centre)))
        penalty = 0.5 * problem.lam * squares
        if problem.loss.hinge:
            return problem.concave(mu) - penalty
        return inner(problem.examples.mass, entropies) - penalty


def _has_room(problem) -> bool:
    """Whether examples are in memory, or on a disk from which they fit there, arranged in another way."""
    disk = problem.examples.disk
    return disk is None or ARRANGED * (disk.size + array_bytes(problem)) <= available_bytes()
