"""--workers and --scheduler: a Dask client for the time of training."""

import logging
import signal
from contextlib import contextmanager
from multiprocessing import resource_tracker

import click

from fenchel.cli.failures import Failure
from fenchel.cli.output import count, say


@contextmanager
def cluster(data, workers: int | None, scheduler: str | None, quiet: bool):
    """A client of so many processes here, or of a scheduler; none where neither is asked for."""
    if workers is None and scheduler is None:
        yield
        return
    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers makes a cluster on this machine, --scheduler names one; give one.")
    if getattr(data, "disk", None) is None:
        option = "--workers" if scheduler is None else "--scheduler"
        raise click.UsageError(f"{option} is for shards; make them of DATA by `fenchel shard`.")
    if workers is not None:
        workers = _as_many_as_shards(workers, data.disk.pieces.size - 1, quiet)
    with _in_silence(), _client(workers, scheduler) as client:
        say(f"{client.scheduler.address}: {count(len(client.nthreads()), 'worker')}", quiet)
        yield


def _as_many_as_shards(workers, shards, quiet) -> int:
    """No worker is started that would have nothing to do."""
    if shards < workers:
        have = f"{count(shards, 'shard')} for {count(workers, 'worker')}: {shards} will work"
        say(f"fenchel: warning: {have}; `fenchel shard --rows N` with a smaller N makes more shards", quiet)
    return min(workers, shards)


@contextmanager
def _in_silence():
    """Dask tells of a lost connection by pages of tracebacks; what it means we say in a sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _deaf():
    """Threads and processes that are started inside, and those that they start, never hear Ctrl-C.

    A terminal sends it to all processes of a command, and workers that it ends take the best model along.
    """
    resource_tracker.ensure_running()  # else it is started inside, and lets the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _client(workers, scheduler):
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise Failure("Dask is not installed; pip install 'fenchel[dask]'") from None
    if scheduler is None:
        settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": "CRITICAL"}
        with _deaf():
            local = LocalCluster(n_workers=workers, **settings)
        with local, Client(local) as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError):
        raise Failure(f"{scheduler}: no Dask scheduler answers there") from None
    with client:
        if not client.nthreads():
            raise Failure(f"{scheduler}: the scheduler has no workers; start some with `dask worker`")
        yield client
