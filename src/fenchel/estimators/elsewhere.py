"""Training on the workers of a Dask cluster: what `fit(shards)` does where a client is active."""

import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from fenchel.io.shards import Shards
from fenchel.problem import Problem


def active_client():
    """The Dask client of this process, if there is one: who has none has not imported `distributed`."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


@contextmanager
def at_workers(model, data, client):
    """The problem of `model` on the shards that data lie in, a part of them at each worker of the client."""
    from fenchel.distributed.cluster import Cluster
    from fenchel.distributed.spread import Spread

    if not hasattr(model, "weights_of"):
        kind = type(model).__name__
        raise ValueError(f"{kind} does not train on a cluster yet; close the Dask client to train it here")
    shards, weight = data.disk, model.weights_of(data)
    sizes, total = np.diff(shards.pieces), float(shards.facts.get("weight", shards.n))
    if weight is not None:
        total = float(np.sum(weight))
    parts = dealt(sizes, max(1, min(len(client.nthreads()), sizes.size)))
    given = total, weight, min(client.nthreads().values(), default=1)
    recipes = [_recipe(model, shards, some, *given) for some in parts]
    with Cluster(client, recipes) as places:
        like = part_of_problem(*_recipe(model, shards, parts[0][:1], *given)[1:])
        yield Spread.over(places, like)


def dealt(sizes, count: int) -> list[list[int]]:
    """The numbers of shards in `count` parts of about as many examples; neighbours go to different ones."""
    return [list(range(k, len(sizes), count)) for k in range(count)]


def _recipe(model, shards, numbers, total, weight, threads):
    """A function and arguments that make the problem of some shards wherever they can be read."""
    given = {"class_weight": None, "callbacks": None, "verbose": 0, "solver": "auto", "n_jobs": threads}
    own = model.get_params(deep=False)
    settings = own | {name: value for name, value in given.items() if name in own}
    if weight is not None:
        weight = np.concatenate([weight[shards.pieces[k] : shards.pieces[k + 1]] for k in numbers])
    return (
        part_of_problem,
        type(model).__name__,
        settings,
        str(shards.folder.absolute()),
        numbers,
        total,
        weight,
    )


def part_of_problem(kind: str, settings: dict, folder: str, numbers, total: float, weight) -> Problem:
    """The problem of the shards of these numbers, a summand of that of all."""
    import fenchel

    model = getattr(fenchel, kind)(**settings)
    data = model.encode_training(Shards(folder).part(numbers, total))
    return model.problem(data if weight is None else replace(data, weight=weight))
