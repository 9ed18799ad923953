"""Column files and the tokens they hold."""

import gzip
import io
import sys

import numpy as np
import pytest

from fenchel.errors import DataError
from fenchel.features.tokens import Tokens
from fenchel.io import columns
from fenchel.io.columns import iterate_columns, read_columns

SENTENCES = [[("He", "PRP"), ("runs", "VBZ")], [("runs", "NNS")]]
TEXT = "He PRP\nruns\tVBZ\n\nruns   NNS\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write text or bytes to a file and go to its folder, so that errors name `train.txt`."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="train.txt"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return write


def both(path):
    """The sentences of a file by both readers, which must agree."""
    read = list(read_columns(path).sentences())
    assert [sentence for one in iterate_columns(path) for sentence in one.sentences()] == read
    return read


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\n\n" + TEXT.replace("\n\n", "\n \t\n\n\n") + "\n\n",
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        TEXT.rstrip("\n"),
    ],
)
def test_blank_lines_end_sentences(write, text):
    assert both(write(text)) == SENTENCES


def test_codes_are_numbered_in_the_order_first_seen(write):
    tokens = read_columns(write(TEXT))
    assert tokens.starts.tolist() == [0, 2, 3]
    assert tokens.starts.dtype == np.int64
    assert tokens.codes.tolist() == [[0, 1, 1], [0, 1, 2]]
    assert tokens.codes.dtype == np.uint32
    assert tokens.values == [["He", "runs"], ["PRP", "VBZ", "NNS"]]


def test_no_break_spaces_are_part_of_a_word(write):
    assert both(write("10\u00a0000 CD\n")) == [[("10\u00a0000", "CD")]]


def test_gzip_and_standard_input(write, monkeypatch):
    assert both(write(gzip.compress(TEXT.encode()), "a.gz")) == SENTENCES
    for read in (read_columns, iterate_columns):
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(TEXT.encode())}))
        assert sum(map(len, [read("-")] if read is read_columns else read("-"))) == 2


def test_blocks_may_end_anywhere(write, monkeypatch):
    text = "\n".join(f"w{i} t{i % 3}" + "\n" * (i % 4 == 0) for i in range(50))
    expected = both(write(text))
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(columns, "BLOCK", size)
        assert both(write(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\nd e f\n\ng h\n", ":4: 2 columns, expected 3"),
        ("a b\nc\n", ":2: 1 column, expected 2"),
        ("a b\n\nc d e\n", ":3: 3 columns, expected 2"),
        ("", ": no tokens found"),
        ("\n \n", ": no tokens found"),
        (b"a b\nc \xe9\n", ":2: byte 0xe9 is not UTF-8, expected UTF-8 text"),
    ],
)
def test_broken_files(write, text, message):
    for read in (read_columns, lambda path: list(iterate_columns(path))):
        with pytest.raises(DataError) as caught:
            read(write(text))
        assert str(caught.value) == f"train.txt{message}"


def test_broken_gzip(write):
    name = write(gzip.compress(TEXT.encode() * 100)[:-12], "a.gz")
    for read in (read_columns, lambda path: list(iterate_columns(path))):
        with pytest.raises(DataError, match=r"a\.gz: not a whole gzip file"):
            read(name)


def test_sentences_come_one_by_one():
    class Pipe:
        """Ends the test if more is read than the first sentence."""

        name = "pipe"
        lines = iter([b"a b\n", b"\n"])

        def readline(self):
            return next(self.lines)

    assert list(next(iterate_columns(Pipe())).sentences()) == [[("a", "b")]]


# Tokens


def test_tokens_of_sentences():
    tokens = Tokens.from_sentences(SENTENCES)
    assert (len(tokens), tokens.n_tokens, tokens.n_columns) == (2, 3, 2)
    assert list(tokens.sentences()) == SENTENCES
    assert tokens.column(0) == ["He", "runs", "runs"]
    assert Tokens.from_sentences([["He", "runs"]]).column(0) == ["He", "runs"]
    assert len(Tokens.from_sentences([])) == 0
    assert repr(tokens) == "<Tokens: 2 sentences, 3 tokens, 2 columns>"


def test_features_and_labels():
    features, labels = Tokens.from_sentences(SENTENCES).without_last()
    assert features.column(0) == ["He", "runs", "runs"]
    assert labels.column(0) == ["PRP", "VBZ", "NNS"]
    assert features.n_columns == labels.n_columns == 1
    with pytest.raises(ValueError, match="the data have 1 column, expected the label in the last one"):
        features.without_last()


@pytest.mark.parametrize("n", [3, 200])
def test_some_of_the_sentences(n):
    sentences = [[(f"w{i}", "x")] * (i % 3 + 1) for i in range(n)]
    tokens = Tokens.from_sentences(sentences)
    mask = np.arange(n) % 2 == 0
    assert list(tokens[1:3].sentences()) == sentences[1:3]
    assert list(tokens[-1].sentences()) == sentences[-1:]
    assert list(tokens[[2, 0]].sentences()) == [sentences[2], sentences[0]]
    assert list(tokens[mask].sentences()) == sentences[::2]
    assert list(tokens[::2].sentences()) == sentences[::2]
    assert list(tokens[2:1].sentences()) == []
    assert len(tokens[1].values[0]) == 1


def test_a_column_from_a_function():
    calls = []
    tokens = Tokens.from_sentences(SENTENCES).derive(0, lambda word: calls.append(word) or word[-1])
    assert tokens.column(2) == ["e", "s", "s"]
    assert calls == ["He", "runs"]
    with pytest.raises(ValueError, match="there is no column 5; the data have 3, from 0"):
        tokens.derive(5, str.lower)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (
            [[("a", "b")], [("a",)]],
            "sentence 1, token 0 has 1 strings, expected 2 strings as the first token",
        ),
        ([[("a", "b"), "ab"]], "sentence 0, token 1 has a string, expected 2 strings"),
        ([["a", {"w": "a"}]], "sentence 0, token 1 is a dict; templates want a string or a tuple"),
        ([["a", 3]], "sentence 0, token 1 is a int, expected a string"),
        (["ab"], "sentence 0 is a str, expected a list of tokens"),
        ([[("a", 1)]], "column 1 holds 1, a int, expected strings"),
    ],
)
def test_what_are_no_tokens(sentences, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Tokens.from_sentences(sentences)
