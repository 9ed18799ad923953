"""yu2011: what a pass of Algorithm 5 costs, by the way its sub-problem is solved.

The ways differ by little, and a clock by more: they are told by processor seconds, taken in turns.
"""

import time
from dataclasses import replace

from experiments.claims import LEVELS, Verdict
from experiments.lab import Lab, Run, Task, optimum
from fenchel import solvers

WAYS = {
    "CDdual": "newton-from-zero",
    "CDdual-ls": "line-search",
    "BN": "bisection",
    "the middle": "newton-from-middle",
    "by log-odds": "newton",
}
TURNS = 12


def pass_seconds(lab: Lab, task: Task, passes: float) -> dict[str, float]:
    """{way: processor seconds of a pass}, the fastest of some turns, over as many passes as CDdual makes."""

    def compute():
        found = {way: [] for way in WAYS}
        for _ in range(2 if lab.quick else TURNS):
            for label, way in WAYS.items():
                found[label].append(seconds_of_passes(task.problem, solvers.CDDual(subproblem=way), passes))
        return {label: min(times) for label, times in found.items()}

    return lab.measure(task, "processor seconds of a pass", compute, ways=WAYS, turns=TURNS, passes=passes)


def newtons_of_a_visit(lab: Lab, task: Task, passes: float) -> dict[str, float]:
    """{way: Newton steps for each visit of an example}, over as many passes as CDdual makes."""

    def compute():
        found = {}
        for label, way in WAYS.items():
            solver = solvers.CDDual(subproblem=way)
            state = solver.init(task.problem, None)
            while state.passes < passes:
                solver.step(task.problem, state)
            found[label] = state.newtons / (state.passes * task.problem.n)
        return found

    return lab.measure(task, "newton steps of a visit", compute, ways=WAYS, passes=passes)


def seconds_of_passes(problem, solver, passes: float) -> float:
    state = solver.init(problem, None)
    began = time.process_time()
    while state.passes < passes:
        solver.step(problem, state)
    return (time.process_time() - began) / state.passes


def with_costs(lab: Lab, task: Task, runs: dict[str, Run]) -> dict[str, Run]:
    """The runs, those of WAYS with the processor seconds of a pass among their facts."""
    cost = pass_seconds(lab, task, runs["CDdual"].column("passes")[-1])
    return {
        label: replace(run, facts=run.facts | {"pass": cost[label]}) if label in cost else run
        for label, run in runs.items()
    }


def cheaper(winner: str, loser: str, levels=LEVELS):
    """The winner reaches every level in less processor time, passes times what one takes, on all sets."""

    def check(results):
        lines, holds = [], True
        for name, runs in results.items():
            best = optimum(runs.values())
            pair = [runs[label] for label in (winner, loser)]
            for level in levels:
                times = [run.reach(level, best, "passes") * run.facts["pass"] for run in pair]
                holds &= times[0] < times[1]
                lines.append(f"{name}: {times[1] / times[0]:.3f} at {level:g}")
        return Verdict(holds, f"{loser} takes times the processor time of {winner}: {', '.join(lines)}")

    return check
