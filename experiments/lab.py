"""Runs and measurements, each kept in a file of its own: what was done is not done again.

A run is a trace that `fenchel.solve` wrote (JSON lines, gzipped), with its settings in the header; one whose
settings have changed is made anew. A measurement is any value that JSON can hold, kept the same way.
"""

import gzip
import json
import re
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from math import inf
from pathlib import Path
from unittest.mock import patch

from sklearn.exceptions import ConvergenceWarning

from fenchel import solvers
from fenchel.io.files import open_output
from fenchel.io.trace import read_run, write_trace
from fenchel.loop import Result, solve
from fenchel.trace import Meter, Status, Trace

CLOCK = staticmethod(time.process_time)  # of runs of one thread: what other programs take is not in it
SHORT_SECONDS, REPEATS = 3.0, 5  # as long as they take no longer, that many runs of which the fastest counts
QUICK_SECONDS, QUICK_PASSES = 0.5, 20.0  # limits of a run where only the machinery is to be seen


class Missing(Exception):
    """What a run needs is not there: the sentence says what."""

    word = "data not available"


class NotRun(Missing):
    """The data may be there, but the time was over."""

    word = "not run"


@contextmanager
def named_if_missing(name: str):
    """A file that is not there is data that are not available."""
    try:
        yield
    except FileNotFoundError as error:
        raise Missing(f"{name}: {error.args[-1] if error.args else error}") from error


@dataclass(frozen=True)
class Task:
    """A problem with a name, made when it is first needed: a figure is drawn again without its data.

    make(): (problem, score), where score(w, b) is the test score, or None.
    """

    name: str
    make: Callable[[], tuple]

    @cached_property
    def made(self) -> tuple:
        with named_if_missing(self.name):
            return self.make()

    @property
    def problem(self):
        return self.made[0]

    @property
    def score(self):
        return self.made[1]


@dataclass(frozen=True)
class Run:
    """One solver on one problem: its trace, and the header of the file."""

    label: str
    trace: Trace
    facts: dict

    def column(self, name: str) -> list[float]:
        return self.trace.column(name)

    @property
    def n(self) -> int:
        """Examples of the problem, as the trace describes it."""
        return int(re.search(r"\bn = (\d+)", self.trace.problem)[1])

    @property
    def d(self) -> int:
        """Weights of the problem."""
        return int(re.search(r"\bd = (\d+)", self.trace.problem)[1])

    @property
    def nnz(self) -> int:
        """Non-zero features of the problem."""
        return int(re.search(r"(\d+) non-zeros", self.trace.problem)[1])

    @property
    def sizes(self) -> tuple:
        """n, d and λ, as the trace describes them: what tells problems of one name apart."""
        return tuple(re.findall(r"\b(?:n|d|λ) = [^, ]+", self.trace.problem))

    @property
    def best(self) -> float:
        """The least objective met."""
        return min((p for p in self.column("primal") if p == p), default=inf)

    @property
    def bound(self) -> float:
        """The largest dual value met."""
        return max((d for d in self.column("dual") if d == d), default=-inf)

    def excess(self, optimum: float) -> list[float]:
        """(P − P*)/P* of each row, yu2011 (55)."""
        return [(p - optimum) / optimum for p in self.column("primal")]

    def first(self, along: str, values: Iterable[float], level: float) -> float:
        """Where along the run the values are first at most `level`; inf if never."""
        pairs = zip(self.column(along), values, strict=True)
        return next((x for x, value in pairs if value <= level), inf)

    def reach(self, level: float, optimum: float, along: str = "seconds") -> float:
        """Seconds (passes, updates, ...) until (P − P*)/P* ≤ level; inf if never."""
        return self.first(along, self.excess(optimum), level)


def optimum(runs: Iterable[Run]) -> float:
    """P*: the least objective that any of the runs met, all of them of one problem."""
    runs = list(runs)
    if len({run.sizes for run in runs}) > 1:
        told = "; ".join(f"{run.label}: {run.trace.problem}" for run in runs)
        raise ValueError(f"these runs are not of one problem and cannot be compared, make them anew: {told}")
    return min(run.best for run in runs)


def shown(runs: dict[str, Run]) -> dict[str, Run]:
    """The runs but the one labelled "reference", which was made for the optimum alone."""
    return {label: run for label, run in runs.items() if label != "reference"}


def proven(runs: Iterable[Run]) -> float:
    """By how much, relative to it, that P* may be above the true one: proven by the best dual value."""
    runs = list(runs)
    least = optimum(runs)
    return (least - max(run.bound for run in runs)) / least


def silent(text: str) -> None:
    """What a laboratory says where nobody listens."""


