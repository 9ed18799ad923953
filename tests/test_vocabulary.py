"""Names and their numbers: growing, keeping some, and the arrays of a model file."""

import pickle

import numpy as np
import pytest
from safetensors.numpy import load, save

from fenchel.features.vocabulary import Vocabulary

AWKWARD = [
    "",
    " ",
    "two words",
    "line\nbreak",
    "\0",
    "naïve",
    "日本",
    "🙂",
    "e\u0301",
    "\u00e9",
    "\ud800",
    "a" * 10**5,
]


def test_ids_follow_the_order_of_first_sight():
    vocabulary = Vocabulary()
    assert [vocabulary.add(name) for name in ["b", "a", "b", "", "a"]] == [0, 1, 0, 2, 1]
    assert vocabulary.names == ["b", "a", ""]
    assert len(vocabulary) == 3


def test_get_never_adds():
    vocabulary = Vocabulary(["a"])
    assert (vocabulary.get("a"), vocabulary.get("b"), vocabulary.get("b", 7)) == (0, -1, 7)
    assert list(vocabulary.numbering(unknown=9)(["b", "a", "c"])) == [9, 0, 9]
    assert "b" not in vocabulary
    assert vocabulary.names == ["a"]


def test_numbering_is_add_for_many():
    vocabulary = Vocabulary(["a"])
    assert list(vocabulary.numbering(grow=True)(["b", "a", "c", "b"])) == [1, 0, 2, 1]
    assert vocabulary.names == ["a", "b", "c"]


@pytest.mark.parametrize("name", [None, 3, b"a", ("a", 1.0)])
def test_a_name_is_a_string(name):
    vocabulary = Vocabulary()
    with pytest.raises(TypeError, match="expected a string"):
        vocabulary.add(name)
    assert len(vocabulary) == 0


def test_names_are_a_copy():
    vocabulary = Vocabulary(["a"])
    vocabulary.names.append("b")
    assert vocabulary.names == ["a"]


def test_copy_grows_apart():
    first = Vocabulary(["a"])
    second = first.copy()
    assert (second.add("b"), first.add("c")) == (1, 1)
    assert (first.names, second.names) == (["a", "c"], ["a", "b"])


def test_pickle():
    vocabulary = pickle.loads(pickle.dumps(Vocabulary(AWKWARD)))
    assert vocabulary.names == AWKWARD
    assert vocabulary.add("new") == len(AWKWARD)


# Keeping some


@pytest.mark.parametrize(
    "which, names",
    [
        ([True, False, True], ["a", "c"]),
        (np.array([False, False, False]), []),
        ([0, 2], ["a", "c"]),
        (np.array([2, 0], np.uint32), ["c", "a"]),
        ([], []),
    ],
)
def test_keep_numbers_anew(which, names):
    vocabulary = Vocabulary(["a", "b", "c"])
    kept = vocabulary.keep(which)
    assert kept.names == names
    assert [kept.get(name) for name in names] == list(range(len(names)))
    assert vocabulary.names == ["a", "b", "c"]


@pytest.mark.parametrize(
    "which, message",
    [
        ([True, False], r"the mask has shape \(2,\), expected \(3,\)"),
        ([0, 3], "id 3 is none of the 3"),
        ([-1], "id -1 is none of the 3"),
        ([1, 1], "the name 'b' comes twice, as 0 and as 1"),
        ([0.0, 1.0], "expected a mask or a list of ids, got float64"),
        ([[0, 1]], "expected a mask or a list of ids"),
        (["a"], "expected a mask or a list of ids"),
    ],
)
def test_keep_refuses(which, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(["a", "b", "c"]).keep(which)


# Arrays


@pytest.mark.parametrize("names", [AWKWARD, [], [""], ["only"]])
def test_arrays_round_trip_through_safetensors(names):
    arrays = load(save(Vocabulary(names).to_arrays()))
    assert Vocabulary.from_arrays(**arrays).names == names


def test_what_the_arrays_hold():
    arrays = Vocabulary(["ab", "", "é"]).to_arrays()
    assert arrays["text"].tobytes() == "abé".encode()
    assert arrays["text"].dtype == np.uint8
    assert arrays["offsets"].tolist() == [0, 2, 2, 4]
    assert arrays["offsets"].dtype == np.uint64


@pytest.mark.parametrize(
    "text, offsets, message",
    [
        (b"abc", [0, 2], "offsets end at 2, the text at 3"),
        (b"abc", [0, 2, 4], "offsets end at 4, the text at 3"),
        (b"abc", [1, 3], "offsets do not start at 0"),
        (b"", [], "offsets do not start at 0"),
        (b"abc", [0, 3, 1, 3], "offsets decrease after name 1"),
        (b"abc", [0, 2**64 - 1, 3], "offsets decrease after name 1"),
        ("é".encode(), [0, 1, 2], "name 0 is not UTF-8"),
        (b"a\xff", [0, 1, 2], "name 1 is not UTF-8"),
        (b"aba", [0, 1, 2, 3], "the name 'a' comes twice, as 0 and as 2"),
        (b"", [0, 0, 0], "the name '' comes twice"),
    ],
)
def test_damaged_arrays(text, offsets, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_arrays(np.frombuffer(text, np.uint8), np.array(offsets, np.uint64))


@pytest.mark.parametrize(
    "text, offsets",
    [
        (np.zeros(2), np.array([0, 2], np.uint64)),
        (np.zeros((1, 2), np.uint8), np.array([0, 2], np.uint64)),
        (np.zeros(2, np.uint8), np.array([0.0, 2.0])),
        (np.zeros(2, np.uint8), np.array([[0, 2]], np.uint64)),
        (np.zeros(2, np.uint8), np.uint64(2)),
    ],
)
def test_foreign_arrays(text, offsets):
    with pytest.raises(ValueError, match="damaged vocabulary"):
        Vocabulary.from_arrays(text, offsets)
