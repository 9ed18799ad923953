"""collins2008 7.1: exponentiated gradient on MNIST, Figures 4, 5, 6 and 8."""

from itertools import pairwise
from math import inf, isfinite, log10, nan

import numpy as np

from experiments import data
from experiments.claims import Claim, Item, Verdict, number
from experiments.collins2008.family import (
    CONSTANTS,
    Family,
    compare,
    errors,
    last_error,
    objective,
    objective_panels,
    passes_to,
    relative_gaps,
)
from experiments.figures import Panel, draw
from experiments.lab import Lab, Run
from fenchel import problems, solvers

WEAK = (0.1, 0.01)


def digits(quick: bool):
    X, y, other, truth = data.digits()
    X, y = (X[:800], y[:800]) if quick else (X, y)
    score = lambda w, b: float(np.mean((other @ w.reshape(-1, 10)).argmax(axis=1) == truth))  # noqa: E731
    return problems.flat(X, y, labels=10, collins_C=1.0, merge=False, threads=1), score


MNIST = Family("mnist", digits)


def named(lab: Lab, function) -> dict:
    """Run something on MNIST; missing data are named."""
    return lab.each([MNIST.task(1.0, lab.quick)], lambda of: function())[f"{MNIST.name}/C=1"]


def by_constant(lab: Lab) -> dict:
    return named(lab, lambda: {C: {"EG": MNIST.eg(lab, C)} for C in CONSTANTS})


def with_weak(lab: Lab) -> dict:
    return by_constant(lab) | named(lab, lambda: {C: {"EG": MNIST.eg(lab, C)} for C in WEAK})


def slow_for_low(results) -> Verdict:
    found = {C: relative_gaps(results[C]["EG"])[-1] for C in (10.0, 1.0, *WEAK)}
    text = ", ".join(f"C = {C:g}: {gap:.1e}" for C, gap in found.items())
    return Verdict(
        min(found[C] for C in WEAK) > 10.0 * found[1.0],
        f"relative gap at the end: {text} (slow: ten times that of C = 1)",
    )


def one_trial(results) -> Verdict:
    runs = {C: results[C]["EG"] for C in CONSTANTS}
    found = {C: run.column("passes")[-1] / (run.column("updates")[-1] / run.n) for C, run in runs.items()}
    text = ", ".join(f"C = {C:g}: {value:.3f}" for C, value in found.items())
    return Verdict(max(found.values()) < 1.1, f"points tried for each visit: {text}")


def draw_figure4(results, path) -> None:
    curves = {
        f"C = {C:g}": (runs["EG"].column("passes"), errors(runs["EG"]))
        for C, runs in results.items()
        if C not in WEAK
    }
    near = {label: curves[label] for label in ("C = 10", "C = 1")}
    words = ("effective iterations", "validation error, %")
    panels = [
        Panel("C = 1000, 100, 10 and 1", *words, curves, y_limits=(6.5, 15)),
        Panel("C = 10 and 1", *words, near, y_limits=(7, 8.5)),
    ]
    draw(panels, path)


def slower_for_weak(results) -> Verdict:
    found = {C: passes_to(results[C]["EG"], 1e-2) for C in CONSTANTS}
    text = ", ".join(f"C = {C:g}: {number(v)}" for C, v in found.items())
    return Verdict(
        max(found[C] for C in CONSTANTS[:3]) < found[1.0], f"passes to a relative gap of 1 %: {text}"
    )


def faster_for_strong(results) -> Verdict:
    found = [passes_to(results[C]["EG"], 1e-3) for C in CONSTANTS]
    text = ", ".join(f"C = {C:g}: {number(v)}" for C, v in zip(CONSTANTS, found, strict=True))
    return Verdict(found == sorted(found), f"passes to a relative gap of 0.1 %: {text}")


def little_to_choose(results) -> Verdict:
    a, b = (last_error(results[C]["EG"]) for C in (10.0, 1.0))
    return Verdict(abs(a - b) <= 0.5, f"C = 10: {a:.2f} %, C = 1: {b:.2f} % (little: half a point)")


def minimum_reached(results) -> Verdict:
    """Of the five constants up to .1, the one with the least error at the end of its run."""
    found = {C: last_error(runs["EG"]) for C, runs in results.items()}
    text = ", ".join(f"C = {C:g}: {value:.2f} %" for C, value in found.items())
    return Verdict(min(found, key=found.get) in (10.0, 1.0), f"at the end {text}")


FIG4 = Item(
    "collins2008.fig4",
    "Validation error of EG on MNIST",
    "“For C equal to 10 or more, convergence is fast. For C = 1 convergence is "
    "somewhat slower. Note that there is little to "
    "choose between C = 10 and C = 1 in terms of validation error.”",
    with_weak,
    draw_figure4,
    lambda results: [],
    (
        Claim(
            "For C equal to 10 or more, convergence is fast. For C = 1 convergence is somewhat slower",
            slower_for_weak,
        ),
        Claim(
            "there is little to choose between C = 10 and C = 1 in terms of validation error",
            little_to_choose,
        ),
        Claim(
            "Convergence of the EG algorithm for low values of C (i.e., 0.1 and 0.01) was found to be slow",
            slow_for_low,
        ),
        Claim("validation error has reached a minimum point for around C = 10 or C = 1", minimum_reached),
        Claim("the EG line search evaluates more than one point … for less than 10 % [of visits]", one_trial),
    ),
    "59,000 digits to train; the test set's 10,000 validate. From the uniform "
    "distribution, rates from .5, no cap.",
)


