"""Shards of sequences and trees: what is trained from disk is what would have been trained from memory."""

import numpy as np
import pytest

import fenchel
from commands import fails, run
from fenchel import ChainCRF, DependencyParser
from fenchel.errors import DataError
from fenchel.estimators.arc_labels import ArcLabels
from fenchel.features.tokens import Tokens
from fenchel.io.sharding import shard_sequences, shard_trees
from test_shards import flip, have_memory, manifest


def some_sentences(n=60, seed=0):
    """Lists of (word, tag), and of labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        words = rng.integers(0, 30, length)
        X.append([(f"w{k}", f"T{k % 4}") for k in words.tolist()])
        noise = rng.integers(0, 5, length) == 0
        y.append([("B", "I", "O")[k] for k in ((words % 3 + noise) % 3).tolist()])
    return X, y


def batches_of(X, y, size=6):
    return [(X[at : at + size], y[at : at + size]) for at in range(0, len(X), size)]


def attributes(X):
    return [[[f"word={word}", f"tag={tag}"] for word, tag in sentence] for sentence in X]


def same_model(model, other, tol):
    assert model.certificate_.converged
    assert model.certificate_.dual <= other.certificate_.primal
    assert model.certificate_.primal <= other.certificate_.primal * (1.0 + 2 * tol)


@pytest.mark.parametrize("settings", [{}, {"solver": "lbfgs"}, {"observed": True}, {"loss": "hinge"}])
def test_sequences_on_disk_give_the_model_of_memory(tmp_path, settings):
    X, y = some_sentences()
    whole = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk", min_count=2, rows=6)
    assert whole.pieces.size - 1 == 10 and whole.n == 60
    shards, tol = fenchel.Shards(whole.folder, memory=whole.size // 4), 1e-4
    model = ChainCRF(tol=tol, max_iter=5000, **settings).fit(shards)
    other = ChainCRF(tol=tol / 10, max_iter=5000, template="chunk", min_count=2, **settings).fit(X, y)
    same_model(model, other, tol)
    assert model.attribute_names_ == other.attribute_names_
    assert model.classes_.tolist() == other.classes_.tolist()
    model.save(tmp_path / "model")
    again = fenchel.load(tmp_path / "model")
    assert again.predict(X) == model.predict(X)
    assert np.mean([a == b for a, b in zip(model.predict(X), other.predict(X), strict=True)]) > 0.9


def test_sequences_larger_than_memory(tmp_path, monkeypatch):
    X, y = some_sentences()
    whole = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk", rows=6)
    monkeypatch.setattr("fenchel.solvers.eg.solver.available_bytes", lambda: 0)  # no room for a fast lane
    have_memory(monkeypatch, 0)
    model = ChainCRF(tol=1e-4, solver="eg-gap").fit(fenchel.Shards(whole.folder, memory=whole.size // 4))
    same_model(model, ChainCRF(tol=1e-5, template="chunk").fit(X, y), 1e-4)


def test_attributes_by_name_bias_and_weights(tmp_path):
    X, y = some_sentences()
    A, weight = attributes(X), np.linspace(0.5, 2.0, len(X))
    batches = [(A[:20], y[:20], weight[:20]), ([[]], [[]]), (A[20:], y[20:], weight[20:])]
    shards = shard_sequences(batches, tmp_path / "shards", bias=True, boundaries=True, min_count=3)
    assert shards.n == 60  # less the empty one
    more = np.linspace(1.0, 3.0, len(X))
    model = ChainCRF(tol=1e-5, bias=True, boundaries=True).fit(shards, sample_weight=more)
    made = ChainCRF(tol=1e-6, bias=True, boundaries=True, min_count=3)
    other = made.fit(A, y, sample_weight=weight * more)
    same_model(model, other, 1e-5)
    assert model.attribute_names_ == other.attribute_names_
    with pytest.raises(ValueError, match="written with bias=True, not False; give the model bias=True"):
        ChainCRF().fit(shards)


def test_attributes_of_pairs_of_labels(tmp_path):
    (tmp_path / "template").write_text("U00:%x[0,0]\nB01:%x[0,1]\n")
    X, y = some_sentences(30)
    path = str(tmp_path / "template")
    shards = shard_sequences(batches_of(X, y), tmp_path / "shards", template=path, rows=6)
    model = ChainCRF(tol=1e-4).fit(shards)
    other = ChainCRF(tol=1e-5, template=path).fit(X, y)
    same_model(model, other, 1e-4)
    assert model.edge_coef_.shape == other.edge_coef_.shape == (4, 3, 3)


def test_parts_of_sequences_add_up(tmp_path):
    X, y = some_sentences()
    shards = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk", rows=6)
    model = ChainCRF(n_jobs=1)
    whole = model.problem(model.encode_training(shards))
    parts = [model.problem(model.encode_training(shards.part(some))) for some in ([0, 5], [9, 1, 2, 3])]
    parts.append(model.problem(model.encode_training(shards.part([4, 6, 7, 8]))))
    w = np.random.default_rng(0).normal(size=whole.dim)
    penalty = whole.regularizer.value(w)
    losses = [part.evaluate(w).value - penalty for part in parts]
    assert sum(losses) + penalty == pytest.approx(whole.evaluate(w).value)
    assert sum(part.n for part in parts) == whole.n


def test_wrong_sequences_are_a_sentence(tmp_path):
    X, y = some_sentences(8)
    with pytest.raises(TypeError, match="sequences are gone through twice"):
        shard_sequences(iter([(X, y)]), tmp_path / "x", template="chunk")
    with pytest.raises(ValueError, match="sequence 0 of a batch has"):
        shard_sequences([(X, [[*y[0], "B"], *y[1:]])], tmp_path / "x", template="chunk")
    with pytest.raises(ValueError, match="8 sequences but labels of 7"):
        shard_sequences([(X, y[1:])], tmp_path / "x", template="chunk")
    with pytest.raises(ValueError, match="lower min_count"):
        shard_sequences([(X, y)], tmp_path / "x", template="chunk", min_count=1000)
    with pytest.raises(ValueError, match="there are no sequences"):
        shard_sequences([], tmp_path / "x")
    with pytest.raises(TypeError, match="arrays and pairs"):
        shard_sequences([([np.ones((2, 2))], [["a", "b"]])], tmp_path / "x")
    with pytest.raises(ValueError, match="1 columns, expected 2 as before"):
        batches = [(X, y), ([[("w1",)]], [["B"]])]
        shard_sequences(batches, tmp_path / "x", template="chunk")
    assert not (tmp_path / "x").exists()
    shards = shard_sequences([(X, y)], tmp_path / "shards", template="chunk")
    with pytest.raises(ValueError, match="without them"):
        ChainCRF().fit(shards, y)
    with pytest.raises(ValueError, match="by the template chunk, not pos"):
        ChainCRF(template="pos").fit(shards)
    with pytest.raises(DataError, match="shards of sequences, but DependencyParser is trained on trees"):
        DependencyParser().fit(shards)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        ChainCRF().fit(shards, sample_weight=[1.0] * 3)


# ---- trees


def some_trees(n=30, seed=1):
    """Sentences with heads and labels; of one the arcs cross."""
    rng = np.random.default_rng(seed)
    X, heads, labels = [], [], []
    for _ in range(n):
        words = rng.integers(0, 12, int(rng.integers(1, 7))).tolist()
        X.append([(f"w{k}", f"T{k % 3}") for k in words])
        root = max(range(len(words)), key=lambda t: words[t])
        heads.append([0 if t == root else t + 2 if t < root else t for t in range(len(words))])
        labels.append([f"l{k % 2}" for k in words])
    X[3], heads[3], labels[3] = [("w1", "T1")] * 4, [3, 4, 0, 3], ["l1"] * 4
    return X, heads, labels


@pytest.mark.parametrize("settings", [{}, {"hash_bits": 8}, {"observed": True}, {"loss": "hinge"}])
def test_trees_on_disk_give_the_model_of_memory(tmp_path, settings):
    X, heads, labels = some_trees()
    own = {name: value for name, value in settings.items() if name != "loss"}
    batches = [(X[at : at + 4], heads[at : at + 4], labels[at : at + 4]) for at in range(0, 30, 4)]
    whole = shard_trees(batches, tmp_path / "shards", min_count=2, rows=5, **own)
    assert whole.n == 29 and whole.pieces.size - 1 > 3
    shards, tol = fenchel.Shards(whole.folder, memory=whole.size // 4), 1e-3
    model = DependencyParser(tol=tol, **settings).fit(shards)
    other = DependencyParser(tol=tol / 10, min_count=2, **settings).fit(X, heads, labels)
    same_model(model, other, tol)
    assert model.left_out_ == other.left_out_ == [3]
    assert model.features_.names() == other.features_.names()
    assert model.labels_.classes.tolist() == ["l0", "l1"]
    model.save(tmp_path / "model")
    assert fenchel.load(tmp_path / "model").predict(X) == model.predict(X)


def test_margins_of_sequences_larger_than_memory(tmp_path, monkeypatch):
    X, y = some_sentences()
    whole = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk", rows=6)
    have_memory(monkeypatch, 0)
    model = ChainCRF(loss="hinge", tol=1e-2).fit(fenchel.Shards(whole.folder, memory=whole.size // 4))
    assert model.trace_.solver == "eg-gap"
    same_model(model, ChainCRF(loss="hinge", template="chunk", tol=1e-3).fit(X, y), 1e-2)


@pytest.mark.parametrize("solver", ["eg-gap", "lbfgs"])
def test_trees_larger_than_memory(tmp_path, monkeypatch, solver):
    X, heads, _ = some_trees()
    whole = shard_trees([(X, heads)], tmp_path / "shards", min_count=1, rows=5)
    have_memory(monkeypatch, 0)
    shards = fenchel.Shards(whole.folder, memory=whole.size // 4)
    model = DependencyParser(tol=1e-4, solver=solver, max_iter=5000).fit(shards)
    same_model(model, DependencyParser(tol=1e-5, min_count=1).fit(X, heads), 1e-4)


def test_dask_bags(tmp_path):
    bag = pytest.importorskip("dask.bag")
    X, y = some_sentences()
    pairs = bag.from_sequence(list(zip(X, y, strict=True)), partition_size=15)
    shards = shard_sequences(pairs, tmp_path / "a", template="chunk")
    same = shard_sequences(batches_of(X, y, 15), tmp_path / "b", template="chunk")
    trees, heads, _ = some_trees()
    pairs = bag.from_sequence(list(zip(trees, heads, strict=True)), partition_size=8)
    others = shard_trees(pairs, tmp_path / "c"), shard_trees(batches_of(trees, heads, 8), tmp_path / "d")
    for some, other in ((shards, same), others):
        for name in other.arrays:
            assert np.array_equal(some.arrays[name], other.arrays[name]), name
        assert some.facts == other.facts


def test_wrong_trees_are_a_sentence(tmp_path):
    X, heads, labels = some_trees(8)
    with pytest.raises(TypeError, match="sentences are gone through twice"):
        shard_trees(iter([(X, heads)]), tmp_path / "x")
    with pytest.raises(ValueError, match="sentence 0, word"):
        shard_trees([(X[:1], [[9] * len(X[0])])], tmp_path / "x")
    with pytest.raises(ValueError, match="all or none"):
        shard_trees([(X[:2], heads[:2]), (X[2:3], heads[2:3], labels[2:3])], tmp_path / "x")
    with pytest.raises(ValueError, match="lower min_count"):
        shard_trees([(X, heads)], tmp_path / "x", min_count=10_000)
    assert not (tmp_path / "x").exists()
    shards = shard_trees([(Tokens.from_sentences(X), heads)], tmp_path / "shards", min_count=1)
    assert DependencyParser().fit(shards).labels_ is None
    with pytest.raises(ValueError, match="written with single_root=True"):
        DependencyParser(single_root=False).fit(shards)


# ---- the command line


def write_columns(path, X, y):
    lines = []
    for x, labels in zip(X, y, strict=True):
        lines += [" ".join([*token, label]) for token, label in zip(x, labels, strict=True)] + [""]
    path.write_text("\n".join(lines) + "\n")


def test_column_files(tmp_path, monkeypatch):
    X, y = some_sentences()
    parts = tmp_path / "1.txt", tmp_path / "2.txt"
    write_columns(parts[0], X[:40], y[:40])
    write_columns(parts[1], X[40:], y[40:])
    folder, model = tmp_path / "shards", tmp_path / "model.fenchel"
    monkeypatch.setattr("fenchel.io.columns.BLOCK", 100)  # a sentence or two at a time
    told = run("shard", "crf", *parts, "-o", folder, "--min-count", 2, "--rows", 10)
    assert "60 sentences in 6 shards" in told.stderr
    told = run("train", "crf", folder, "-o", model, "--valid", parts[1], "--tol", "1e-4")
    assert told.exit_code == 0 and "3 labels" in told.stderr and "by the template chunk" in told.stderr
    other = ChainCRF(template="chunk", min_count=2, tol=1e-5).fit(X, y)
    found = fenchel.load(model)
    same_model(found, other, 1e-4)
    assert found.attribute_names_ == other.attribute_names_ and found.min_count == 2
    assert run("predict", model, parts[1]).exit_code == 0
    assert "standard input is there once" in fails("shard", "crf", "-", "-o", tmp_path / "y")
    assert "written with --min-count 2, not 3" in fails("train", "crf", folder, "-o", model, "--min-count", 3)
    three = tmp_path / "3.txt"
    three.write_text("a B\n")
    assert "2 columns, expected 3" in fails("shard", "crf", parts[0], three, "-o", tmp_path / "y")
    assert "shards of sequences, but lr" in fails("train", "lr", folder, "-o", model)


def test_attribute_files(tmp_path):
    X, y = some_sentences()
    lines = []
    for x, labels in zip(attributes(X), y, strict=True):
        lines += ["\t".join([label, *names]) for names, label in zip(x, labels, strict=True)] + [""]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    folder, model = tmp_path / "shards", tmp_path / "model.fenchel"
    assert run("shard", "crf", tmp_path / "a.txt", "-o", folder, "--bias").exit_code == 0
    assert run("train", "crf", folder, "-o", model, "--tol", "1e-4").exit_code == 0
    other = ChainCRF(bias=True, tol=1e-5).fit(attributes(X), y)
    same_model(fenchel.load(model), other, 1e-4)


@pytest.fixture
def treebank(tmp_path):
    """A file, and what is in it."""
    (X, heads, labels), lines = some_trees(), []
    for x, own, named in zip(X, heads, labels, strict=True):
        for t, ((word, tag), head, label) in enumerate(zip(x, own, named, strict=True), 1):
            lines.append("\t".join([str(t), word, "_", tag, tag, "_", str(head), label, "_", "_"]))
        lines.append("")
    (tmp_path / "a.conll").write_text("\n".join(lines))
    return X, heads, labels


def test_treebank_files(tmp_path, treebank):
    X, heads, labels = treebank
    folder, model = tmp_path / "shards", tmp_path / "model.fenchel"
    told = run("shard", "parser", tmp_path / "a.conll", "-o", folder, "--min-count", 2)
    assert "29 sentences in 1 shard" in told.stderr
    told = run("train", "parser", folder, "-o", model, "--valid", tmp_path / "a.conll")
    assert "30 sentences (1 with arcs that cross left out)" in told.stderr and "2 labels" in told.stderr
    other = DependencyParser(min_count=2, tol=1e-4).fit(X, heads, labels)
    same_model(fenchel.load(model), other, 1e-3)
    assert run("evaluate", model, tmp_path / "a.conll").exit_code == 0


def test_labels_of_shards_can_be_left_out(tmp_path, treebank):
    folder, model = tmp_path / "shards", tmp_path / "model"
    assert run("shard", "parser", tmp_path / "a.conll", "-o", folder, "--min-count", 2).exit_code == 0
    told = run("train", "parser", folder, "-o", model, "--no-labels")
    assert told.exit_code == 0 and "2 labels" not in told.stderr
    assert fenchel.load(model).labels_ is None


def test_the_memory_of_labels_is_told_and_refused_before_training(tmp_path, treebank, monkeypatch):
    folder, train = tmp_path / "shards", ("train", "parser", tmp_path / "shards", "-o", tmp_path / "model")
    assert run("shard", "parser", tmp_path / "a.conll", "-o", folder, "--min-count", 2).exit_code == 0
    monkeypatch.setattr(ArcLabels, "memory", lambda *_: 10**15)
    told = run(*train, "--no-labels")
    assert told.exit_code == 0 and "1,000,000,0" not in told.stderr
    told = run(*train)
    assert told.exit_code == 2 and "takes about 1,000,000,2" in told.stderr
    assert "fenchel: the model of labels of arcs needs 931322.6 GiB" in told.stderr
    assert told.stderr.endswith("leave them out by --no-labels\n")


# ---- damage


@pytest.mark.parametrize("name", ["starts", "labels", "source.value_text", "source.keys", "indices"])
def test_damaged_sequences_are_named(tmp_path, name):
    X, y = some_sentences(12)
    shards = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk")
    flip(f"{name}.bin", 3)(shards.folder)
    with pytest.raises(DataError, match=f"{name}.bin is altered"):
        ChainCRF().fit(fenchel.Shards(shards.folder))
    (shards.folder / f"{name}.bin").unlink()
    with pytest.raises(DataError, match=f"{name}.bin is missing"):
        fenchel.Shards(shards.folder)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"columns": 3}, r"indices.bin or data.bin is damaged"),
        ({"classes": ["B"]}, "labels.bin is damaged"),
        ({"classes": ["B", "B", "I"]}, "a class comes twice"),
        ({"source": {"kind": "template"}}, "damaged, source"),
        ({"source": {"kind": "new"}}, "damaged, source"),
        ({"edge_columns": 2}, "no array 'edge_indices'"),
    ],
)
def test_damaged_facts_of_sequences(tmp_path, facts, words):
    X, y = some_sentences(12)
    shards = shard_sequences(batches_of(X, y), tmp_path / "shards", template="chunk")
    manifest(facts=shards.facts | facts)(shards.folder)
    with pytest.raises(DataError, match=words):
        ChainCRF().fit(fenchel.Shards(shards.folder))


def test_files_of_other_shards_are_found(tmp_path):
    """Of the same sizes, but another vocabulary."""
    X, y = some_sentences(12)
    others = [[(word.replace("w", "v"), tag) for word, tag in sentence] for sentence in X]
    one = shard_sequences(batches_of(X, y), tmp_path / "one", template="chunk")
    two = shard_sequences(batches_of(others, y), tmp_path / "two", template="chunk")
    (one.folder / "source.value_text.bin").write_bytes((two.folder / "source.value_text.bin").read_bytes())
    with pytest.raises(DataError, match=r"source.value_text.bin is altered"):
        ChainCRF().fit(fenchel.Shards(one.folder))


@pytest.mark.parametrize("name", ["heads", "true_indptr", "features.keys"])
def test_damaged_trees_are_named(tmp_path, name):
    X, heads, labels = some_trees(8)
    shards = shard_trees([(X, heads, labels)], tmp_path / "shards", min_count=1)
    flip(f"{name}.bin", 3)(shards.folder)
    with pytest.raises(DataError, match=f"{name}.bin is altered"):
        DependencyParser().fit(fenchel.Shards(shards.folder))
