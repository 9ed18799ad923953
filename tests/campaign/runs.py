"""The problem of a seed, solved several times, and what is wrong with the results."""

import traceback
from dataclasses import dataclass, field
from math import inf

import numpy as np

from fenchel.trace import Status

from .attempts import SECONDS, Run, attempt
from .checks import check
from .choices import HOME, Interrupt, able, draw_solver, draw_start, interrupt_from_callback
from .draws import KINDS, draw
from .refits import refits

ALL, SHARES = (*KINDS, "estimator"), (0.2, 0.2, 0.2, 0.3, 0.1)


@dataclass
class Report:
    """What is kept of a seed: plain values, to be sent between processes."""

    seed: int
    kind: str
    loss: str = ""
    problem: str = ""
    runs: list = field(default_factory=list)  # (solver, status or refusal, relative gap)
    violations: list = field(default_factory=list)  # (what, solver, sentence)
    lines: list = field(default_factory=list)  # for --only


def kind_of(seed) -> str:
    """What kind of problem a seed is drawn to be."""
    return str(np.random.default_rng(seed).choice(ALL, p=SHARES))


def report_of(seed, solvers=None) -> Report:
    """Draw the problem of a seed, solve it one to four times, and check everything."""
    rng, kind = np.random.default_rng([seed, 1]), kind_of(seed)
    if kind == "estimator":
        report, listed_runs = Report(seed, kind), refits(rng)
        for listed, run in listed_runs:
            report.loss = "hinge" if listed.hinge else "log"
            judge(report, listed, [run])
        return report
    try:
        drawn = draw(rng, [kind])
    except ValueError as error:
        return _refused(Report(seed, kind), error)
    report = Report(seed, drawn.kind, drawn.problem.loss.name, str(drawn.problem))
    if solvers is not None and not set(solvers) & set(able(drawn.problem)):
        return report  # none of those asked for
    runs, results = [], []
    for _ in range(rng.integers(1, 5)):
        run = run_once(rng, drawn, results, solvers)
        if run.result is not None and np.isfinite(run.result.w).all():
            results.append(run.result)
        runs.append(run)
    return judge(report, drawn.listed, runs)


def run_once(rng, drawn, results, solvers=None) -> Run:
    """One solve with a random solver, start, stop and interrupt."""
    problem = drawn.problem
    if results and rng.random() < 0.2 and problem.lam > 0.0:  # a start from another λ
        other = problem.with_penalty(problem.lam * 10.0 ** rng.uniform(-2, 2))
        name, solver = draw_solver(rng, other)
        found = attempt(Run(name, 0.1, ""), other, solver, tol=0.1, max_passes=30.0)
        results = [found.result] if found.result is not None else results
    start, kind = draw_start(rng, drawn, results)
    name, solver = draw_solver(rng, problem, solvers)
    tol = float(10.0 ** rng.uniform(-9, -2))
    given = {
        "tol": tol,
        "max_passes": float(rng.choice([1.0, 5.0, 20.0, 50.0, 300.0, 1000.0])),
        "check_every": None if rng.random() < 0.7 else float(rng.choice([0.5, 1.0, 7.0])),
        "start": start,
    }
    if getattr(solver, "slack", "n") == "1":  # its quadratic programs are slow: 0.1 s a step
        given["max_passes"] = min(given["max_passes"], 30.0)
    chance, lines = rng.random(), int(10.0 ** rng.uniform(0, 3.2))
    callbacks = [interrupt_from_callback(int(rng.integers(1, 8)))] if chance < 0.1 else []
    stop = f"tol {tol:.1e}, {given['max_passes']:g} passes, check_every {given['check_every']}"
    run = Run(name, tol, f"{solver}, start {kind}, {stop}")
    if 0.1 <= chance < 0.3:
        run.settings += f", Ctrl-C at line {lines}"
        return attempt(run, problem, solver, Interrupt(lines), **given)
    run.settings += ", Ctrl-C from a callback" if callbacks else ""
    return attempt(run, problem, solver, callbacks=callbacks, **given)


# ---- what is wrong


def judge(report, listed, runs) -> Report:
    """Check all runs against the least objective that any of them, or Newton's method, has found."""
    best = reference(listed, runs)
    value, doubt = listed.value(best), listed.doubt(best)
    report.lines.append(
        f"{report.problem}: P(0) = {listed.at_zero():.17g}, least P = {value:.17g} ± {doubt:.1g}"
    )
    for run in runs:
        found = [*_trouble(run)]
        if run.result is not None:
            found += check(listed, run, value, doubt)
        status = run.result.status.name if run.result is not None else type(run.error).__name__
        gap = _relative(run.result.certificate) if run.result is not None else inf
        report.runs.append((run.solver, status, gap))
        report.violations += [(what, run.solver, text) for what, text in found]
        report.lines += _describe(run, status, found)
    return report


def _relative(certificate):
    """gap / P, however large."""
    with np.errstate(over="ignore"):
        return float(certificate.relative_gap)


def reference(listed, runs):
    """The best (w, b) known: polished from the best result, and from zero."""
    candidates = [listed.join(np.zeros(listed.d), 0.0)]
    for run in runs:
        if run.result is not None and np.isfinite(run.result.w).all() and np.isfinite(run.result.b).all():
            u = listed.join(run.result.w, run.result.b)
            run.value = listed.value(u)
            candidates.append(u)
    with np.errstate(all="ignore"):
        best = min(candidates, key=lambda u: _order(listed.value(u)))
        return listed.polish(best)


def _order(value):
    return value if np.isfinite(value) else np.longdouble(inf)


def _trouble(run):
    """Errors that no documentation announces, warnings, and runs that hang."""
    if run.error is not None and not is_refusal(run.error):
        yield "exception", f"{type(run.error).__name__}: {run.error} at {last_frame(run.error)}"
    told = {}
    for warned in run.warned:
        told.setdefault((warned.filename, warned.lineno), []).append(warned)
    for (file, line), alike in told.items():
        what = "false dual warned" if "dual bound" in str(alike[0].message) else "warning"
        yield what, f"{alike[0].message} ({file.removeprefix(HOME)}:{line}), {len(alike)} times"
    if run.result is not None and run.result.status is Status.MAX_SECONDS:
        yield "hang", f"not done after {SECONDS:g} s"


def is_refusal(error) -> bool:
    """Whether the library itself refused; Ctrl-C before there is a model, or after, is passed on."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        return not any(frame.name in {"step", "_check", "_measure"} for frame in frames)
    return isinstance(error, (ValueError, MemoryError)) and frames[-1].filename.startswith(HOME)


def last_frame(error) -> str:
    """The last line of the library on the way to the error."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(HOME)]
    if not frames:
        return "?"
    return f"{frames[-1].filename.removeprefix(HOME)}:{frames[-1].lineno} {frames[-1].name}"


def _refused(report, error) -> Report:
    if not is_refusal(error):
        report.violations.append(("exception", "problem", f"{type(error).__name__}: {error}"))
    report.runs.append(("problem", "ValueError", inf))
    report.lines.append(f"refused: {error}")
    return report


def _describe(run, status, found):
    yield f"{run.solver}: {run.settings}" + (f" (in {run.pressed})" if run.pressed else "")
    if run.result is not None:
        c = run.result.certificate
        stated = f"P {c.primal!r} (is {run.value:.17g}), D {c.dual!r}, gap {c.gap!r}"
        yield f"    {status}: {stated}, {c.passes:g} passes"
    else:
        yield f"    {status}: {run.error} at {last_frame(run.error)}"
    yield from (f"    VIOLATION {what}: {text}" for what, text in found)
