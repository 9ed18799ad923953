"""collins2008 7.1.4 and appendix F: L-BFGS on MNIST, Figure 11; time, Figure 14."""

from contextlib import suppress
from math import inf, isfinite

import numpy as np
from scipy.optimize import minimize

from experiments.claims import Claim, Item, Verdict, number
from experiments.collins2008.family import (
    CONSTANTS,
    LEVELS,
    compare,
    error_at,
    error_panel,
    errors,
    faster_in_time,
    objective_panels,
    quick_in_score,
    similar_by_time,
)
from experiments.collins2008.mnist import MNIST, named
from experiments.collins2008.sgd import against_sgd
from experiments.figures import Panel, draw
from experiments.lab import Lab, optimum

CONJUGATE = "conjugate gradients"
EVALUATIONS = 100


class Enough(Exception):
    """As many evaluations as were asked for."""


def conjugate_gradients(problem, evaluations: int) -> list[float]:
    """The least objective after each evaluation of SciPy's nonlinear conjugate gradients from 0."""
    values = []

    def evaluate(w):
        if len(values) == evaluations:
            raise Enough
        found = problem.evaluate(w)
        values.append(min([found.value, *values[-1:]]))
        return found.value, found.gradient

    with suppress(Enough):
        minimize(evaluate, np.zeros(problem.penalised), jac=True, method="CG")
    return values


def against_lbfgs(lab: Lab) -> dict:
    def all_constants():
        return {
            C: {"EG": MNIST.eg(lab, C), "LBFGS": MNIST.lbfgs(lab, C), "reference": MNIST.reference(lab, C)}
            for C in CONSTANTS
        }

    return named(lab, all_constants)


def with_conjugate(lab: Lab) -> dict:
    def values():
        of, evaluations = MNIST.task(10.0, lab.quick), 10 if lab.quick else EVALUATIONS
        compute = lambda: conjugate_gradients(of.problem, evaluations)  # noqa: E731
        return lab.measure(of, CONJUGATE, compute, evaluations=evaluations)

    return against_lbfgs(lab) | {CONJUGATE: named(lab, values)}


def by_constant(results) -> dict:
    """The runs alone."""
    return {C: runs for C, runs in results.items() if C != CONJUGATE}


def conjugate_worse(results) -> Verdict:
    """Evaluations to each level, C = 10."""
    lines, holds, runs = [], True, results[10.0]
    best = min(optimum(runs.values()), results[CONJUGATE][-1])
    for level in LEVELS:
        theirs = next((k for k, p in enumerate(results[CONJUGATE], 1) if p <= best * (1.0 + level)), inf)
        mine = runs["LBFGS"].reach(level, best, "passes")
        holds &= mine < theirs
        lines.append(f"{number(theirs)} and {number(mine)} to {level:g}")
    return Verdict(holds, f"evaluations of conjugate gradients and L-BFGS, C = 10: {', '.join(lines)}")


def never_outperforms(results) -> Verdict:
    """At no number of passes that both have is L-BFGS better by more than .2 points."""
    worst = -inf
    for runs in by_constant(results).values():
        for passes, error in zip(runs["LBFGS"].column("passes"), errors(runs["LBFGS"]), strict=True):
            if isfinite(error) and passes >= 1.0:
                worst = max(worst, error_at(results[10.0]["EG"], passes) - error)
    return Verdict(worst <= 0.2, f"L-BFGS is at most {worst:.2f} points better at the same number of passes")


FIG11 = Item(
    "collins2008.fig11",
    "EG and L-BFGS on MNIST",
    "“the primal value for EG converges considerably faster than the L-BFGS one. … "
    "L-BFGS does not outperform the EG curve for "
    "any value of C.”",
    with_conjugate,
    lambda results, path: draw(
        [
            *objective_panels(by_constant(results), ("EG", "LBFGS")),
            error_panel(by_constant(results), 10.0, (7, 15)),
        ],
        path,
    ),
    lambda results: [],
    (
        Claim(
            "the primal value for EG converges considerably faster than the L-BFGS one",
            lambda results: compare(by_constant(results), "EG", "LBFGS"),
        ),
        Claim(
            "L-BFGS does not outperform the EG curve [of validation error] for any value of C",
            never_outperforms,
            "At C = 1, and in the first passes, where EG from the uniform distribution has learnt little.",
        ),
        Claim("conjugate gradient algorithms … resulted in worse performance than L-BFGS", conjugate_worse),
    ),
    "L-BFGS with ten pairs, in the weights themselves (`rounded=False`). Conjugate gradients are SciPy's.",
)


def timed(lab: Lab) -> dict:
    return {10.0: against_sgd(lab)[10.0] | {"LBFGS": against_lbfgs(lab)[10.0]["LBFGS"]}}


def draw_timing(results, path) -> None:
    runs = results[10.0]
    labels = ("EG", "LBFGS", "SGD")
    curves = {k: (runs[k].column("seconds"), errors(runs[k])) for k in labels}
    draw(
        [
            *objective_panels(results, labels, "seconds", "seconds"),
            Panel("C = 10", "seconds", "validation error, %", curves, y_limits=(7, 12)),
        ],
        path,
    )


def cost_of_a_pass(results) -> Verdict:
    runs = results[10.0]
    each = {k: runs[k].column("seconds")[-1] / runs[k].column("passes")[-1] for k in ("EG", "SGD", "LBFGS")}
    text = ", ".join(f"{k} {1e3 * v:.0f} ms" for k, v in each.items())
    return Verdict(
        each["EG"] <= 1.5 * max(each["SGD"], each["LBFGS"]),
        f"a pass takes {text} (the paper: EG 10 % more than the others)",
    )


FIG14 = Item(
    "collins2008.fig14",
    "Time on MNIST, C = 10",
    "“the EG objective converges faster than the two other algorithms. Also … SGD "
    "converges quickly in terms of accuracy, but "
    "its objective converges very slowly to the optimum.”",
    timed,
    draw_timing,
    lambda results: [],
    (
        Claim("the EG objective converges faster than the two other algorithms", faster_in_time),
        Claim(
            "SGD converges quickly in terms of accuracy, but its objective converges very slowly "
            "to the optimum",
            quick_in_score,
        ),
        Claim(
            "there is little difference between the timed comparisons and the results [by iterations]",
            similar_by_time,
            "By passes EG is farther ahead: an evaluation of our L-BFGS takes two sevenths of a pass of EG.",
        ),
        Claim(
            "EG requires on average only 10% more time per iteration … than SGD and L-BFGS "
            "(here: at most half more)",
            cost_of_a_pass,
            "Our batch passes are vectorised over examples and labels; EG computes "
            "exponentials and entropies one example at a time.",
        ),
    ),
)
