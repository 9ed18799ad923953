"""Cluster: places on the workers of Dask, which does all scheduling, transport and restarting.

A place lives in the memory of a worker, under a name; a question is a task that is bound to that worker. What
is long and sent to all is scattered once and passed on among workers; sums are made two and two, where the
answers are. A worker that is gone takes its places along: they are made anew elsewhere out of the shards, and
who asked is told by `Moved` if dual variables went with them. Dask decides when a worker is gone: at once
where its process ends, after `distributed.scheduler.worker-ttl` (five minutes) where it does not answer.
"""

import asyncio
import time
from collections import Counter
from concurrent.futures import CancelledError
from itertools import count
from threading import Lock
from uuid import uuid4

import numpy as np

from fenchel.distributed.places import Moved
from fenchel.distributed.vectors import plus, size_of, total
from fenchel.distributed.visiting import VisitedPlace
from fenchel.errors import DataError

LONG = 100_000  # bytes from which on an argument is scattered
PATIENCE, LOOK = 0.5, 2.0  # seconds between two looks at which workers are gone, and which have come
ALONE = 60.0  # seconds to wait for a worker where there is none
KEEPING = ("pull", "scores", "move")  # questions after which a place keeps something, by their first argument
REMEMBERED = 6  # of these
LATE = 1.5  # times the median that a worker takes from which on it is said


class ClusterLost(ConnectionError):
    """The scheduler is gone, or no worker is left."""


class Sealed:
    """Values that Dask is not to look into; those that were scattered are put back by number."""

    def __init__(self, values: tuple, scattered: tuple = ()):
        self.values, self.scattered = values, scattered

    def opened(self, found) -> list:
        values = list(self.values)
        for number, value in zip(self.scattered, found, strict=True):
            values[number] = value.values[0]
        return values


# ---- what runs on workers

_PLACES: dict[tuple[str, str, int], VisitedPlace] = {}  # by worker, of which a process may have several
_ANSWERS: dict[tuple[str, str, int], tuple] = {}  # the last of each: Dask asks again where one was lost
_LOCKS: dict[tuple[str, str, int], Lock] = {}  # what Ctrl-C cut short may be at work when the next one comes


def _seen(fetching: asyncio.Future) -> None:
    """So that asyncio does not tell of an error when a scheduler is gone and nobody asks for answers."""
    if not fetching.cancelled():
        fetching.exception()


def _key(run: str, number: int) -> tuple[str, str, int]:
    from distributed import get_worker

    return get_worker().address, run, number


def _make(run: str, number: int, home: str, sealed: Sealed) -> bool:
    make, *arguments = sealed.values
    _LOCKS[_key(run, number)] = Lock()
    try:
        _PLACES[_key(run, number)] = VisitedPlace(make(*arguments))
    except (FileNotFoundError, PermissionError, DataError) as error:  # who asks has read them without one
        shared = "the folder has to be on a disk that all workers share, or the same everywhere"
        raise DataError(f"the worker at {home}", None, f"{error}; {shared}") from None
    return True


def _is_here(run: str, number: int) -> bool:
    return _key(run, number) in _PLACES


def _ask(run: str, number: int, turn: int, name: str, sealed: Sealed, *found):
    """(answer, bytes, seconds of each place), or None where the place is not here."""
    key = _key(run, number)
    if key not in _PLACES:
        return None
    with _LOCKS[key]:
        asked, answer = _ANSWERS.get(key, (-1, None))
        if asked != turn:
            began = time.perf_counter()
            value = getattr(_PLACES[key], name)(*sealed.opened(found))
            answer = value, size_of(value), (time.perf_counter() - began,)
            _ANSWERS[key] = turn, answer
        return answer


def _plus(one, other):
    if one is None or other is None:
        return None
    return plus(one[0], other[0]), one[1] + other[1], one[2] + other[2]


def _forget(run: str, number: int | None = None, dask_worker=None) -> None:
    """Of one place, or of all; Dask says which worker this is."""
    for known in (_PLACES, _ANSWERS, _LOCKS):
        for key in [key for key in known if key[:2] == (dask_worker.address, run)]:
            if number in (None, key[2]):
                del known[key]


# ---- what runs with the solver


