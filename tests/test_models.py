"""Saving and loading: the same model comes back, and nothing bad does."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import fenchel
from fenchel import LinearSVC, LogisticRegression, MaxEnt, solvers
from fenchel.io.models import ModelError, read_model, write_model


@pytest.fixture
def model():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 4))
    return LogisticRegression(C=0.5, tol=1e-6).fit(X, np.where(X[:, 0] > 0, "ja", "nein"))


@pytest.mark.parametrize("labels", [["a", "ß"], [0, 1], [-1.0, 2.0], [False, True]])
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_round_trip(tmp_path, kind, labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = np.array(labels)[(X[:, 0] + X[:, 1] > 0).astype(int)]
    settings = dict(C=0.3, class_weight={labels[1]: 2.0}, solver=solvers.CDDual(xi=0.5))
    model = kind(**settings, tol=1e-4).fit(X, y)
    model.save(tmp_path / "m.fenchel")
    loaded = fenchel.load(tmp_path / "m.fenchel")
    assert type(loaded) is kind
    assert loaded.get_params() == model.get_params()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert (loaded.predict(X) == model.predict(X)).all()
    assert (loaded.decision_function(X) == model.decision_function(X)).all()
    assert str(loaded.certificate_) == str(model.certificate_)
    assert loaded.certificate_.gap == model.certificate_.gap


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_round_trip_of_many_classes(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    model = kind().fit(X, np.array(["a", "bc", "d"])[X[:, :3].argmax(axis=1)])
    model.save(tmp_path / "m.fenchel")
    loaded = fenchel.load(tmp_path / "m.fenchel")
    assert (loaded.decision_function(X) == model.decision_function(X)).all()
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.n_iter_ == model.n_iter_


EVENTS = [{"tag": "NN", "ü\n": 2.0}, ["", "plain"], {"tag": "VB"}]


@pytest.mark.parametrize(
    "labels",
    [["a", "ß", "a"], [0, 1, 2], [-1.5, 2.0, 2.0], [False, True, True], [1, "one", True], ["a\0", "a", "b"]],
)
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_round_trip_of_events(tmp_path, labels, loss):
    settings = dict(sigma2=2.5, min_count=1, loss=loss, solver=solvers.CDDual(seed=7))
    model = MaxEnt(**settings).fit(EVENTS, labels)
    model.save(tmp_path / "m")
    loaded = fenchel.load(tmp_path / "m")
    assert type(loaded) is MaxEnt and loaded.get_params() == model.get_params()
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.vocabulary_.names == model.vocabulary_.names
    assert (loaded.coef_ == model.coef_).all()
    assert loaded.predict(EVENTS).tolist() == model.predict(EVENTS).tolist()
    assert str(loaded.explain(EVENTS[0])) == str(model.explain(EVENTS[0]))
    assert str(loaded.certificate_) == str(model.certificate_)


def test_round_trip_of_candidates(tmp_path):
    events = [{("any", "label"): ["f", "g"], None: ["g"]}, [["h"], ["f"]]]
    model = MaxEnt().fit_joint(events, [None, 0])
    model.save(tmp_path / "m")
    loaded = fenchel.load(tmp_path / "m")
    assert loaded.layout_ == "joint" and not hasattr(loaded, "classes_")
    assert loaded.predict_proba(events) == model.predict_proba(events)


@pytest.mark.parametrize("label", [None, (1, 2), b"bytes"])
def test_labels_that_a_file_cannot_hold_are_an_error_at_saving(tmp_path, label):
    model = MaxEnt().fit(EVENTS, ["a", "b", label])
    with pytest.raises(ValueError, match=r"the label .* holds labels that are str, int, float or bool"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_damaged_vocabulary_or_layout_is_a_clear_error(tmp_path):
    model = MaxEnt().fit(EVENTS, ["a", "b", "a"])
    to_file = model._to_file

    def damage(**wrong):
        arrays, facts = to_file()
        model._to_file = lambda: (arrays | wrong.get("arrays", {}), facts | wrong.get("facts", {}))
        model.save(tmp_path / "m")
        with pytest.raises(ModelError, match="damaged"):
            fenchel.load(tmp_path / "m")

    damage(arrays={"offsets": np.array([0, 2, 1], np.uint64)})
    damage(arrays={"weights": np.zeros((2, 2))})
    damage(arrays={"weights": np.zeros((5, 2), np.float32)})
    damage(facts={"layout": "crooked"})
    damage(facts={"classes": ["a"]})
    damage(facts={"classes": [["a", "b"]], "classes_dtype": "<U1"})


def test_a_saved_model_replaces_the_old_one_whole(tmp_path, model, monkeypatch):
    path = tmp_path / "m.fenchel"
    model.save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.fenchel"]


@pytest.mark.parametrize("cut", [0, 1, 7, 100, -1])
def test_a_truncated_file_is_a_clear_error(tmp_path, model, cut):
    path = tmp_path / "m.fenchel"
    model.save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelError, match=r"m\.fenchel: not a fenchel model, or a damaged one"):
        fenchel.load(path)


def test_foreign_files_are_clear_errors(tmp_path):
    text = tmp_path / "text"
    text.write_text("1 1:2\n" * 100)
    with pytest.raises(ModelError, match="not a fenchel model"):
        fenchel.load(text)
    save_file({"x": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(ModelError, match="a safetensors file, but not a fenchel model"):
        fenchel.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="missing: no such model file"):
        fenchel.load(tmp_path / "missing")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format_version": "99", "class": "LogisticRegression"}, "model format 99, but this fenchel reads"),
        ({"format_version": "1", "class": "Pickle", "settings": "{}", "facts": "{}"}, "class 'Pickle'"),
        ({"format_version": "1", "class": "LinearSVC", "settings": "{", "facts": "{}"}, "header .* damaged"),
        ({"format_version": "1", "class": "LinearSVC", "settings": "{}", "facts": "{}"}, "is damaged"),
    ],
)
def test_a_wrong_header_is_a_clear_error(tmp_path, header, message):
    save_file({"coef": np.zeros((1, 2))}, tmp_path / "m", metadata=header)
    with pytest.raises(ModelError, match=message):
        fenchel.load(tmp_path / "m")


# ---- models of mostly zeros


SPARSE = np.zeros((3, 50))
SPARSE[[0, 2, 2], [7, 0, 49]] = 1.5, -2.0, 1e-300


def test_an_array_of_mostly_zeros_takes_the_room_of_the_others(tmp_path):
    write_model(
        tmp_path / "m", "LinearSVC", {}, {}, {"coef": SPARSE, "full": np.ones(4), "none": np.zeros(0)}
    )
    assert (tmp_path / "m").stat().st_size < 1200
    *_, arrays = read_model(tmp_path / "m")
    np.testing.assert_array_equal(arrays["coef"], SPARSE)
    np.testing.assert_array_equal(arrays["full"], np.ones(4))
    assert sorted(arrays) == ["coef", "full", "none"]


@pytest.mark.parametrize(
    ("changed", "shape", "said"),
    [
        ({"coef.positions": np.array([7, 100, 150])}, [3, 50], "do not increase from 0 to 150"),
        ({"coef.positions": np.array([7, 7, 9])}, [3, 50], "do not increase"),
        ({"coef.positions": np.array([-1, 7, 9])}, [3, 50], "do not increase"),
        ({"coef.positions": np.array([7, 100])}, [3, 50], "go together"),
        ({"coef.values": np.ones((3, 1))}, [3, 50], "go together"),
        ({}, [10**15], "needs .* GiB"),
        ({}, [-3, -50], "the shape of coef"),
        ({}, [3, "x"], "the shape of coef"),
        ({}, 7, "damaged"),
    ],
)
def test_wrong_positions_are_refused(tmp_path, changed, shape, said):
    arrays = {"coef.positions": np.array([7, 100, 149]), "coef.values": np.array([1.0, 2.0, 3.0])} | changed
    header = {"format_version": "2", "class": "LinearSVC", "settings": "{}", "facts": "{}"}
    save_file(arrays, tmp_path / "m", metadata=header | {"sparse": json.dumps({"coef": shape})})
    with pytest.raises(ModelError, match=said):
        read_model(tmp_path / "m")
