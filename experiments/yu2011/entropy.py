"""yu2011 6.2: maximum entropy, Figure 3."""

from math import exp, inf, log

from numpy import interp

from experiments import tasks
from experiments.claims import Claim, Item, Verdict, faster, ratio
from experiments.figures import draw
from experiments.lab import Lab, Run, Task, optimum, shown
from experiments.yu2011.logistic import (
    ALGORITHM8,
    CHECKED,
    EARLY,
    EPSILON,
    first_point_of_labels,
    seconds_table,
)
from fenchel import solvers

REFERENCE_SECONDS = 90.0
ENTROPY = {
    "CDdual": (solvers.CDDual(subproblem="newton-from-zero", first=EPSILON), CHECKED, None),
    "CDprimal": (solvers.CDPrimal(gamma=0.001, evaluate="when asked"), CHECKED, None),
    "EG": (ALGORITHM8, CHECKED, first_point_of_labels),
    **{label: (solver, {}, None) for label, solver in tasks.BATCH.items()},
}


def run_entropy(lab: Lab, task: Task, labels=tuple(ENTROPY)) -> dict[str, Run]:
    runs = {}
    for label in labels:
        solver, settings, begin = ENTROPY[label]
        limit = tasks.TAGGING_SECONDS[task.name]
        runs[label] = lab.run(task, label, solver, max_seconds=limit, start=begin, **settings)
    return runs | {"reference": best_known(lab, task)}


def best_known(lab: Lab, task: Task) -> Run:
    """For P*: EG from near the truth, which is nearest of all that we have on these sets."""
    settings = {"tol": 1e-5, "check_every": 10.0, "score": False}
    return lab.run(task, "reference EG", solvers.EG(), max_seconds=REFERENCE_SECONDS, **settings)


def figure3(lab: Lab) -> dict:
    return lab.each(tasks.tagging_tasks(lab), lambda task: run_entropy(lab, task))


def excess_at(run: Run, where: float, best: float, along: str = "seconds") -> float:
    """(P − P*)/P* at `where` along the run, on the line (of its logarithm) between the rows around."""
    at, values = run.column(along), [log(max(value, 1e-16)) for value in run.excess(best)]
    return exp(float(interp(where, at, values)))


def at_the_end(results, labels=None) -> dict:
    """{set: {label: excess when the first of these runs (all unless named) is cut off by its limit}}."""
    out = {}
    for name, runs in results.items():
        best = optimum(runs.values())
        runs = {label: run for label, run in shown(runs).items() if labels is None or label in labels}
        cut = [run.column("seconds")[-1] for run in runs.values() if run.facts["status"] != "CONVERGED"]
        out[name] = {label: excess_at(run, min(cut, default=inf), best) for label, run in runs.items()}
    return out


def in_the_beginning(results, along="seconds") -> dict:
    """{set: {label: excess}} at a tenth of where the first run is cut off: what a figure's left end shows."""
    out = {}
    for name, runs in results.items():
        best, runs = optimum(runs.values()), shown(runs)
        tenth = 0.1 * min(run.column(along)[-1] for run in runs.values())
        out[name] = {label: excess_at(run, tenth, best, along) for label, run in runs.items()}
    return out


def listed(found: dict) -> str:
    """{set: {label: excess}} in words."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{label} {value:.2g}" for label, value in of.items())
        for name, of in found.items()
    )


def first_of_all(results) -> Verdict:
    found = in_the_beginning(results)
    holds = all(of["CDprimal"] == min(of.values()) for of in found.values())
    return Verdict(holds, f"relative difference at a tenth of the time, {listed(found)}")


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
    lines, holds, ends = [], True, at_the_end(results, ("CDprimal", "CDdual"))
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
    ends = at_the_end(results, ("LBFGS", "CDdual"))
    text = "; ".join(
        f"{name}: LBFGS {of['LBFGS']:.1e}, CDdual {of['CDdual']:.1e}" for name, of in ends.items()
    )
    return Verdict(any(of["LBFGS"] < of["CDdual"] for of in ends.values()), text)


def competitive(results) -> Verdict:
    """Competitive: no more than two of the four others are nearer when the first run is cut off."""
    lines, holds = [], True
    for name, ends in at_the_end(results).items():
        before = [label for label, value in ends.items() if value < ends["CDdual"]]
        holds &= len(before) <= 2
        lines.append(f"{name}: {ends['CDdual']:.1e}, nearer {', '.join(before) or 'none'}")
    return Verdict(
        holds, f"when the first run is cut off, {'; '.join(lines)} (competitive: at most two nearer)"
    )


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
        Claim(
            "CDprimal is the fastest in the beginning",
            first_of_all,
            "EG is before it: it takes the exponentials of a context's labels four at a time, so that a pass "
            "takes a third of a sweep of CDprimal; so do evaluations of L-BFGS, which is before it on chunks "
            "and behind on Brown. TRON is behind.",
        ),
        Claim(
            "[CDprimal] has the slowest final convergence",
            slowest_at_last,
            "Where TRON is through its first Newton steps when the first run is cut off, it is; on Brown it "
            "is not through.",
        ),
        Claim(
            "CDdual is only slightly slower than CDprimal in the very early stage, … final "
            "convergence is much better",
            slightly_slower,
            "As far as these runs go, ten to fifteen passes, the two are about equally near.",
        ),
        Claim(
            "LBFGS may surpass CDdual in the final stage",
            may_surpass,
            "These runs end before that stage.",
        ),
        Claim(
            "Regarding the two dual-based methods CDdual and EG, CDdual is generally faster",
            faster("CDdual", "EG", levels=(EARLY, 1e-2)),
            "A step of EG is one exponential for each label, four at a time; Algorithm 6 takes thirty pairs "
            "and more for a context, each with logarithms one by one: a pass brings more, and takes longer.",
        ),
        Claim(
            "Overall, the proposed CDdual method is competitive for these data sets",
            competitive,
            "EG, L-BFGS and TRON take exponentials and weights of a context's labels four at a time, "
            "Algorithm 6 its pairs of labels one by one: nearer by passes is not nearer by time here.",
        ),
    ),
    "One weight for each observed pair of attribute and tag, contexts merged, σ² = "
    "10 l, ε = 1e-10 in (51); of Brown's "
    "training articles a fifth. Chunking by maximum entropy with beam search: words, "
    "parts of speech around, tags before.",
)
