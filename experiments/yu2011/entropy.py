"""yu2011 6.2: maximum entropy, Figure 3."""

from math import inf

from experiments import tasks
from experiments.claims import Claim, Item, Verdict, faster, number, ratio
from experiments.figures import draw
from experiments.lab import Lab, Run, Task, optimum, shown
from experiments.yu2011.logistic import (
    CHECKED,
    EARLY,
    EPSILON,
    first_point_of_labels,
    reference,
    seconds_table,
)
from fenchel import solvers

ENTROPY = {
    "CDdual": (solvers.CDDual(subproblem="newton-from-zero", first=EPSILON), CHECKED, None),
    "CDprimal": (solvers.CDPrimal(gamma=0.001, evaluate="when asked"), CHECKED, None),
    "EG": (solvers.EG(), CHECKED, first_point_of_labels),
    "LBFGS": (solvers.LBFGS(), {}, None),
    "TRON": (solvers.TRON(), {}, None),
}


def run_entropy(lab: Lab, task: Task, labels=tuple(ENTROPY)) -> dict[str, Run]:
    runs = {}
    for label in labels:
        solver, settings, begin = ENTROPY[label]
        limit = tasks.TAGGING_SECONDS[task.name]
        runs[label] = lab.run(task, label, solver, max_seconds=limit, start=begin, **settings)
    return runs | {"reference": reference(lab, task, tasks.TAGGING_SECONDS[task.name])}


def figure3(lab: Lab) -> dict:
    return lab.each(tasks.tagging_tasks(lab), lambda task: run_entropy(lab, task))


def excess_at(run: Run, seconds: float, best: float) -> float:
    """(P − P*)/P* at the last row that is not later."""
    rows = zip(run.column("seconds"), run.excess(best), strict=True)
    return [value for at, value in rows if at <= seconds][-1]


def at_the_end(results) -> dict:
    """{set: {label: excess when the first run is cut off by its limit}}; others may have converged."""
    out = {}
    for name, runs in results.items():
        best, runs = optimum(runs.values()), shown(runs)
        cut = [run.column("seconds")[-1] for run in runs.values() if run.facts["status"] != "CONVERGED"]
        out[name] = {label: excess_at(run, min(cut, default=inf), best) for label, run in runs.items()}
    return out


def first_of_all(results) -> Verdict:
    lines, holds = [], True
    for name, runs in results.items():
        best = optimum(runs.values())
        times = {label: run.reach(EARLY, best) for label, run in shown(runs).items()}
        other = min(time for label, time in times.items() if label != "CDprimal")
        holds &= times["CDprimal"] < other
        lines.append(f"{name}: {number(times['CDprimal'])} s to {EARLY:g}, the next {number(other)} s")
    return Verdict(holds, "; ".join(lines))


def slowest_at_last(results) -> Verdict:
    lines, holds = [], True
    for name, ends in at_the_end(results).items():
        worst = max(value for label, value in ends.items() if label != "CDprimal")
        holds &= ends["CDprimal"] > worst
        lines.append(
            f"{name}: {ends['CDprimal']:.1e} when the first run is cut off, the worst of the "
            f"others {worst:.1e}"
        )
    return Verdict(holds, "; ".join(lines))


def slightly_slower(results) -> Verdict:
    """“Slightly”: at most twice the time to the early level; and a smaller difference at the end."""
    lines, holds, ends = [], True, at_the_end(results)
    for name, runs in results.items():
        best = optimum(runs.values())
        times = ratio(runs["CDprimal"].reach(EARLY, best), runs["CDdual"].reach(EARLY, best)) or 0.0
        better = ends[name]["CDprimal"] / max(ends[name]["CDdual"], 1e-16)
        holds &= times <= 2.0 and better > 1.0
        lines.append(
            f"{name}: {times:.2f} times the time of CDprimal to {EARLY:g}, {better:.1f} times "
            f"nearer at the end"
        )
    return Verdict(holds, "; ".join(lines))


def may_surpass(results) -> Verdict:
    ends = at_the_end(results)
    text = "; ".join(
        f"{name}: LBFGS {of['LBFGS']:.1e}, CDdual {of['CDdual']:.1e}" for name, of in ends.items()
    )
    return Verdict(any(of["LBFGS"] < of["CDdual"] for of in ends.values()), text)


FIG3 = Item(
    "yu2011.fig3",
    "Maximum entropy: function difference, gradient and test score against time",
    "“CDprimal is the fastest in the beginning, but has the slowest final "
    "convergence. CDdual is only slightly slower "
    "than CDprimal in the very early stage, but its final convergence is much better.”",
    figure3,
    lambda results, path: draw(tasks.time_panels(results), path),
    seconds_table,
    (
        Claim("CDprimal is the fastest in the beginning", first_of_all),
        Claim("[CDprimal] has the slowest final convergence", slowest_at_last),
        Claim(
            "CDdual is only slightly slower than CDprimal in the very early stage, … final "
            "convergence is much better",
            slightly_slower,
        ),
        Claim("LBFGS may surpass CDdual in the final stage", may_surpass),
        Claim(
            "Regarding the two dual-based methods CDdual and EG, CDdual is generally faster",
            faster("CDdual", "EG"),
            "A pass of our EG is one exponential for each label of a context, eight at a time, and a rate "
            "for each context; Algorithm 7 solves a sub-problem for each by Newton steps of its own, "
            "and a pass takes 15 times as long.",
        ),
    ),
    "One weight for each observed pair of attribute and tag, contexts merged, σ² = "
    "10 l, ε = 1e-10 in (51); of Brown's "
    "training articles a fifth. Chunking by maximum entropy with beam search: words, "
    "parts of speech around, tags before.",
)
