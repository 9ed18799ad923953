"""Events of all kinds become the same sparse rows."""

import math
import random
import subprocess
import sys
from collections import Counter, namedtuple
from decimal import Decimal

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer

from fenchel._sparse import as_csr
from fenchel.features.encode import encode, encode_candidates
from fenchel.features.vocabulary import Vocabulary

Attributes = namedtuple("Attributes", "names values")

NUMBER = "expected a number, a bool or a string"
FINITE = "features must be finite numbers"


def grown(events, **options):
    """The rows as lists and the names, of a vocabulary that starts empty."""
    rows, vocabulary = encode(events, Vocabulary(), grow=True, **options)
    assert_canonical(rows, len(vocabulary))
    return as_csr(rows).toarray().tolist(), vocabulary.names


def assert_canonical(rows, width):
    assert (rows.indptr.dtype, rows.indices.dtype, rows.data.dtype) == (np.uint64, np.uint32, np.float64)
    assert rows.n_columns == width
    assert rows.indptr[0] == 0
    assert rows.indptr[-1] == rows.indices.size == rows.data.size
    for i in range(rows.shape[0]):
        indices = rows.indices[rows.indptr[i] : rows.indptr[i + 1]].astype(int)
        assert (np.diff(indices) > 0).all()
        assert (indices < width).all()
    assert rows.data.all()
    assert rows.data.flags.writeable


# Kinds of events


@pytest.mark.parametrize(
    "event, row, names",
    [
        ({"a": 1, "b": -2.5}, [1, -2.5], ["a", "b"]),
        ({"a": True, "b": False, "c": 3}, [1, 3], ["a", "c"]),
        ({"tag": "NN", "word": "the"}, [1, 1], ["tag=NN", "word=the"]),
        ({"tag": "NN", "size": 7, "upper": True}, [1, 7, 1], ["tag=NN", "size", "upper"]),
        ({"a": ""}, [1], ["a="]),
        ({"a=b": 2, "a": "b"}, [3], ["a=b"]),
        (
            {"a": np.float32(0.5), "b": np.int64(3), "c": np.True_, "d": np.str_("x")},
            [0.5, 3, 1, 1],
            ["a", "b", "c", "d=x"],
        ),
        ({"a": Decimal("0.25"), "b": 2**60}, [0.25, 2.0**60], ["a", "b"]),
        (Counter("abca"), [2, 1, 1], ["a", "b", "c"]),
        (["x", "y", "x"], [2, 1], ["x", "y"]),
        (("x", "", "two words"), [1, 1, 1], ["x", "", "two words"]),
        ({"y", "x"}, [1, 1], ["x", "y"]),
        (frozenset({"y", "x"}), [1, 1], ["x", "y"]),
        (Attributes(["x", "y", "x"], [1.0, 2.0, -3.0]), [-2, 2], ["x", "y"]),
        (Attributes(["x"], np.array([2.5])), [2.5], ["x"]),
        ([f"n{i}" for i in range(1000)], [1] * 1000, [f"n{i}" for i in range(1000)]),
    ],
)
def test_kinds_of_events(event, row, names):
    assert grown([event]) == ([row], names)


@pytest.mark.parametrize("event", [{}, [], (), set(), Attributes([], [])])
def test_events_without_features(event):
    assert grown([["a"], event, ["a"]]) == ([[1], [0], [1]], ["a"])


def test_no_events_at_all():
    for grow in (True, False):
        for vocabulary in (Vocabulary(), Vocabulary(["a"])):
            rows, after = encode([], vocabulary, grow=grow)
            assert rows.shape == (0, len(vocabulary))
            assert after.names == vocabulary.names


def test_no_names_at_all():
    assert encode([[], ["a"]], Vocabulary())[0].shape == (2, 0)


def test_zeros_and_what_cancels_are_not_stored():
    events = [{"a": 0, "b": 1, "c": -0.0}, Attributes(["b", "d", "d"], [0.0, 1.0, -1.0]), ["a"]]
    rows, vocabulary = encode(events, Vocabulary(), grow=True)
    assert_canonical(rows, 2)
    assert rows.nnz == 2
    assert vocabulary.names == ["a", "b"]  # c and d are zero wherever they occur


def test_events_are_read_once_from_a_generator():
    assert grown({"a": i} for i in (1, 2)) == ([[1], [2]], ["a"])


def test_same_as_dict_vectorizer():
    random.seed(0)
    events = []
    for _ in range(300):
        kinds = [random.random(), random.randint(-3, 3), random.choice("xyz"), random.random() < 0.5]
        events.append(
            {f"f{random.randint(0, 20)}": random.choice(kinds) for _ in range(random.randint(0, 8))}
        )
    events.append({f"f{i}": 1 for i in range(21)})  # no column without entries
    vectorizer = DictVectorizer()
    expected = vectorizer.fit_transform(events)
    rows, vocabulary = encode(events, Vocabulary(), grow=True)
    assert_canonical(rows, len(vocabulary))
    order = [vocabulary.get(name) for name in vectorizer.feature_names_]
    assert sorted(order) == list(range(len(vocabulary)))
    assert (as_csr(rows)[:, order] != expected).nnz == 0


