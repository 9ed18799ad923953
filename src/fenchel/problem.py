"""Problem: the one formula, put together from examples, structure, loss and regulariser.

    s_i     = A_i w + b                                   scores of the parts of example i
    loss_i  = Ω*(s_i + cost_i) − ⟨s_i, y_i⟩                y_i: empirical marginals, 0/1 or soft
    P(w, b) = Σ_i m_i loss_i + λ/2 ‖w‖²                    masses m_i > 0 sum to one; perhaps + λ₁ ‖w‖₁
    D(μ)    = Σ_i m_i H_i(μ_i) − λ/2 ‖w(μ)‖²,   w(μ) = (1/λ) Σ_i m_i A_iᵀ(y_i − μ_i)
    gap     = P − D ≥ 0

Words.  part: what has a score, a label, a candidate, a node or an edge of a sequence; A_i has a row for each.
output: what is predicted, made of parts. outcome: an output that is one part, where they are listed.
block: the marginals μ_i of the parts of one example. pull: Σ m_i A_iᵀ(y_i − μ_i), λ w(μ).
tilt: to multiply marginals by e^δ, one δ for each output of an offset, so that they balance.

Conventions. Solvers see one array of `dim` weights, laid out as `design.py` says: with a free (unpenalised)
offset b its last numbers are β, b = σβ, coordinates like the others but for the penalty. Where a certificate
is made b is optimised first, P(w) = min_b P(w, b), so that with the log loss gap = ‖∇P(w)‖²/(2λ) holds with
an intercept too. μ is feasible if Σ m_i (y_i − μ_i) = 0 where b is free; `dual_point` moves it there first.
Solvers of the dual give β a penalty λ/2 ‖β − β₀‖² with a centre β₀ that moves (`solvers/dual.py`). With K
labels crossed with attributes w is W (A, K) row by row and b is (K,), with mean zero. The arrays of scores
and marginals of all examples have the structure's shape.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fenchel import certificates, curvature, losses
from fenchel._sparse import Rows, inner
from fenchel._threads import PARTS
from fenchel.certificates import Evaluation, Extent
from fenchel.curvature import Curved
from fenchel.data import Examples
from fenchel.design import Columns, Design
from fenchel.losses import Hinge, Log
from fenchel.offers import REGULARISED, WITH_L1, offered
from fenchel.points import NO_WEIGHTS, Certified
from fenchel.regularizers import L2, ElasticNet, of_penalties
from fenchel.structures import binary_batch, chain_batch, crossed_batch, passes
from fenchel.structures.base import Structure

MANY = 1_000_000  # weights from which on a gradient is summed in two parts: more vectors cost too much memory


@dataclass(frozen=True)
class Problem(Certified, Curved):
    """Σ m_i loss_i + λ/2 ‖w‖² over given examples; `free` adds an unpenalised offset b. total: the sum of the
    sample weights, to which a constant such as C refers.
    """

    examples: Examples
    structure: Structure
    loss: Log | Hinge
    regularizer: L2 | ElasticNet
    free: bool = False
    threads: int | None = None
    total: float = 1.0
    traffic, company = float("nan"), ""  # bytes sent to and from other machines so far; what is said of those
    used_elsewhere = None  # at a place among others (A,) bool: columns that examples of others have too

    @property
    def n(self) -> int:
        return self.examples.n

    @property
    def dim(self) -> int:
        """All weights; `penalised` of them have a penalty, the others are β."""
        return self.design.dim

    @property
    def penalised(self) -> int:
        return self.design.penalised

    @property
    def lam(self) -> float:
        return self.regularizer.lam

    @property
    def l1(self) -> float:
        return self.regularizer.l1

    @property
    def regularised(self) -> bool:
        """Whether there is a dual, and with it a certificate."""
        return self.lam > 0.0 or self.l1 > 0.0

    @property
    def offers(self) -> frozenset:
        """What solvers may ask for, see `offers.py`."""
        own = offered(self.structure, self.loss)
        own = own if self.l1 == 0.0 else frozenset() if self.loss.hinge else own & WITH_L1
        mixed = self.l1 > 0.0 and "sequences" in self.structure.offers
        return own | (REGULARISED if self.lam > 0.0 else {"bound"} if mixed else set())

    def __str__(self) -> str:
        sparse = f", λ₁ = {self.l1:.6g}" if self.l1 > 0.0 else ""
        free = ", free intercept" if self.free else ""
        more = f" ({self.examples.merged} duplicates merged)" if self.examples.merged else ""
        return (
            f"{self.structure.name} {self.loss.name}, n = {self.n}{more}, d = {self.penalised}, "
            f"{self.examples.rows.nnz} non-zeros, λ = {self.lam:.6g}{sparse}{free}"
        )

    @cached_property
    def design(self) -> Design:
        structure, kept = self.structure, {"shifts": self.examples.disk is None, "room": self.examples.room}
        given = self.examples.rows, structure.outputs, self.threads, structure.extra, self.free
        return self._with_constant(Design(*given, **kept))

    def _with_constant(self, design) -> Design:
        """The design with the σ that suits λ."""
        if not self.free:
            return design
        square = inner(self.examples.mass, design.norms)
        return design.with_constant(curvature.constant(square, self.shares, self.lam))

    @cached_property
    def shares(self) -> np.ndarray:
        """How often each label is true, where a free offset can tell them apart."""
        return self.structure.shares(self.examples)

    def adapted(self, solver):
        """The solver as it is to be used here; another one where the examples are elsewhere."""
        return solver

    @property
    def tells_entropy(self) -> bool:
        """Whether marginals determine the dual; the hinge loss's is linear in them."""
        return self.loss.hinge or self.structure.tells_entropy

    @cached_property
    def entropic(self) -> "Problem":
        """The same problem with marginals that determine the dual, where there are such: else itself."""
        richer = None if self.tells_entropy else self.structure.telling_entropy()
        return self if richer is None else replace(self, structure=richer)

    @cached_property
    def blocks(self):
        """The named tuple of arrays that the block kernels take."""
        return self.structure.blocks(self.examples, self.design, self.lam)

    @property
    def dual_blocks(self):
        """The same for solvers of the dual, which hold v = u/λ: weights are read as soft(v, λ₁/λ)."""
        return self.blocks._replace(threshold=self.regularizer.threshold) if self.l1 > 0.0 else self.blocks

    @cached_property
    def columns(self) -> Columns:
        """The weights one by one."""
        return self.design.columns(self.examples.mass, self.structure.per_row, self.examples.starts)

    @cached_property
    def extent(self) -> Extent:
        """How large the features are: what rounding is measured by."""
        (parts, cost, edge_norm), design = self.structure.measures(self.examples), self.design
        cost *= self.loss.hinge
        return certificates.extent_of(design.rows, design.norms, design.outputs, parts, edge_norm, cost)

    @property
    def shape(self) -> tuple:
        """Of the marginals of all examples."""
        return self.structure.shape(self.examples)

    def with_penalty(self, lam: float, constant: float | None = None, l1: float | None = None) -> "Problem":
        """The same problem with another λ; what was computed of the features is shared.

        constant: σ, if it is not to be the one that suits λ best. l1: λ₁; unless given it stays.
        """
        other = replace(self, regularizer=of_penalties(lam, self.l1 if l1 is None else l1))
        for name in ("design", "extent") if self.free else ("design", "columns", "empirical", "extent"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        if "blocks" in self.__dict__ and not self.free:
            other.__dict__["blocks"] = self.blocks._replace(lam=lam)
        if self.free and constant is not None:
            other.__dict__["design"] = self.design.with_constant(constant)
        elif "design" in other.__dict__:
            other.__dict__["design"] = other._with_constant(self.design)
        return other

    def each_part(self, task) -> list:
        """[task(start, stop) for parts of the examples], by threads where the work is large."""
        return self.design.for_each_part(self.n, self.design.work, task)

    def _pulled(self, add) -> tuple[np.ndarray, list]:
        """The sum of what add(start, stop, v) adds to v over all parts, and the list of what it returns."""

        def part(start, stop):
            v = np.zeros(self.dim)
            return v, add(start, stop, v)

        parts = PARTS if self.dim < MANY else 2
        made = self.design.for_each_part(self.n, self.design.work, part, parts)
        vectors, answers = zip(*made, strict=True)
        for other in vectors[1:]:
            vectors[0][:] += other
        return self._masked(vectors[0]), answers

    def _masked(self, v) -> np.ndarray:
        """v without the weights that there are not; written."""
        if self.structure.mask is not None:
            v[: self.penalised] *= self.structure.mask
        return v

    @cached_property
    def present(self) -> np.ndarray:
        """The numbers of all weights that there are, in order."""
        if self.structure.mask is None:
            return np.arange(self.dim)
        return np.concatenate([np.flatnonzero(self.structure.mask), np.arange(self.penalised, self.dim)])

    @cached_property
    def empirical(self) -> np.ndarray:
        """P̃(f) = Σ m_i A_iᵀ y_i, (d,): the expected features under the data."""
        pulled, _ = self._pulled(lambda start, stop, v: passes.add_targets(self.blocks, start, stop, v))
        return pulled

    # ---- the primal

    @cached_property
    def value_at_zero(self) -> float:
        """P(0) at the best offset: no model returned is worse. A pass only for costs with banned pairs."""
        if self.free:
            shares = self.shares / self.shares.sum()
            return float(-shares @ np.log(shares))
        size = (self.structure.sizes_of_choice(self.examples) or (None, None))[self.loss.hinge]
        if size is None:
            return self.value_at(np.zeros(self.penalised))[0]
        return float(size if np.ndim(size) == 0 else self.examples.mass @ size)

    @property
    def origin(self) -> np.ndarray:
        """(dim,) no weights, and the best offset then."""
        w = np.zeros(self.penalised)
        return self.design.join(w, self.structure.prior(self.shares)) if self.free else w

    def weights_at(self, start) -> np.ndarray:
        """(dim,) all weights of a warm start; the origin without."""
        return self.origin if start is None else self.design.join(start.w, start.b)

    def balanced_at(self, start) -> np.ndarray:
        """The same with the best offset: far from it P has no curvature to go by."""
        return self._balance(self.weights_at(start))[0] if start else self.origin

    def scores(self, w) -> np.ndarray:
        """A_i w of all examples: one pass."""
        if self.structure.products:
            return self.design.scores(w)
        scores, walk = self.structure.room(self.examples), self._several_rows or passes
        self.each_part(lambda start, stop: walk.all_scores(self.blocks, start, stop, w, scores))
        return scores

    def adjoint(self, scores) -> np.ndarray:
        """Σ A_iᵀ scores_i, (dim,): one pass."""
        if self.structure.products:
            return self._masked(self.design.adjoint(scores))
        walk = self._several_rows or passes
        return self._pulled(lambda start, stop, v: walk.add_scores(self.blocks, start, stop, scores, v))[0]

    def value_at(self, w, b=None):
        """P(w, b) and b, of the penalised weights w; b is optimised away unless it is given."""
        v, scores = self.design.join(w, 0.0 if b is None else b), None
        if b is None:
            v, scores = self._balance(v)
        value = self.value_and_gap(v, scores, None)[0] + self.regularizer.value(w)
        return value, self.design.split(v)[1] if b is None else b

    def evaluate(self, w, scores=None) -> Evaluation:
        """P and ∇P (with the hinge loss a subgradient) at w: one pass. scores: those at w, if known."""
        pulled, value, moved, scores = self.pull_at(w, scores)
        own = w[: self.penalised]
        value += self.regularizer.value(own)
        smooth = self.regularizer.gradient(w)
        smooth[self.penalised :] = 0.0
        smooth -= pulled
        return Evaluation(w, value, self.regularizer.subgradient(own, smooth), moved, scores, smooth=smooth)

    def pull_at(self, w, scores=None) -> tuple:
        """Σ m_i A_iᵀ(y_i − μ_i), Σ m_i loss_i, Σ m_i ‖y_i − μ_i‖₁ at w, and the scores.

        Those only of two classes with the log loss: they are as few as the examples.
        """
        if self.structure.name == "binary" and not self.loss.hinge:
            known, scores = scores is not None, self.examples.room(self.n) if scores is None else scores
            kernel, given = binary_batch.value_and_pull, (known, scores)
        elif self.loss.hinge:
            kernel, given = losses.hinge_value_and_pull, (self._given(scores),)
        else:
            kernel = self._several_rows.value_and_pull if self._several_rows else losses.log_value_and_pull
            given = (self._given(scores),)
        pulled, parts = self._pulled(lambda start, stop, v: kernel(self.blocks, start, stop, w, *given, v))
        return pulled, *map(sum, zip(*parts, strict=True)), scores

    @property
    def _several_rows(self):
        """The kernels that take several rows at a time, where there are such: of sequences, dense tokens."""
        rows, name = self.design.rows, self.structure.name
        if name == "flat crossed":
            return crossed_batch if crossed_batch.pays(rows, self.structure.size) else None
        return chain_batch if name == "chain" and not isinstance(rows, Rows) else None

    def _given(self, scores) -> np.ndarray:
        """The scores, or an empty array of their kind: kernels are compiled once for both."""
        if scores is not None:
            return scores
        several = self.design.matrix and self.structure.products
        return np.empty((0, 0)) if several else NO_WEIGHTS

    def scores_at(self, evaluation: Evaluation) -> np.ndarray:
        """The scores of all examples there; computed at the first call, unless they were met."""
        if evaluation.scores is None:
            evaluation.scores = self.scores(evaluation.w)
        return evaluation.scores

    def marginals_at(self, evaluation: Evaluation) -> np.ndarray:
        """The marginals of all examples there."""
        if evaluation.mu is None:
            evaluation.mu = self.marginals(self.scores_at(evaluation))
        return evaluation.mu

    def marginals(self, scores, out=None) -> np.ndarray:
        """The marginals of all examples at the scores; written to `out`, perhaps the scores, if given."""
        mu = self.structure.room(self.examples) if out is None else out
        walk = binary_batch if self.structure.name == "binary" else passes
        self.each_part(lambda start, stop: walk.all_marginals(self.blocks, start, stop, scores, mu))
        return mu

    # ---- the dual

    def residuals(self, mu) -> np.ndarray:
        """Σ m_i A_iᵀ(y_i − μ_i), (dim,): one pass."""
        return self._pulled(lambda start, stop, v: passes.add_residuals(self.blocks, start, stop, mu, v))[0]

    def read(self, v) -> np.ndarray:
        """(dim,) the weights that a dual solver's v stands for."""
        own, free = v[: self.penalised], v[self.penalised :]
        return v if self.l1 == 0.0 else np.concatenate([self.regularizer.read(own), free])

    def weights_of(self, mu) -> np.ndarray:
        """w(μ), the penalised weights: one pass."""
        return self.regularizer.weights(self.residuals(mu)[: self.penalised])

    def proximal_weights(self, mu, centre=0.0) -> np.ndarray:
        """(dim,) v = u/λ, w(μ) unless there is an L1 term, and β = β₀ + σ/λ Σ m_i (y_i − μ_i): one pass."""
        v = self.residuals(mu) / self.lam
        v[self.penalised :] += centre
        return v

    def dual(self, mu, w=None) -> float:
        """D(μ); the caller may hand in w(μ)."""
        w = self.weights_of(mu) if w is None else w
        return self.concave(mu) - self.regularizer.conjugate(w)

    def concave(self, mu) -> float:
        """Σ m_i H_i(μ_i)."""
        self._require_entropy()
        return sum(
            self.each_part(lambda start, stop: losses.concave(self.loss, self.blocks, start, stop, mu))
        )

    def _require_entropy(self):
        """Refuse marginals that do not tell H."""
        if not self.tells_entropy:
            which = "these marginals (of a sequence: summed over its edges)"
            raise ValueError(f"{which} do not tell the entropy; use problem.entropic")

    def near_target(self, epsilon: float) -> np.ndarray:
        """(1 − ε) y_i + ε · uniform for all examples: lepriol2018 (21)."""
        mu = self.structure.room(self.examples)
        if epsilon > 0.0:
            passes.near_targets(self.blocks, epsilon, mu)
        else:
            passes.all_targets(self.blocks, mu)
        return mu

    def tilt(self, mu, overwrite=False) -> np.ndarray:
        """μ'_i ∝ μ_i e^δ with Σ m_i (y_i − μ'_i) = 0: the feasible neighbour of μ, perhaps in its place."""
        tilted = self.structure.tilted(self.blocks, mu, self.each_part, overwrite)
        if tilted is not None:
            return tilted
        scores = self.logarithms(mu)
        scores += self.structure.offset(self.blocks, scores, self.each_part)
        return self.marginals(scores, scores if scores.shape == self.shape else None)

    def block_gaps(self, mu, scores) -> np.ndarray:
        """(n,) how much each example contributes to the gap, before its mass."""
        gaps = self.examples.room(self.n)
        self.value_and_gap(NO_WEIGHTS, scores, mu, gaps)
        return gaps

    def value_and_gap(self, v, scores, mu, gaps=None, entropies=NO_WEIGHTS):
        """Σ m_i loss_i, Σ m_i · block gap and Σ m_i ‖y_i − μ_i‖₁ at the weights v or the scores."""
        gaps = self.examples.room(self.n) if gaps is None else gaps
        if mu is not None and entropies.size == 0:
            self._require_entropy()
        given, kernel = (v, self._given(scores), mu, entropies, gaps), losses.value_and_gap
        if self.structure.name == "binary":
            given, kernel = (v, self._given(scores), mu, gaps), losses.pair_value_and_gap
        parts = self.each_part(lambda start, stop: kernel(self.loss, self.blocks, start, stop, *given))
        return tuple(map(sum, zip(*parts, strict=True)))
