"""Shards: what is trained from disk is what would have been trained from memory."""

import errno
import json
import os
import resource

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from commands import fails, misused, run
from fenchel import LinearSVC, LogisticRegression, LogisticRegressionCV, MaxEnt
from fenchel.errors import DataError
from fenchel.io.libsvm import iterate_rows, write_libsvm
from fenchel.io.shard_writer import MANIFEST
from fenchel.io.sharding import shard_events, shard_rows


def made_up(n=400, d=60, classes=2, seed=0):
    """Rows sorted by label, as files often are."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.15, "csr", random_state=rng, data_rvs=rng.standard_normal)
    y = np.argmax(X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes)), axis=1).astype(float)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def stored(folder, X, y, rows=20):
    batches = ((X[at : at + rows], y[at : at + rows]) for at in range(0, y.size, rows))
    return shard_rows(batches, folder, rows=rows)


@pytest.fixture
def small(tmp_path):
    X, y = made_up()
    return stored(tmp_path / "shards", X, y)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("solver", ["auto", "cd-dual", "eg-gap", "sgd", "lbfgs", "tron", "sdca"])
def test_the_optimum_is_that_of_memory(tmp_path, solver, classes):
    X, y = made_up(classes=classes)
    whole = stored(tmp_path / "shards", X, y)
    shards = fenchel.Shards(whole.folder, memory=whole.size // 5)
    tol = 1e-2 if solver == "sgd" else 1e-6
    model = LogisticRegression(solver=solver, tol=tol, max_iter=5000).fit(shards)
    other = LogisticRegression(tol=1e-8).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.dual <= other.certificate_.primal
    assert model.certificate_.primal <= other.certificate_.primal * (1.0 + 2 * tol)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert np.mean(model.predict(X) == other.predict(X)) > 0.9


def test_a_pass_meets_every_example_once_and_mixes_shards(small):
    shards = fenchel.Shards(small.folder, memory=small.size // 4)
    order = np.random.default_rng(0).permutation(shards.n)
    visits = list(shards.visits(order))
    assert sorted(np.concatenate(visits).tolist()) == list(range(shards.n))
    assert 4 <= len(visits) <= 6
    for some in visits:
        met = np.unique(np.searchsorted(shards.pieces, some, "right"))
        assert met.size > 1  # several shards, and their examples in turn
        assert (np.diff(np.searchsorted(shards.pieces, some, "right")) != 0).mean() > 0.5


def test_all_in_memory_is_the_order_itself(small):
    order = np.random.default_rng(0).permutation(small.n)
    (only,) = small.visits(order)
    assert only.tolist() == order.tolist()


def test_dual_variables_beside_the_shards(small, monkeypatch):
    monkeypatch.setattr("fenchel.io.paging.IN_MEMORY", 0)
    model = LogisticRegression(tol=1e-6).fit(small)
    assert model.certificate_.converged
    assert sorted(path.suffix for path in small.folder.iterdir()) == [".bin"] * 4 + [".json"]


def have_memory(monkeypatch, size):
    """All arrays of examples on disk; with little memory pages are exchanged for some of the process."""
    monkeypatch.setattr("fenchel.io.paging.IN_MEMORY", 0)
    monkeypatch.setattr("fenchel.io.paging.available_bytes", lambda: size)


@pytest.mark.parametrize("solver", ["cd-dual", "eg-gap", "sdca", "lbfgs"])
def test_data_larger_than_memory_give_the_same_bits(tmp_path, monkeypatch, solver):
    X, y = made_up(n=4000, classes=3)
    whole = stored(tmp_path / "shards", X, y, rows=250)  # of several pages each
    model, found = LogisticRegression(solver=solver, tol=1e-6), []
    for size in (2**40, 0):
        have_memory(monkeypatch, size)
        shards = fenchel.Shards(whole.folder, memory=whole.size // 5)
        found.append(model.fit(shards).coef_.copy())
    assert np.array_equal(*found)
    fenchel.Shards(whole.folder).verify()


@pytest.mark.parametrize("solver", ["sag", "sag-nus", "cd-primal", "scgis", "iis", "sm-s", "prox-newton"])
def test_solvers_that_want_all_examples_at_hand_are_refused(small, monkeypatch, solver):
    model = LogisticRegression(solver=solver, fit_intercept=False, max_iter=2, tol=0.5)
    have_memory(monkeypatch, 0)
    words = f"'{solver}' wants all examples in memory, where these shards do not fit; use .*cd-dual.*sdca"
    with pytest.raises(ValueError, match=words):
        model.fit(small)


@pytest.mark.parametrize("settings", [{"l1_ratio": 0.5}, {"l1_ratio": 1.0}, {"C": np.inf}])
def test_auto_goes_by_shards_where_memory_is_small(tmp_path, monkeypatch, settings):
    X, y = made_up(n=1000)
    y[::3] = 1.0 - y[::3]  # an optimum without a penalty, too
    whole = stored(tmp_path / "shards", X, y, rows=100)
    expected = LogisticRegression(tol=1e-5, **settings).fit(X, y)
    have_memory(monkeypatch, 0)
    model = LogisticRegression(tol=1e-4, **settings).fit(fenchel.Shards(whole.folder, memory=whole.size // 5))
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-3)
    assert "prox-newton" not in model.trace_.solver


def test_a_pass_that_is_broken_off_leaves_numbers_where_they_belong(tmp_path, monkeypatch):
    X, y = made_up(n=4000)
    whole = stored(tmp_path / "shards", X, y, rows=250)
    have_memory(monkeypatch, 0)
    shards = fenchel.Shards(whole.folder, memory=whole.size // 5)
    room = shards.room(shards.n)
    room[:] = 0.0
    for _ in range(3):
        visits = shards.shuffled(np.random.default_rng(0))
        room[next(visits)] += 1.0
        room[next(visits)] += 1.0
        visits.close()
    assert sorted(np.unique(room).tolist()) == [0.0, 3.0]
    shards.verify()
    opened = len(os.listdir("/proc/self/fd"))
    for _ in range(20):  # as many passes of a batch method: each array goes with who held it
        shards.room(shards.n)
    assert len(os.listdir("/proc/self/fd")) <= opened + 2


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", [{"fit_intercept": False}, {}, {"intercept_scaling": 3.0}])
def test_the_hinge_loss(tmp_path, classes, settings):
    X, y = made_up(classes=classes)
    whole = stored(tmp_path / "shards", X, y)
    shards = fenchel.Shards(whole.folder, memory=whole.size // 5)
    model = LinearSVC(tol=1e-5, max_iter=5000, **settings).fit(shards)
    other = LinearSVC(tol=1e-7, max_iter=5000, **settings).fit(X, y)
    assert model.certificate_.converged
    assert model.coef_.shape == other.coef_.shape
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-5)
    assert sorted(path.suffix for path in shards.folder.iterdir()) == [".bin"] * 4 + [".json"]


def test_a_penalised_intercept_is_a_column_more(tmp_path):
    X, y = made_up()
    X = sp.vstack([X, sp.csr_matrix((3, X.shape[1]))], format="csr")  # rows without entries, too
    y = np.append(y, [0.0, 1.0, 1.0])
    small = stored(tmp_path / "shards", X, y)
    longer = small.with_constant(2.5)
    expected = sp.hstack([X, np.full((X.shape[0], 1), 2.5)], format="csr")
    assert (longer.rows.matrix != expected).nnz == 0
    assert longer.pieces.tolist() == small.pieces.tolist()
    longer.verify()
    model = LogisticRegression(intercept_scaling=2.5, tol=1e-7).fit(small)
    other = LogisticRegression(intercept_scaling=2.5, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-3)
    with pytest.raises(ValueError, match="intercept_scaling=0 must be"):
        LogisticRegression(intercept_scaling=0).fit(small)


def test_weights_of_classes_and_of_examples(small):
    X, y = made_up()
    weight = np.linspace(0.5, 2.0, y.size)
    model = LogisticRegression(class_weight="balanced", tol=1e-7).fit(small, sample_weight=weight)
    other = LogisticRegression(class_weight="balanced", tol=1e-7).fit(X, y, weight)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_parts_add_up_to_the_whole(tmp_path, classes):
    X, y = made_up(classes=classes)  # sorted: a part may have a single class
    shards = stored(tmp_path / "shards", X, y)
    model = LogisticRegression(fit_intercept=False, n_jobs=1)
    whole = model.problem(model.encode_training(shards))
    numbers = [0, 3], [19, 1], [k for k in range(2, 19) if k != 3]
    parts = [shards.part(some) for some in numbers]
    problems = [model.problem(model.encode_training(part)) for part in parts]
    assert sum(part.n for part in parts) == shards.n and parts[0].total == shards.n
    assert [problem.lam for problem in problems] == [whole.lam] * 3
    w = np.random.default_rng(0).normal(size=whole.dim)
    penalty = whole.regularizer.value(w)
    losses = [problem.evaluate(w).value - penalty for problem in problems]
    assert sum(losses) + penalty == pytest.approx(whole.evaluate(w).value)
    assert (parts[1].rows.matrix != sp.vstack([X[380:], X[20:40]])).nnz == 0
    assert len(list(shards.folder.iterdir())) == 5
    with pytest.raises(ValueError, match="there are 0 to 19"):
        shards.part([20])


def test_memory_follows_what_there_is(small, monkeypatch):
    assert small.memory == 2**28
    monkeypatch.setattr("fenchel.io.shards.available_bytes", lambda: 8_000_000)
    less = fenchel.Shards(small.folder)
    assert less.memory == 1_000_001 and less.peak < 300e6
    with pytest.raises(ValueError, match="memory=0 must be"):
        fenchel.Shards(small.folder, memory=0)


def test_wrong_use_is_a_sentence(small, tmp_path):
    with pytest.raises(ValueError, match="without y"):
        LogisticRegression().fit(small, [1, 2])
    with pytest.raises(TypeError, match="folds of shards"):
        LogisticRegressionCV().fit(small)
    with pytest.raises(FileExistsError, match="holds shards already"):
        stored(small.folder, *made_up())
    with pytest.raises(ValueError, match="no examples"):
        shard_rows([], tmp_path / "none")
    with pytest.raises(ValueError, match="NaN"):
        shard_rows([(np.ones((1, 2)), [np.nan])], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match=r"letter\.txt"):
        stored(tmp_path / "mine", *made_up())
    one = shard_rows([(np.ones((2, 2)), [1, 1])], tmp_path / "one")
    with pytest.raises(ValueError, match="all labels are the same"):
        LogisticRegression().fit(one)


def test_an_error_halfway_leaves_the_old_shards(small):
    def broken():
        yield np.ones((3, 2)), [0, 1, 0]
        raise OSError("the line went dead")

    with pytest.raises(OSError, match="dead"):
        shard_rows(broken(), small.folder, overwrite=True)
    assert fenchel.Shards(small.folder).n == small.n
    assert len(list(small.folder.parent.iterdir())) == 1


def test_a_full_disk_leaves_the_old_shards(small):
    X, y = made_up(n=3000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match=str(small.folder)):
            shard_rows([(X, y)], small.folder, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert fenchel.Shards(small.folder).n == small.n


def test_a_disk_without_room_for_dual_variables_is_named(small, monkeypatch):
    def full(file, begin, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fenchel.io.paging.os.posix_fallocate", full)
    have_memory(monkeypatch, 0)
    with pytest.raises(OSError, match=f"{small.folder}, 0.0 MB for numbers of the examples"):
        LogisticRegression().fit(small)
    assert len(list(small.folder.iterdir())) == 5


def damaged(folder, change):
    """What is said of shards after a change of their files."""
    change(folder)
    with pytest.raises(DataError) as error:
        LogisticRegression().fit(fenchel.Shards(folder))
    return str(error.value)


def flip(name, at):
    def change(folder):
        content = bytearray((folder / name).read_bytes())
        content[at] ^= 0xFF
        (folder / name).write_bytes(content)

    return change


def manifest(**fields):
    def change(folder):
        path = folder / MANIFEST
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (flip("data.bin", 4000), "shard 2 of data.bin is altered"),
        (flip("indices.bin", 3), "shard 0 of indices.bin is altered"),
        (lambda folder: (folder / "data.bin").write_bytes(b""), "data.bin has 0 bytes"),
        (lambda folder: (folder / "labels.bin").unlink(), "labels.bin is missing"),
        (lambda folder: (folder / MANIFEST).unlink(), "no manifest.json"),
        (lambda folder: (folder / MANIFEST).write_text("{"), "the manifest is damaged"),
        (lambda folder: (folder / MANIFEST).write_text("[]"), "not one of fenchel shards"),
        (manifest(version=3), "reads 2; use the fenchel"),
        (manifest(version=1), "reads 2; shard the data anew"),
        (manifest(shards=[]), "the manifest is damaged"),
        (manifest(shards=[{"examples": -1}]), "the manifest is damaged"),
        (manifest(facts={}), "the manifest is damaged"),
        (manifest(facts={"columns": 3, "classes": [0, 1]}), "indices.bin or data.bin is damaged"),
        (manifest(arrays={}), "the manifest is damaged"),
        (manifest(arrays={"indptr": "O"}), "the array 'indptr' has the type 'O'"),
        (manifest(kind="sequences"), "shards of sequences"),
    ],
)
def test_damaged_shards_are_named(small, change, words):
    assert words in damaged(small.folder, change)


def test_a_client_by_its_address_is_a_sentence(small):
    with pytest.raises(TypeError, match=r"no Dask client; give distributed.Client\('tcp://x:1'\)"):
        fenchel.Shards(small.folder, client="tcp://x:1")


@pytest.mark.parametrize("labels", [["a", "b"], np.array(["a", "b"]), [1.0, "a"]])
def test_labels_of_rows_that_are_no_numbers_are_named(tmp_path, labels):
    with pytest.raises(TypeError, match=r"y holds .*'a'.* number the classes"):
        shard_rows([(np.eye(2), labels)], tmp_path / "shards")
    assert not list(tmp_path.iterdir())


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        fenchel.Shards(tmp_path / "nowhere")


def test_from_the_command_line(tmp_path, monkeypatch):
    X, y = made_up()
    write_libsvm(tmp_path / "a.svm", X[:250], y[:250])
    write_libsvm(tmp_path / "b.svm.gz", X[250:], y[250:])
    monkeypatch.chdir(tmp_path)
    done = run("shard", "lr", "a.svm", "b.svm.gz", "-o", "shards")
    assert done.exit_code == 0
    assert "400 examples in 1 shard" in done.stderr
    done = run("train", "lr", "shards", "-o", "model", "--tol", "1e-6")
    assert done.exit_code == 0
    assert "400 examples, 60 features" in done.stderr
    assert "stays on disk; training takes about" in done.stderr
    other = LogisticRegression(tol=1e-8).fit(X, y)
    model = fenchel.load(tmp_path / "model")
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)
    assert "holds shards already" in fails("shard", "lr", "a.svm", "-o", "shards")
    assert run("shard", "lr", "a.svm", "-o", "shards", "--overwrite").exit_code == 0


def test_parts_of_a_file_are_the_file(tmp_path, monkeypatch):
    X, y = made_up()
    write_libsvm(tmp_path / "a.svm", X, y)
    monkeypatch.setattr("fenchel.io.libsvm.BLOCK", 500)
    parts = list(iterate_rows(tmp_path / "a.svm", n_features=60))
    assert len(parts) > 10
    assert (sp.vstack([X for X, _ in parts]) != X).nnz == 0
    assert np.concatenate([y for _, y in parts]).tolist() == y.tolist()


def test_dask_arrays(tmp_path):
    array = pytest.importorskip("dask.array")
    X, y = made_up(n=60)
    given = array.from_array(X.toarray(), (25, 60)), array.from_array(y, 25)
    whole = shard_rows(given, tmp_path / "a", rows=10)
    assert (whole.rows.matrix != X).nnz == 0 and whole.array("labels").tolist() == y.tolist()
    sparse = given[0].map_blocks(sp.csr_matrix)
    assert (shard_rows((sparse, given[1]), tmp_path / "b").rows.matrix != X).nnz == 0
    with pytest.raises(ValueError, match=r"rechunk\(\{1: -1\}\) makes rows whole"):
        shard_rows((array.from_array(X.toarray(), (25, 30)), given[1]), tmp_path / "c")
    with pytest.raises(ValueError, match="in 3 and 2 pieces; rechunk or repartition them alike"):
        shard_rows((given[0], array.from_array(y, 30)), tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_dask_dataframes(tmp_path):
    frames = pytest.importorskip("dask.dataframe", exc_type=ImportError)  # wants pyarrow
    pandas = pytest.importorskip("pandas")
    X, y = made_up(n=60)
    table = frames.from_pandas(pandas.DataFrame(X.toarray()).assign(label=y), npartitions=3)
    whole = shard_rows((table.drop(columns="label"), table["label"]), tmp_path / "a")
    assert (whole.rows.matrix != X).nnz == 0 and whole.array("labels").tolist() == y.tolist()


def test_tables_of_pandas_come_some_at_a_time(tmp_path):
    pandas = pytest.importorskip("pandas")  # what partitions of a Dask dataframe are
    X, y = made_up(n=60)
    table, labels = pandas.DataFrame(X.toarray()), pandas.Series(y)
    batches = ((table[at : at + 25], labels[at : at + 25]) for at in range(0, 60, 25))
    whole = shard_rows(batches, tmp_path / "a")
    assert (whole.rows.matrix != X).nnz == 0 and whole.array("labels").tolist() == y.tolist()


def test_dask_bags_of_events(tmp_path):
    bag, events = pytest.importorskip("dask.bag"), some_events(40)
    given = bag.from_sequence(events, npartitions=3)
    for name, settings in (("a", {}), ("b", {"min_count": 2}), ("c", {"hash_bits": 10})):
        shards = shard_events(given, tmp_path / name, **settings)
        same = shard_events(events, tmp_path / f"{name}-list", **settings)
        for array in same.arrays:
            assert np.array_equal(shards.arrays[array], same.arrays[array]), array
        assert shards.facts == same.facts


# ---- events with names


def some_events(n=300, seed=0):
    """(label, features) sorted by label, and a feature that only one event has."""
    rng = np.random.default_rng(seed)
    events = []
    for k in range(n):
        words = rng.choice(40, size=5, replace=False).tolist()
        label = ["a", "b", "c"][int(np.sum(words) + rng.integers(3)) % 3]
        events.append((label, {f"w{j}": 1.0 + j % 2 for j in words} | ({"rare": True} if k == 7 else {})))
    return sorted(events, key=lambda event: event[0], reverse=True)


@pytest.mark.parametrize("settings", [{}, {"solver": "lbfgs"}, {"loss": "hinge"}, {"observed": True}])
def test_events_on_disk_give_the_model_of_memory(tmp_path, settings):
    events = some_events()
    whole = shard_events(events, tmp_path / "shards", rows=16)
    assert whole.pieces.size - 1 > 10
    shards = fenchel.Shards(whole.folder, memory=whole.size // 5)
    model = MaxEnt(tol=1e-6, max_iter=5000, **settings).fit(shards)
    y, features = zip(*events, strict=True)
    other = MaxEnt(tol=1e-7, max_iter=5000, **settings).fit(features, y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=3e-6)
    assert model.classes_.tolist() == other.classes_.tolist() == ["a", "b", "c"]
    assert sorted(model.vocabulary_.names) == sorted(other.vocabulary_.names)
    assert np.mean(model.predict(features) == other.predict(features)) > 0.95


def test_events_have_weights_and_rare_features_go(tmp_path):
    events = [(label, features, 1.0 + k % 3) for k, (label, features) in enumerate(some_events())]
    shards = shard_events(events, tmp_path / "shards", min_count=2)
    y, features, weight = zip(*events, strict=True)
    more = np.linspace(0.5, 2.0, len(y))
    model = MaxEnt(tol=1e-7).fit(shards, sample_weight=more)
    other = MaxEnt(tol=1e-7, min_count=2).fit(features, y, np.array(weight) * more)
    assert "rare" not in model.vocabulary_ and len(model.vocabulary_) == len(other.vocabulary_)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)
    MaxEnt(min_count=2).fit(shards)
    with pytest.raises(ValueError, match="written with min_count=2"):
        MaxEnt(min_count=3).fit(shards)


def test_wrong_events_are_a_sentence(tmp_path, small):
    with pytest.raises(TypeError, match="give a list"):
        shard_events(iter(some_events()), tmp_path / "x", min_count=2)
    with pytest.raises(TypeError, match=r"event 1: the label is \('a',\)"):
        shard_events([("a", ["b"]), (("a",), ["b"])], tmp_path / "x")
    with pytest.raises(TypeError, match="event 2: "):
        shard_events([("a", ["b"]), ("a", ["b"]), ("a", 7)], tmp_path / "x")
    with pytest.raises(ValueError, match="no event has a feature"):
        shard_events([("a", []), ("b", [])], tmp_path / "x")
    with pytest.raises(ValueError, match="no examples"):
        shard_events([], tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(DataError, match="shards of rows, but MaxEnt is trained on events"):
        MaxEnt().fit(small)
    shards = shard_events(some_events(), tmp_path / "events")
    with pytest.raises(DataError, match="shards of events, but LogisticRegression is trained on rows"):
        LogisticRegression().fit(shards)
    with pytest.raises(ValueError, match="without y"):
        MaxEnt().fit(shards, ["a"])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\)"):
        MaxEnt().fit(shards, sample_weight=[1.0, 2.0])
    with pytest.raises(TypeError, match="the label of each event"):
        MaxEnt().fit([["a"]])


@pytest.mark.parametrize("name", ["text.bin", "labels.bin", "weight.bin", "offsets.bin"])
def test_damaged_events_are_named(tmp_path, name):
    shards = shard_events(some_events(), tmp_path / "shards")
    flip(name, 3)(shards.folder)
    with pytest.raises(DataError, match=f"{name} is altered"):
        MaxEnt().fit(fenchel.Shards(shards.folder))


def test_event_files_on_the_command_line(tmp_path):
    lines = [" ".join([label, *features]) + "\n" for label, features in some_events()]
    parts = tmp_path / "1.events", tmp_path / "2.events"
    parts[0].write_text("".join(lines[:100]))
    parts[1].write_text("".join(lines[100:]))
    folder, model = tmp_path / "shards", tmp_path / "model.fenchel"
    told = run("shard", "maxent", *parts, "-o", folder, "--format", "opennlp", "--min-count", 2)
    assert "300 events in 1 shard" in told.stderr
    told = run("train", "maxent", folder, "-o", model, "--valid", parts[0], "--tol", "1e-4")
    assert "300 events, 3 labels, 40 features" in told.stderr
    predicted = run("predict", model, parts[1]).stdout.splitlines()  # the model knows the format
    assert len(predicted) == 200
    assert "Missing option '--format'" in misused("train", "maxent", parts[0], "-o", model)
    candidates = "shard", "maxent", parts[0], "-o", tmp_path / "y", "--format", "tadm"
    assert "files of candidates" in fails(*candidates)
    twice = "shard", "maxent", "-", "-o", tmp_path / "y", "--format", "opennlp", "--min-count", 2
    assert "standard input is there once" in fails(*twice)
