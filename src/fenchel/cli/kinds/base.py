"""Kind: all that the command line knows of one kind of model. The verbs are written once, over this."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import click

import fenchel
from fenchel.cli import options
from fenchel.report.tables import Table

TERMINAL = 100  # columns of text that a table may have there
WORDS = [["a", "b", "c"], ["b", "a"], ["c"], ["a", "c"]] * 5  # events, or sentences of words, to compile with


class Calls(NamedTuple):
    """Examples for the help of each verb: what stands behind `fenchel VERB KIND`."""

    train: tuple[str, ...]
    race: tuple[str, ...]
    path: tuple[str, ...]
    shard: tuple[str, ...] = ()
    cv: str = ""  # where DATA -k 5 is not enough


class Form(NamedTuple):
    """How predictions are printed.

    marginals: with the probability of what is predicted; probabilities: with those of all labels, below a
    line that names them. labels_only: without the lines of the file. json: an object a line.
    """

    marginals: bool = False
    probabilities: bool = False
    labels_only: bool = False
    json: bool = False

    @property
    def shares(self) -> bool:
        return self.marginals or self.probabilities


class Weights(NamedTuple):
    """A table of weights (rows, columns) with the names of both, for `dump`; a column may have none."""

    what: str
    rows: Sequence
    columns: Sequence
    weights: object


class Kind(ABC):
    """A kind of model: what help says of it, its options, files, estimator, scores and tables.

    A subclass fills in the attributes below and the abstract methods; the others have defaults. `examples`
    is what `read` makes of a file: anything with n, how many there are, and take(numbers), some of them.
    `data` are the same as the estimator's numbers. Modules of kinds import what is heavy inside methods:
    --help must not wait for Numba.
    """

    classes: tuple[str, ...]  # names of estimators; the first is trained, models of all are of this kind
    summary: str  # a line for the list of kinds
    makes: str  # "Train ... on"
    file: str  # "on ..."
    about: str  # what else `train --help` says of model and file
    calls: Calls
    options: tuple[Callable, ...] = ()  # of `train`, `race` and `path`, as click.option makes them
    shard_options: tuple[Callable, ...] = ()  # of `shard`
    arguments: tuple[str, ...] = ()  # of the options, those that are arguments of the estimator
    other_constant: str | None = None  # a name of options.OTHER_CONSTANTS: another way to say -C
    reads: frozenset[str] = frozenset()  # the options of `predict` and `evaluate` that it knows
    noun = "example"
    few = 5  # examples of each stratum that are enough to compile every kernel
    compiling = 20  # seconds in which all kernels of a fit are usually there: benchmarks/startup.py --first
    top = 20  # heaviest features that `inspect` shows

    def __init__(self, name: str):
        self.name = name

    # ---- training

    def estimator(self, settings: dict):
        """The estimator that the options ask for; options that do not go together are refused."""
        own = {name: settings[name] for name in self.arguments}
        return getattr(fenchel, self.classes[0])(**self.common_arguments(settings), **own)

    def common_arguments(self, settings: dict) -> dict:
        """The arguments that all estimators share, from the options of a command."""
        chosen, value = options.estimator_settings(settings), settings.get(self.other_constant)
        if value is None:
            return chosen
        if options.given("C"):
            both = f"-C and --{self.other_constant}"
            raise click.UsageError(f"{both} are two ways to say the same; give one of them.")
        return chosen | self.constant(self.other_constant, value)

    def constant(self, name: str, value: float) -> dict:
        """The estimator's argument for a constant by one of its names."""
        return {name: value}

    def settings_of(self, model) -> dict:
        """The options that a fitted model was trained by, for `train --init`."""
        own = {name: getattr(model, name) for name in ("C", self.other_constant, *self.arguments) if name}
        return own | dict(model.read_as)

    @abstractmethod
    def read(self, path: str, settings: dict):
        """The labelled examples of a file to train on."""

    @abstractmethod
    def read_like(self, path: str, examples, settings: dict):
        """Labelled examples of another file, held out to score models of these."""

    def shard(self, paths: tuple[str, ...], folder: str, settings: dict):
        """The `fenchel.Shards` written from these files, for the kinds that `fenchel shard` names."""
        raise NotImplementedError

    def clone_for(self, model, part):
        """The estimator for a part of the examples."""
        from sklearn.base import clone

        return clone(model)

    def encode(self, model, examples):
        """The examples as numbers, for `problem`, `fit_encoded` and `set_weights` of the estimator.

        Here the estimator may take over what only the examples tell, and what they contradict is refused.
        """
        return model.encode_training(examples.X, examples.y)

    @abstractmethod
    def sizes(self, model, examples, data) -> str:
        """How many there are of what, with commas between."""

    def strata(self, examples):
        """(n,) a number for each example; folds have like shares of each."""
        import numpy as np

        return np.zeros(examples.n, dtype=int)

    def measure(self, examples) -> str:
        """What `score` gives."""
        return "accuracy"

    def score(self, model, examples) -> float:
        """How good a fitted model is, the higher the better."""
        return model.score(examples.X, examples.y)

    # ---- fitted models

    def why_no_probabilities(self, model, form: Form) -> str | None:
        """What to answer one who asks for probabilities; None where the model has them."""
        if getattr(model, "loss", "log") != "log":
            return "a model of the hinge loss has no probabilities; train with --loss log"
        return None

    @abstractmethod
    def predict(self, model, path: str, given: dict, form: Form) -> Iterable[str]:
        """What `fenchel predict` prints, some lines at a time; given: options among `reads`."""

    @abstractmethod
    def labelled(self, model, path: str, given: dict):
        """The labelled examples of a file, for a fitted model; given: options among `reads`."""

    @abstractmethod
    def scores(self, model, examples) -> tuple[dict, Table | None]:
        """The facts and the table that `fenchel evaluate` prints of labelled examples."""

    def details(self, model, examples) -> list[Table]:
        """What a page of `report` shows beside `scores`: which labels were taken for which."""
        return []

    @abstractmethod
    def inspect(self, model, top: int, width: int = TERMINAL) -> tuple[dict, list[Table]]:
        """The facts and tables that `fenchel inspect` prints, beyond those of all models.

        top: how many of the heaviest weights. width: columns of text that there is room for.
        """

    @abstractmethod
    def weights(self, model) -> list[Weights]:
        """All weights of a model, for `dump`."""

    @abstractmethod
    def compile(self) -> None:
        """Fit and predict something small, so that later processes find the kernels compiled."""
