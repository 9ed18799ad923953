"""collins2008 7.1: randomised, deterministic and batch updates on MNIST, Figure 7."""

from math import inf

from experiments.claims import Claim, Item, Verdict, number, ratio
from experiments.collins2008.family import objective, passes_to, relative_gaps
from experiments.collins2008.mnist import MNIST, named
from experiments.figures import Panel, draw
from experiments.lab import Lab, optimum
from fenchel import solvers


def orders(lab: Lab) -> dict:
    def all_orders():
        return {
            "randomised": MNIST.eg(lab, 1.0),
            "deterministic": MNIST.run(lab, 1.0, "EG cyclic", solvers.EG(order="cyclic", first=0.0, cap=inf)),
        }

    return named(lab, all_orders)


def gap_panels(runs) -> list[Panel]:
    """Primal and dual; and the gap relative to the optimum."""
    best = optimum(runs.values())
    values, gaps = {}, {}
    for label, run in runs.items():
        for what in ("primal", "dual"):
            values[f"{label}, {what}"] = (run.column("passes"), objective(run, what))
        gaps[label] = (run.column("passes"), [g / best for g in run.column("gap")])
    top = best * next(iter(runs.values())).n
    first = Panel(
        "C = 1", "effective iterations", "objective", values, log_y=True, y_limits=(0.3 * top, 300.0 * top)
    )
    return [first, Panel("C = 1", "effective iterations", "(primal − dual)/optimum", gaps, log_y=True)]


def earlier(first, second, levels=(1e-1, 1e-2), at_least=1.0):
    """By the relative gap."""

    def check(runs):
        values = []
        for level in levels:
            value = ratio(passes_to(runs[first], level), passes_to(runs[second], level))
            values.append((level, value))
        known = [v for _, v in values if v is not None]
        text = ", ".join(f"{number(v) if v is not None else 'neither'} at {level:g}" for level, v in values)
        return Verdict(
            bool(known) and min(known) > at_least, f"passes of {second} / {first} to a relative gap: {text}"
        )

    return check


def more_evident(runs) -> Verdict:
    """How many times farther the deterministic run ends: by its gap, and by its objective."""
    best = optimum(runs.values())
    gaps = {k: run.column("gap")[-1] / best for k, run in runs.items()}
    times = gaps["deterministic"] / gaps["randomised"]
    primal = {k: run.excess(best)[-1] for k, run in runs.items()}
    text = ", ".join(f"{k}: gap {gaps[k]:.1e}, objective {primal[k]:.1e} above the optimum" for k in runs)
    return Verdict(gaps["deterministic"] > primal["deterministic"] and times > 10.0, f"at the end, {text}")


FIG7 = Item(
    "collins2008.fig7",
    "Randomised and deterministic online EG, MNIST, C = 1",
    "“It can be seen that the randomized algorithm is clearly much faster to converge.”",
    orders,
    lambda runs, path: draw(gap_panels(runs), path),
    lambda runs: [],
    (
        Claim(
            "the randomized algorithm is clearly much faster to converge",
            earlier("randomised", "deterministic"),
        ),
        Claim("This is even more evident when plotting the duality gap", more_evident),
    ),
    "Both axes of values are logarithmic. The dual of the fixed order is negative throughout, so that it is "
    "not on them.",
)


def batch(lab: Lab) -> dict:
    def two():
        slow = solvers.EG(batch=True, first=0.0)
        return {"LLEG-Batch": MNIST.run(lab, 10.0, "EG batch", slow), "online": MNIST.eg(lab, 10.0)}

    return named(lab, two)


BATCH = Item(
    "collins2008.batch",
    "LLEG-Batch and online EG, MNIST, C = 10",
    "“We do not report results on LLEG-Batch, since we found it to converge much "
    "more slowly than the online algorithm. "
    "This is expected from our theoretical results, which anticipate a factor of n speed-up.”",
    batch,
    lambda runs, path: draw(
        [
            Panel(
                "C = 10",
                "effective iterations",
                "(primal − dual)/primal",
                {k: (run.column("passes"), relative_gaps(run)) for k, run in runs.items()},
                log_y=True,
            )
        ],
        path,
    ),
    lambda runs: [],
    (
        Claim(
            "[LLEG-Batch converges] much more slowly than the online algorithm",
            earlier("online", "LLEG-Batch", at_least=5.0),
        ),
    ),
    "No figure of the paper shows it. Much more slowly: at least five times the passes.",
)
