"""Files of trees: what is read, what is written, and where a file is wrong."""

import gzip

import pytest

from fenchel.errors import DataError
from fenchel.io.treebanks import iterate_sentences, read_treebank

CONLLX = (
    "1\tEl\tel\td\tda\tgen=m\t2\tDET\t_\t_\n2\tgato\tgato\tn\tnc\t_\t3\tSUJ\t_\t_\n"
    "3\tduerme\tdormir\tv\tvm\t_\t0\tROOT\t_\t_\n\n1\tVen\tvenir\tv\t_\t_\t0\tROOT\t_\t_\n"
)
CONLLU = (
    "# sent_id = 1\n# text = vámonos al mar\n1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tvamos\tir\tVERB\tV\t_\t0\troot\t0:root\t_\n2\tnos\t_\tPRON\tP\t_\t1\tobj\t1:obj\t_\n"
    "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\tmar grande\tmar\tNOUN\tN\t_\t1\tobl\t1:obl\tSpaceAfter=No\n\n"
)
TAB = "Pierre\tNNP\t2\nVinken\tNNP\t3\nwill\tMD\t0\n\nGo\tVB\t0\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="trees"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / name

    return write


def test_the_three_formats(write):
    found = read_treebank(write(CONLLX))
    assert list(found.tokens.sentences()) == [
        [("El", "da"), ("gato", "nc"), ("duerme", "vm")],
        [("Ven", "v")],
    ]
    assert found.heads == [[2, 3, 0], [0]] and found.labels == [["DET", "SUJ", "ROOT"], ["ROOT"]]
    assert read_treebank(write(CONLLX), tags="coarse").tokens.column(1) == ["d", "n", "v", "v"]
    found = read_treebank(write(gzip.compress(CONLLU.encode())))
    assert found.tokens.column(0) == ["vamos", "nos", "mar grande"] and found.heads == [[0, 1, 1]]
    found = read_treebank(write(TAB.replace("\n", "\r\n")))
    assert found.heads == [[2, 3, 0], [0]] and found.labels is None
    assert found.tokens.column(1) == ["NNP", "NNP", "MD", "VB"]


def test_what_is_written_is_read_again(write):
    for text in (CONLLX, CONLLU, TAB):
        found = read_treebank(write(text))
        given = iter(found.labels or [None] * 9)
        lines = []
        for one, heads in zip(iterate_sentences(write(text)), found.heads, strict=False):
            lines += one.with_tree(heads, next(given))
        again = read_treebank(write("\n".join(lines)))
        assert (again.heads, again.labels) == (found.heads, found.labels)
        assert list(again.tokens.sentences()) == list(found.tokens.sentences())
    (one,) = iterate_sentences(write(CONLLU))
    lines = one.with_tree([3, 1, 0], ["a", "b", "c"])
    assert lines[:3] == CONLLU.split("\n")[:3] and lines[5] == CONLLU.split("\n")[5] and lines[-1] == ""
    assert lines[3] == "1\tvamos\tir\tVERB\tV\t_\t3\ta\t_\t_"


def test_sentences_without_heads_can_be_parsed(write):
    one, other = iterate_sentences(write("the\tD\ncat\tN\n\ngo\tV\n"))
    assert one.tokens() == [("the", "D"), ("cat", "N")]
    assert one.with_tree([2, 0]) == ["the\tD\t2", "cat\tN\t0", ""] and other.with_tree([0]) == ["go\tV\t0"]


WRONG = {
    "a circle": (TAB.replace("MD\t0", "MD\t1"), 1, "heads go round in a circle: 1 -> 2 -> 3 -> 1"),
    "out of range": (TAB.replace("VB\t0", "VB\t2"), 5, "head 2 is out of range, expected 0 (the root) to 1"),
    "a missing column": (CONLLX.replace("ROOT\t_\t_\n\n", "ROOT\t_\n\n"), 3, "9 columns, expected 10"),
    "two roots": (TAB.replace("NNP\t3", "NNP\t0"), 3, "a second root, after word 2; expected one"),
    "its own head": (TAB.replace("NNP\t3", "NNP\t2"), 2, "word 2 is its own head"),
    "no number": (TAB.replace("NNP\t3", "NNP\t-3"), 2, "head '-3' is no whole number"),
    "an ID": (CONLLU.replace("3\tmar", "4\tmar"), 7, "ID '4', expected 3"),
    "a circle behind comments": (CONLLU.replace("\t0\troot", "\t2\troot"), 4, "heads go round in a circle"),
    "not UTF-8": (b"a\tb\t0\n\xff\tc\t1\n", 2, "byte 0xff is not UTF-8"),
    "nothing": ("\n\n# a\n", None, "no words found"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_line(case, write):
    text, line, message = WRONG[case]
    path = write(text)
    with pytest.raises(DataError) as caught:
        read_treebank(path, single_root=True)
    where = f"{path}: " if line is None else f"{path}:{line}: "
    assert str(caught.value).startswith(where) and message in str(caught.value)
    if case == "two roots":
        assert read_treebank(path).heads[0] == [2, 0, 0]
