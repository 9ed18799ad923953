"""What a paper says, and whether it is so here: every verdict carries the numbers it rests on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, isinf
from pathlib import Path

from experiments.lab import Lab, Missing, Run, optimum, proven

UNDECIDED = "not decided"  # neither of two got there in the time they had
LEVELS = (
    1e-2,
    1e-4,
)  # relative function differences at which speeds are compared, unless a paper says others


@dataclass(frozen=True)
class Verdict:
    """holds: None where it cannot be said; absent: why. margin: what was measured."""

    holds: bool | None
    margin: str
    absent: str = Missing.word

    @property
    def word(self) -> str:
        if self.holds is None:
            return self.absent
        return "holds" if self.holds else "does not hold"


@dataclass(frozen=True)
class Claim:
    """A comparative sentence of the paper. check(results) -> Verdict; reason: why, where it does not hold."""

    text: str
    check: Callable[[dict], Verdict]
    reason: str = ""


@dataclass(frozen=True)
class Table:
    """Cells as text."""

    header: tuple
    rows: list
    caption: str = ""


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper.

    run(lab): results, whatever draw(results, path), tables(results) and the claims' checks take. statement:
    what the paper shows there. here: what is different about ours.
    """

    name: str
    title: str
    statement: str
    run: Callable[[Lab], dict]
    draw: Callable[[dict, Path], None] | None = None
    tables: Callable[[dict], list[Table]] = lambda results: []
    claims: tuple[Claim, ...] = ()
    here: str = ""


@dataclass(frozen=True)
class Outcome:
    """An item with what came of it; figure None where there is none, missing: why.

    item: None on the way between two processes.
    """

    item: Item | None
    figure: Path | None
    tables: list[Table]
    verdicts: list[Verdict]
    missing: str = ""


def examine(item: Item, lab: Lab, figures: Path) -> Outcome:
    """Run, draw and judge an item; without its data every claim of it is unavailable."""
    try:
        results = item.run(lab)
    except Missing as error:
        nothing = [Verdict(None, "", error.word)] * len(item.claims)
        return Outcome(item, None, [], nothing, f"{error.word}: {error}")
    figure = None
    if item.draw is not None:
        figure = figures / f"{item.name}.png"
        figures.mkdir(parents=True, exist_ok=True)
        item.draw(results, figure)
    return Outcome(item, figure, item.tables(results), [judge(claim, results) for claim in item.claims])


def judge(claim: Claim, results: dict) -> Verdict:
    try:
        return claim.check(results)
    except Missing as error:
        return Verdict(None, str(error), error.word)


# ---- checks that many claims share; results: {set: {label: Run}}


def faster(winner: str, loser: str, *, levels=LEVELS, along="seconds", sets=None) -> Callable:
    """The winner reaches every level before the loser, on all of the sets (all there are unless named).

    Where it does not by the clock, the verdict tells the passes too: what a step costs is another matter.
    """

    def check(results):
        found = chosen(results, sets)
        ratios = _ratios(found, winner, loser, levels, along)
        known = [one for of in ratios.values() for one in of if one is not None]
        holds = all(one > 1.0 for one in known) if known else None
        text = f"{loser} takes times the {_word(along)} of {winner}: {_each(ratios, levels)}"
        if holds is False and along == "seconds":
            text += f". In passes: {_each(_ratios(found, winner, loser, levels, 'passes'), levels)}"
        return Verdict(holds, text, UNDECIDED)

    return check


def _ratios(results, winner, loser, levels, along) -> dict:
    """{set: [the loser's / the winner's distance to each level]}; None where P* is proven less precisely."""
    out = {}
    for name, runs in results.items():
        best, doubt = optimum(runs.values()), proven(runs.values())
        out[name] = [
            ratio_of(runs[winner], runs[loser], level, best, along) if level >= doubt else None
            for level in levels
        ]
    return out


def ratio_of(first: Run, second: Run, level: float, best: float, along: str = "seconds") -> float | None:
    """How far the second had to go to the level, over how far the first had; None where it is not known.

    A run that was cut off short of the level lost only if it had gone as far as the other one had to.
    """
    times = first.reach(level, best, along), second.reach(level, best, along)
    ends = first.column(along)[-1], second.column(along)[-1]
    if any(isinf(mine) and end < other for mine, end, other in zip(times, ends, times[::-1], strict=True)):
        return None
    return ratio(*times)


def chosen(results: dict, sets: Iterable[str] | None) -> dict:
    """The results of these sets; Missing where none of them is there."""
    found = {name: of for name, of in results.items() if sets is None or name in sets}
    if not found:
        raise Missing(f"none of {', '.join(sets or ())} is there")
    return found


def ratio(first: float, second: float) -> float | None:
    """second / first: above 1 the first was earlier; None where neither got there."""
    if isinf(first):
        return None if isinf(second) else 0.0
    return inf if isinf(second) else (second / first if first > 0.0 else inf)


def number(value: float) -> str:
    """Three digits, or what an infinity means."""
    return "never" if isinf(value) else f"{value:.3g}"


def _each(ratios: dict, levels) -> str:
    """Every set with its ratios; the first is the one whose time is divided by."""
    words = {None: "not known", inf: "only the latter got there", 0.0: "only the former got there"}
    lines = []
    for name, of in ratios.items():
        told = (words.get(one) or f"{one:.2f}" for one in of)
        pairs = (f"{text} at {level:g}" for text, level in zip(told, levels, strict=True))
        lines.append(f"{name}: {', '.join(pairs)}")
    return "; ".join(lines)


def _word(along) -> str:
    return {"seconds": "time", "oracle_calls": "oracle calls"}.get(along, along)
