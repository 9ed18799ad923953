"""What is remembered of a run: rows, certificate, status, and the clock that stops while measuring."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from enum import Enum
from html import escape
from itertools import accumulate
from math import inf, isfinite, isnan, nan, sqrt
from typing import NamedTuple

GAP, GRADIENT = "relative gap", "relative gradient norm"
SHOWN = 12  # rows of a trace that a notebook shows
# From this share of the objective on a gap would read 100 %: it leaves the optimum anywhere from 0.
ALL_OF_IT = 0.995


# Why there is no gap, where there is none.
UNREGULARISED, NO_OPTIMUM, NOT_OURS = "unregularised", "not an optimum", "not trained here"


class Status(Enum):
    """Why a run ended; the value is the sentence's beginning."""

    RUNNING = "still running"
    CONVERGED = "converged"
    MAX_PASSES = "stopped at the limit of passes"
    MAX_SECONDS = "stopped at the time limit"
    STALLED = "stopped where rounding allows no further progress"
    DIVERGED = "diverged"
    INTERRUPTED = "interrupted"
    GIVEN = "made by another program"
    FINISHED = "finished with no training example labelled wrong"
    AVERAGED = "averaged over the folds"


@dataclass(frozen=True)
class Row:
    """One check. Passes are example visits / n; seconds exclude measuring; unknown numbers are nan."""

    passes: float
    oracle_calls: int
    updates: int
    seconds: float
    primal: float
    dual: float
    gap: float
    gradient_norm: float = nan
    validation: float = nan
    bytes: float = nan  # sent to and from other machines so far


class Step(NamedTuple):
    """One step of a solver. relative_gap: its estimate, from what it met on the way; it proves nothing."""

    passes: float
    seconds: float
    relative_gap: float
    bytes: float = nan  # as in a row


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """How far the model is from the optimum, proven: optimum ≥ dual, so excess ≤ gap = primal − dual.

    primal and dual are the best seen; gap is nan without a regulariser, where no dual exists, and with a
    solver that minimises nothing: `missing` says why. lam: λ of the objective. distance: of the weights from
    the optimum's, at most, where they are those of a dual point.
    """

    primal: float
    dual: float
    gap: float
    gradient_norm: float
    passes: float
    seconds: float
    status: Status
    lam: float = nan
    missing: str = UNREGULARISED
    distance: float = nan

    def __eq__(self, other) -> bool:
        """Whether they say the same; a number that is not known (nan) equals another such."""
        return isinstance(other, Certificate) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self._known)

    @property
    def _known(self):
        # not by value != value: NumPy warns of comparisons with nan, also of those within one of its own
        return tuple(None if isinstance(value, float) and isnan(value) else value for value in astuple(self))

    def __repr__(self) -> str:
        return f"<Certificate: {self}>"

    def _repr_html_(self) -> str:
        return f"<div>{escape(str(self))}</div>"

    @property
    def relative_gap(self) -> float:
        """gap / primal, and 0 when both are 0."""
        if self.gap == 0.0:
            return 0.0
        return self.gap / self.primal if self.primal > 0.0 else inf

    @property
    def radius(self) -> float:
        """√(2·gap/λ): the optimum's weights are no farther than this from the model's; inf if not known.

        P is λ-strongly convex in the weights with a penalty, so P(w) − min P ≥ λ/2 ‖w − w*‖². Weights w(μ) of
        a dual point are within √(gap/λ), since D(μ) is as far below the optimum: `distance`, if that is less.
        """
        radius = sqrt(2.0 * self.gap / self.lam) if self.lam > 0.0 and self.gap >= 0.0 else inf
        return self.distance if self.distance < radius else radius

    @property
    def proves_something(self) -> bool:
        """Whether the dual says more than what is known of any objective: that it is at least 0."""
        return self.relative_gap < ALL_OF_IT

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    def __str__(self) -> str:
        work = f"after {self.passes:.4g} passes, {self.seconds:.3g} s"
        if self.status is Status.GIVEN:
            return f"{self.status.value}: certificate none: {self.missing}"
        if self.missing == NO_OPTIMUM:
            return f"{self.status.value}: certificate none: {self.missing}, {work}"
        if isnan(self.gap):
            return (
                f"{self.status.value}: certificate none: {self.missing}; "
                f"objective {self.primal:.8g}, gradient norm {self.gradient_norm:.2g}, {work}"
            )
        if not isfinite(self.gap):
            return f"{self.status.value}: objective {self.primal:.8g}, nothing proven (gap infinite), {work}"
        if not self.proves_something:
            return (
                f"{self.status.value}: objective {self.primal:.8g}, nothing proven "
                f"(gap {self.gap:.2g}: the optimum may lie anywhere from 0), {work}"
            )
        return (
            f"{self.status.value}: objective {self.primal:.8g} is proven within {percent(self.relative_gap)} "
            f"of the optimum (gap {self.gap:.2g}), {work}"
        )

    @classmethod
    def unknown(cls) -> "Certificate":
        """Of a model whose weights come from elsewhere."""
        return cls(nan, nan, nan, nan, 0.0, 0.0, Status.GIVEN, missing=NOT_OURS)

    def moved_to(self, primal: float) -> "Certificate":
        """The certificate of weights next to these, whose objective this is: the bound holds for all.

        What the objectives differ by is known to a few units in their last place.
        """
        gap = self.gap + max(primal - self.primal, 0.0) + 1e-15 * abs(primal)
        return replace(self, primal=primal, gap=gap, gradient_norm=nan, distance=nan)

    def to_dict(self) -> dict:
        """Plain values for a model file; an unknown number is None, as JSON has no nan."""
        values = asdict(self) | {"status": self.status.name}
        return {name: None if value != value else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict) -> "Certificate":
        words = {"status": Status[values["status"]], "missing": values.get("missing", UNREGULARISED)}
        numbers = {
            name: nan if value is None else float(value)
            for name, value in values.items()
            if name not in words
        }
        return cls(**numbers, **words)


