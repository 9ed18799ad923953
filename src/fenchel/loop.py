"""The loop, the stop and the result: written once, for every solver."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, isfinite, isnan, log10, nan
from numbers import Real

import numpy as np

from fenchel._compiling import compiling_clock
from fenchel.certificates import Point
from fenchel.checkpoints import Keeper, keep, resumed
from fenchel.choosing import Forecast, relay, require, solver_name
from fenchel.problem import Problem
from fenchel.results import Result
from fenchel.solvers.base import Solver, Start, State
from fenchel.trace import NO_OPTIMUM, UNREGULARISED, Certificate, Meter, Row, Status, Step, Trace

# Where a check costs a pass and the estimate of the solver does not ask for one: the first (the second number
# where the estimate is exact but for the offset), and how far apart (its square where there is an estimate).
FIRST_CHECK, FARTHER = (10.0, 25.0), 1.4
# An estimate that was so many times too low says nothing of how far off the next one is: that is believed no
# sooner than after a share more of passes.
MISLED, LATER = 10.0, 1.15
UNSEEN = 3.0  # steps that a certificate is taken to last as long as, before one was made
WEAK = (Status.STALLED, Status.DIVERGED)  # ends of one solver that need not be those of another
SHRINKS = 12  # times a model that is worse than w = 0 is divided by four


@dataclass(frozen=True)
class Stop:
    """When to end: gap ≤ tol · P, or at a limit. Without a dual: ‖∇P(w)‖ ≤ tol · ‖∇P(0)‖.

    Looking at the start is measuring, and not counted; at least one step is made; no step begins at or past
    a limit, so that the last one may end beyond it. Compiling and loading kernels never counts.
    """

    tol: float = 1e-3
    max_passes: float = 1000.0
    max_seconds: float = inf

    def __post_init__(self):
        for name in ("tol", "max_passes", "max_seconds"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and value >= 0.0):
                raise ValueError(f"{name}={value!r} must be a number, at least 0")


def solve(
    problem: Problem,
    solver: Solver | str = "auto",
    *,
    tol: float = 1e-3,
    max_passes: float = 1000.0,
    max_seconds: float = inf,
    start: Start | None = None,
    seed: int = 0,
    check_every: float | None = None,
    callbacks: Iterable[Callable[[Trace], None]] = (),
    validate: Callable[[np.ndarray, float], float] | None = None,
    gradients: bool = False,
    keeper: Keeper | None = None,
) -> Result:
    """Minimise the problem's objective to a proven relative precision.

    solver: an instance (`solvers.CDDual(...)`), a name of `solvers.SOLVERS`, or "auto", which may go on with
    another one where the first turns out to be slow.
    tol: stop when gap ≤ tol · objective. max_passes, max_seconds: at least one step is made, and none begins
    at or past these; compiling does not count.
    start: warm start. seed: added to the solver's own.
    check_every: certify every so many passes; by default after each step where that costs nothing, else when
    the solver's own estimate says it is time, and at growing distances.
    callbacks: called with the trace after each check, and their `stepped`, where there is one, after each
    step with passes and the relative gap that the solver thinks it has, or nan. validate(w, b): a score noted
    in each row. gradients: note ‖∇P(w)‖ in every row also where the solver does not know it, for a pass more.
    keeper: keeps what is needed to go on after a crash, such as `fenchel.Checkpoint`.

    Ctrl-C ends the run and returns the best model so far with its true certificate. No model that is returned
    has a larger objective than w = 0.
    """
    stop = Stop(tol, max_passes, max_seconds)
    if check_every is not None and not check_every > 0.0:
        raise ValueError(f"check_every={check_every!r} must be positive")
    legs = relay(solver, problem, seed, warm=start is not None and start.mu is not None)
    for leg in legs:
        require(problem, leg.solver)
    run = _Run(problem, legs, stop, check_every, tuple(callbacks), validate, gradients, keeper)
    with np.errstate(all="ignore"):  # what overflows ends in an objective that is not finite: that is seen
        return run.to_the_end(checked_start(problem, start))


def checked_start(problem: Problem, start: Start | None) -> Start | None:
    """The warm start as solvers may rely on it: weights where the problem has some, μ marginals to rounding.

    One of another size, with numbers that are not finite, or whose μ are no marginals is refused.
    """
    if start is None:
        return None
    if not isinstance(start, Start):
        raise ValueError(f"start must be a fenchel.Start or None, not {type(start).__name__}")
    sizes = {"w": (problem.penalised,), "mu": problem.entropic.shape}
    for name, shape in sizes.items():
        array = getattr(start, name)
        if array is None:
            continue
        if np.shape(array) != shape:
            raise ValueError(f"start.{name} has shape {np.shape(array)}, but this problem needs {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"start.{name} contains NaN or infinity")
    if not np.isfinite(start.b).all():
        raise ValueError(f"start.b is {start.b}, not a finite number")
    if problem.structure.mask is not None:
        start = start._replace(w=np.where(problem.structure.mask, start.w, 0.0))
    return start if start.mu is None or start.trusted else start._replace(mu=_checked_mu(problem, start.mu))


def _checked_mu(problem, mu):
    """μ as marginals to rounding."""
    cleaned = problem.entropic.structure.cleaned(problem.examples, np.asarray(mu, dtype=np.float64))
    if cleaned is None:
        agree = ", and those of neighbours agree; sums over edges are taken from result.start only"
        raise ValueError(
            "start.mu must hold probabilities: numbers ≥ 0 that sum to 1 for each example"
            + ("" if problem.structure.listed else agree)
        )
    return cleaned


class _Run:
    """One solve: state, clock, trace, and the best bounds seen."""

    def __init__(self, problem, legs, stop, check_every, callbacks, validate, gradients, keeper):
        self.problem, self.stop, self.keeper = problem, stop, keeper
        self.legs, (self.leg, *self.others) = tuple(legs), legs
        self.check_every, self.callbacks = check_every, callbacks
        self.validate, self.gradients = validate, gradients and not problem.loss.hinge
        self.meter = Meter(compiling_clock())
        self.steps, self.checked, self.ended = 0, -1, False
        self.longest = {"step": 0.0, "check": 0.0}  # seconds
        self.forecast = Forecast()
        self.trace = Trace(solver=solver_name(self.solver), problem=str(problem))
        self.best: Point | None = None
        self.dual = -inf
        self.next_check = 0.0 if self._checks_are_cheap else FIRST_CHECK[self.solver.free_check]
        self.calibration, self.soonest = 1.0, 0.0
        self.gradient_norm_at_zero = nan  # what ‖∇P‖ is compared with where there is no dual

    @property
    def solver(self) -> Solver:
        return self.leg.solver

    @property
    def certifies(self) -> bool:
        """Whether the solver minimises something, so that its points have bounds."""
        return getattr(self.solver, "certifies", True)

    @property
    def _checks_are_cheap(self):
        return self._checks_are_free or self.check_every is not None

    @property
    def _checks_are_free(self):
        searching = self.problem.free and self.problem.regularised  # for the offset, at each check
        return self.solver.free_check and not searching

    def to_the_end(self, start) -> Result:
        with self.meter.running():
            state = self.solver.init(self.problem, start)
        status = Status.RUNNING
        if self.keeper is not None:
            state = resumed(self, state)
            if self.ended:  # and goes on only where tol or limits have changed
                status, self.ended = self._decide(self.trace[-1], state), False
        try:
            while status is Status.RUNNING:
                if self._due(state):
                    status = self._check(state)
                if self._wants_another(status, state):
                    self.leg, state = self._change(state)  # at once: Ctrl-C finds a solver with its own state
                    status = Status.RUNNING
                if status is Status.RUNNING:
                    self._step(state)
                    if self.keeper is not None and self.keeper.is_due():
                        keep(self, state)
        except KeyboardInterrupt:
            self._measure(state)
            status = Status.INTERRUPTED
        if self.keeper is not None:
            self.ended = True
            keep(self, state)
        return self._result(state, status)

    def _step(self, state):
        before = self.meter.seconds
        with self.meter.running():
            self.solver.step(self.problem, state)
        self.steps += 1
        self.longest["step"] = max(self.longest["step"], self.meter.seconds - before)
        estimate = state.relative_gap_estimate * self.calibration
        sent = self.problem.traffic
        if not (self._checks_are_cheap or isnan(estimate)) or sent > 0.0:
            self.trace.steps.append(Step(state.passes, self.meter.seconds, float(estimate), sent))
        for callback in filter(lambda each: hasattr(each, "stepped"), self.callbacks):
            callback.stepped(state.passes, estimate)

    def _wants_another(self, status, state) -> bool:
        """Whether the next solver is to take over: never at a limit, nor where the run has converged."""
        if not self.others or self._limit(state) is not Status.RUNNING:
            return False
        return status in WEAK or (status is Status.RUNNING and self._is_slow(state))

    def _is_slow(self, state) -> bool:
        """Whether the solver needs more passes than another method would."""
        met, tol = state.relative_gap_estimate, max(self.stop.tol, 1e-15)
        if self._checks_are_free and self.best is not None:
            met = self.gap / max(self.best.primal, 1e-300)
        self.forecast.note(state.passes, met)
        digits = max(-log10(tol), 3.0)
        left = self.forecast.passes_left(tol / max(self.calibration, 1e-300), self.leg.look)
        return left > self.leg.patience * digits / 3.0

    def _change(self, state):
        """The next leg and its state, from the best model so far unless w = 0 is better."""
        if self.checked != state.updates:
            self._measure(state)
        leg = self.others.pop(0)
        start = None if self._worse_than_zero else Start(self.best.w, self.best.b)
        with self.meter.running():
            new = leg.solver.init(self.problem, start)
        for name in ("passes", "oracle_calls", "updates"):
            setattr(new, name, getattr(new, name) + getattr(state, name))
        self.trace.solver += f", then {solver_name(leg.solver)}"
        soon = 0.0 if self.check_every is not None else FIRST_CHECK[leg.solver.free_check]
        self.next_check = state.passes + soon
        self.calibration, self.soonest = 1.0, 0.0
        self.forecast, self.checked = Forecast(state.passes), -1
        return leg, new

    def _due(self, state: State) -> bool:
        if state.stalled or state.finished or self._limit(state) is not Status.RUNNING:
            return True
        if self._checks_are_free and self.check_every is None:
            return state.updates != self.checked  # else it would tell the same as the last
        if state.passes >= self.next_check:
            return True
        return (
            state.passes >= self.soonest and state.relative_gap_estimate * self.calibration <= self.stop.tol
        )

    def _check(self, state: State) -> Status:
        """Certify, tell, and decide."""
        point = self._measure(state)
        self._schedule(state)
        for callback in self.callbacks:
            callback(self.trace)
        return self._decide(point, state)

    def _measure(self, state: State) -> Point:
        """Certify and remember."""
        before = self.meter.wall
        point = self.solver.point(self.problem, state)
        self.longest["check"] = max(self.longest["check"], self.meter.wall - before)
        self.checked = state.updates
        self._keep_best(point)
        self._append(point, state)
        return point

    def _keep_best(self, point):
        """The best P and the best D seen, from whichever checks, make the certificate."""
        if self.best is None or point.worst <= self.best.worst or not isfinite(self.best.worst):
            self.best = point
        if not isnan(point.dual):
            self.dual = max(self.dual, point.dual)
        excess = self.dual - self.best.worst
        if excess > 1e-11 * max(abs(self.dual), abs(self.best.primal)):
            warnings.warn(
                f"{self.trace.solver} found a dual bound {self.dual!r} above the objective "
                f"{self.best.primal!r}: a bug, please report it. Nothing is proven for this model.",
                RuntimeWarning,
                stacklevel=2,
            )
            self.dual = -inf

    @property
    def gap(self) -> float:
        """Best P − best D; nan without a dual. Where one point has both, its own gap has more digits."""
        if not (self.problem.regularised and self.certifies):
            return nan
        if self.best.dual == self.dual:
            return inf if isnan(self.best.gap) else self.best.gap
        gap = self.best.worst - self.dual
        rounding = 1e-14 * max(abs(self.best.primal), abs(self.dual))
        return inf if isnan(gap) else max(gap, rounding)

    def _append(self, point, state):
        score = self.validate(point.w, point.b) if self.validate else nan
        self.trace.company = self.problem.company
        self.trace.append(
            Row(
                passes=state.passes,
                oracle_calls=state.oracle_calls,
                updates=state.updates,
                seconds=self.meter.seconds,
                primal=point.primal,
                dual=point.dual,
                gap=self.gap,
                gradient_norm=self._gradient_norm(point),
                validation=score,
                bytes=self.problem.traffic,
            )
        )

    def _gradient_norm(self, point) -> float:
        if not (self.gradients and isnan(point.gradient_norm)):
            return point.gradient_norm
        return self.problem.evaluate(self.problem.design.join(point.w, point.b)).gradient_norm

    def _schedule(self, state):
        """When to check next, and how far the solver's own estimate was off."""
        estimate = state.relative_gap_estimate
        if estimate > 0.0 and self.best.primal > 0.0 and isfinite(self.gap):
            off = self.gap / self.best.primal / estimate
            self.calibration, self.soonest = min(off, MISLED), LATER * state.passes if off > MISLED else 0.0
        if self.check_every is not None:
            self.next_check = state.passes + self.check_every
        elif not self._checks_are_free:
            farther = FARTHER if isnan(estimate) else FARTHER**2
            self.next_check = max(farther * state.passes, FIRST_CHECK[self.solver.free_check])

    def _limit(self, state) -> Status:
        if self.steps == 0:
            return Status.RUNNING
        if state.passes >= self.stop.max_passes:
            return Status.MAX_PASSES
        limit = self.stop.max_seconds
        if limit < inf and self.meter.wall + self._next_seconds >= limit:
            return Status.MAX_SECONDS
        return Status.RUNNING

    @property
    def _next_seconds(self) -> float:
        """What another step would take beyond the time limit: half of itself, and the last certificate."""
        return 0.5 * self.longest["step"] + (self.longest["check"] or UNSEEN * self.longest["step"])

    def _decide(self, point, state) -> Status:
        if not self.certifies:
            return Status.FINISHED if state.finished else self._limit(state)
        if self._converged(point):
            return Status.CONVERGED
        if not isfinite(point.primal):
            return Status.DIVERGED
        if state.stalled:
            return Status.STALLED
        return self._limit(state)

    def _shrunk(self, w) -> Point:
        """The model drawn towards w = 0 until it is better than that; w = 0 where no part of it is."""
        zero = self.problem.bare_point(np.zeros(self.problem.penalised))
        for _ in range(SHRINKS if np.isfinite(w).all() else 0):
            w = 0.25 * w
            point = self.problem.bare_point(w)
            if point.worst < zero.primal:
                return point
        return zero

    @property
    def _worse_than_zero(self) -> bool:
        """Whether w = 0 is better than all that was seen (nan counts as worse than anything)."""
        return not self.best.worst <= self.problem.value_at_zero * (1.0 + 1e-12)

    def _converged(self, point) -> bool:
        if not isfinite(self.best.primal):
            return False
        if self.problem.regularised:
            return self.gap <= self.stop.tol * self.best.primal
        if isnan(self.gradient_norm_at_zero):
            self.gradient_norm_at_zero = self.problem.evaluate(self.problem.origin).gradient_norm
        return point.gradient_norm <= self.stop.tol * self.gradient_norm_at_zero

    def _result(self, state, status) -> Result:
        if self.certifies and self._worse_than_zero:
            self.best = self._shrunk(self.best.w)
        best, last, mu = self.best, self.trace[-1], state.dual_variables
        certificate = Certificate(
            primal=best.primal,
            dual=float(self.dual) if self.problem.regularised and self.certifies else nan,
            gap=self.gap,
            gradient_norm=best.gradient_norm,
            passes=last.passes,
            seconds=last.seconds,
            status=status,
            lam=self.problem.lam,
            missing=UNREGULARISED if self.certifies else NO_OPTIMUM,
            distance=best.distance,
        )
        mu = None if mu is None or not np.isfinite(mu).all() else mu
        centre = getattr(state, "centre", None) if self.problem.free and mu is not None else None
        centre = None if centre is None else centre * self.problem.design.constant
        return Result(best.w, best.b, status, certificate, self.trace, mu, centre)
