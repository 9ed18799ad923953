"""collins2008 7.2 and 8: dependency parsing, Figures 12, 13 and 15, Table 3."""

from math import inf, isfinite

import numpy as np

from experiments import data
from experiments.claims import Claim, Item, Verdict, number, ratio
from experiments.collins2008.family import (
    CONSTANTS,
    Family,
    compare,
    faster_in_time,
    fit_path,
    objective,
    objective_panels,
    path_table,
)
from experiments.figures import Panel, draw
from experiments.lab import Lab, Run, optimum
from fenchel import DependencyParser, solvers

PATH = [1000.0 * 0.7**k for k in range(21)]
PRINTED_PATH = (  # iterations, accuracy
    (8, 72.44), (3.01, 73.42), (4.76, 74.35), (4.9, 75.29), (4.91, 76.13), (6.1, 77.13), (6.06, 77.82),
    (6.08, 78.74), (7.23, 79.41), (7.23, 79.99), (8.33, 80.38), (9.4, 80.60), (12.6, 80.77), (13.71, 80.72),
    (19.03, 80.67), (23.33, 80.61), (30.82, 80.31), (37.22, 80.18), (45.8, 79.98), (57.53, 79.63),
    (73.6, 79.36),
)  # fmt: skip
MARGINS = (1.0, 10.0, 100.0, 1000.0)
QUICK_SENTENCES = 40


def trees(loss: str):
    def make(quick: bool):
        """The validation score is the share of right heads."""
        tokens, heads, other, truth = data.spanish()
        if quick:
            tokens, heads, other, truth = (part[:QUICK_SENTENCES] for part in (tokens, heads, other, truth))
        model = DependencyParser(loss=loss, n_jobs=1)
        encoded = model.encode_training(tokens, heads)
        right = np.concatenate([np.asarray(one) for one in truth])

        def score(w, b):
            found = model.set_weights(encoded, w).predict(other)
            return float(np.mean(np.concatenate([np.asarray(one) for one in found]) == right))

        problem = model.problem(encoded)
        return problem.with_penalty(1.0 / problem.total), score

    return make


EG = solvers.EG(first=0.0, cap=inf, eta="search")
SPANISH = Family("spanish", trees("log"), seconds=30.0, passes=100.0, first=EG)
MARGIN = Family(
    "spanish-margin", trees("hinge"), seconds=30.0, passes=100.0, first=solvers.EG(first=0.0, eta="search")
)


def named(lab: Lab, family: Family, function) -> dict:
    return lab.each([family.task(1.0, lab.quick)], lambda of: function())[f"{family.name}/C=1"]


def accuracies(run: Run) -> list[float]:
    return [100.0 * score for score in run.column("validation")]


def last_accuracy(run: Run) -> float:
    return [value for value in accuracies(run) if isfinite(value)][-1]


# ---- Figure 12

SLOW_START = (
    "From the uniform distribution over trees, as the paper starts, EG takes longer the weaker the "
    "regulariser is: at C = 10 its run ends before 1 %. With the truth ahead, the library's own start, it is "
    "there after 10 passes (the reference), L-BFGS after 37."
)


def all_methods(lab: Lab) -> dict:
    def each():
        found = {}
        for C in CONSTANTS:
            found[C] = {"EG": SPANISH.eg(lab, C), "LBFGS": SPANISH.lbfgs(lab, C), "SGD": SPANISH.sgd(lab, C)}
            found[C]["reference"] = SPANISH.reference(lab, C)
        return found

    return named(lab, SPANISH, each)


def draw_figure12(results, path) -> None:
    labels = ("EG", "LBFGS", "SGD")
    eg = {"EG, C = 10": (results[10.0]["EG"].column("passes"), accuracies(results[10.0]["EG"]))}
    panels = objective_panels(results, labels)
    for rival in ("LBFGS", "SGD"):
        others = {
            f"{rival}, C = {C:g}": (runs[rival].column("passes"), accuracies(runs[rival]))
            for C, runs in results.items()
        }
        panels.append(Panel("validation", "effective iterations", "accuracy, %", eg | others))
    draw(panels, path, columns=2)


def sgd_stays_away(results) -> Verdict:
    """Where SGD ends above the optimum, for C = 1 and 10."""
    ends = {}
    for C in (1.0, 10.0):
        ends[C] = results[C]["SGD"].excess(optimum(results[C].values()))[-1]
    text = ", ".join(f"C = {C:g}: {value:.1e}" for C, value in ends.items())
    return Verdict(
        min(ends.values()) > 1e-2, f"SGD ends above the optimum by {text} (not converged: more than 1 %)"
    )


def slower_where_it_converges(results) -> Verdict:
    return compare({C: results[C] for C in (1000.0, 100.0)}, "EG", "SGD")


