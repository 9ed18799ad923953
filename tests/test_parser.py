"""DependencyParser: from sentences to trees and back to the same model out of a file."""

import numpy as np
import pytest

import fenchel
from fenchel import DependencyParser
from fenchel.features.arc_keys import FIXED, arc_keys, count_keys
from fenchel.features.arcs import ArcFeatures
from fenchel.features.tokens import Tokens
from fenchel.io.sharding import shard_trees
from trees_listed import parts, trees

SENTENCES = [
    [("the", "D"), ("cat", "N"), ("sleeps", "V")],
    [("dogs", "N"), ("bark", "V")],
    [("the", "D"), ("dog", "N"), ("saw", "V"), ("a", "D"), ("cat", "N")],
    [("go", "V")],
    [("cats", "N"), ("saw", "V"), ("the", "D"), ("dog", "N"), ("today", "A")],
]
HEADS = [[2, 3, 0], [2, 0], [2, 3, 0, 5, 3], [0], [2, 0, 4, 2, 2]]
LABELS = [["det", "subj", "root"], ["subj", "root"], ["det", "subj", "root", "det", "obj"], ["root"]]
LABELS += [["subj", "root", "det", "obj", "time"]]
SETTINGS = {"min_count": 1, "tol": 1e-4, "solver": "eg-gap", "n_jobs": 1}


@pytest.fixture(scope="module")
def model():
    return DependencyParser(C=10.0, **SETTINGS).fit(SENTENCES, HEADS, LABELS)


def test_it_learns_what_it_is_shown(model):
    assert model.certificate_.relative_gap <= 1e-4
    assert model.predict(SENTENCES) == HEADS
    assert model.predict_labels(SENTENCES) == LABELS
    assert model.predict_labels(SENTENCES, HEADS) == LABELS
    assert model.score(SENTENCES, HEADS) == 1.0
    assert model.score(SENTENCES, [[2, 3, 0], [2, 0], [2, 3, 0, 5, 4], [0], [2, 0, 4, 2, 2]]) == 15 / 16
    assert model.predict([[("the", "D"), ("new", "A"), ("horse", "N"), ("bark", "V")], []])[1] == []
    assert model.left_out_ == []


def test_probabilities_are_those_of_all_trees(model):
    sentence = SENTENCES[2]
    n, tokens = len(sentence), Tokens.from_sentences([sentence])
    scores = model.features_.rows(tokens).matrix @ model.coef_
    np.testing.assert_allclose(model.features_.scores(tokens, model.coef_), scores, atol=1e-12)
    listed, values = trees(n, True), parts(n, True) @ scores
    p = np.exp(values - np.logaddexp.reduce(values))
    (table,) = model.predict_marginals([sentence])
    assert table.shape == (n, n + 1) and not table[np.arange(n), np.arange(1, n + 1)].any()
    for m in range(n):
        for h in range(n + 1):
            assert table[m, h] == pytest.approx(p[listed[:, m] == h].sum(), abs=1e-12)
    (found,) = model.predict_nbest([sentence], 4)
    order = np.argsort(-p)[:4]
    assert [heads for heads, _ in found] == listed[order].tolist()
    np.testing.assert_allclose([score for _, score in found], np.log(p[order]), atol=1e-12)
    expected = [table[np.arange(n), heads].sum() for heads in listed]
    assert model.predict([sentence]) == [listed[int(np.argmax(expected))].tolist()]
    assert model.predict([sentence], decoding="tree") == [listed[order[0]].tolist()]


def test_an_explanation_adds_up(model):
    found = model.explain(SENTENCES[0], 1)
    assert (found.word, found.head) == (1, 2) and found.other in (0, 3)
    assert sum(weight for _, weight in found.features) == pytest.approx(found.scores[0] - found.scores[1])
    assert "head tag=N" in str(found) and "right 1" in str(found)
    other = model.explain(SENTENCES[0], 1, head=0, other=2)
    assert other.scores == found.scores[::-1] or found.other != 0
    with pytest.raises(ValueError, match="word=9; the sentence has words 1 to 3"):
        model.explain(SENTENCES[0], 9)
    with pytest.raises(ValueError, match="head 4 of word 1"):
        model.explain(SENTENCES[0], 1, head=4)


