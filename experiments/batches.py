"""What is done by one process, and several of them side by side.

Not in `__main__`, which processes that begin anew do not know.
"""

import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from experiments.claims import Item, Outcome, Verdict, examine
from experiments.lab import Lab

FAILED = "failed"
PAPERS = {  # in the order they run: the short ones first
    "zhang2005": "Zhang, Kwok, Yeung, Wang: Convexity, surrogate functions and iterative optimization in "
    "multi-class logistic regression models (2005)",
    "yu2011": "Yu, Huang, Lin: Dual coordinate descent methods for logistic regression and maximum entropy "
    "models (2011)",
    "huang2010": "Huang, Hsieh, Chang, Lin: Iterative scaling and coordinate descent methods for maximum "
    "entropy models (2010)",
    "lepriol2018": "Le Priol, Piché, Lacoste-Julien: Adaptive stochastic dual coordinate ascent for "
    "conditional random fields (2018)",
    "collins2008": "Collins, Globerson, Koo, Carreras, Bartlett: Exponentiated gradient algorithms for "
    "conditional random fields and max-margin Markov networks (2008)",
}


BATCHES = (  # what shares problems and kernels is for one process; the longest first
    ("yu2011", "huang2010"),
    ("lepriol2018",),
    ("collins2008.fig12", "collins2008.fig13", "collins2008.fig15", "collins2008.table3"),
    ("collins2008",),
    ("zhang2005",),
)


def items() -> dict[str, Item]:
    """All tables and figures, by name."""
    listed = (item for paper in PAPERS for item in import_module(f"experiments.{paper}").ITEMS)
    return {item.name: item for item in listed}


def parts(names) -> list[list[str]]:
    """The names, each in the first batch that it or its paper is of."""
    first = {
        name: next(k for k, of in enumerate(BATCHES) if {name, name.split(".")[0]} & set(of))
        for name in names
    }
    return [[name for name in names if first[name] == k] for k in sorted(set(first.values()))]


def side_by_side(jobs: int, lab: Lab, shares: list[list[str]], figures: Path):
    """What `work` gives for each part, by at most so many processes."""
    if min(jobs, len(shares)) < 2:
        return [work(lab, part, figures) for part in shares]
    with ProcessPoolExecutor(min(jobs, len(shares)), get_context("spawn")) as pool:
        begun = [pool.submit(work, lab, part, figures) for part in shares]
        try:
            return [one.result() for one in begun]
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C no further part begins


def work(lab: Lab, names: list[str], figures: Path) -> tuple[Lab, dict[str, Outcome]]:
    """The laboratory afterwards and what came of the items by name, whose functions do not travel."""
    everything, made = items(), {}
    for name in names:
        outcome = attempt(everything[name], lab, figures)
        words = ", ".join(verdict.word for verdict in outcome.verdicts)
        tell(f"== {name}: {outcome.missing or words}")
        made[name] = replace(outcome, item=None)
    return lab, made


def attempt(item: Item, lab: Lab, figures: Path) -> Outcome:
    """What comes of an item; a fault of one must not cost the others."""
    try:
        return examine(item, lab, figures)
    except Exception as error:
        traceback.print_exc()
        nothing = [Verdict(None, "", FAILED)] * len(item.claims)
        return Outcome(item, None, [], nothing, f"{FAILED}: {error!r}")


def tell(text: str) -> None:
    """On standard error."""
    print(text, file=sys.stderr, flush=True)
