"""From a file to an estimator's problem, for any kind: what `train`, `race` and `path` share."""

import time
from dataclasses import dataclass

from fenchel.cli.kinds import Kind
from fenchel.cli.output import count, say, source
from fenchel.cli.progress import reading
from fenchel.cli.recognise import expecting


@dataclass(frozen=True)
class Training:
    """Examples, the estimator that shall be fitted to them, and the examples as its numbers."""

    kind: Kind
    model: object
    examples: object
    data: object

    def problem(self):
        """What the estimator minimises."""
        return self.model.problem(self.data)

    def take(self, numbers, **changes) -> "Training":
        """Some of the examples, learnt anew; changes: arguments of the estimator."""
        part = self.examples.take(numbers)
        model = self.kind.clone_for(self.model, part).set_params(**changes)
        return Training(self.kind, model, part, self.kind.encode(model, part))

    def few(self) -> "Training":
        """Enough of the examples to compile every kernel."""
        import numpy as np

        strata = np.asarray(self.kind.strata(self.examples))
        some = [np.flatnonzero(strata == k)[: self.kind.few] for k in np.unique(strata)]
        changes = {"min_count": 1} if "min_count" in self.model.get_params() else {}
        return self.take(np.concatenate(some), **changes)

    def validation(self, held_out):
        """validate(w, b) of `solve`: the score on held-out examples."""
        from sklearn.base import clone

        judge = clone(self.model)
        return lambda w, b: self.kind.score(judge.set_weights(self.data, w, b), held_out)

    def fitted(self, constant: str, fit):
        """The estimator of one constant of a path."""
        from sklearn.base import clone

        best = clone(self.model).set_params(**self.kind.constant(constant, fit.constant))
        best.read_as = self.model.read_as
        return best.set_result(self.data, fit.result)


def read_training(kind: Kind, path: str, settings: dict, quiet: bool) -> Training:
    """The examples of a file and their estimator; says how many there are."""
    model = kind.estimator(settings)  # first: it refuses options, and imports Numba before the clock runs
    started = time.perf_counter()
    with reading(source(path), quiet), expecting(kind.name, path, bool(settings.get("format"))):
        examples = kind.read(path, settings)
        data = kind.encode(model, examples)
    seconds = time.perf_counter() - started
    say(f"{source(path)}: {kind.sizes(model, examples, data)}, read in {seconds:.2g} s", quiet)
    if getattr(data, "disk", None) is not None:
        memory = f"{model.memory_of(data) / 1e6:,.0f} MB"
        say(f"{source(path)}: stays on disk; training takes about {memory} of memory", quiet)
    return Training(kind, model, examples, data)


def read_held_out(training: Training, path: str | None, settings: dict, quiet: bool):
    """Examples of another file to score models on; None without a file."""
    if path is None:
        return None
    with reading(source(path), quiet), expecting(training.kind.name, path, bool(settings.get("format"))):
        held_out = training.kind.read_like(path, training.examples, settings)
    say(f"{source(path)}: {count(held_out.n, training.kind.noun)}", quiet)
    return held_out
