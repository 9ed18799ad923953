"""MaxEntTagger: its attributes, its search, its training by any solver, its file, its errors."""

from itertools import pairwise, product
from math import log

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from fenchel import MaxEntTagger, load
from fenchel._sparse import as_csr
from fenchel.estimators.beam import _offer, _sort_heap
from fenchel.features.ratnaparkhi import learn_features, number_words

WORDS = {
    "DT": ["the", "a", "The", "each"],
    "NN": ["dog", "cat-food", "walk", "B-52", "x"],
    "VB": ["walk", "sees", "re-entered", "eats"],
}
FOLLOWS = {"": ["DT", "NN"], "DT": ["NN"], "NN": ["VB", "NN"], "VB": ["DT", "NN"]}


def make_sentences(n=40, seed=0, longest=7):
    """Sentences in which "walk" is a noun or a verb; some are of one word, some empty."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags = [""]
        for _ in range(rng.integers(0, longest + 1)):
            tags.append(str(rng.choice(FOLLOWS[tags[-1]])))
        y.append(tags[1:])
        X.append([str(rng.choice(WORDS[tag])) for tag in tags[1:]])
    return X, y


@pytest.fixture(scope="module")
def data():
    return make_sentences()


@pytest.fixture(scope="module")
def model(data):
    return MaxEntTagger(rare=3, tol=1e-6).fit(*data)


# ---- attributes


def attributes(words, tags, t, frequent):
    """The names of the attributes of a token, written out."""
    padded = ["(boundary)", "(boundary)", *words, "(boundary)", "(boundary)"]
    before = ["(boundary)", "(boundary)", *tags]
    word, names = words[t], set()
    if word in frequent:
        names.add(f"word={word}")
    else:
        names |= {f"prefix={word[:k]}" for k in (1, 2, 3, 4) if k <= len(word)}
        names |= {f"suffix={word[len(word) - k :]}" for k in (1, 2, 3, 4) if k <= len(word)}
        names |= {"has a digit"} if any(c in "0123456789" for c in word) else set()
        names |= {"has a capital"} if word.lower() != word else set()
        names |= {"has a hyphen"} if "-" in word else set()
    names |= {f"word before={padded[t + 1]}", f"word two before={padded[t]}"}
    names |= {f"word after={padded[t + 3]}", f"word two after={padded[t + 4]}"}
    return names | {f"tag before={before[t + 1]}", f"tags before={before[t]} {before[t + 1]}"}


def frequent_words(X, rare):
    words = [word for sentence in X for word in sentence]
    return {word for word in words if words.count(word) >= rare}


def rows_of(features, X, y):
    """The names of the attributes of each token, by the tables."""
    tags = sorted({tag for of in y for tag in of})
    codes = np.array([tags.index(tag) for of in y for tag in of])
    rows = features.rows(features.tokens(number_words(X)), codes)
    names = features.names(tags)
    assert len(names) == features.size == len(set(names))
    return [{names[j] for j in rows.indices[a:b]} for a, b in pairwise(rows.indptr.tolist())], rows


@pytest.mark.parametrize("rare", [1, 3, 1000])
@pytest.mark.parametrize("min_count", [1, 4])
def test_attributes_are_those_of_the_reference(data, rare, min_count):
    X, y = data
    tags = sorted({tag for of in y for tag in of})
    codes = np.array([tags.index(tag) for of in y for tag in of])
    features = learn_features(number_words(X), codes, len(tags), rare, min_count)
    frequent = frequent_words(X, rare)
    expected = [attributes(x, of, t, frequent) for x, of in zip(X, y, strict=True) for t in range(len(x))]
    counts = {}
    for names in expected:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    kept = {name for name, n in counts.items() if n >= min_count or name.startswith("word=")}
    found, rows = rows_of(features, X, y)
    assert found == [names & kept for names in expected]
    assert set(features.names(tags)) == kept
    assert as_csr(rows).has_canonical_format and (rows.data == 1.0).all()


def test_attributes_of_new_text_are_the_known_ones(data, model):
    X, y = [["The", "unheard-of", "walk", "x"], [], ["dog"]], [["DT", "NN", "VB", "NN"], [], ["NN"]]
    known, frequent = set(model.attribute_names_), frequent_words(data[0], 3)
    expected = [attributes(x, of, t, frequent) for x, of in zip(X, y, strict=True) for t in range(len(x))]
    assert rows_of(model.features_, X, y)[0] == [names & known for names in expected]


# ---- search


def enumerate_all(model, words, frequent, dictionary=None):
    """(log-probability, tags) of all tag sequences, the best first, as a product of local probabilities."""
    tags, names = model.classes_.tolist(), model.attribute_names_
    place = {name: j for j, name in enumerate(names)}
    found = []
    for sequence in product(tags, repeat=len(words)):
        total = 0.0
        for t, tag in enumerate(sequence):
            columns = [place[a] for a in attributes(words, sequence, t, frequent) if a in place]
            total += log_softmax(model.coef_[:, columns].sum(axis=1))[tags.index(tag)]
            if dictionary and tag not in dictionary.get(words[t], tags):
                total = -np.inf
        if total > -np.inf:
            found.append((total, list(sequence)))
    return sorted(found, key=lambda pair: -pair[0])


def dictionary_of(X, y, rare):
    pairs = [pair for x, of in zip(X, y, strict=True) for pair in zip(x, of, strict=True)]
    return {word: {tag for w, tag in pairs if w == word} for word in frequent_words(X, rare)}


@pytest.mark.parametrize("tag_dictionary", [False, True])
def test_a_wide_beam_is_exhaustive(data, model, tag_dictionary):
    wide = clone(model).set_params(beam=3**5, tag_dictionary=tag_dictionary).fit(*data)
    frequent = frequent_words(data[0], 3)
    dictionary = dictionary_of(*data, 3) if tag_dictionary else None
    X = [["walk"], ["unknown", "walk"], ["the", "walk", "walk", "x"], ["x", "a", "dog", "walk", "B-52"]]
    for words, found in zip(X, wide.predict_nbest(X, 3**5), strict=True):
        expected = enumerate_all(wide, words, frequent, dictionary)
        assert len(found) == len(expected)
        np.testing.assert_allclose([p for _, p in found], [p for p, _ in expected], atol=1e-12)
        assert found[0][0] == expected[0][1] == wide.predict([words])[0]
        assert sorted(tags for tags, _ in found) == sorted(tags for _, tags in expected)
    if not tag_dictionary:
        assert sum(np.exp(p) for _, p in found) == pytest.approx(1.0)


def test_a_beam_of_one_takes_the_best_tag_of_each_word(data, model):
    greedy = clone(model).set_params(beam=1, tag_dictionary=False).fit(*data)
    frequent, tags = frequent_words(data[0], 3), greedy.classes_.tolist()
    place = {name: j for j, name in enumerate(greedy.attribute_names_)}
    for words in data[0][:10]:
        chosen = []
        for t in range(len(words)):
            columns = [place[a] for a in attributes(words, chosen, t, frequent) if a in place]
            chosen.append(tags[int(greedy.coef_[:, columns].sum(axis=1).argmax())])
        assert greedy.predict([words])[0] == chosen


def test_the_heap_keeps_the_best_and_of_equals_the_first():
    rng = np.random.default_rng(0)
    for width in (1, 2, 5, 64):
        offered = rng.integers(0, 6, 50).astype(float)
        score, number, kept = np.empty(width), np.empty(width, np.int64), 0
        for n, s in enumerate(offered):
            kept = _offer(score, number, kept, s, n)
        _sort_heap(score, number, kept)
        order = np.lexsort((np.arange(50), -offered))[:width]
        assert number[:kept].tolist() == order.tolist() and kept == min(width, 50)


def test_equal_probabilities_go_to_the_first_tags(data):
    model = MaxEntTagger(tag_dictionary=False).fit(*data)
    model.coef_ = np.zeros_like(model.coef_.T).T
    best = model.predict_nbest([["dog", "walk"]], 3)[0]
    assert [tags for tags, _ in best] == [["DT", "DT"], ["DT", "NN"], ["DT", "VB"]]
    assert best[0][1] == pytest.approx(-2 * log(3))


def test_short_empty_and_long_sentences(model):
    assert model.predict([]) == [] and model.predict([[]]) == [[]]
    assert model.predict_nbest([[]], 3) == [[([], 0.0)]]
    assert model.predict([["the"], [], ["dog"]]) == [["DT"], [], ["NN"]]
    long = ["the", "dog", "eats"] * 3334
    assert model.predict([long])[0] == ["DT", "NN", "VB"] * 3334
    assert model.predict([[""]])[0][0] in model.classes_


def test_a_sentence_is_tagged_alike_alone_and_among_others(data, model):
    together = model.predict(data[0])
    assert together == [model.predict([words])[0] for words in data[0]]
    assert model.predict([np.array(words) for words in data[0] if words]) == [of for of in together if of]


def test_a_frequent_word_takes_only_tags_it_had(data, model):
    had = dictionary_of(*data, 3)
    X = [["dog", "dog", "the", "the"], ["eats", "the"]]
    for words, tags in zip(X, model.predict(X), strict=True):
        assert all(tag in had[word] for word, tag in zip(words, tags, strict=True))


# ---- training


@pytest.mark.parametrize("solver", ["gis", "scgis", "cd-primal", "lbfgs", "tron", "cd-dual", "sdca"])
def test_every_solver_finds_the_same_tagger(data, model, solver):
    other = clone(model).set_params(solver=solver, tol=1e-4, max_iter=20000).fit(*data)
    assert other.certificate_.converged
    assert other.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-4)
    assert other.score(*data) == pytest.approx(model.score(*data), abs=0.02)


def test_training_learns(data, model):
    assert model.score(*make_sentences(seed=1)) > 0.97
    assert cross_val_score(MaxEntTagger(rare=2), *data, cv=3).min() > 0.9


def test_constants_are_translated(data):
    n = sum(map(len, data[0]))
    one, other = MaxEntTagger(C=2.0, tol=1e-8).fit(*data), MaxEntTagger(sigma2=2.0 * n, tol=1e-8).fit(*data)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_one_tag_and_one_word():
    model = MaxEntTagger().fit([["yes"]], [["UH"]])
    assert model.predict([["yes", "no"], []]) == [["UH", "UH"], []]
    assert model.predict_nbest([["no"]], 2) == [[(["UH"], 0.0)]]


def test_a_warm_start_begins_where_the_last_fit_ended(data):
    model = MaxEntTagger(warm_start=True, tol=1e-6, solver="lbfgs").fit(*data)
    first = model.trace_[0].primal
    weights = model.coef_.copy()
    model.fit(*data)
    assert model.n_iter_ <= 2 and model.trace_[0].primal < first
    np.testing.assert_allclose(model.coef_, weights, atol=1e-3)
    X, y = data
    model.fit([*X, ["oh"]], [*y, ["UH"]])
    assert model.trace_[0].primal < first and model.classes_.tolist() == ["DT", "NN", "UH", "VB"]


# ---- looking inside, saving


def test_an_explanation_adds_up(model):
    explained = model.explain(["The", "unheard", "walk"], 2)
    frequent = {"The"} | set(model.features_.words.names)
    tags = model.predict([["The", "unheard", "walk"]])[0]
    names = {name for name, _ in explained.contributions["NN"]}
    expected = attributes(["The", "unheard", "walk"], tags, 2, frequent)
    assert names == expected & set(model.attribute_names_) and explained.unknown == ["unheard"]
    assert "word=walk" in str(explained)


def test_the_heaviest_features(model):
    top = model.top_features(3, label="DT")
    assert len(top) == 3 and top[0].label == "DT" and abs(top[0].weight) >= abs(top[2].weight)
    place = model.attribute_names_.index(top[0].feature)
    assert top[0].weight == model.coef_[0, place]
    with pytest.raises(ValueError, match="tag 'XX' is unknown"):
        model.top_features(label="XX")


def test_a_saved_tagger_tags_alike(data, model, tmp_path):
    model.save(tmp_path / "tagger")
    again = load(tmp_path / "tagger")
    X = [*data[0], ["The", "unheard-of", "walk"]]
    assert again.predict_nbest(X, 3) == model.predict_nbest(X, 3)
    assert again.get_params() == model.get_params()
    assert again.certificate_ == model.certificate_ and again.top_features(5) == model.top_features(5)


@pytest.mark.parametrize("name", ["frequent", "pair", "dictionary", "weights"])
def test_a_damaged_file_is_refused(model, name):
    arrays, facts = model._to_file()
    with pytest.raises(ValueError, match="expected"):
        MaxEntTagger()._from_file(arrays | {name: arrays[name][:-1]}, facts)


def test_columns_that_lead_beyond_the_weights_are_refused(model):
    arrays, facts = model._to_file()
    beyond = np.where(arrays["pair"] >= 0, arrays["pair"] + np.int32(7), np.int32(-1))
    with pytest.raises(ValueError, match="numbered from"):
        MaxEntTagger()._from_file(arrays | {"pair": beyond}, facts)


# ---- errors


@pytest.mark.parametrize(
    "X, y, message",
    [
        ("the dog", [["DT"]], "X is a str, expected a list of sentences"),
        (["the dog"], [["DT", "NN"]], "X, sentence 0: the string 'the dog', expected a list"),
        ([["a"], 7], [["DT"], []], "X, sentence 1: a int, expected a list"),
        ([["a"], ["b", 3]], [["DT"], ["NN", "NN"]], "X, sentence 1, position 1: 3 is a int"),
        ([["a"], ["b", []]], [["DT"], ["NN", "NN"]], "X, sentence 1, position 1: .* is a list"),
        ([["a"], ["b"]], [["DT"], [None]], "y, sentence 1, position 0: None is a NoneType"),
        ([["a"], ["b"]], [["DT"], "NN"], "y, sentence 1: the string 'NN'"),
        ([["a"], ["b", "c"]], [["DT"], ["NN"]], "sentence 1: 2 words but 1 tags"),
        ([["a"]], [["DT"], ["NN"]], "X has 1 sentences but y has 2"),
        ([[]], [[]], "there are no words"),
        ([], [], "there are no words"),
    ],
)
def test_errors_name_the_sentence(X, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MaxEntTagger().fit(X, y)


@pytest.mark.parametrize("name", ["beam", "rare", "min_count"])
@pytest.mark.parametrize("value", [0, 1.5, None])
def test_settings_are_checked(data, name, value):
    with pytest.raises(ValueError, match=f"{name}=.* must be a whole number"):
        MaxEntTagger(**{name: value}).fit(*data)


def test_errors_of_prediction(model):
    with pytest.raises(NotFittedError):
        MaxEntTagger().predict([["a"]])
    with pytest.raises(TypeError, match="sentence 0: the string 'the'"):
        model.predict(["the", "dog"])
    with pytest.raises(TypeError, match="sentence 0, position 1: 5 is a int"):
        model.predict([["the", 5]])
    with pytest.raises(ValueError, match="k=0 must be"):
        model.predict_nbest([["the"]], 0)
    with pytest.raises(ValueError, match="no words to score"):
        model.score([[]], [[]])
    with pytest.raises(ValueError, match="position 2 is outside"):
        model.explain(["the", "dog"], 2)
    with pytest.raises(ValueError, match="no attribute occurs min_count=9"):
        MaxEntTagger(min_count=9).fit([["a"]], [["DT"]])


# ---- further columns


def with_shapes(X):
    """Each word with a second column: its length."""
    return [[(word, f"L{len(word)}") for word in sentence] for sentence in X]


def test_a_further_column_is_looked_at_here_and_on_either_side(data, tmp_path):
    X, y = data
    model = MaxEntTagger(rare=3, columns=1, tol=1e-4).fit(with_shapes(X), y)
    plain = MaxEntTagger(rare=3, tol=1e-4).fit(X, y)
    encoded = model.encode_training(with_shapes(X), y)
    names, rows = encoded.features.names(model.classes_.tolist()), as_csr(encoded.rows)
    i = next(i for i, sentence in enumerate(X) if len(sentence) > 3)
    first = sum(map(len, X[:i]))
    for t in range(len(X[i])):
        padded = ["(boundary)"] * 2 + [f"L{len(word)}" for word in X[i]] + ["(boundary)"] * 2
        places = {"here": 2, "before": 1, "two before": 0, "after": 3, "two after": 4}
        expected = {f"column 1 {place}={padded[t + k]}" for place, k in places.items()}
        found = {names[j] for j in rows[first + t].indices}
        assert {name for name in found if name.startswith("column")} == expected
        old = as_csr(plain.encode_training(X, y).rows)[first + t].indices
        assert found - expected == {plain.attribute_names_[j] for j in old}
    assert all(np.diff(rows[k].indices).min() > 0 for k in range(rows.shape[0]))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(with_shapes(X)) == model.predict(with_shapes(X))
    assert model.score(with_shapes(X), y) > 0.8
    assert "column 1 here" in str(model.explain(with_shapes(X)[i], 1))


def test_tokens_without_the_further_column_are_named(data):
    X, y = data
    with pytest.raises(
        ValueError, match=r"X, sentence \d+, position 0: '\w+', expected a tuple of a word and 1"
    ):
        MaxEntTagger(columns=1).fit(X, y)
    with pytest.raises(ValueError, match="columns=-1 must be a whole number"):
        MaxEntTagger(columns=-1).fit(X, y)
