"""collins2008 8: max-margin parsing, Figure 13."""

from itertools import pairwise

from experiments.claims import Claim, Item, Verdict, number, ratio
from experiments.collins2008.family import Family, compare, objective
from experiments.collins2008.parsing import accuracies, last_accuracy, named, trees
from experiments.figures import Panel, draw
from experiments.lab import Lab, optimum, proven
from fenchel import solvers

MARGINS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
METHODS = ("EG", "SVM-Struct")
NEAR, NEAR_LABEL = solvers.EG(eta="search"), "EG near the truth"  # the library's own start
MARGIN = Family(
    "spanish-margin", trees("hinge"), seconds=30.0, passes=100.0, first=solvers.EG(first=0.0, eta="search")
)


def margins(lab: Lab) -> dict:
    def each():
        found = {}
        for C in MARGINS:
            planes = MARGIN.run(lab, C, "SVM-Struct", solvers.CuttingPlane(slack="n"))
            found[C] = {"EG": MARGIN.eg(lab, C), "SVM-Struct": planes}
            found[C]["reference"] = MARGIN.reference(lab, C, score=True)
        for C in (10.0, 100.0):
            found[C][NEAR_LABEL] = MARGIN.run(lab, C, NEAR_LABEL, NEAR, score=False)
        return found

    return named(lab, MARGIN, each)


def draw_figure13(results, path) -> None:
    panels = []
    for C, runs in results.items():
        curves = {}
        for label in METHODS:
            for what in ("primal", "dual"):
                curves[f"{label}, {what}"] = (runs[label].column("seconds"), objective(runs[label], what))
        if NEAR_LABEL in runs:
            near = runs[NEAR_LABEL]
            curves[f"{NEAR_LABEL}, primal"] = (near.column("seconds"), objective(near))
        best = optimum(runs.values()) * runs["EG"].n
        top = max(3.0 * best, 2.0 * max(runs[k].best for k in METHODS) * runs["EG"].n)
        panels.append(
            Panel(f"C = {C:g}", "seconds", "objective", curves, log_y=True, y_limits=(0.1 * best, top))
        )
    scores = {"EG, C = 100": (results[100.0]["EG"].column("seconds"), accuracies(results[100.0]["EG"]))}
    for C, runs in results.items():
        scores[f"SVM-Struct, C = {C:g}"] = (
            runs["SVM-Struct"].column("seconds"),
            accuracies(runs["SVM-Struct"]),
        )
    panels.append(Panel("validation", "seconds", "accuracy, %", scores, y_limits=(50, 82)))
    draw(panels, path)


def faster_than_planes(results) -> Verdict:
    """As the paper begins it; the verdict tells EG from near the truth too."""
    settings = {"levels": (1e-1, 1e-2), "along": "seconds"}
    verdict = compare({C: results[C] for C in MARGINS[1:4]}, "EG", "SVM-Struct", **settings)
    near = {C: runs for C, runs in results.items() if NEAR_LABEL in runs}
    return Verdict(
        verdict.holds, f"{verdict.margin}. {compare(near, NEAR_LABEL, 'SVM-Struct', **settings).margin}"
    )


def slow_for_both(results) -> Verdict:
    runs = results[1.0]
    best = optimum(runs.values())
    times = {k: runs[k].reach(1e-1, best) for k in METHODS}
    value = ratio(times["EG"], times["SVM-Struct"])
    text = ", ".join(f"{k} {number(t)} s" for k, t in times.items())
    return Verdict(
        value is None or 0.5 <= value <= 2.0,
        f"C = 1, to 0.1 of the optimum: {text} (comparable: within 2, or neither)",
    )


def best_margin(results) -> Verdict:
    """By the runs of the figure; the verdict tells the references too, and how far they are proven."""
    found = {C: max(last_accuracy(runs[k]) for k in METHODS) for C, runs in results.items()}
    text = ", ".join(f"C = {C:g}: {value:.2f} %" for C, value in found.items())
    solved = ", ".join(
        f"C = {C:g}: {last_accuracy(runs['reference']):.2f} % ({proven([runs['reference']]):.1e})"
        for C, runs in results.items()
    )
    return Verdict(
        max(found, key=found.get) == 100.0, f"{text}. By our own solver (proven relative gap): {solved}"
    )


def dual_rises(results) -> Verdict:
    """The largest fall of the dual from a row to the next, relative to its last value."""
    falls = {}
    for label in METHODS:
        duals = [run[label].column("dual") for run in results.values()]
        falls[label] = max(max(a - b for a, b in pairwise(of)) / abs(of[-1]) for of in duals)
    text = ", ".join(f"{label} {max(value, 0.0):.1e}" for label, value in falls.items())
    return Verdict(max(falls.values()) <= 1e-9, f"largest fall, relative: {text}")


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
            "It is the start: from the uniform distribution over trees, as the paper begins, EG's "
            "primal is 49.1 at C = 10 after 22 s, from near the truth, the library's own start, 5.4 "
            "after 17 s, that of the planes 6.0 when their time ends. Begun so, EG is before the "
            "planes at C = 100; at C = 1000 it is in either case to a tenth, and to 1 % about level.",
        ),
        Claim(
            "The performance is comparable only for C = 1, where convergence is slow for both algorithms",
            slow_for_both,
        ),
        Claim(
            "The optimal value in terms of validation error was C = 100",
            best_margin,
            "The runs at C = 1 and 10 are cut off long before their optimum. Solved by our own "
            "solver, as far as proven, C = 10 is the best and C = 100 .4 points behind it, on 591 "
            "sentences that are not the paper's; at C = 1 nothing here comes near the optimum.",
        ),
        Claim(
            "[SVM-Struct] results in monotone improvement in this dual. In this sense, it is similar to "
            "our EG",
            dual_rises,
        ),
    ),
    "SVM-Struct is our `cutting-plane` with a slack for each sentence, with an exact "
    "quadratic program of its own; seconds, not hours; each run is given 30. The axis of objectives is "
    "logarithmic, so that both are seen where the regulariser is weak.",
)