def draw_figure5(results, path) -> None:
    panels = []
    for pair in (CONSTANTS[:2], CONSTANTS[2:]):
        curves = {}
        for C in pair:
            run = results[C]["EG"]
            for what in ("primal", "dual"):
                curves[f"C = {C:g}, {what}"] = (run.column("passes"), objective(run, what))
        top = max(results[C]["EG"].n * results[C]["EG"].best for C in pair)
        title = " and ".join(f"C = {C:g}" for C in pair)
        panels.append(
            Panel(
                title,
                "effective iterations",
                "objective",
                curves,
                y_limits=(0.5 * top, 1.6 * top),
                x_limits=(0, 60),
            )
        )
    draw(panels, path)


def same_value(results) -> Verdict:
    """The same: a relative gap of at most 0.1 % at the end."""
    found = {C: relative_gaps(results[C]["EG"])[-1] for C in CONSTANTS}
    text = ", ".join(f"C = {C:g}: {value:.1e}" for C, value in found.items())
    return Verdict(max(found.values()) <= 1e-3, f"relative gap at the end: {text}")


def decreases_quickly(results) -> Verdict:
    """Passes to within 10 % of the optimum, C = 1000, 100 and 10; and how many passes raise the primal."""
    lines, holds = [], True
    for C in CONSTANTS[:3]:
        run = results[C]["EG"]
        passes, primal = run.reach(0.1, run.best, "passes"), run.column("primal")
        rises = sum(b > a for a, b in pairwise(primal))
        holds &= passes <= 15.0
        lines.append(f"C = {C:g}: {number(passes)} passes, {rises} of {len(primal) - 1} raised it")
    return Verdict(holds, f"to within 10 % of the optimum, {'; '.join(lines)} (quickly: 15)")


FIG5 = Item(
    "collins2008.fig5",
    "Primal and dual objectives of EG on MNIST",
    "“In all cases the primal and dual objectives converge to the same value, with "
    "faster convergence for larger values of C.”",
    by_constant,
    draw_figure5,
    lambda results: [],
    (
        Claim("In all cases the primal and dual objectives converge to the same value", same_value),
        Claim("faster convergence for larger values of C", faster_for_strong),
        Claim(
            "the EG primal will not necessarily decrease at every iteration. Nevertheless … [it] decreases "
            "quite quickly",
            decreases_quickly,
        ),
    ),
)


def linear_fit(run: Run) -> float:
    """R² of log gap against passes."""
    points = [
        (p, log10(g))
        for p, g in zip(run.column("passes"), run.column("gap"), strict=True)
        if g > 0 and isfinite(g)
    ]
    x, y = np.array(points).T
    return float(np.corrcoef(x, y)[0, 1] ** 2) if len(points) > 2 else nan


def log_linear(results) -> Verdict:
    found = {C: linear_fit(results[C]["EG"]) for C in CONSTANTS}
    text = ", ".join(f"C = {C:g}: {v:.3f}" for C, v in found.items())
    return Verdict(
        min(found.values()) >= 0.9, f"R² of log gap against passes: {text} (more or less linear: at least .9)"
    )


FIG6 = Item(
    "collins2008.fig6",
    "The duality gap of EG on MNIST",
    "“The log of the duality gap decreases more-or-less linearly with the amount of computation spent.”",
    by_constant,
    lambda results, path: draw(
        [
            Panel(
                "MNIST",
                "effective iterations",
                "duality gap, % of the optimum",
                {
                    f"C = {C:g}": (
                        runs["EG"].column("passes"),
                        [100.0 * g for g in relative_gaps(runs["EG"])],
                    )
                    for C, runs in results.items()
                },
                log_y=True,
            )
        ],
        path,
    ),
    lambda results: [],
    (
        Claim(
            "The log of the duality gap decreases more-or-less linearly",
            log_linear,
            "At C = 1 the first 20 passes bring it from 3e5 times the optimum to once; from there on, to "
            "5e-4, R² is .993.",
        ),
    ),
)


def annealing(lab: Lab) -> dict:
    def two():
        hot = solvers.EG(first=0.0, cap=inf, anneal=10.0)
        runs = {"regular": MNIST.eg(lab, 1.0), "annealed": MNIST.run(lab, 1.0, "EG annealed", hot)}
        return {1.0: runs | {"reference": MNIST.reference(lab, 1.0)}}

    return named(lab, two)


def draw_figure8(results, path) -> None:
    runs = results[1.0]
    labels = ("regular", "annealed")
    error = {k: (runs[k].column("passes"), errors(runs[k])) for k in labels}
    draw(
        [
            *objective_panels(results, labels),
            Panel("C = 1", "effective iterations", "validation error, %", error, y_limits=(7, 9)),
        ],
        path,
    )


FIG8 = Item(
    "collins2008.fig8",
    "Annealing C from 10 to 1, MNIST",
    "“It can be seen that convergence is significantly faster for the annealed method.”",
    annealing,
    draw_figure8,
    lambda results: [],
    (
        Claim(
            "convergence is significantly faster for the annealed method",
            lambda results: compare(results, "annealed", "regular"),
        ),
    ),
)
