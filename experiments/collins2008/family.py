"""What collins2008 does with digits and with trees alike: runs for several constants, and comparisons."""

from functools import cache
from math import inf, isfinite
from statistics import median

import numpy as np

from experiments.claims import Table, Verdict, number, ratio_of
from experiments.figures import Panel
from experiments.lab import Lab, Run, Task, optimum
from fenchel import path, solvers

CONSTANTS = (1000.0, 100.0, 10.0, 1.0)


SECONDS, PASSES = 60.0, 200.0


RATES = (1.0, 0.1, 0.01, 0.001, 0.0001)


LEVELS = (1e-2, 1e-3)


FAR = 3.0  # times the optimum


EG = solvers.EG(first=0.0, cap=inf)  # from the uniform distribution, rates from .5, not capped


class Family:
    """A problem for several constants C: Σ loss + C/2 ‖w‖². make(quick): (problem with C = 1, score).

    first: EG as the paper begins it. longer: {(label, C): seconds} of runs that need more.
    rates: of SGD, tried by the paper.
    """

    def __init__(self, name, make, seconds=SECONDS, passes=PASSES, first=EG, longer=None, rates=RATES):
        self.name, self.make, self.seconds, self.passes = name, cache(make), seconds, passes
        self.first, self.longer, self.rates = first, longer or {}, rates

    @cache  # noqa: B019
    def task(self, C: float, quick: bool) -> Task:
        def made():
            problem, score = self.make(quick)
            return problem.with_penalty(C / problem.total), score

        return Task(f"{self.name}/C={C:g}", made)

    def run(self, lab: Lab, C: float, label: str, solver, **more) -> Run:
        settings = {
            "max_seconds": self.seconds,
            "max_passes": self.passes,
            "tol": 1e-5,
            "check_every": 1.0,
        } | more
        settings["max_seconds"] = self.longer.get((label, C), settings["max_seconds"])
        return lab.run(self.task(C, lab.quick), label, solver, **settings)

    def eg(self, lab: Lab, C: float) -> Run:
        more = {"max_passes": inf} if ("EG", C) in self.longer else {}
        return self.run(lab, C, "EG", self.first, **more)

    def lbfgs(self, lab: Lab, C: float) -> Run:
        return self.run(lab, C, "LBFGS", solvers.LBFGS(memory=10, rounded=False), check_every=None)

    def reference(self, lab: Lab, C: float, score=False) -> Run:
        """For the optimum: the library's own choice."""
        label = "reference scored" if score else "reference"
        return self.run(lab, C, label, "auto", check_every=None, tol=1e-6, score=score)

    def rate(self, lab: Lab, C: float) -> float:
        """η₀ with the best validation score after one pass (7.1.3), of those that the paper tried."""
        of = self.task(C, lab.quick)
        scores = lab.measure(of, "rates", lambda: [one_pass(of, rate) for rate in RATES], rates=RATES)
        return max(self.rates, key=lambda rate: scores[RATES.index(rate)])

    def sgd(self, lab: Lab, C: float, rate: float | None = None) -> Run:
        rate = self.rate(lab, C) if rate is None else rate
        return self.run(
            lab, C, f"SGD η₀ = {rate:g}", solvers.SGD(eta0=rate), max_passes=min(self.passes, 100.0)
        )


def one_pass(of: Task, rate: float) -> float:
    """The validation score after one pass of SGD; 0 where it diverged."""
    solver = solvers.SGD(eta0=rate)
    state = solver.init(of.problem, None)
    solver.step(of.problem, state)
    if not np.isfinite(state.v).all():
        return 0.0
    return of.score(*of.problem.design.split(state.v))


def objective(run: Run, column: str = "primal") -> list[float]:
    """Σ loss + C/2 ‖w‖², as the paper has it: n times ours."""
    return [run.n * value for value in run.column(column)]


def relative_gaps(run: Run) -> list[float]:
    best = run.best
    return [gap / best for gap in run.column("gap")]


def errors(run: Run) -> list[float]:
    return [100.0 * (1.0 - score) for score in run.column("validation")]


def last_error(run: Run) -> float:
    return [error for error in errors(run) if isfinite(error)][-1]


def compare(results, first, second, levels=LEVELS, along="passes", at_least=1.0) -> Verdict:
    """results: {C: {label: Run}}; the first reaches every level before the second, for every C."""
    lines, holds = [], True
    for C, runs in results.items():
        best = optimum(runs.values())
        for level in levels:
            value = ratio_of(runs[first], runs[second], level, best, along)
            if value is not None:
                holds &= value > at_least
                lines.append(f"C = {C:g}: {number(value)} at {level:g}")
    return Verdict(
        holds and bool(lines), f"{second} / {first} in {along}: {'; '.join(lines) or 'no level reached'}"
    )


def crossing(first: Run, second: Run) -> float:
    """The pass from which on the first run's objective stays below the second's; 0 if it always is."""
    values = second.column("primal")
    other = dict(zip(map(round, second.column("passes")), values, strict=True))
    worse = [
        p
        for p, value in zip(first.column("passes"), first.column("primal"), strict=True)
        if value >= other.get(round(p), values[-1])
    ]
    return max(worse, default=-1.0) + 1.0