class Lab:
    """Where runs are made and kept.

    folder: of the kept files. quick: subsets and short runs, only to see that everything works. fresh: make
    everything anew. minutes: no run begins whose limit could end after so many.
    """

    def __init__(self, folder: Path, quick=False, fresh=False, minutes=inf, say=silent):
        self.folder, self.quick, self.fresh, self.say = Path(folder), quick, fresh, say
        self.missing: dict[str, str] = {}
        self.made: set[Path] = set()
        self.machines: set[str] = set()  # that the runs were made on
        self.clocks: dict[Path, str] = {}  # that the seconds of a run were taken by
        self.deadline = time.monotonic() + 60.0 * minutes

    def join(self, other: "Lab") -> None:
        """Note what another one, of a process beside, has met."""
        self.missing |= other.missing
        self.made |= other.made
        self.machines |= other.machines
        self.clocks |= other.clocks

    def run(
        self, task: Task, label: str, solver, *, max_seconds: float, start=None, score=True, **settings
    ) -> Run:
        """The kept run of that label, or a new one.

        start(problem): a first point. score: whether the test score is noted, at growing distances. settings:
        as in `fenchel.solve`; tol=1e-6 unless given.
        """
        settings = {"tol": 1e-6, "max_seconds": max_seconds} | settings
        if self.quick:
            settings["max_seconds"] = min(settings["max_seconds"], QUICK_SECONDS)
            settings["max_passes"] = min(settings.get("max_passes", QUICK_PASSES), QUICK_PASSES)
        asked = {"solver": repr(solver), **settings}

        def compute(path):
            problem = task.problem
            scored = task.score if score else None
            first = start(problem) if start else None
            self._rehearse(problem, solver, first)
            result = self._fastest(problem, solver, start=first, validate=scored, **settings)
            write_trace(
                path, result.trace, label=label, settings=asked, status=result.status.name, clock="processor"
            )

        path = self._kept(task.name, label, ".jsonl.gz", asked, lambda path: read_run(path)[1], compute)
        trace, facts = read_run(path)
        self.clocks[path] = facts.get("clock", "wall")
        self.machines.add(described(facts["machine"], facts["versions"]))
        return Run(label, trace, facts)

    def _rehearse(self, problem, solver, first) -> None:
        """One step that nobody times: what a problem computes once, such as columns from rows, is there for
        the first solver as it is for those after it.
        """
        self._solve(problem, solver, start=first, max_passes=1e-9)

    def _fastest(self, problem, solver, validate, **settings) -> Result:
        """The fastest of some runs, if they are short: they differ in their seconds only, to which other
        programs on the machine can but add.
        """
        made, began = [], time.monotonic()
        while not made or (len(made) < REPEATS and time.monotonic() - began < SHORT_SECONDS):
            scored = None if validate is None else spaced(validate)
            made.append(self._solve(problem, solver, validate=scored, **settings))
            if self.quick:
                break
        return min(made, key=lambda result: result.trace[-1].seconds)

    def _solve(self, problem, solver, **settings) -> Result:
        with warnings.catch_warnings(), patch.object(Meter, "clock", CLOCK):
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solve(problem, solver, **settings)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result

    def measure(self, task: Task, label: str, compute: Callable[[], object], **asked):
        """The kept value of that label, or what `compute()` gives; `asked` tells one from another."""

        def write(path):
            with patch.object(Meter, "clock", CLOCK):
                text = json.dumps({"settings": asked, "value": compute()})
            with open_output(path) as stream:
                stream.write(text.encode())

        path = self._kept(task.name, label, ".json.gz", asked, _read_json, write)
        return _read_json(path)["value"]

    def _kept(self, group, label, ending, asked, header, compute) -> Path:
        """The file of a run; made unless it is there with the same settings."""
        path = self.folder / group / (file_name(label) + ending)
        same = path.exists() and essence(header(path).get("settings")) == essence(as_written(asked))
        if same and (not self.fresh or path in self.made):
            return path
        if time.monotonic() + asked.get("max_seconds", 0.0) > self.deadline:
            raise NotRun(f"{group}: {label}")
        path.parent.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with named_if_missing(group):
            compute(path)
        self.made.add(path)
        self.say(f"{group}: {label}, {time.monotonic() - began:.1f} s")
        return path

    def each(self, tasks: Iterable[Task], function: Callable[[Task], object]) -> dict:
        """{task's name: function(task)} for those whose data are there; the others are noted as missing."""
        found, left_out = {}, []
        for task in tasks:
            try:
                found[task.name] = function(task)
            except Missing as error:
                left_out.append(error)
                self.missing[task.name] = str(error)
                self.say(f"{error.word}: {error}")
        if not found:
            kind = NotRun if any(isinstance(error, NotRun) for error in left_out) else Missing
            raise kind("; ".join(map(str, left_out)))
        return found


def described(machine: dict, versions: dict) -> str:
    """Where seconds come from, as the header of a trace tells it."""
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{machine['processor']}, {machine['cores']} cores; {packages}"


def as_written(settings: dict) -> dict:
    """Settings as a file gives them back: lists for tuples, an infinity, which JSON has not, as a word."""
    plain = json.loads(json.dumps(settings))
    return {name: str(value) if value in (inf, -inf) else value for name, value in plain.items()}


def essence(settings: dict) -> dict:
    """Settings without what a solver has by default: an option that is new since a run was made is none that
    it was made with.
    """
    name, _, options = settings.get("solver", "").removesuffix(")").partition("(")
    known = getattr(solvers, name, None)
    if known is None:
        return settings
    usual = {f"{field.name}={field.default!r}" for field in fields(known)}
    return settings | {"solver": (name, *(one for one in options.split(", ") if one not in usual))}


def file_name(label: str) -> str:
    """The label in letters, digits, dots and dashes, which every system takes."""
    for mark, word in (("ξ", "xi"), ("η₀", "eta0"), ("*", "-star")):
        label = label.replace(mark, word)
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-")


def spaced(score: Callable) -> Callable:
    """The score at the calls 1, 2, 3, 4, 6, 8, 11, ... (each 1.3 times the last), nan at the others."""
    calls, due = 0, 1

    def validate(w, b):
        nonlocal calls, due
        calls += 1
        if calls < due:
            return float("nan")
        due = max(due + 1, int(1.3 * due))
        return score(w, b)

    return validate


def _read_json(path) -> dict:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return json.load(stream)
