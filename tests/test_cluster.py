"""Training on the workers of Dask: the optimum of one machine, also where workers go and come."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from commands import misused
from fenchel import ChainCRF, DependencyParser, LinearSVC, LogisticRegression, MaxEnt
from fenchel.distributed.visiting import VisitedPlace
from fenchel.estimators.elsewhere import dealt
from fenchel.io.sharding import shard_events, shard_rows, shard_sequences, shard_trees
from test_shards_structured import batches_of, same_model, some_sentences, some_trees

distributed = pytest.importorskip("distributed")


@pytest.fixture
def client():
    """Of two workers in this process: what crosses between them goes through Dask all the same."""
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:
        yield client


def made_up(classes=2, n=240):
    rng = np.random.default_rng(classes)
    X = sp.random(n, 40, 0.1, "csr", random_state=1)
    y = (X @ rng.normal(size=(40, classes)) + 0.3 * rng.normal(size=(n, classes))).argmax(axis=1)
    return X, y


@pytest.fixture(scope="module", params=[2, 3])
def shards(request, tmp_path_factory):
    X, y = made_up(request.param)
    folder = tmp_path_factory.mktemp("data") / "shards"
    return shard_rows(((X[i : i + 40], y[i : i + 40]) for i in range(0, 240, 40)), folder, rows=40)


@pytest.fixture(scope="module")
def alone(shards):
    return LogisticRegression(tol=1e-8).fit(shards).certificate_.primal


@pytest.mark.parametrize("solver", ["lbfgs", "cd-dual", "auto"])
def test_the_optimum_of_one_machine(client, shards, alone, solver):
    model = LogisticRegression(solver=solver, tol=1e-4).fit(shards)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(alone, rel=2e-4)
    assert model.certificate_.dual <= alone * (1 + 1e-9)
    assert "at 2 places" in model.trace_.problem
    assert model.trace_.rows[-1].bytes > 0
    assert model.trace_.company.startswith("2 workers")
    X, y = made_up(model.classes_.size)
    assert model.score(X, y) > 0.7


def test_a_worker_that_keeps_all_waiting_is_named():
    from fenchel.distributed.cluster import Cluster, _plus

    places = Cluster(None, [()] * 3)
    places._homes = ["a", "b", "b"]
    one, other = (1.0, 8, (0.1,)), (np.ones(2), 16, (0.1,))
    value, size, places.seconds = _plus(_plus(one, other), (2.0, 8, (0.4,)))
    assert size == 32 and str(places) == "2 workers, the slowest 4.0 times the median"
    np.testing.assert_array_equal(value, [4.0, 4.0])
    assert _plus(None, one) is None
    places.seconds = 0.1, 0.12, 0.1
    assert str(places) == "2 workers"


def test_weights_of_classes_and_examples(client, shards):
    weight = np.linspace(0.5, 2.0, shards.n)
    model = LogisticRegression(class_weight="balanced", tol=1e-5).fit(shards, sample_weight=weight)
    client.close()
    other = LogisticRegression(class_weight="balanced", tol=1e-7).fit(shards, sample_weight=weight)
    assert "places" not in other.trace_.problem
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-5)


class Once:
    """A callback that does something after the first step."""

    def __init__(self, task):
        self.task, self.done = task, False

    def __call__(self, trace):
        """Checks are of no interest."""

    def stepped(self, passes, estimate):
        if not self.done:
            self.done = True
            self.task()


@pytest.mark.parametrize("solver", ["lbfgs", "cd-dual"])
def test_a_worker_that_goes(client, shards, alone, solver):
    gone = Once(lambda: client.retire_workers([min(client.nthreads())]))
    model = LogisticRegression(solver=solver, tol=1e-4, callbacks=[gone]).fit(shards)
    assert gone.done and len(client.nthreads()) == 1
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(alone, rel=2e-4)
    assert model.certificate_.dual <= alone * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "cd-dual"])
def test_a_worker_that_comes(shards, alone, solver, monkeypatch):
    """It is given a place of the one that has several, with its dual variables."""
    monkeypatch.setattr("fenchel.distributed.cluster.LOOK", 0.0)
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:

        def change():
            client.retire_workers([min(client.nthreads())])
            cluster.scale(3)  # one more than were there: it takes the one that retired to be there still
            while len(client.nthreads()) < 2:
                time.sleep(0.05)

        changed = Once(change)
        model = LogisticRegression(solver=solver, tol=1e-4, callbacks=[changed]).fit(shards)
        assert changed.done and len(client.nthreads()) == 2
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(alone, rel=2e-4)
    assert model.certificate_.dual <= alone * (1 + 1e-9)


@pytest.mark.parametrize("question", ["tilt", "value_and_gap"])
def test_a_worker_that_comes_while_the_gap_is_looked_at(shards, alone, monkeypatch, question):
    """The questions of a check rest on each other: it is given its place before the next round."""
    from fenchel.distributed.cluster import Cluster

    monkeypatch.setattr("fenchel.distributed.cluster.LOOK", 0.0)
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:
        gone = Once(lambda: client.retire_workers([min(client.nthreads())]))
        ask, houses = Cluster._answers, []

        def ask_when_it_has_come(self, name, *rest):
            if name == question and gone.done and not houses:
                cluster.scale(3)
                while len(client.nthreads()) < 2:
                    time.sleep(0.05)
            houses.extend([self.workers] if len(client.nthreads()) == 2 and gone.done else [])
            return ask(self, name, *rest)

        monkeypatch.setattr(Cluster, "_answers", ask_when_it_has_come)
        model = LogisticRegression(solver="cd-dual", tol=1e-4, callbacks=[gone]).fit(shards)
    assert houses[0] == 1 and houses[-1] == 2
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(alone, rel=2e-4)
    assert model.certificate_.dual <= alone * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "cd-dual"])
def test_a_worker_that_forgot_its_place(client, shards, alone, solver):
    """As one that was started anew under its old name."""
    from fenchel.distributed.cluster import _PLACES

    forgot = Once(lambda: _PLACES.popitem())
    model = LogisticRegression(solver=solver, tol=1e-4, callbacks=[forgot]).fit(shards)
    assert forgot.done and model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(alone, rel=2e-4)
    assert model.certificate_.dual <= alone * (1 + 1e-9)


def test_events_and_margins(client, tmp_path):
    events = [("ab"[k % 2], {f"w{k % 7}": 1.0, f"v{k % 2}": 1.0}) for k in range(60)]
    shards = shard_events(events, tmp_path / "events", rows=16)
    model = MaxEnt(tol=1e-4).fit(shards)
    assert model.certificate_.converged and model.predict([{"v0": 1.0}]).tolist() == ["a"]
    seen = MaxEnt(observed=True, tol=1e-5).fit(shards)
    X, y = made_up()
    rows = shard_rows([(X, y)], tmp_path / "rows", rows=60)
    margin = LinearSVC(tol=1e-3).fit(rows)
    client.close()
    alone = MaxEnt(observed=True, tol=1e-5).fit(shards)
    assert seen.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-5)
    absent = alone.coef_ == 0.0
    assert absent.any() and not seen.coef_[absent].any()
    other = LinearSVC(tol=1e-5).fit(rows)
    assert margin.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-3)


SEQUENCES = [
    *[({}, solver) for solver in ("lbfgs", "eg", "eg-gap", "sdca", "auto")],
    *[({"observed": True}, solver) for solver in ("lbfgs", "eg-gap")],
    *[({"c1": 0.02, "c2": 0.3}, solver) for solver in ("lbfgs", "eg-gap")],
    *[({"loss": "hinge", "C": 0.1}, solver) for solver in ("eg", "sdca", "auto")],
]


@pytest.mark.parametrize("settings, solver", SEQUENCES)
def test_sequences(client, tmp_path, settings, solver):
    """One machine's optimum, and its weights alone."""
    X, y = some_sentences()
    shards = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk", min_count=2, rows=6)
    tol = 1e-2 if "loss" in settings else 1e-4
    model = ChainCRF(tol=tol, solver=solver, max_iter=2000, **settings).fit(shards)
    assert "at 2 places" in model.trace_.problem
    client.close()
    same_model(model, ChainCRF(tol=tol / 100, max_iter=5000, **settings).fit(shards), tol)
    if "observed" in settings:
        other = ChainCRF(tol=1e-8, max_iter=5000, **settings).fit(shards)
        np.testing.assert_array_equal(model.weights_ == 0.0, other.weights_ == 0.0)


