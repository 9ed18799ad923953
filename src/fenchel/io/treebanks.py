"""Files of dependency trees: CoNLL-X, CoNLL-U, and lines of word, tag and head.

"conll" has ten columns with tabs between: ID FORM LEMMA CPOSTAG POSTAG FEATS HEAD DEPREL and two (CoNLL-X),
or ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC (CoNLL-U). Comments, which begin with #, tokens of more
words than one (3-4) and words that are not there (5.1) are no part of the tree. "tab" has a word, its tag and
its head. A blank line is behind each sentence.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from fenchel import trees
from fenchel.errors import DataError
from fenchel.features.tokens import Tokens
from fenchel.io._text import check_text, lines_of, open_text

SENTENCES = 5_000  # that are read at a time where not all are
FORMATS = ("conll", "tab")
TAGS = ("fine", "coarse")  # the columns POSTAG or XPOS, and CPOSTAG or UPOS
_FORM, _COARSE, _FINE, _HEAD, _LABEL, _OLD = 1, 3, 4, 6, 7, 8
_WIDTH = 10


@dataclass
class Sentence:
    """Lines of a file as they are, without their ends, and the words among them.

    places: of each word its line; fields: of each word its columns. first: number of the first line.
    """

    lines: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    fields: list[list[str]] = field(default_factory=list)
    first: int = 1

    def tokens(self, tags: str = "fine") -> list[tuple[str, str]]:
        """(word, tag) of each word; a fine tag that is not there (_) is the coarse one."""
        if self.fields and len(self.fields[0]) < _WIDTH:
            return [(one[0], one[1]) for one in self.fields]
        if tags == "coarse":
            return [(one[_FORM], one[_COARSE]) for one in self.fields]
        return [(one[_FORM], one[_FINE] if one[_FINE] != "_" else one[_COARSE]) for one in self.fields]

    def with_tree(self, heads, labels=None) -> list[str]:
        """The lines with these heads, and with labels where given, in their columns."""
        lines = list(self.lines)
        for k, (place, old) in enumerate(zip(self.places, self.fields, strict=True)):
            new = list(old)
            if len(old) < _WIDTH:
                new = [*old[:2], str(heads[k])]
            else:
                new[_HEAD], new[_OLD] = str(heads[k]), "_"
                new[_LABEL] = new[_LABEL] if labels is None else str(labels[k])
            lines[place] = "\t".join(new)
        return lines


@dataclass(frozen=True)
class Treebank:
    """Sentences of (word, tag), the heads of their words and, in conll, the labels of these arcs."""

    tokens: Tokens
    heads: list[list[int]]
    labels: list[list[str]] | None

    @property
    def labelled(self) -> bool:
        """Whether some arc has another label than _."""
        return any(label != "_" for some in self.labels or () for label in some)


def read_treebank(path, *, single_root: bool = False, tags: str = "fine") -> Treebank:
    """Read a file of trees, "conll" or "tab" by its first line.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, or "-" for standard input.
    single_root : bool
        Whether a second word whose head is 0 is an error.
    tags : "fine" or "coarse"
        Which of the two columns of tags.

    Raises
    ------
    DataError
        At the first line that is none of the format, or whose head makes no tree.
    """
    whole = _gathered(_trees(path, single_root, tags))
    return whole if whole.labelled else replace(whole, labels=None)


def iterate_treebank(path, *, single_root: bool = False, tags: str = "fine") -> Iterator[Treebank]:
    """Yield the same some sentences at a time; labels are None in three columns alone."""
    found = _trees(path, single_root, tags)
    while some := list(islice(found, SENTENCES)):
        yield _gathered(some)


def _trees(path, single_root, tags):
    """(tokens, heads, labels or None) of each sentence."""
    with open_text(path) as (stream, source):
        one = None
        for one in _sentences(stream, source):
            labels = [word[_LABEL] for word in one.fields] if len(one.fields[0]) == _WIDTH else None
            yield one.tokens(tags), _heads(one, source, single_root), labels
        if one is None:
            raise DataError(source, None, "no words found")


def _gathered(found) -> Treebank:
    sentences, heads, labels = zip(*found, strict=True)
    known = None if labels[0] is None else list(labels)
    return Treebank(Tokens.from_sentences(sentences), list(heads), known)


def iterate_sentences(path) -> Iterator[Sentence]:
    """Yield the sentences of a file one by one, each as soon as its blank line is read; heads may be missing.

    Lines behind the last sentence come as a Sentence without words.
    """
    with open_text(path) as (stream, source):
        yield from _sentences(stream, source, headless=True)


def _sentences(stream, source, headless=False):
    """The sentences; where headless they may lack heads, and lines without words are given too."""
    one, width = Sentence(), 0
    for number, line in lines_of(stream):
        check_text(line, source, number)
        text = line.decode().rstrip("\r\n")
        one.lines.append(text)
        if not text.strip():
            if one.fields or headless:
                yield one
            one = Sentence(first=number + 1)
        elif width == 3 or not text.startswith("#") or text.startswith("#\t"):  # a comment, or the word #
            width = width or _width_of(text)
            _add_word(one, text, width, source, number, headless)
    if one.fields or (headless and one.lines):
        yield one


def _width_of(text) -> int:
    """The columns of a file, by its first line with a word."""
    return _WIDTH if text.count("\t") > 3 else 3


def _add_word(one, text, width, source, number, headless):
    """One more line with a word; places and fields of the sentence written."""
    fields = text.split("\t")
    if len(fields) != width and not (headless and width == 3 and len(fields) == 2):
        raise DataError(source, number, f"{len(fields)} columns, expected {width} with tabs between")
    if width == _WIDTH:
        if "-" in fields[0] or "." in fields[0]:
            return
        if fields[0] != str(len(one.fields) + 1):
            raise DataError(source, number, f"ID {fields[0][:40]!r}, expected {len(one.fields) + 1}")
    one.places.append(len(one.lines) - 1)
    one.fields.append(fields)


def _heads(one: Sentence, source: str, single_root: bool) -> list[int]:
    """The heads of the words of a sentence, checked to be a tree."""
    column = _HEAD if len(one.fields[0]) == _WIDTH else 2
    heads = []
    for place, fields in zip(one.places, one.fields, strict=True):
        text = fields[column]
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise DataError(source, one.first + place, f"head {text[:40]!r} is no whole number")
        heads.append(int(text))
    wrong = trees.fault(heads, single_root)
    if wrong is not None:
        word, message = wrong
        raise DataError(source, one.first + one.places[word - 1], message)
    return heads
