"""What is kept of a run so that it can go on after a crash, to the same bits as if nothing had happened.

A step of a solver depends on its state, its problem and nothing else, and the loop looks at passes, not at
clocks, unless there is a time limit. So the state, what the loop remembers and the problem's fingerprint are
all that it takes.
"""

import hashlib
import json
from dataclasses import replace
from typing import Protocol

import numpy as np

from fenchel import __version__
from fenchel.snapshots import freeze, thaw

# What the loop remembers beside its state.
REMEMBERED = (
    "trace",
    "steps",
    "checked",
    "longest",
    "forecast",
    "best",
    "dual",
    "next_check",
    "calibration",
    "soonest",
)
REMEMBERED += ("gradient_norm_at_zero", "ended")


class Keeper(Protocol):
    """Who keeps a run: `fenchel.Checkpoint` in a file. beside: a folder for what other machines keep."""

    beside: str

    def is_due(self) -> bool: ...
    def save(self, fingerprint: dict, arrays: dict[str, np.ndarray], encoded) -> None: ...
    def load(self, fingerprint: dict) -> tuple | None: ...


def keep(run, state) -> None:
    """Hand out all that it takes to go on from here."""
    if hasattr(run.solver, "keep_copies"):
        run.solver.keep_copies(run.problem, state, run.keeper.beside)
    kept = {name: getattr(run, name) for name in REMEMBERED}
    whole = {"run": kept, "seconds": run.meter.seconds, "legs_left": len(run.others), "state": state}
    run.keeper.save(fingerprint(run), *freeze(whole, run.problem))


def resumed(run, state):
    """The state that was kept of this very run, with the run as it was; the one given where there is none."""
    found = run.keeper.load(fingerprint(run))
    if found is None:
        return state
    arrays, encoded = found
    while len(run.others) > encoded["dict"]["legs_left"]:
        run.leg = run.others.pop(0)
        state = run.leg.solver.init(run.problem, None)
    kept = thaw(encoded, arrays, {"state": state}, run.problem)
    run.meter.seconds = kept["seconds"]
    for name, value in kept["run"].items():
        setattr(run, name, value)
    if hasattr(run.solver, "go_on"):
        run.solver.go_on(run.problem, kept["state"], run.keeper.beside)
    return kept["state"]


def fingerprint(run) -> dict[str, str]:
    """What must be the same for a checkpoint to be of this run."""
    return {
        "fenchel": __version__,
        "solver": ", then ".join(repr(leg.solver) for leg in run.legs),
        "problem": str(run.problem),
        "data": _digest(getattr(run.problem, "facts", run.problem.examples)),
    }


def _digest(examples) -> str:
    """Of all numbers of the examples, or of what is known of those that are elsewhere."""
    if hasattr(examples, "disk"):
        examples = replace(examples, disk=None)  # where they lie is no matter
    arrays, encoded = freeze(examples, None)
    digest = hashlib.blake2b(json.dumps(encoded).encode(), digest_size=16)
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()