def percent(fraction: float) -> str:
    """A fraction as a percentage a person can read: 1.2e-05 %, 0.083 %, 97 %, 2,000 %."""
    number = 100.0 * fraction
    return f"{number:,.0f} %" if 99.5 <= number < 1e6 else f"{number:.2g} %"


@dataclass(repr=False)
class Trace:
    """The rows of a run, in order, and what it was a run of.

    rows: the checks. steps: the estimates of a solver whose checks cost a pass, after each of its steps.
    company: what is said of other machines that take part, as they were at the last check.
    """

    solver: str = ""
    problem: str = ""
    rows: list[Row] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    company: str = ""

    def append(self, row: Row) -> None:
        self.rows.append(row)

    def column(self, name: str) -> list[float]:
        """One column as a list: trace.column("gap")."""
        if name not in {f.name for f in fields(Row)}:
            raise KeyError(f"no column {name!r}; there are {', '.join(f.name for f in fields(Row))}")
        return [getattr(row, name) for row in self.rows]

    @property
    def measure(self) -> str:
        """What the distance of this run is: without a regulariser there is no gap but a gradient."""
        return GRADIENT if all(isnan(gap) for gap in self.column("gap")) else GAP

    def distances(self) -> list[float]:
        """One number per row, the one `tol` is about: gap / best objective so far, or ‖∇P‖ / ‖∇P(first)‖."""
        if self.measure == GRADIENT:
            norms = self.column("gradient_norm")
            return [0.0 if norms[0] == 0.0 else norm / norms[0] for norm in norms]
        best, relative = inf, []
        for row in self.rows:
            best = min(best, row.primal)
            relative.append(_relative(row.gap, best))
        return relative

    def plot(self, axes=None, against: str = "passes", **line):
        """Draw the distance from the optimum, on a logarithmic scale, with matplotlib (the extra `report`).

        A point per check; dotted, where checks are few, what the solver made of the distance on its way.
        axes: those of a figure of your own; a new one without. against: "passes" or "seconds". line: what
        `axes.plot` takes. Returns the axes.
        """
        own = axes is None
        if own:
            from matplotlib import pyplot

            axes = pyplot.figure().add_subplot()
        checks = zip(self.column(against), self.distances(), strict=True)
        (drawn,) = axes.plot(*drawable(checks), **{"label": self.solver, "marker": "."} | line)
        if self.steps:
            met = ((getattr(step, against), step.relative_gap) for step in self.steps)
            axes.plot(*drawable(met), ":", color=drawn.get_color(), label="its own estimate")
        axes.set_yscale("log")
        axes.set_xlabel(against)
        axes.set_ylabel(self.measure)
        if own:
            axes.legend(frameon=False)
        return axes

    def __repr__(self) -> str:
        if not self.rows:
            return f"<Trace of {self.solver or 'nothing'}: no rows>"
        last, far = self.rows[-1], self.distances()[-1]
        checks = f"{len(self.rows)} check{'s' if len(self.rows) > 1 else ''}"
        reached = f"{self.measure} {far:.2g} after {last.passes:.4g} passes, {last.seconds:.3g} s"
        return f"<Trace of {self.solver}: {checks}, {reached}>"

    def _repr_html_(self) -> str:
        """The last rows as a table."""
        head = "".join(f"<th>{name}</th>" for name in ("passes", "seconds", "objective", self.measure))
        rows = list(zip(self.rows, self.distances(), strict=True))[-SHOWN:]
        body = "".join(
            f"<tr><td>{row.passes:.4g}</td><td>{row.seconds:.3g}</td><td>{row.primal:.8g}</td>"
            f"<td>{far:.2g}</td></tr>"
            for row, far in rows
        )
        caption = f"<caption>{escape(repr(self)[1:-1])}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, k) -> Row:
        return self.rows[k]


