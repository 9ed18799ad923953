"""CRFsuite's data format."""

import gzip
import io
import sys

import pytest

from fenchel._sparse import as_csr
from fenchel.errors import DataError
from fenchel.features.encode import encode
from fenchel.features.vocabulary import Vocabulary
from fenchel.io.crfsuite import Sequence, iterate_crfsuite, read_crfsuite, write_crfsuite
from fenchel.io.events import Attributes


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write text or bytes to a file and go to its folder, so that errors name `train.crf`."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="train.crf"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return write


def test_sequences_end_to_end(write):
    data = read_crfsuite(write("B\tw=a\tp=b:2\n\n\nO\tw=c\nB\n\n"))
    assert data.labels == ["B", "O", "B"]
    assert data.attributes == [Attributes(["w=a", "p=b"], [1.0, 2.0]), (["w=c"], [1.0]), ([], [])]
    assert data.starts.tolist() == [0, 1, 3]
    assert data.weights.tolist() == [1.0, 1.0]
    rows, vocabulary = encode(data.attributes, Vocabulary(), grow=True)
    assert vocabulary.names == ["w=a", "p=b", "w=c"]
    assert as_csr(rows).toarray().tolist() == [[1, 2, 0], [0, 0, 1], [0, 0, 0]]


def test_escapes_blanks_and_empty_values(write):
    line = "a\\:b\tx\\:y:0.5\tback\\\\slash\t\\n\tin between:\tw:-1e2\t"
    (sequence,) = iterate_crfsuite(write(line))
    assert sequence.labels == ["a:b"]
    assert sequence.attributes == [(["x:y", "back\\slash", "\\n", "in between", "w"], [0.5, 1, 1, 1, -100])]


def test_weights_hold_for_one_sequence(write):
    text = "@weight:2\nA\tx\nB\ty\n\nA\tx\n\n@weight:0.5\tA\tx\n"
    assert read_crfsuite(write(text)).weights.tolist() == [2.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("@score:1\tA\tx", "'@score:1', expected a label, which cannot start with '@', or @weight:x"),
        ("@weight:-1\tA", "weight -1, expected at least 0"),
        ("@weight:much", "value 'much' of '@weight' is not a number"),
        ("A:0.5\tx", r"label 'A:0.5' has a ':', written '\:' where it is part of the label"),
        ("A\tx:y", r"value 'y' of 'x' is not a number; a ':' in a name is written '\:'"),
        ("A\tx:1:2", r"value '1:2' of 'x' is not a number; a ':' in a name is written '\:'"),
        ("A\tx:1e999", "value '1e999' of 'x' is not finite"),
    ],
)
def test_malformed_lines(write, line, message):
    with pytest.raises(DataError) as caught:
        read_crfsuite(write(f"A\tx\n\n{line}\n"))
    assert str(caught.value) == f"train.crf:3: {message}"


def test_files_that_are_none(write):
    with pytest.raises(DataError, match=r"train\.crf: no items found"):
        read_crfsuite(write("\n\n"))
    with pytest.raises(DataError, match=r"train\.crf:2: byte 0xff is not UTF-8, expected UTF-8 text"):
        read_crfsuite(write(b"A\tx\nA\t\xff\n"))
    with pytest.raises(DataError, match=r"a\.gz: not a whole gzip file"):
        read_crfsuite(write(gzip.compress(b"A\tx\n" * 1000)[:-12], "a.gz"))


def test_what_was_written_is_read_again(tmp_path):
    attributes = [Attributes(["a:b", "c\\d", "e f"], [1.0, -0.1, 1e300]), Attributes([], [])]
    sequences = [Sequence(["X:1", "é"], attributes, 0.25), Sequence(["O"], attributes[:1])]
    for name in ("a.crf", "a.crf.gz"):
        write_crfsuite(tmp_path / name, sequences)
        assert list(iterate_crfsuite(tmp_path / name)) == sequences


@pytest.mark.parametrize(("label", "name"), [("@A", "x"), ("A", "x\ty"), ("A\n", "x"), ("A", "")])
def test_what_the_format_cannot_hold_is_not_written(tmp_path, label, name):
    with pytest.raises(ValueError, match="cannot be written"):
        write_crfsuite(tmp_path / "a", [Sequence([label], [Attributes([name], [1.0])])])
    assert not (tmp_path / "a").exists()


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": io.BytesIO(b"A\tx\r\n\r\nB\ty")}))
    assert [sequence.labels for sequence in iterate_crfsuite("-")] == [["A"], ["B"]]
