"""hash_bits: columns by the hash of names and numbers, alike in memory, from shards, and in saved models."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel
from commands import fails, misused, run, write_classes, write_events
from fenchel import ChainCRF, LinearSVC, LogisticRegression, MaxEnt
from fenchel.errors import DataError
from fenchel.features.hashing import Hashed, hashed_columns
from fenchel.io.sharding import shard_events, shard_rows, shard_sequences

SENTENCES = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("a", "D"), ("dog", "N")], [("it", "P")]] * 4
LABELS = [["d", "n", "v"], ["d", "n"], ["p"]] * 4
EVENTS = [{"word": f"w{k % 7}", "size": float(k % 3), "even": k % 2 == 0} for k in range(60)]
KINDS = [("x", "y", "z")[k % 7 % 3] for k in range(60)]


def rows(n=200, d=500, classes=2):
    rng = np.random.default_rng(0)
    X = sp.random(n, d, 0.05, "csr", random_state=rng, data_rvs=rng.standard_normal)
    return X, np.argmax(X @ rng.normal(size=(d, classes)), axis=1)


def reloaded(model, tmp_path):
    model.save(tmp_path / "model")
    return fenchel.load(tmp_path / "model")


def test_columns_that_meet_are_added_up():
    X, _ = rows()
    found = hashed_columns(X, 4)
    assert found.shape == (X.shape[0], 16)
    np.testing.assert_allclose(found.sum(axis=1), X.sum(axis=1), atol=1e-12)
    apart = hashed_columns(sp.eye(2**10, format="csr"), 14)  # with room few columns meet
    assert np.unique(apart.indices).size > 0.95 * 2**10


def test_a_hash_is_the_same_everywhere():
    assert [Hashed(20).get(name) for name in ("", "word=the", "ü\n")] == [0, 840238, 696983]
    assert hashed_columns(sp.eye(4, format="csr"), 20).indices.tolist() == [648055, 247535, 895590, 495070]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
def test_rows(tmp_path, estimator, classes):
    X, y = rows(classes=classes)
    model = estimator(hash_bits=6, tol=1e-6, max_iter=10_000).fit(X, y)
    plain = estimator(tol=1e-6, max_iter=10_000).fit(hashed_columns(X, 6), y)
    assert model.coef_.shape[1] == model.n_features_in_ == 64
    assert np.array_equal(model.coef_, plain.coef_)
    wider = sp.hstack([X, sp.csr_matrix((X.shape[0], 1000))], format="csr")
    assert np.array_equal(model.predict(wider), plain.predict(hashed_columns(X, 6)))
    assert np.array_equal(model.predict(X.toarray()), model.predict(X))
    again = reloaded(model, tmp_path)
    assert again.hash_bits == 6 and np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.proven(X), model.proven(X)) and model.proven(X).any()
    for export in (again.to_liblinear, again.to_onnx):
        with pytest.raises(ValueError, match="does not hash columns as hash_bits=6 does"):
            export(tmp_path / "other")


def test_rows_of_shards(tmp_path):
    X, y = rows()
    batches = [(X[:80], y[:80]), (X[80:].toarray(), y[80:])]
    shards = shard_rows(batches, tmp_path / "shards", hash_bits=6, rows=16)
    model = LogisticRegression(hash_bits=6, tol=1e-8).fit(shards)
    other = LogisticRegression(hash_bits=6, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    assert np.array_equal(model.predict(X), other.predict(X))
    for bits in (None, 7):
        with pytest.raises(ValueError, match=r"written with hash_bits=6, not .* give the model hash_bits=6"):
            LogisticRegression(hash_bits=bits).fit(shards)
    with pytest.raises(ValueError, match="hash_bits=31 must be a whole number from 1 to 30, or None"):
        LogisticRegression(hash_bits=31).fit(X, y)


def test_events(tmp_path):
    model = MaxEnt(hash_bits=12, tol=1e-8).fit(EVENTS, KINDS)
    plain = MaxEnt(tol=1e-8).fit(EVENTS, KINDS)  # of so few names no two meet
    assert model.coef_.shape == (3, 2**12)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
    shards = shard_events(list(zip(KINDS, EVENTS, strict=True)), tmp_path / "shards", hash_bits=12)
    stored = MaxEnt(hash_bits=12, tol=1e-8).fit(shards)
    again = reloaded(stored, tmp_path)
    np.testing.assert_allclose(again.predict_proba(EVENTS), plain.predict_proba(EVENTS), atol=1e-4)
    assert "word=w1" in str(again.explain(EVENTS[1]))  # names of the event itself
    with pytest.raises(ValueError, match=r"hashed to 2\^12 columns, and their names are not kept"):
        again.top_features()
    with pytest.raises(ValueError, match="min_count=2 counts features by their names"):
        MaxEnt(hash_bits=12, min_count=2).fit(EVENTS, KINDS)
    with pytest.raises(ValueError, match="written with hash_bits=12"):
        MaxEnt().fit(shards)


def test_events_come_once_and_a_damaged_hash_is_a_sentence(tmp_path):
    shards = shard_events(iter(zip(KINDS, EVENTS, strict=True)), tmp_path / "shards", hash_bits=5)
    assert shards.facts["columns"] == 32
    (tmp_path / "shards" / "hash_bits.bin").write_bytes(b"\x77")
    with pytest.raises(DataError, match=r"hash_bits\.bin is altered"):
        MaxEnt(hash_bits=5).fit(fenchel.Shards(tmp_path / "shards"))


def test_candidates():
    candidates = [{"a": {f"f{k}": 1.0}, "b": {f"g{k % 3}": 2.0}} for k in range(12)]
    y = ["a" if k % 3 else "b" for k in range(12)]
    model, plain = (MaxEnt(hash_bits=bits, tol=1e-8).fit_joint(candidates, y) for bits in (14, None))
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
    assert model.predict(candidates).tolist() == plain.predict(candidates).tolist()


@pytest.mark.parametrize("template", ["chunk", None])
@pytest.mark.parametrize("observed", [False, True])
def test_sequences(tmp_path, template, observed):
    X = SENTENCES if template else [[[f"w={w}", f"t={t}"] for w, t in one] for one in SENTENCES]
    settings = {"template": template, "observed": observed, "boundaries": True, "tol": 1e-6}
    model = ChainCRF(hash_bits=18, **settings).fit(X, LABELS)
    plain = ChainCRF(**settings).fit(X, LABELS)
    assert model.coef_.shape == (4, 2**18 + 2)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-5)
    assert model.predict(X) == plain.predict(X)
    batches = [(X[:5], LABELS[:5]), (X[5:], LABELS[5:])]
    kept = {"template": template, "boundaries": True, "hash_bits": 18}
    shards = shard_sequences(batches, tmp_path / "shards", rows=3, **kept)
    settings.pop("template")
    again = reloaded(ChainCRF(hash_bits=18, **settings).fit(shards), tmp_path)
    assert again.predict(X) == plain.predict(X)
    new = [[("owl", "N")]] if template else [[["w=owl", "t=N"]]]
    np.testing.assert_allclose(again.predict_marginals(new)[0], plain.predict_marginals(new)[0], atol=1e-3)
    for ask in (lambda: again.attribute_names_, lambda: again.explain(X[0])):
        with pytest.raises(ValueError, match=r"hashed to 2\^18 columns"):
            ask()


def test_lines_of_one_text_share_attributes_and_others_do_not(tmp_path):
    (tmp_path / "bag").write_text("U:%x[-1,0]\nU:%x[0,0]\n")
    (tmp_path / "apart").write_text("U1:%x[-1,0]\nU2:%x[0,0]\n")
    for name, columns in (("bag", 3), ("apart", 4)):
        model = ChainCRF(hash_bits=20, template=str(tmp_path / name)).fit([[("a",), ("b",)]], [["x", "y"]])
        found = model.encode([[("a",), ("b",)]]).rows.indices
        assert np.unique(found).size == columns


def test_what_does_not_go_with_hashing(tmp_path):
    (tmp_path / "edges").write_text("U:%x[0,0]\nB:%x[0,0]\n")
    with pytest.raises(ValueError, match="leave B lines with macros out"):
        ChainCRF(hash_bits=8, template=str(tmp_path / "edges")).fit(SENTENCES, LABELS)
    with pytest.raises(ValueError, match="hash_bits applies to named attributes"):
        ChainCRF(hash_bits=8).fit([np.ones((2, 3))], [["x", "y"]])
    with pytest.raises(ValueError, match="min_count=3 counts features"):
        ChainCRF(hash_bits=8, min_count=3).fit([[["a"]]], [["x"]])


def test_going_on_from_a_model_that_hashes():
    X, y = rows()
    hashed, plain = LogisticRegression(hash_bits=6).fit(X, y), LogisticRegression().fit(X, y)
    data = hashed.encode_training(X, y)
    assert hashed.shared_with(hashed, data)["feature"].shared == 64
    assert hashed.shared_with(plain, data)["feature"].shared == 0
    assert LogisticRegression(hash_bits=6, warm_start=True).fit(X, y).fit(X, y).certificate_.converged
    event, other = MaxEnt(hash_bits=6).fit(EVENTS, KINDS), MaxEnt().fit(EVENTS, KINDS)
    assert other.shared_with(event, other.encode_training(EVENTS, KINDS))["feature"].shared == 0
    assert event.shared_with(event, event.encode_training(EVENTS, KINDS))["feature"].is_whole


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)
    write_events(tmp_path)
    lines = [
        f"{w} {t} {k}\n"
        for one, of in zip(SENTENCES, LABELS, strict=True)
        for (w, t), k in zip(one, of, strict=True)
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    return tmp_path


@pytest.mark.parametrize(
    "kind, data, more",
    [
        ("lr", "train.svm", ()),
        ("maxent", "train.events", ("--format", "opennlp")),
        ("crf", "train.txt", ("--template", "chunk")),
    ],
)
def test_the_command_line(folder, kind, data, more):
    hashing = "--hash-bits", 10
    told = run("train", kind, data, "-o", "plain", "--tol", "1e-6", *hashing, *more)
    assert told.exit_code == 0, told.stderr
    assert run("shard", kind, data, "-o", "shards", *hashing, *more).exit_code == 0
    told = run("train", kind, "shards", "-o", "model", "--tol", "1e-6", "--valid", data)
    assert told.exit_code == 0, told.stderr
    assert run("predict", "model", data).stdout == run("predict", "plain", data).stdout
    told = run("evaluate", "model", data)
    assert told.exit_code == 0, told.stderr
    shown = run("inspect", "model")
    assert "hash_bits=10" in shown.stdout and "which are heaviest is not known" in shown.stdout
    dumped = run("dump", "model").stdout
    assert "feature\t" in dumped
    told = run("train", kind, data, "-o", "next", "--init", "model", *more)
    assert told.exit_code == 0, told.stderr
    assert fenchel.load("next").hash_bits == 10


def test_refusals_of_the_command_line(folder):
    assert "31 is not in the range" in misused("train", "lr", "train.svm", "-o", "x", "--hash-bits", 31)
    run("shard", "lr", "train.svm", "-o", "shards", "--hash-bits", 10)
    assert "written with hash_bits=10, not 9" in fails("train", "lr", "shards", "-o", "x", "--hash-bits", 9)
    given = "train.events", "-o", "x", "--format", "opennlp", "--hash-bits", 9, "--min-count", 2
    assert "--min-count 2 counts features" in fails("train", "maxent", *given)
    assert "--min-count 2 counts features" in fails("shard", "maxent", *given)