def faster_in_time(results) -> Verdict:
    """EG reaches every level before SGD and L-BFGS do, by the clock."""
    verdicts = [compare(results, "EG", other, along="seconds") for other in ("SGD", "LBFGS")]
    return Verdict(all(v.holds for v in verdicts), ". ".join(v.margin for v in verdicts))


def quick_in_score(results) -> Verdict:
    """Seconds of SGD and EG to within a point of EG's best validation score; where SGD's objective ends."""
    lines, holds = [], True
    for C, runs in results.items():
        top = max(score for score in runs["EG"].column("validation") if isfinite(score))
        times = {
            k: runs[k].first("seconds", [top - score for score in runs[k].column("validation")], 0.01)
            for k in ("SGD", "EG")
        }
        end = runs["SGD"].excess(optimum(runs.values()))[-1]
        holds &= times["SGD"] < times["EG"] and end > LEVELS[-1]
        lines.append(
            f"C = {C:g}: to within a point of {100 * top:.2f} % SGD {number(times['SGD'])} s, "
            f"EG {number(times['EG'])} s; SGD's objective ends {end:.1e} above the optimum"
        )
    return Verdict(holds, f"{'; '.join(lines)} (slowly: not to {LEVELS[-1]:g})")


def similar_by_time(results) -> Verdict:
    """L-BFGS / EG in seconds over the same in passes: little difference is a factor of at most 2."""
    lines, factors = [], []
    for C, runs in results.items():
        best = optimum(runs.values())
        for level in LEVELS:
            by = [ratio_of(runs["EG"], runs["LBFGS"], level, best, along) for along in ("seconds", "passes")]
            if all(value and isfinite(value) for value in by):
                factors.append(by[0] / by[1])
                lines.append(f"C = {C:g}: {by[0]:.2f} in seconds, {by[1]:.2f} in passes at {level:g}")
    holds = all(0.5 <= factor <= 2.0 for factor in factors) if factors else None
    return Verdict(
        holds, f"LBFGS / EG, {'; '.join(lines) or 'no level reached'} (little: within 2)", "not decided"
    )


def objective_panels(results, labels, along="passes", word="effective iterations") -> list[Panel]:
    """The primal objective of each C, from a little below the optimum to where the curves are told apart.

    A run that ends far above the optimum is seen too, on an axis of logarithms.
    """
    panels = []
    for C, runs in results.items():
        found = {k: (runs[k].column(along), objective(runs[k])) for k in labels if k in runs}
        best = optimum(runs.values()) * next(iter(runs.values())).n
        ends = [min(values) for _, values in found.values()]
        far = max(ends) > FAR * best
        top = 1.5 * max(ends) if far else max(1.4 * best, 1.2 * median(ends))
        limits = (0.9 * best if far else 0.98 * best, top)
        panels.append(Panel(f"C = {C:g}", word, "primal objective", found, log_y=far, y_limits=limits))
    return panels


def passes_to(run: Run, level: float) -> float:
    return run.first("passes", relative_gaps(run), level)


def fit_path(family: Family, quick: bool, constants, limit: float) -> list:
    """[C, passes, relative gap, score] of each constant, to 0.1 %, dual variables kept."""
    problem, score = family.make(quick)
    fits = path(
        problem,
        family.first,
        tol=1e-3,
        check_every=1.0,
        validate=score,
        collins_C=constants,
        max_seconds=limit,
    )
    found = [(fit.constant, fit.result.certificate, fit.score) for fit in fits]
    return [[C, certificate.passes, certificate.relative_gap, value] for C, certificate, value in found]


def path_table(found, printed, score=lambda value: f"{1.0 - value:.4f}", word="error") -> list[Table]:
    rows, total, theirs = [], 0.0, 0.0
    for (C, passes, gap, value), (their_passes, their_score) in zip(found["rows"], printed, strict=False):
        total, theirs = total + passes, theirs + their_passes
        rows.append(
            (
                f"{C:.4g}",
                f"{their_passes:g}",
                f"{theirs:.2f}",
                their_score,
                f"{passes:.2f}",
                f"{total:.2f}",
                score(value),
                f"{gap:.1e}",
            )
        )
    head = ("C", "paper: iterations", "total", word, "here: iterations", "total", word, "proven relative gap")
    return [Table(head, rows)]


def error_at(run: Run, passes: float) -> float:
    """The last validation error that is not later."""
    rows = zip(run.column("passes"), errors(run), strict=True)
    return [error for p, error in rows if p <= passes and isfinite(error)][-1]


def error_panel(results, best_C: float, limits, word="validation error, %", value=errors) -> Panel:
    curves = {f"EG, C = {best_C:g}": (results[best_C]["EG"].column("passes"), value(results[best_C]["EG"]))}
    for C, runs in results.items():
        curves[f"LBFGS, C = {C:g}"] = (runs["LBFGS"].column("passes"), value(runs["LBFGS"]))
    return Panel("validation", "effective iterations", word, curves, y_limits=limits)
