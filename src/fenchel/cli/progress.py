"""The bar whose number is the gap; where there is no terminal, a line now and then."""

import sys
import time
from contextlib import contextmanager
from math import inf, isfinite, log

from fenchel.cli.output import say

SILENCE, MOST_SILENCE = 5.0, 60.0  # seconds before the first line in a pipe, and at most between two


@contextmanager
def gap_bar(tol: float, quiet: bool, compiling: float = inf):
    """A list of callbacks for a run: one that moves a bar on stderr, or writes lines where it is a pipe.

    compiling: seconds that all kernels usually take to compile, if that is known.
    """
    from fenchel._compiling import heard_by

    if not bar_is_shown(quiet):
        with heard_by(lambda compiling, seconds, kernels: None):
            yield [] if quiet else [_Lines(tol)]
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """Counts down from what the last check forecast."""

        def render(self, task):
            return Text(_left(task.fields["end"] - time.monotonic()))

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[number]}"), Left())
    console = Console(file=sys.stderr)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = _Bar(progress, tol, compiling)
        with heard_by(bar.compiling):
            yield [bar]


class _Bar:
    """A callback of `solve`: after each check what is proven, after each step what the solver thinks."""

    def __init__(self, progress, tol, all_kernels=inf):
        self.progress, self.tol, self.name, self.known, self.sent = progress, tol, "training", "", ""
        self.all_kernels = all_kernels  # seconds
        self.task = progress.add_task("starting", total=1.0, number="", end=inf)

    def compiling(self, compiling, seconds, kernels):
        words = compiling_words(seconds, self.all_kernels) if compiling else self.name
        self.progress.update(self.task, description=words)

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
        words = f"{distance} → {self.tol:g}, " if distance else ""
        number = f"{words}{passes:.4g} passes{self.sent}"
        self.progress.update(self.task, description=self.name, number=number, **more)


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
    passes = f"{trace[-1].passes:.4g} passes{_sent(trace)}"
    return f"{trace.measure} {trace.distances()[-1]:.2g} → {tol:g}, {passes}"


def _sent(trace) -> str:
    """The workers of a cluster, and what was sent so far."""
    sent = trace[-1].bytes
    return f", {trace.company}, {sent / 1e6:,.3g} MB sent" if sent > 0.0 else ""


class _Lines:
    """A callback that writes a plain line to stderr: after some seconds, then ever less often.

    As of the bar: after each check what is proven, after each step what the solver thinks.
    """

    def __init__(self, tol):
        self.tol, self.begun, self.due = tol, time.monotonic(), SILENCE

    def __call__(self, trace):
        left = _left(seconds_left(trace, self.tol))
        self._say(trace.solver, _number(trace, self.tol), f"{trace[-1].seconds:.3g} s", left)

    def stepped(self, passes, estimate):
        known = f"gap about {estimate:.2g} → {self.tol:g}" if isfinite(estimate) else ""
        self._say("training", known, f"{passes:.4g} passes")

    def _say(self, name, *parts):
        spent = time.monotonic() - self.begun
        if spent >= self.due:
            self.due = spent + min(spent, MOST_SILENCE)
            say(f"{name}: {', '.join(filter(None, parts))}")