def accuracy_before_lbfgs(results) -> Verdict:
    """Passes to within a point of the best accuracy of EG, C = 10."""
    runs = results[10.0]
    top = max(value for value in accuracies(runs["EG"]) if isfinite(value))
    times = {}
    for label in ("EG", "LBFGS"):
        short = [top - value if isfinite(value) else inf for value in accuracies(runs[label])]
        times[label] = runs[label].first("passes", short, 1.0)
    value = ratio(times["EG"], times["LBFGS"]) or 0.0
    return Verdict(
        value > 1.0,
        f"passes to within a point of {top:.2f} %: EG {number(times['EG'])}, L-BFGS {number(times['LBFGS'])}",
    )


def comparable(results) -> Verdict:
    eg, sgd = last_accuracy(results[10.0]["EG"]), max(last_accuracy(runs["SGD"]) for runs in results.values())
    return Verdict(
        abs(eg - sgd) <= 1.0, f"EG, C = 10: {eg:.2f} %; the best SGD {sgd:.2f} % (comparable: within a point)"
    )


def best_of_four(results) -> Verdict:
    found = {C: last_accuracy(runs["EG"]) for C, runs in results.items()}
    text = ", ".join(f"C = {C:g}: {value:.2f} %" for C, value in found.items())
    return Verdict(max(found, key=found.get) == 10.0, text)


FIG12 = Item(
    "collins2008.fig12",
    "EG, L-BFGS and SGD on Spanish parsing",
    "“L-BFGS and EG both converge to the optimal value, and EG is significantly "
    "faster. On the other hand, SGD does not "
    "converge to the optimum for all C values (e.g., for C = 1, 10), and when it "
    "does converge to the optimum, it is slower "
    "than EG.”",
    all_methods,
    draw_figure12,
    lambda results: [],
    (
        Claim(
            "L-BFGS and EG both converge to the optimal value, and EG is significantly faster",
            lambda results: compare(results, "EG", "LBFGS"),
            SLOW_START,
        ),
        Claim(
            "SGD does not converge to the optimum for all C values (e.g., for C = 1, 10)",
            sgd_stays_away,
            "At C = 10 it ends just below the 1 % that was fixed for it, and does not come to 0.1 %.",
        ),
        Claim(
            "when it does converge to the optimum, it is slower than EG",
            slower_where_it_converges,
            "Slower to 0.1 % everywhere; to 1 % it needs 6 passes at C = 100, EG 7.7.",
        ),
        Claim("EG significantly outperforms L-BFGS [in validation accuracy]", accuracy_before_lbfgs),
        Claim("the value that results in optimal validation error was C = 10", best_of_four),
        Claim("For SGD, performance is comparable to EG [in validation accuracy]", comparable),
    ),
    "CoNLL-2007's Spanish set stands in for CoNLL-X: 2,306 projective sentences "
    "train, the other 591 validate; features of "
    "McDonald et al. seen with three arcs or more. EG starts from the uniform "
    "distribution over trees; its first rate is searched on a tenth.",
)


# ---- Figure 15: time


def timed(lab: Lab) -> dict:
    return {10.0: all_methods(lab)[10.0]}


def draw_timing(results, path) -> None:
    runs, labels = results[10.0], ("EG", "LBFGS", "SGD")
    curves = {k: (runs[k].column("seconds"), accuracies(runs[k])) for k in labels}
    panels = objective_panels(results, labels, "seconds", "seconds")
    draw([*panels, Panel("C = 10", "seconds", "accuracy, %", curves)], path)


FIG15 = Item(
    "collins2008.fig15",
    "Time on Spanish parsing, C = 10",
    "“the EG objective converges faster than the two other algorithms.”",
    timed,
    draw_timing,
    lambda results: [],
    (Claim("the EG objective converges faster than the two other algorithms", faster_in_time, SLOW_START),),
)


# ---- Table 3: the path


def table3(lab: Lab) -> dict:
    def compute():
        constants = PATH[:3] if lab.quick else PATH
        of = SPANISH.task(1.0, lab.quick)
        return lab.measure(
            of, "path", lambda: fit_path(SPANISH, lab.quick, constants, 30.0), constants=constants
        )

    return {"rows": named(lab, SPANISH, compute)}


def whole_path(found) -> Verdict:
    total, gaps = sum(row[1] for row in found["rows"]), max(row[2] for row in found["rows"])
    return Verdict(
        total <= 389.65 and gaps <= 1e-3,
        f"{len(found['rows'])} constants in {total:.1f} passes (389.65 in the paper), the "
        f"largest gap {gaps:.1e}",
    )


def best_constant(found) -> Verdict:
    C, _, _, score = max(found["rows"], key=lambda row: row[3])
    return Verdict(
        5.0 <= C <= 40.0, f"best at C = {C:.4g}: {100 * score:.2f} % (the paper: 80.77 % at 13.84)"
    )