def test_order_of_a_set_does_not_depend_on_the_process():
    program = "\n".join(
        [
            "from fenchel.features.encode import Vocabulary, encode",
            "print(encode([{'b', 'a', 'c', 'd'}], Vocabulary(), grow=True)[1].names)",
        ]
    )
    for seed in ("1", "2"):
        finished = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert finished.stdout == "['a', 'b', 'c', 'd']\n"


# Vocabularies


def test_prediction_drops_unknown_names():
    vocabulary = Vocabulary(["a", "tag=NN"])
    events = [
        ["x", "a", "y"],
        {"tag": "NN", "z": math.nan},
        {"tag": "VB"},
        Attributes(["a", "x"], [2.0, 3.0]),
    ]
    rows, same = encode(events, vocabulary, min_count=100)
    assert_canonical(rows, 2)
    assert as_csr(rows).toarray().tolist() == [[1, 0], [0, 1], [0, 0], [2, 0]]
    assert same is vocabulary
    assert vocabulary.names == ["a", "tag=NN"]


def test_training_data_encode_the_same_with_their_vocabulary():
    random.seed(1)
    events = [[f"n{random.randint(0, 50)}" for _ in range(10)] for _ in range(100)]
    rows, vocabulary = encode(events, Vocabulary(), grow=True, min_count=18)
    assert 0 < len(vocabulary) < 51
    again, _ = encode(events, vocabulary)
    for one, other in zip(rows[:3], again[:3], strict=True):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()


def test_growing_leaves_the_vocabulary_given_alone():
    vocabulary = Vocabulary(["a"])
    rows, larger = encode([["b", "a"]], vocabulary, grow=True)
    assert vocabulary.names == ["a"]
    assert larger.names == ["a", "b"]
    assert as_csr(rows).toarray().tolist() == [[1, 1]]


def test_min_count_counts_events_and_renumbers_in_order_of_first_sight():
    events = [
        ["once", "b", "twice"],
        ["a", "b", "often", "often", "often"],
        {"twice": 1, "a": 2},
        {"often": 0},
    ]
    assert grown(events, min_count=1)[1] == ["once", "b", "twice", "a", "often"]
    assert grown(events, min_count=2) == ([[1, 1, 0], [1, 0, 1], [0, 1, 2], [0, 0, 0]], ["b", "twice", "a"])
    assert grown(events, min_count=3) == ([[], [], [], []], [])


def test_min_count_keeps_names_known_before():
    rows, vocabulary = encode([["new"], ["b"]], Vocabulary(["a", "b"]), grow=True, min_count=2)
    assert vocabulary.names == ["a", "b"]
    assert_canonical(rows, 2)
    assert as_csr(rows).toarray().tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("min_count", [0, -1])
def test_min_count_is_positive(min_count):
    with pytest.raises(ValueError, match=f"min_count is {min_count}; it must be at least 1"):
        encode([["a"]], Vocabulary(), grow=True, min_count=min_count)


# Errors


@pytest.mark.parametrize(
    "event, kind, message",
    [
        (
            "abc",
            TypeError,
            "event 2: the string 'abc', expected a dict or a list of names (write ['abc'] for one)",
        ),
        (3, TypeError, "event 2: a int, expected a dict or a list of names"),
        (None, TypeError, "event 2: a NoneType, expected a dict or a list of names"),
        ({"x": None}, TypeError, f"event 2: feature 'x' is None, {NUMBER}"),
        ({"y": "s", "x": None}, TypeError, f"event 2: feature 'x' is None, {NUMBER}"),
        ({"x": [1]}, TypeError, f"event 2: feature 'x' is a list, {NUMBER}"),
        ({"x": 1j}, TypeError, f"event 2: feature 'x' is a complex, {NUMBER}"),
        ({"x": 10**400}, ValueError, f"event 2: feature 'x' is too large a number; {FINITE}"),
        ({"a": 1, "x": math.nan}, ValueError, f"event 2: feature 'x' is nan; {FINITE}"),
        ({"a": "b", "x": -math.inf}, ValueError, f"event 2: feature 'x' is -inf; {FINITE}"),
        (Attributes(["x"], [math.inf]), ValueError, f"event 2: feature 'x' is inf; {FINITE}"),
        (Attributes(["x", "x"], [1e308] * 2), ValueError, f"event 2: feature 'x' is inf; {FINITE}"),
        (Attributes(["x", "y"], [1.0]), ValueError, "event 2: 2 names but 1 values; they must match"),
        (Attributes(["x"], [None]), TypeError, f"event 2: feature 'x' is None, {NUMBER}"),
        ([("x", 1.0)], TypeError, "event 2: the name ('x', 1.0) is a tuple, expected a string"),
        ([["x"]], TypeError, "event 2: the name ['x'] is a list, expected a string"),
        ({1: 2.0}, TypeError, "event 2: the name 1 is a int, expected a string"),
        ({None, "x"}, TypeError, "event 2: the name None is a NoneType, expected a string"),
    ],
)
def test_errors_name_the_event(event, kind, message):
    vocabulary = Vocabulary(["a"])
    with pytest.raises(kind) as caught:
        encode([["a"], [], event, ["b"]], vocabulary, grow=True)
    assert str(caught.value) == message
    assert vocabulary.names == ["a"]