@pytest.mark.parametrize("settings", [{}, {"hash_bits": 10}])
def test_saved_and_loaded_it_says_the_same(settings, tmp_path):
    model = DependencyParser(C=10.0, **SETTINGS, **settings).fit(SENTENCES, HEADS, LABELS)
    model.save(tmp_path / "model")
    other = fenchel.load(tmp_path / "model")
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert other.predict(SENTENCES) == model.predict(SENTENCES) == HEADS
    assert other.predict_labels(SENTENCES) == LABELS
    assert other.get_params() == model.get_params()
    assert str(other.explain(SENTENCES[0], 1)) == str(model.explain(SENTENCES[0], 1))


def test_features_are_counted_some_sentences_at_a_time(monkeypatch):
    """So that Ctrl-C is heard between them."""
    tokens, heads = Tokens.from_sentences(SENTENCES), np.concatenate(HEADS)
    whole = ArcFeatures.learn(tokens, heads, min_count=2, observed=False)
    calls = []

    def counting(sentences, *more):
        calls.append(sentences.starts.size - 1)
        return count_keys(sentences, *more)

    monkeypatch.setattr("fenchel.features.arcs.AT_ONCE", 2)
    monkeypatch.setattr("fenchel.features.arcs.count_keys", counting)
    parts = ArcFeatures.learn(tokens, heads, min_count=2, observed=False)
    assert calls == [2, 2, 1]
    np.testing.assert_array_equal(parts.table.keys, whole.table.keys)


def test_hashed_features_do_not_know_the_order_of_the_text(tmp_path):
    """Nor how it is cut into files; and no word is kept."""
    settings = {"min_count": 1, "hash_bits": 12}
    whole = DependencyParser(tol=1e-9, **settings).fit(SENTENCES, HEADS)
    assert not len(whole.features_.words) and not len(whole.features_.tags)
    turned = [(SENTENCES[i : i + 1], HEADS[i : i + 1]) for i in range(len(HEADS) - 1, -1, -1)]
    shards = shard_trees(turned, tmp_path / "shards", **settings)
    other = DependencyParser(tol=1e-9, **settings).fit(shards)
    np.testing.assert_allclose(other.coef_, whole.coef_, atol=1e-4)
    assert other.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-8)
    found = whole.explain(SENTENCES[0], 1)
    assert sum(weight for _, weight in found.features) == pytest.approx(found.scores[0] - found.scores[1])
    new = [("unheard", "of"), ("things", "N")]
    assert whole.features_.rows(whole.encode([new])).nnz >= 4 * 35  # features of new words have columns


def test_arcs_that_cross_are_counted_and_left_out():
    crossing = [("a", "X"), ("b", "X"), ("c", "X"), ("d", "X")]
    sentences, heads = [SENTENCES[0], crossing, *SENTENCES[1:]], [HEADS[0], [0, 4, 1, 3], *HEADS[1:]]
    model = DependencyParser(C=10.0, **SETTINGS).fit(sentences, heads)
    assert model.left_out_ == [1] and model.labels_ is None
    with pytest.raises(ValueError, match="fitted without labels"):
        model.predict_labels(SENTENCES)
    with pytest.raises(ValueError, match=r"no sentence has words and a projective tree.*1 have arcs"):
        DependencyParser().fit([crossing], [[0, 4, 1, 3]])


def test_a_warm_start_goes_on_with_new_sentences():
    model = DependencyParser(C=10.0, warm_start=True, **SETTINGS).fit(SENTENCES[:3], HEADS[:3])
    names = model.features_.names()
    before = dict(zip(names, model.coef_, strict=True))
    assert len(before) == len(names)
    data = model.encode_training(SENTENCES, HEADS)
    start = model._start(model.problem(data), data)
    kept = dict(zip(data.features.names(), start.w, strict=True))
    assert all(kept[name] == weight for name, weight in before.items() if name in kept)
    assert sum(weight != 0.0 for weight in kept.values()) > 100
    model.fit(SENTENCES, HEADS)
    assert model.predict(SENTENCES) == HEADS


