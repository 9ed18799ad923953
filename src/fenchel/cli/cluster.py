"""--workers and --scheduler: a Dask client for the time of training."""

import logging
from contextlib import contextmanager

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
    with _in_silence(), _client(workers, scheduler) as client:
        say(f"{client.scheduler.address}: {count(len(client.nthreads()), 'worker')}", quiet)
        yield


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
def _client(workers, scheduler):
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise Failure("Dask is not installed; pip install 'fenchel[dask]'") from None
    if scheduler is None:
        settings = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": "ERROR"}
        with LocalCluster(n_workers=workers, **settings) as local, Client(local) as client:
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