def test_a_list_of_strings_is_not_a_list_of_events():
    with pytest.raises(TypeError, match=r"event 0: the string 'word=the'"):
        encode(["word=the", "tag=DT"], Vocabulary(["a"]))


def test_known_features_are_checked_in_prediction():
    with pytest.raises(ValueError, match=r"^event 1: feature 'x' is nan; features must be finite numbers$"):
        encode([[], {"x": math.nan}], Vocabulary(["a", "x"]))


def test_errors_of_the_source_pass_through():
    def events():
        yield ["a"]
        raise ValueError("train.txt:2: wrong")

    with pytest.raises(ValueError, match=r"^train.txt:2: wrong$"):
        encode(events(), Vocabulary(), grow=True)


# Candidates


def test_candidates():
    events = [
        {"NN": {"a": 1, "t": "x"}, "VB": ["b", "a"]},
        {"VB": []},
        {2: ["a"], None: ["a", "a"], "NN": ["b"]},
    ]
    rows, starts, labels, vocabulary = encode_candidates(iter(events), Vocabulary(), grow=True)
    assert_canonical(rows, 3)
    assert vocabulary.names == ["a", "t=x", "b"]
    assert as_csr(rows).toarray().tolist() == [
        [1, 1, 0],
        [1, 0, 1],
        [0, 0, 0],
        [1, 0, 0],
        [2, 0, 0],
        [0, 0, 1],
    ]
    assert starts.tolist() == [0, 2, 3, 6]
    assert starts.dtype == np.int64
    assert labels == [["NN", "VB"], ["VB"], [2, None, "NN"]]


def test_candidates_without_labels_are_numbered():
    events = [[Attributes(["1", "5"], [1.0, 2.0]), Attributes(["5"], [-1.0])], ({"1": 3},)]
    rows, starts, labels, vocabulary = encode_candidates(events, Vocabulary(["5"]), grow=True)
    assert as_csr(rows).toarray().tolist() == [[2, 1], [-1, 0], [0, 3]]
    assert (starts.tolist(), labels, vocabulary.names) == ([0, 2, 3], [[0, 1], [0]], ["5", "1"])


def test_candidates_in_prediction():
    vocabulary = Vocabulary(["a"])
    rows, starts, labels, same = encode_candidates([{"A": ["x", "a"], "B": ["x"]}], vocabulary)
    assert as_csr(rows).toarray().tolist() == [[1], [0]]
    assert (starts.tolist(), labels) == ([0, 2], [["A", "B"]])
    assert same is vocabulary


def test_min_count_of_candidates_counts_events():
    events = [{0: ["a", "b"], 1: ["a"], 2: ["a", "c"]}, {0: ["b"], 1: ["c"]}, {0: ["c"]}]
    for min_count, names in ((1, ["a", "b", "c"]), (2, ["b", "c"]), (3, ["c"]), (4, [])):
        rows, starts, _, vocabulary = encode_candidates(events, Vocabulary(), grow=True, min_count=min_count)
        assert vocabulary.names == names
        assert_canonical(rows, len(names))
        assert starts.tolist() == [0, 3, 5, 6]


def test_no_candidate_events():
    rows, starts, labels, _ = encode_candidates([], Vocabulary(), grow=True)
    assert (rows.shape, starts.tolist(), labels) == ((0, 0), [0], [])


@pytest.mark.parametrize(
    "event, kind, message",
    [
        ({}, ValueError, "event 1 has no candidates; it needs at least one"),
        ([], ValueError, "event 1 has no candidates; it needs at least one"),
        ("AB", TypeError, "event 1: a str, expected a dict of the candidates' features or a list of them"),
        (
            None,
            TypeError,
            "event 1: a NoneType, expected a dict of the candidates' features or a list of them",
        ),
        ({"A": [], "B": 3}, TypeError, "event 1, candidate 'B': a int, expected a dict or a list of names"),
        ({"A": {"x": None}}, TypeError, f"event 1, candidate 'A': feature 'x' is None, {NUMBER}"),
        (
            {"A": [], "B": {"x": math.nan}, "C": []},
            ValueError,
            f"event 1, candidate 'B': feature 'x' is nan; {FINITE}",
        ),
        ([[], {"x": math.inf}], ValueError, f"event 1, candidate 1: feature 'x' is inf; {FINITE}"),
        (
            {"A": {"x": math.nan}, "B": []},
            ValueError,
            f"event 1, candidate 'A': feature 'x' is nan; {FINITE}",
        ),
    ],
)
def test_errors_name_the_candidate(event, kind, message):
    with pytest.raises(kind) as caught:
        encode_candidates([{"A": ["a"], "B": ["b"]}, event], Vocabulary(), grow=True)
    assert str(caught.value) == message
