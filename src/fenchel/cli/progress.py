"""The bar whose number is the gap; where there is no terminal, a line now and then."""

import sys
import time
from contextlib import contextmanager
from math import inf, isfinite, log

from fenchel.cli.output import say

SILENCE, MOST_SILENCE = 5.0, 60.0  # seconds before the first line in a pipe, and at most between two
# Columns of a terminal for the rest of the bar's line: a bit of bar, the time left, the time spent.
BESIDE = 24


@contextmanager
def gap_bar(tol: float, quiet: bool, compiling: float = inf, name: str = "training"):
    """A list of callbacks for a run: one that moves a bar on stderr, or writes lines where it is a pipe.

    compiling: seconds that all kernels usually take to compile, if that is known. name: of what is going on,
    until the first check tells the solver.
    """
    from fenchel._compiling import heard_by

    if not bar_is_shown(quiet):
        with heard_by(lambda compiling, seconds, kernels: None):
            yield [] if quiet else [_Lines(tol, name)]
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text

    class Left(ProgressColumn):
        """Counts down from what the last check forecast."""

        def render(self, task):
            return Text(_left(task.fields["end"] - time.monotonic()).removeprefix("about "))

    what, number = TextColumn("{task.description}"), TextColumn("{task.fields[number]}")
    left, spent = Left(Column(no_wrap=True)), TimeElapsedColumn(Column(no_wrap=True))
    columns = what, BarColumn(), number, left, spent  # where there is little room the bar gives way
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True) as progress:
        bar = _Bar(progress, tol, compiling, name)
        with heard_by(bar.compiling):
            yield [bar]


class _Bar:
    """A callback of `solve`: after each check what is proven, after each step what the solver thinks."""

    def __init__(self, progress, tol, all_kernels=inf, name="training"):
        self.progress, self.tol, self.name, self.known = progress, tol, name, ""
        self.number, self.sent = "", []  # what is shown; what was sent
        self.all_kernels = all_kernels  # seconds
        self.task = progress.add_task("starting", total=1.0, number="", end=inf)

    def compiling(self, compiling, seconds, kernels):
        words = compiling_words(seconds, self.all_kernels) if compiling else self.name
        self.progress.update(self.task, description=words, number="" if compiling else self.number)

    def __call__(self, trace):
        self.name, self.known = trace.solver, f"{trace.measure} {trace.distances()[-1]:.2g}"
        self.sent = _sent(trace)
        self._show(
            self.known,
            trace[-1].passes,
            completed=fraction_done(trace.distances(), self.tol),
            end=time.monotonic() + seconds_left(trace, self.tol),
        )

    def stepped(self, passes, estimate):
        self._show(f"gap about {estimate:.2g}" if isfinite(estimate) else self.known, passes)

    def _show(self, distance, passes, **more):
        parts = [f"{distance} → {self.tol:g}"] if distance else []
        room = self.progress.console.width - len(self.name) - BESIDE
        self.number = fitting([*parts, f"{passes:.4g} passes", *self.sent], room)
        self.progress.update(self.task, description=self.name, number=self.number, **more)


def fitting(parts: list[str], room: int) -> str:
    """As many of the parts as there is room for on a line, commas between; the first in any case."""
    while len(parts) > 1 and len(", ".join(parts)) > room:
        parts = parts[:-1]
    return ", ".join(parts)


def compiling_words(seconds: float, total: float) -> str:
    """What is said while kernels are compiled, after so many seconds; total: of all of them, inf: not known.

    Seconds, not kernels: of the thirteen of a tagger one takes 4 s and five take 0.2, and how many of them
    earlier runs have kept nobody knows before they are asked for.
    """
    most = f", usually under {total:.0f}" if seconds < total < inf else ""
    return f"compiling kernels, once on this machine: {seconds:.0f} s so far{most}"


@contextmanager
def reading(path: str, quiet: bool):
    """A sign on stderr that a file is being read, where somebody would see it."""
    if not bar_is_shown(quiet):
        yield
        return
    from rich.console import Console

    with Console(file=sys.stderr).status(f"reading {path}"):
        yield


def bar_is_shown(quiet: bool) -> bool:
    """Whether somebody looks at stderr and did not ask for silence."""
    return not quiet and sys.stderr.isatty()


def fraction_done(distance: list[float], tol: float) -> float:
    """How far the distance fell from the first towards tol, between 0 and 1, on a logarithmic scale."""
    known = [number for number in distance if isfinite(number)]
    first, best = known[0] if known else inf, min(known, default=inf)
    if best <= tol:
        return 1.0
    if not known or tol <= 0.0:
        return 0.0
    return log(first / best) / log(first / tol)


def seconds_left(trace, tol: float) -> float:
    """Until tol, if the logarithm of the gap goes on to fall as over the last half of the run.

    inf where that is not known: before a second check, without a tolerance, where the gap does not fall.
    """
    known = [
        (row.seconds, log(far))
        for row, far in zip(trace, trace.distances(), strict=True)
        if isfinite(far) and far > 0.0
    ]
    if tol <= 0.0 or len(known) < 2:
        return inf
    now, gap = known[-1]
    if gap <= log(tol):
        return 0.0
    before, larger = next((one for one in known[:-1] if one[0] >= 0.5 * now), known[-2])
    return (gap - log(tol)) * (now - before) / (larger - gap) if larger > gap and now > before else inf


def _left(seconds):
    """In words; nothing where it is not known."""
    if not isfinite(seconds) or seconds < 0.5:
        return ""
    if seconds < 100.0:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 6000.0 else f"about {seconds / 3600:.0f} h left"


def _number(trace, tol):
    gap, passes = f"{trace.measure} {trace.distances()[-1]:.2g} → {tol:g}", f"{trace[-1].passes:.4g} passes"
    return ", ".join([gap, passes, *_sent(trace)])


def _sent(trace) -> list[str]:
    """The workers of a cluster, and what was sent so far."""
    sent = trace[-1].bytes
    return [*trace.company.split(", "), f"{sent / 1e6:,.3g} MB sent"] if sent > 0.0 else []


class _Lines:
    """A callback that writes a plain line to stderr: after some seconds, then ever less often.

    As of the bar: after each check what is proven, after each step what the solver thinks.
    """

    def __init__(self, tol, name="training"):
        self.tol, self.begun, self.due, self.name = tol, time.monotonic(), SILENCE, name

    def __call__(self, trace):
        left, self.name = _left(seconds_left(trace, self.tol)), trace.solver
        self._say(_number(trace, self.tol), f"{trace[-1].seconds:.3g} s", left)

    def stepped(self, passes, estimate):
        known = f"gap about {estimate:.2g} → {self.tol:g}" if isfinite(estimate) else ""
        self._say(known, f"{passes:.4g} passes")

    def _say(self, *parts):
        spent = time.monotonic() - self.begun
        if spent >= self.due:
            self.due = spent + min(spent, MOST_SILENCE)
            say(f"{self.name}: {', '.join(filter(None, parts))}")