def distances_to_optimum(traces: Sequence[Trace]) -> list[list[float]]:
    """Of runs on one problem: how far each one's best objective so far is above the optimum, relative to it.

    The optimum is taken to be the best bound that any of them has proven, so that no true distance is larger;
    where there is none, the smallest objective of all.
    """
    duals = [dual for trace in traces for dual in trace.column("dual") if isfinite(dual)]
    primals = [primal for trace in traces for primal in trace.column("primal") if isfinite(primal)]
    optimum = max(duals) if duals else min(primals, default=nan)
    if not optimum > 0.0:
        return [[nan] * len(trace) for trace in traces]
    best = (accumulate(trace.column("primal"), min) for trace in traces)
    return [[(primal - optimum) / optimum for primal in primals] for primals in best]


def drawable(points: Iterable[tuple[float, float]]) -> tuple[Sequence[float], Sequence[float]]:
    """The points (x, y) that a logarithmic axis has room for, as the xs and the ys."""
    shown = [(x, y) for x, y in points if isfinite(y) and y > 0.0]
    return tuple(zip(*shown, strict=True)) if shown else ((), ())


def _relative(gap, best):
    """gap / best; a diverged run, whose objective is no number, is infinitely far."""
    if not isfinite(best):
        return inf
    return gap / best if best > 0.0 else 0.0


class Meter:
    """A stopwatch that runs only inside `with meter.running()`.

    idle: a clock of seconds that nobody is charged for, such as those of compiling.
    """

    clock = staticmethod(time.perf_counter)  # experiments read the processor's instead

    def __init__(self, idle: Callable[[], float] = lambda: 0.0):
        self.seconds = 0.0
        self._idle = idle
        self._started = self._now()

    def _now(self) -> float:
        return self.clock() - self._idle()

    @contextmanager
    def running(self):
        start = self._now()
        try:
            yield
        finally:
            self.seconds += self._now() - start

    @property
    def wall(self) -> float:
        """Seconds since the meter was made, measuring included: what a time limit is about."""
        return self._now() - self._started