TABLE3 = Item(
    "collins2008.table3",
    "The path of 21 constants on Spanish parsing",
    "“Finally, it is possible to use EG to efficiently optimize over a set of "
    "regularization constants”: 21 constants in "
    "389.65 effective iterations, the best accuracy at C = 13.841.",
    table3,
    None,
    lambda found: path_table(found, PRINTED_PATH, lambda value: f"{100 * value:.2f}", "accuracy, %"),
    (
        Claim("[21 constants are optimised in] 389.65 [effective iterations]", whole_path),
        Claim(
            "the optimal accuracy is reached at C = 13.841 (here: between 5 and 40)",
            best_constant,
            "Between C = 4.7 and 13.8 accuracies differ by 0.15 points, and the sentences are others.",
        ),
    ),
    "Marginals of trees do not tell θ: each constant begins at the scores of the "
    "last weights, which at its optimum are θ.",
)


# ---- Figure 13: max-margin


def margins(lab: Lab) -> dict:
    def each():
        found = {}
        for C in MARGINS:
            planes = MARGIN.run(lab, C, "SVM-Struct", solvers.CuttingPlane(slack="n"))
            found[C] = {"EG": MARGIN.eg(lab, C), "SVM-Struct": planes, "reference": MARGIN.reference(lab, C)}
        return found

    return named(lab, MARGIN, each)


def draw_figure13(results, path) -> None:
    panels = []
    for C, runs in results.items():
        curves = {}
        for label in ("EG", "SVM-Struct"):
            for what in ("primal", "dual"):
                curves[f"{label}, {what}"] = (runs[label].column("seconds"), objective(runs[label], what))
        # Weak regularisers: EG's primal is far above the picture, so that cutting planes' is in it.
        top = max(2.5 * optimum(runs.values()), 1.3 * min(runs[k].best for k in ("EG", "SVM-Struct")))
        limits = (0.0, top * runs["EG"].n)
        panels.append(Panel(f"C = {C:g}", "seconds", "objective", curves, y_limits=limits))
    scores = {"EG, C = 100": (results[100.0]["EG"].column("seconds"), accuracies(results[100.0]["EG"]))}
    for C, runs in results.items():
        scores[f"SVM-Struct, C = {C:g}"] = (
            runs["SVM-Struct"].column("seconds"),
            accuracies(runs["SVM-Struct"]),
        )
    panels.append(Panel("validation", "seconds", "accuracy, %", scores))
    draw(panels, path)


def faster_than_planes(results) -> Verdict:
    kept = {C: results[C] for C in MARGINS[1:]}
    return compare(kept, "EG", "SVM-Struct", levels=(1e-1, 1e-2), along="seconds")


def slow_for_both(results) -> Verdict:
    runs = results[1.0]
    best = optimum(runs.values())
    times = {k: runs[k].reach(1e-1, best) for k in ("EG", "SVM-Struct")}
    value = ratio(times["EG"], times["SVM-Struct"])
    text = ", ".join(f"{k} {number(t)} s" for k, t in times.items())
    return Verdict(
        value is None or 0.5 <= value <= 2.0,
        f"C = 1, to 0.1 of the optimum: {text} (comparable: within 2, or neither)",
    )


def best_margin(results) -> Verdict:
    found = {C: max(last_accuracy(runs[k]) for k in ("EG", "SVM-Struct")) for C, runs in results.items()}
    text = ", ".join(f"C = {C:g}: {value:.2f} %" for C, value in found.items())
    return Verdict(max(found, key=found.get) == 100.0, text)


FIG13 = Item(
    "collins2008.fig13",
    "Max-margin parsing: EG against cutting planes",
    "“EG is considerably faster than SVM-Struct for most C values. The performance "
    "is comparable only for C = 1, where "
    "convergence is slow for both algorithms.”",
    margins,
    draw_figure13,
    lambda results: [],
    (
        Claim(
            "EG is considerably faster than SVM-Struct for most C values (here: 10, 100, 1000)",
            faster_than_planes,
            "EG from the uniform distribution over trees, a step for one sentence at a time; our planes are "
            "added for all sentences and solved exactly. At C = 1000 the paper's order is there.",
        ),
        Claim(
            "The performance is comparable only for C = 1, where convergence is slow for both algorithms",
            slow_for_both,
        ),
        Claim(
            "The optimal value in terms of validation error was C = 100",
            best_margin,
            "The runs at C = 1 and 10 are cut off long before their optimum: what they have there is an "
            "average of few planes, which stops early and does not overfit.",
        ),
    ),
    "SVM-Struct is our `cutting-plane` with a slack for each sentence, with an exact "
    "quadratic program of its own; seconds, not hours.",
)