@pytest.mark.parametrize(
    "settings, solver",
    [({}, "lbfgs"), ({}, "eg"), ({}, "auto"), ({"loss": "hinge", "C": 0.1}, "eg")],
)
def test_trees(client, tmp_path, settings, solver):
    sentences, heads, labels = some_trees(30)
    batches = [(sentences[at : at + 5], heads[at : at + 5], labels[at : at + 5]) for at in range(0, 30, 5)]
    shards = shard_trees(batches, tmp_path / "shards", min_count=2, rows=5)
    tol = 1e-2 if "loss" in settings else 1e-4
    model = DependencyParser(tol=tol, min_count=2, solver=solver, max_iter=2000, **settings).fit(shards)
    assert "at 2 places" in model.trace_.problem
    client.close()
    same_model(model, DependencyParser(tol=tol / 10, min_count=2, max_iter=5000, **settings).fit(shards), tol)


def test_a_checkpoint_of_the_whole_run(client, shards, alone, tmp_path):
    path = tmp_path / "run.ckpt"
    settings = {"solver": "cd-dual", "tol": 1e-4}
    whole = LogisticRegression(**settings).fit(shards)
    steps, crashing = iter([None, None]), Once(lambda: None)
    crashing.stepped = lambda *told: next(steps)  # and in the third step an error
    with pytest.raises(StopIteration):
        kept = fenchel.Checkpoint(path, every=0)
        LogisticRegression(**settings, callbacks=[crashing, kept]).fit(shards)
    resumed = fenchel.Checkpoint(path, every=0, resume=True)
    model = LogisticRegression(**settings, callbacks=[resumed]).fit(shards)
    assert model.certificate_.converged
    assert model.certificate_.passes == whole.certificate_.passes
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-12)


