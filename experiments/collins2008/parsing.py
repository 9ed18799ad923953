"""collins2008 7.2: dependency parsing with the log loss, Figures 12 and 15, Table 3."""

from math import inf, isfinite

import numpy as np

from experiments import data
from experiments.claims import Claim, Item, Table, Verdict, number, ratio
from experiments.collins2008.family import (
    CONSTANTS,
    Family,
    compare,
    crossing,
    faster_in_time,
    fit_path,
    objective_panels,
    path_table,
    quick_in_score,
    similar_by_time,
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
WEAK, LARGE_RATES = (10.0, 1.0), (1.0, 0.1)  # where the paper's choice of a rate fails
WEAKEST = 0.1  # of which the paper tells the accuracy alone
PRINTED_COUNTS = (2306, 58_771, 1000, 30_563, 2_500_554)
QUICK_SENTENCES = 40


def trees(loss: str):
    def make(quick: bool):
        """The validation score is the share of right heads in the tree of largest score."""
        tokens, heads, other, truth = data.spanish()
        if quick:
            tokens, heads, other, truth = (part[:QUICK_SENTENCES] for part in (tokens, heads, other, truth))
        model = DependencyParser(loss=loss, n_jobs=1)
        encoded = model.encode_training(tokens, heads)
        right = np.concatenate([np.asarray(one) for one in truth])

        def score(w, b):
            found = model.set_weights(encoded, w).predict(other, decoding="tree")
            return float(np.mean(np.concatenate([np.asarray(one) for one in found]) == right))

        problem = model.problem(encoded)
        return problem.with_penalty(1.0 / problem.total), score

    return make


EG = solvers.EG(first=0.0, cap=inf, eta="search")
SPANISH = Family(
    "spanish",
    trees("log"),
    seconds=30.0,
    passes=100.0,
    first=EG,
    longer={("EG", 10.0): 120.0, ("LBFGS", 10.0): 120.0, ("SGD η₀ = 0.1", 10.0): 120.0, ("EG", 1.0): 90.0},
    rates=(1.0, 0.1, 0.001, 0.0001),  # .01 is not among those that 7.2 prints
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
    "regulariser is: at C = 10 it is within 1 % after 59 passes, L-BFGS after 37. At C = 1, given "
    "390 s of steps alone and nothing measured, it came within 7.7 % after 993 passes. With the truth ahead, "
    "the library's own start, and draws by gap it is within 1 % after ten passes at C = 10 and twenty at "
    "C = 1 (the reference)."
)


def all_methods(lab: Lab) -> dict:
    def each():
        found = {}
        for C in CONSTANTS:
            found[C] = {"EG": SPANISH.eg(lab, C), "LBFGS": SPANISH.lbfgs(lab, C), "SGD": SPANISH.sgd(lab, C)}
            found[C]["reference"] = SPANISH.reference(lab, C)
        for C in WEAK:
            found[C] |= {f"SGD η₀ = {rate:g}": SPANISH.sgd(lab, C, rate) for rate in LARGE_RATES}
        return found

    return named(lab, SPANISH, each)


def counted(lab: Lab) -> dict:
    """The runs; "weakest", that of C = .1; "counts", sentences and tokens of both parts."""

    def counts():
        tokens, _, other, _ = data.spanish()
        return [len(tokens), len(tokens.column(0)), len(other), len(other.column(0))]

    of = SPANISH.task(1.0, lab.quick)
    weakest = named(lab, SPANISH, lambda: {WEAKEST: {"EG": SPANISH.eg(lab, WEAKEST)}})
    return all_methods(lab) | {"counts": lab.measure(of, "counts", counts), "weakest": weakest}


def runs_of(results) -> dict:
    return {C: runs for C, runs in results.items() if C in CONSTANTS}


def count_table(results) -> list[Table]:
    head = ("", "sentences", "tokens", "sentences to validate", "tokens", "features")
    ours = (*results["counts"], results[10.0]["EG"].d)
    rows = [("paper", *(f"{n:,}" for n in PRINTED_COUNTS)), ("here", *(f"{n:,}" for n in ours))]
    return [Table(head, rows)]


def other_rates(results) -> Verdict:
    """A rate that ends within 1 %; and from which pass on it is below the chosen one for good."""
    lines, holds = [], True
    for C in WEAK:
        best = optimum(results[C].values())
        found = {k: run for k, run in results[C].items() if k.startswith("SGD η₀")}
        chosen = results[C]["SGD"].label
        name = min(found, key=lambda k: found[k].best)
        end, from_pass = found[name].excess(best)[-1], crossing(found[name], results[C]["SGD"])
        holds &= end <= 1e-2 and name != chosen and from_pass >= 10.0
        rank = "the one chosen" if name == chosen else f"below {chosen} from pass {number(from_pass)} on"
        lines.append(f"C = {C:g}: {name}, {rank}, ends at {end:.1e}")
    return Verdict(holds, f"{'; '.join(lines)} (the optimum: within 1 %)")


def draw_figure12(results, path) -> None:
    labels = ("EG", "LBFGS", "SGD")
    eg = {"EG, C = 10": (results[10.0]["EG"].column("passes"), accuracies(results[10.0]["EG"]))}
    panels = objective_panels(results, labels)
    for rival in ("LBFGS", "SGD"):
        others = {
            f"{rival}, C = {C:g}": (runs[rival].column("passes"), accuracies(runs[rival]))
            for C, runs in results.items()
        }
        panels.append(
            Panel("validation", "effective iterations", "accuracy, %", eg | others, y_limits=(60, 82))
        )
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
    eg, sgd = (
        last_accuracy(results[10.0]["EG"]),
        max(last_accuracy(runs["SGD"]) for runs in runs_of(results).values()),
    )
    return Verdict(
        abs(eg - sgd) <= 1.0, f"EG, C = 10: {eg:.2f} %; the best SGD {sgd:.2f} % (comparable: within a point)"
    )


def best_of_five(results) -> Verdict:
    found = {C: last_accuracy(runs["EG"]) for C, runs in (runs_of(results) | results["weakest"]).items()}
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
    counted,
    lambda results, path: draw_figure12(runs_of(results), path),
    count_table,
    (
        Claim(
            "L-BFGS and EG both converge to the optimal value, and EG is significantly faster",
            lambda results: compare(runs_of(results), "EG", "LBFGS"),
            SLOW_START,
        ),
        Claim(
            "SGD does not converge to the optimum for all C values (e.g., for C = 1, 10)",
            sgd_stays_away,
            "At C = 1 it does not. At C = 10 it comes below the 1 % that was fixed for it when it is given "
            "100 passes, but not to 0.1 %.",
        ),
        Claim(
            "when it does converge to the optimum, it is slower than EG",
            slower_where_it_converges,
            "Slower to 0.1 % everywhere; to 1 % it is before EG at C = 1000, where both need few passes.",
        ),
        Claim("EG significantly outperforms L-BFGS [in validation accuracy]", accuracy_before_lbfgs),
        Claim("the value that results in optimal validation error was C = 10", best_of_five),
        Claim("For SGD, performance is comparable to EG [in validation accuracy]", comparable),
        Claim(
            "it is possible to find learning rates for SGD such that it converges to the primal optimum for "
            "C = 1, 10. However, the optimality of these rates only becomes evident after 10 iterations",
            other_rates,
            "With rates of 1 and .1 only, and 30 s for the one that was not chosen: at C = 10 the choice "
            "after one pass is the better one here, at C = 1 neither comes near.",
        ),
    ),
    "CoNLL-2007's Spanish set stands in for CoNLL-X: 2,306 projective sentences "
    "train, the other 591 validate; features of "
    "McDonald et al. seen with three arcs or more. EG starts from the uniform "
    "distribution over trees; its first rate is searched on a tenth. Runs are given 30 s, "
    "those of C = 10 120 s and EG at C = 1 90 s, measuring included, which takes half of them; at C = .1 "
    "EG's alone is made, for its accuracy. "
    "SGD's rates are the four that 7.2 prints, without .01.",
)


# ---- Figure 15: time


def timed(lab: Lab) -> dict:
    return {10.0: all_methods(lab)[10.0]}


def draw_timing(results, path) -> None:
    runs, labels = results[10.0], ("EG", "LBFGS", "SGD")
    curves = {k: (runs[k].column("seconds"), accuracies(runs[k])) for k in labels}
    panels = objective_panels(results, labels, "seconds", "seconds")
    draw([*panels, Panel("C = 10", "seconds", "accuracy, %", curves, y_limits=(60, 82))], path)


FIG15 = Item(
    "collins2008.fig15",
    "Time on Spanish parsing, C = 10",
    "“the EG objective converges faster than the two other algorithms.”",
    timed,
    draw_timing,
    lambda results: [],
    (
        Claim("the EG objective converges faster than the two other algorithms", faster_in_time, SLOW_START),
        Claim(
            "SGD converges quickly in terms of accuracy, but its objective converges very slowly "
            "to the optimum",
            quick_in_score,
        ),
        Claim(
            "there is little difference between the timed comparisons and the results [by iterations]",
            similar_by_time,
        ),
    ),
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
    "last weights, which at its optimum are θ. Accuracies of this table are those of the trees with the most "
    "right heads to be expected, elsewhere of the trees of largest score.",
)
