"""Places in this process: parts of a problem one after the other, for tests and to measure rounds."""

import time
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from fenchel.data import take_examples
from fenchel.distributed.vectors import size_of, total
from fenchel.distributed.visiting import VisitedPlace
from fenchel.problem import Problem


class Call(NamedTuple):
    """A question to all places: bytes to and from each, seconds of each."""

    name: str
    down: int
    up: int
    seconds: tuple[float, ...]


class Moved(Exception):
    """Places of these numbers (its argument) were lost with their dual variables, and have been made anew."""


class Places(Protocol):
    """Where the parts of the examples are. A question is the name of a method of `VisitedPlace`."""

    count: int
    bytes: float  # sent and received so far, of all places together

    def each(self, name: str, *arguments) -> list:
        """The answers of all places, in their order."""

    def sum(self, name: str, *arguments):
        """The sum of their answers."""

    def tell(self, name: str, arguments: list[tuple]) -> list:
        """The answers where each place is asked something of its own."""


class Here:
    """Places in this process, asked one after the other.

    calls: what was asked, with the seconds of each place, so that the time on as many machines can be told.
    """

    def __init__(self, problems: list[Problem]):
        self.places = [VisitedPlace(problem) for problem in problems]
        self.calls: list[Call] = []

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def bytes(self) -> float:
        return float(self.count * sum(call.down + call.up for call in self.calls))

    def __str__(self) -> str:
        return f"{self.count} places"

    def each(self, name, *arguments) -> list:
        return self.tell(name, [arguments] * self.count)

    def sum(self, name, *arguments):
        return total(self.each(name, *arguments))

    def tell(self, name, arguments) -> list:
        answers, seconds = [], []
        for place, own in zip(self.places, arguments, strict=True):
            began = time.process_time()  # of the processor: other programs may run
            answers.append(getattr(place, name)(*own))
            seconds.append(time.process_time() - began)
        sizes = max(map(size_of, arguments)), max(map(size_of, answers))
        self.calls.append(Call(name, *sizes, tuple(seconds)))
        return answers


def parts(problem: Problem, count: int, seed: int | None = 0) -> list[Problem]:
    """The problem's examples in `count` parts, as summands of it: each has its own masses and the same λ.

    seed: of the order in which they are dealt out; None cuts them as they come.
    """
    order = np.arange(problem.n) if seed is None else np.random.default_rng(seed).permutation(problem.n)
    return [
        replace(problem, examples=take_examples(problem.examples, np.sort(some)))
        for some in np.array_split(order, count)
    ]
