"""Run the papers' experiments and write what came of them.

    FENCHEL_DATA=folder python -m experiments [--quick] [--only yu2011.fig2 ...] [--fresh] [--minutes 90]

What was run before is not run again: an interrupted session goes on where it was, and figures can be drawn
anew from a clone. --quick: subsets, in two minutes, under experiments/.quick. --jobs: so many processes side
by side, two unless told, each with papers of its own and one thread.
"""

import argparse
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from experiments import page
from experiments.claims import Item, Outcome, Verdict, examine
from experiments.lab import Lab

FAILED = "failed"
HERE = Path(__file__).resolve().parent
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
    ("collins2008.fig12", "collins2008.fig13", "collins2008.fig15", "collins2008.table3"),
    ("yu2011", "huang2010"),
    ("lepriol2018",),
    ("collins2008",),
    ("zhang2005",),
)


def items() -> dict[str, Item]:
    """All tables and figures, by name."""
    listed = (item for paper in PAPERS for item in import_module(f"experiments.{paper}").ITEMS)
    return {item.name: item for item in listed}


def chosen(everything: dict, only: list[str]) -> list[Item]:
    """The items asked for: by name, or all of a paper."""
    if not only:
        return list(everything.values())
    found = [item for name, item in everything.items() if {name, name.split(".")[0]} & set(only)]
    known = set(everything) | {name.split(".")[0] for name in everything}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"there is no {unknown[0]!r}; there are {', '.join(everything)}")
    return found


def batches(names) -> list[list[str]]:
    """The names, each in the first batch that it or its paper is of."""
    first = {
        name: next(k for k, of in enumerate(BATCHES) if {name, name.split(".")[0]} & set(of))
        for name in names
    }
    return [[name for name in names if first[name] == k] for k in sorted(set(first.values()))]


def main(arguments=None) -> int:
    options = parsed(arguments)
    everything = items()
    if options.list:
        print(*(f"{name}: {item.title}" for name, item in everything.items()), sep="\n")
        return 0
    lab = Lab(
        HERE / (".quick/traces" if options.quick else "traces"),
        quick=options.quick,
        fresh=options.fresh,
        minutes=options.minutes,
        say=tell,
    )
    figures = HERE / ".quick/figures" if options.quick else HERE.parent / "docs" / "papers"
    names = [item.name for item in chosen(everything, options.only)]
    made = {}
    for part, outcomes in side_by_side(options.jobs, lab, batches(names), figures):
        lab.join(part)
        made |= outcomes
    outcomes = [replace(made[name], item=everything[name]) for name in names]
    folder = HERE / ".quick" if options.quick else HERE
    if options.only and not options.quick:  # a part does not take the place of the whole
        folder = HERE / ".part"
    folder.mkdir(exist_ok=True)
    note = page.conditions(lab)
    page.write(outcomes, folder / "papers.html", folder / "RESULTS.md", PAPERS, note)
    if folder == HERE:
        for short, of in page.by_paper(outcomes, PAPERS):
            page.fill(figures / f"{short}.md", of)
    print(page.summary(outcomes))
    print(f"written: {folder / 'papers.html'}, {folder / 'RESULTS.md'}")
    return int(any(outcome.missing.startswith(FAILED) for outcome in outcomes))


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="subsets and short runs")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="papers, figures or tables")
    parser.add_argument("--fresh", action="store_true", help="run again what was run before")
    parser.add_argument(
        "--minutes", type=float, default=90.0, help="no run begins that may end after so many"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--list", action="store_true", help="name all tables and figures")
    return parser.parse_args(arguments)


def side_by_side(jobs: int, lab: Lab, parts: list[list[str]], figures: Path):
    """What `work` gives for each part, by at most so many processes."""
    if min(jobs, len(parts)) < 2:
        return [work(lab, part, figures) for part in parts]
    with ProcessPoolExecutor(min(jobs, len(parts)), get_context("spawn")) as pool:
        return [one.result() for one in [pool.submit(work, lab, part, figures) for part in parts]]


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


if __name__ == "__main__":
    sys.exit(main())