BAD = {
    "circle": ([[2, 1, 0]], "sentence 0, word 1: heads go round in a circle"),
    "range": ([[2, 4, 0]], "sentence 0, word 2: head 4 is out of range, expected 0"),
    "roots": (
        [[0, 0, 2]],
        "sentence 0, word 2: a second root, after word 1; expected one; single_root=False",
    ),
    "itself": ([[1, 3, 0]], "sentence 0, word 1: word 1 is its own head"),
    "number": ([["2", 3, 0]], "sentence 0, word 1: head '2' is no whole number"),
    "length": ([[2, 0]], "sequence 0 has 3 tokens but 2 labels in heads"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_tree_is_refused(case):
    heads, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        DependencyParser().fit(SENTENCES[:1], heads)


def test_settings_and_sentences_are_checked():
    with pytest.raises(ValueError, match="hash_bits=0 must be a whole number from 1 to 30"):
        DependencyParser(hash_bits=0).fit(SENTENCES, HEADS)
    with pytest.raises(ValueError, match="template='koo'; there is 'mcdonald'"):
        DependencyParser(template="koo").fit(SENTENCES, HEADS)
    with pytest.raises(ValueError, match="each token must be a word and its tag"):
        DependencyParser().fit([["a", "b"]], [[0, 1]])
    with pytest.raises(ValueError, match="min_count=1000 arcs; lower min_count"):
        DependencyParser(min_count=1000).fit(SENTENCES, HEADS)


# ---- features


def naive_features(sentence, h, m):
    """The templates as sets of (name, value) pairs, without and with direction and distance."""
    words = ["ROOT", *(word for word, _ in sentence)]
    tags = ["NONE", "ROOT", *(tag for _, tag in sentence), "NONE"]

    def tag(k):
        return tags[k + 1]

    fields = {"head": words[h], "head tag": tag(h), "word": words[m], "tag": tag(m)}
    around = {"tag after head": tag(h + 1), "tag before head": tag(h - 1) if h > 0 else "NONE"}
    around |= {"tag before": tag(m - 1), "tag after": tag(m + 1)}
    choices = ["head,head tag", "head", "head tag", "word,tag", "word", "tag", "head,head tag,word,tag"]
    choices += ["head tag,word,tag", "head,word,tag", "head,head tag,tag", "head,head tag,word", "head,word"]
    choices += [
        "head tag,tag",
        "head tag,tag after head,tag before,tag",
        "head tag,tag after head,tag,tag after",
    ]
    choices += ["tag before head,head tag,tag before,tag", "tag before head,head tag,tag,tag after"]
    base = [", ".join(f"{f}={(fields | around)[f]}" for f in choice.split(",")) for choice in choices]
    between = dict.fromkeys(tag(k) for k in range(min(h, m) + 1, max(h, m)))
    base += [f"head tag={tag(h)}, tag between={b}, tag={tag(m)}" for b in between]
    far = abs(h - m)
    far = str(far) if far <= 5 else "6-10" if far <= 10 else "11+"
    side = f"{'left' if h < m else 'right'} {far}"
    return {*base, *(f"{name}, {side}" for name in base), side}


def test_features_are_the_templates():
    rng = np.random.default_rng(0)
    sentence = [(f"w{rng.integers(9)}", f"t{rng.integers(4)}") for _ in range(15)]
    tokens = Tokens.from_sentences([sentence])
    features = ArcFeatures.learn(tokens, np.arange(15), observed=False)
    codes = features.code(tokens)
    rows, names = features.rows(tokens), features.names()
    assert len(set(names)) == len(names) == features.n_columns
    for h, m in ((0, 1), (0, 15), (15, 1), (3, 4), (9, 2), (2, 14)):
        found = features.names_of_arc(codes, 0, h, m)
        assert {name for name, _ in found} == naive_features(sentence, h, m)
        assert all(names[column] == name for name, column in found)
        at = (m - 1) * 15 + h - (h > m)
        row = rows.indices[int(rows.indptr[at]) : int(rows.indptr[at + 1])]
        assert sorted(row.tolist()) == sorted(column for _, column in found)
    room = features.room(codes)
    assert arc_keys(codes, np.uint64(0), 3, 4, room) == FIXED


def test_a_cutoff_counts_arcs_and_observed_those_of_trees():
    tokens, heads = Tokens.from_sentences(SENTENCES), np.concatenate(HEADS)
    names = {}
    for observed in (True, False):
        for least in (1, 3):
            features = ArcFeatures.learn(tokens, heads, observed=observed, min_count=least)
            names[observed, least] = set(features.names())
    assert names[True, 3] < names[True, 1] < names[False, 1]
    assert "head=saw, head tag=V" in names[True, 3] and "head=bark, head tag=V" not in names[True, 3]
    rows = ArcFeatures.learn(tokens, heads).rows(tokens, heads)
    assert rows.shape[0] == 16
