"""Run the papers' experiments and write what came of them.

    FENCHEL_DATA=folder python -m experiments [--quick] [--only yu2011.fig2 ...] [--fresh] [--minutes 90]

What was run before is not run again: an interrupted session goes on where it was, and figures can be drawn
anew from a clone. --quick: subsets, in two minutes, under experiments/.quick. --jobs: so many processes side
by side, two unless told, each with papers of its own and one thread.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from experiments import batches, page
from experiments.batches import FAILED, PAPERS
from experiments.claims import Item
from experiments.lab import Lab

HERE = Path(__file__).resolve().parent


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


def main(arguments=None) -> int:
    options = parsed(arguments)
    everything = batches.items()
    if options.list:
        print(*(f"{name}: {item.title}" for name, item in everything.items()), sep="\n")
        return 0
    lab = Lab(
        HERE / (".quick/traces" if options.quick else "traces"),
        quick=options.quick,
        fresh=options.fresh,
        minutes=options.minutes,
        say=batches.tell,
    )
    figures = HERE / ".quick/figures" if options.quick else HERE.parent / "docs" / "papers"
    names = [item.name for item in chosen(everything, options.only)]
    made = {}
    for part, outcomes in batches.side_by_side(options.jobs, lab, batches.parts(names), figures):
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


if __name__ == "__main__":
    sys.exit(main())