def test_dual_variables_of_a_lost_place_come_from_their_copy(client, shards, alone, tmp_path, monkeypatch):
    """The last that was written beside the checkpoint, in the same run."""
    from fenchel.distributed.cluster import _PLACES

    read, found = VisitedPlace.read_copy, []
    monkeypatch.setattr(
        VisitedPlace, "read_copy", lambda self, path: found.append(read(self, path)) or found[-1]
    )
    steps = iter([lambda: None, lambda: _PLACES.popitem()])
    lost = Once(lambda: None)
    lost.stepped = lambda *told: next(steps, lambda: None)()
    kept = fenchel.Checkpoint(tmp_path / "run.ckpt", every=0)
    model = LogisticRegression(solver="cd-dual", tol=1e-4, callbacks=[lost, kept]).fit(shards)
    assert found == [True]
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(alone, rel=2e-4)
    assert model.certificate_.dual <= alone * (1 + 1e-9)


def test_a_client_that_is_given(shards):
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=2, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        here = LogisticRegression().fit(shards)
        there = LogisticRegression().fit(fenchel.Shards(shards.folder, client=client))
    assert "places" not in here.trace_.problem and "at 2 places" in there.trace_.problem
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=2e-3)


def test_wrong_options_are_a_sentence(shards, tmp_path):
    (tmp_path / "rows").write_text("0 1:1\n1 2:1\n")
    train = "train", "lr", tmp_path / "rows", "-o", tmp_path / "model"
    assert "is for shards" in misused(*train, "--workers", 2)
    train = "train", "lr", shards.folder, "-o", tmp_path / "model"
    assert "give one" in misused(*train, "--workers", 2, "--scheduler", "tcp://127.0.0.1:1")


def test_shares_of_shards_are_about_even():
    parts = dealt([4] * 7, 3)
    assert sorted(number for part in parts for number in part) == list(range(7))
    assert [len(part) for part in parts] == [3, 2, 2]