class Cluster:
    """A place for each recipe, on the workers of a client; a context, which leaves nothing behind.

    recipes: for each place a function and its arguments, which make its problem where it is called.
    """

    def __init__(self, client, recipes: list[tuple]):
        self.client, self.recipes, self.run = client, recipes, uuid4().hex
        self.bytes, self._turns, self._looked = 0.0, count(), 0.0
        self._settled, self._begun, self._kept, self.seconds = None, None, [], ()
        self._homes: list[str | None] = [None] * len(recipes)

    @property
    def count(self) -> int:
        return len(self.recipes)

    @property
    def workers(self) -> int:
        """How many have a place."""
        return len(set(self._homes))

    def __str__(self) -> str:
        """What is said of them while a model is trained: their number, and whether one keeps all waiting."""
        late = max(self.seconds, default=0.0) / max(float(np.median(self.seconds or 1.0)), 1e-9)
        words = f"{self.workers} worker" + ("s" if self.workers > 1 else "")
        return words + (f", the slowest {late:.1f} times the median" if late > LATE else "")

    def __enter__(self):
        self._house(range(self.count))
        return self

    def __exit__(self, *error):
        if self.client.status == "running":
            self._guarded(lambda: self.client.run(_forget, self.run, on_error="ignore"))

    # ---- questions

    def each(self, name, *arguments) -> list:
        return self._answers(name, [arguments] * self.count, self._gathered)

    def sum(self, name, *arguments):
        return self._answers(name, [arguments] * self.count, self._added)

    def tell(self, name, arguments) -> list:
        return self._answers(name, arguments, self._gathered)

    def _answers(self, name, arguments, collect):
        while True:
            if name == "pull" or (name == "round" and arguments[0][0]):
                self._welcome()
            answer = self._guarded(lambda: collect(self._submit(name, arguments)))
            if answer is not None or name == "begin":
                self._remember(name, arguments[0])
            if answer is not None:
                return answer
            lost = self._house(self._lost())
            if self._begun is not None:
                raise Moved(lost)

    def _submit(self, name, arguments) -> list:
        """The tasks of a question, one for each place."""
        turn, shared = next(self._turns), all(own is arguments[0] for own in arguments)
        sent = self._sent(arguments[0]) if shared else None
        self.bytes += sum(map(size_of, arguments))
        return [
            self._asking(number, turn, name, sent or self._sent(arguments[number]))
            for number in range(self.count)
        ]

    def _asking(self, number, turn, name, sent):
        key, home = f"fenchel-{name}-{self.run[:8]}-{turn}-{number}", self._homes[number]
        return self.client.submit(_ask, self.run, number, turn, name, *sent, workers=[home], key=key)

    def _sent(self, arguments):
        """Sealed arguments, and futures of the long ones."""
        long = tuple(k for k, value in enumerate(arguments) if size_of(value) >= LONG)
        values = tuple(None if k in long else value for k, value in enumerate(arguments))
        return Sealed(values, long), *(self.client.scatter(Sealed((arguments[k],)), hash=False) for k in long)

    def _gathered(self, tasks):
        answers = self._results(tasks)
        if answers is None:
            return None
        self.bytes += sum(size for _, size, _ in answers)
        self.seconds = sum((seconds for _, _, seconds in answers), ())
        return [answer for answer, _, _ in answers]

    def _added(self, tasks):
        """Two and two, where the answers are; in the order of `vectors.total`."""
        if len(tasks) <= 2:
            answers = self._gathered(tasks)
            return None if answers is None else total(answers)
        while len(tasks) > 1:
            both = zip(tasks[::2], tasks[1::2], strict=False)
            pairs = [self.client.submit(_plus, *pair, pure=False) for pair in both]
            tasks = pairs + tasks[2 * len(pairs) :]
        answers = self._results(tasks)
        if answers is None:
            return None
        self.bytes += answers[0][1]
        self.seconds = answers[0][2]
        return answers[0][0]

    def _results(self, tasks) -> list | None:
        """Of all; None where one cannot come, because a worker is gone.

        It may go between the end of a task and the moment its answer is fetched: then Dask would wait for
        that worker to compute it again, and we look now and then who is gone.
        """
        fetching = self.client.sync(self._fetch, tasks)
        while not self.client.sync(self._has_come, fetching):
            if self._homeless():
                self.client.loop.add_callback(fetching.cancel)
                self.client.cancel(tasks, force=True)
                return None
        if fetching.cancelled() or not all(self._has_answer(task) for task in tasks):
            return None
        answers = fetching.result()
        return None if any(answer is None for answer in answers) else answers

    async def _fetch(self, tasks) -> asyncio.Future:
        fetching = asyncio.ensure_future(self.client.gather(tasks, errors="skip", asynchronous=True))
        fetching.add_done_callback(_seen)
        return fetching

    async def _has_come(self, fetching) -> bool:
        return bool((await asyncio.wait({fetching}, timeout=PATIENCE))[0])

    @staticmethod
    def _has_answer(task) -> bool:
        """Whether a task that has ended has one: not where what was scattered for it went with a worker."""
        from distributed import KilledWorker

        error = task.exception() if task.status == "error" else None
        if error is not None and not isinstance(error, KilledWorker):
            raise error
        return task.status == "finished"

    # ---- where places are

    def _alive(self) -> dict[str, int]:
        """The workers that there are."""
        if self.client.status != "running":
            raise ClusterLost(f"{self._address}: the scheduler is gone")
        return self.client.nthreads()

    def _homeless(self) -> list[int]:
        """The places whose worker is gone."""
        alive = self._guarded(self._alive)
        return [number for number, home in enumerate(self._homes) if home not in alive]

    def _lost(self) -> list[int]:
        """The places whose worker is gone, or was started anew under its old name."""
        gone = self._homeless()
        asked = [number for number in range(self.count) if number not in gone]
        tasks = [
            self.client.submit(_is_here, self.run, number, workers=[self._homes[number]], pure=False)
            for number in asked
        ]
        here = self._guarded(lambda: self._results(tasks))
        if here is None:  # one more has gone meanwhile
            return self._lost()
        return sorted(gone + [number for number, found in zip(asked, here, strict=True) if not found])

    def _house(self, numbers) -> list[int]:
        """Make places on the workers that have fewest; the numbers of those that were made."""
        made, waiting = set(), set(numbers)
        while waiting:
            load = self._load()
            for number in waiting:
                self._homes[number] = min(load, key=load.__getitem__)
                load[self._homes[number]] += 1
            made |= waiting
            waiting = {number for number in sorted(waiting) if not self._furnish(number)}
            waiting |= set(self._homeless())
        return sorted(made)

    def _load(self) -> Counter:
        """How many places each worker has, once there is a worker."""
        began = time.monotonic()
        while not (alive := self._guarded(self._alive)):
            if time.monotonic() - began > ALONE:
                raise ClusterLost(f"{self._address}: no worker is left")
            time.sleep(PATIENCE)
        load = Counter(dict.fromkeys(alive, 0))
        load.update(home for home in self._homes if home in alive)
        return load

    def _furnish(self, number) -> bool:
        """Make a place at its home and tell it what the others know; whether the home is still there."""
        recipe, home = Sealed(self.recipes[number]), self._homes[number]
        making = self.client.submit(_make, self.run, number, home, recipe, workers=[home], pure=False)
        known = [("settle", self._settled)] if self._settled else []
        known += [("begin", self._begun)] if self._begun else []
        if self._guarded(lambda: self._results([making])) is None:
            return False
        return all(self._one(number, *each) is not None for each in known + self._kept)

    def _one(self, number, name, arguments):
        """As `_ask` has it, of one place; None where it is gone."""
        task = self._asking(number, next(self._turns), name, self._sent(arguments))
        found = self._guarded(lambda: self._results([task]))
        return None if found is None else found[0]

    def _welcome(self) -> None:
        """Let a worker that came later have a place of one that has several; now and then.

        Only before a sum that needs nothing of what places have kept: not within a check, whose questions
        rest on each other, and not before a round that begins by undoing the last one.
        """
        if time.monotonic() - self._looked < LOOK or self.workers == self.count:
            return
        self._looked, load = time.monotonic(), self._load()
        most, least = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        if load[most] < 2 or load[least] > 0:
            return
        number = self._homes.index(most)
        state = self._one(number, "export", ()) if self._begun else None
        self._homes[number] = least
        if self._furnish(number) and state is not None:
            self._one(number, "restore", (state[0],))
        self._guarded(lambda: self.client.run(_forget, self.run, number, workers=[most], on_error="ignore"))

    def _remember(self, name, arguments) -> None:
        """What a place that is made anew has to be told."""
        if name == "settle":
            self._settled = arguments
        elif name == "begin":
            self._begun = arguments
        elif name in KEEPING:
            self._kept = [*self._kept, (name, arguments)][-REMEMBERED:]

    def _guarded(self, task):
        """task(), and a sentence where the scheduler is gone."""
        try:
            return task()
        except ClusterLost:
            raise
        except (CancelledError, OSError) as error:
            from distributed.comm import CommClosedError

            gone = isinstance(error, CancelledError | CommClosedError | TimeoutError)
            if not gone and self.client.status == "running":
                raise  # a worker's own trouble, such as shards that it cannot read
            raise ClusterLost(f"{self._address}: the scheduler is gone ({type(error).__name__})") from error

    @property
    def _address(self) -> str:
        return getattr(self.client.scheduler, "address", "Dask")
