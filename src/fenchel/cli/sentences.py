"""Sentences for the command line: column files and CRFsuite's attribute files, whole or as they come in."""

import codecs
import io
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from fenchel.cli.failures import Failure
from fenchel.cli.output import count, source

FORMATS = ("columns", "crfsuite")
PRESET_FOR = {2: "pos", 3: "chunk", 4: "ner"}  # number of columns, the label's included: template
HEAD = 1 << 16  # bytes at which a format is recognised
_SPAN = re.compile(r"[BIESLU]-.+|O|\.")
_NAMES = {"PER", "PERS", "PERSON", "LOC", "ORG", "GPE"}  # types of spans that are names


@dataclass(frozen=True)
class Corpus:
    """Labelled sentences of a file.

    X: what taggers take: Tokens, or lists of the attributes of tokens. y: Tokens of one column, the labels.
    weight: (n,) or None. columns: how many the file has, the label's included; None for CRFsuite's format.
    separator: "tab" where only tabs are between columns.
    """

    name: str
    X: object
    y: object
    weight: object = None
    columns: int | None = None
    separator: str | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    @cached_property
    def tags(self) -> list:
        """For each sentence the list of its labels."""
        return _cut(self.y.column(0), self.y.starts)

    @cached_property
    def labels(self) -> list:
        """All of them, sorted."""
        import numpy as np

        return sorted(self.y.values[0][k] for k in np.unique(self.y.codes[0]))

    def take(self, numbers) -> "Corpus":
        """Some of the sentences, by their numbers."""
        X = self.X[numbers] if self.columns else [self.X[i] for i in numbers]
        weight = None if self.weight is None else self.weight[numbers]
        return replace(self, X=X, y=self.y[numbers], weight=weight)

    def sizes(self) -> str:
        columns = f", {count(self.columns, 'column')}" if self.columns else ""
        tokens = f"{count(self.n, 'sentence')}, {count(self.y.n_tokens, 'token')}"
        return f"{tokens}{columns}, {count(len(self.labels), 'label')}"


class _Held(io.BytesIO):
    """Standard input, read to its end, so that its format can be looked at first."""

    name = "<stdin>"


def _hold_stdin():
    from fenchel.io.files import open_input

    with open_input("-") as stream:
        return _Held(stream.read())


def tabs_alone(separator: str) -> str | None:
    """The separator as readers know it, of what --separator says: blank or tab."""
    return "tab" if separator == "tab" else None


def read(path, format=None, separator=None) -> Corpus:
    """The sentences of a file; without a format, of the one it seems to have."""
    stream = _hold_stdin() if path == "-" else path
    format = format or ("columns" if separator else guess_format(stream))
    return _read_columns(stream, path, separator) if format == "columns" else _read_attributes(stream, path)


def read_beside(path, corpus: Corpus) -> Corpus:
    """The sentences of another file, which must be of the format of the first."""
    other = read(path, "columns" if corpus.columns else "crfsuite", corpus.separator)
    if other.columns != corpus.columns:
        found = f"{other.name}: {count(other.columns, 'column')}"
        raise Failure(f"{found}, expected {corpus.columns} as in {corpus.name}")
    return other


def _read_columns(stream, path, separator):
    from fenchel.io.columns import read_columns

    tokens = read_columns(stream, separator)
    if tokens.n_columns < 2:
        raise Failure(f"{source(path)}: 1 column, expected at least a word and, last, its label")
    return Corpus(source(path), *tokens.without_last(), columns=tokens.n_columns, separator=separator)


def _read_attributes(stream, path):
    from fenchel.features.tokens import Tokens
    from fenchel.io.crfsuite import read_crfsuite

    found = read_crfsuite(stream)
    weight = None if (found.weights == 1.0).all() else found.weights
    labels = Tokens.from_columns([found.labels], found.starts)
    return Corpus(source(path), _cut(found.attributes, found.starts), labels, weight)


def _cut(flat, starts):
    return [flat[a:b] for a, b in pairwise(starts.tolist())]


# ---- which format a file has


def guess_format(stream) -> str:
    """columns or crfsuite, by the first lines; a stream of bytes in memory is left at its beginning."""
    from fenchel.io._text import open_text

    with open_text(stream) as (data, _):
        head = data.read(HEAD)
        if data is stream:
            data.seek(0)
    lines = [line.split("\t") for line in head.decode(errors="replace").split("\n")[:-1] if line.strip()]
    return "crfsuite" if lines and _are_attributes(lines) else "columns"


def _are_attributes(lines):
    """Whether lines split at tabs are a label and attributes: marked as such, or of varying number.

    Columns may have tabs between them too, and a line of a broken file may lack one.
    """
    fields = [field for line in lines for field in line[1:]]
    marked = sum(not {"=", ":", "["}.isdisjoint(field) for field in fields)
    usual = Counter(map(len, lines)).most_common(1)[0][1]
    return bool(fields) and (2 * marked > len(fields) or usual < 0.8 * len(lines))


# ---- sentences with the lines they stood in


class _Recorder:
    """A stream that keeps the lines read from it until somebody takes them."""

    def __init__(self, stream, name):
        self.name, self._stream, self._lines, self._first = name, stream, [], True

    def readline(self) -> bytes:
        line = self._stream.readline()
        if self._first:
            line, self._first = line.removeprefix(codecs.BOM_UTF8), False
        if line:
            self._lines.append(line)
        return line

    def take(self) -> list:
        lines, self._lines = self._lines, []
        return [line.decode().rstrip("\r\n") for line in lines]


def iterate_lines(path, separator=None):
    """Yield (lines, Tokens) of each sentence of a column file as soon as its blank line is read.

    Blank lines are among the lines of the sentence they follow; those before the first are among its own.
    What is left at the end of the file comes with None.
    """
    from fenchel.io.columns import iterate_columns
    from fenchel.io.files import open_input

    with open_input(path) as stream:
        recorder = _Recorder(stream, source(path))
        for sentence in iterate_columns(recorder, separator):
            yield recorder.take(), sentence
        if rest := recorder.take():
            yield rest, None


# ---- labels


def are_spans(labels) -> bool:
    """Whether the labels are of the kind B-NP, I-NP, O."""
    return all(_SPAN.fullmatch(label) for label in labels) and any("-" in label for label in labels)


def preset_for(corpus: Corpus) -> str | None:
    """The template that goes with the columns, and with labels of names where it can be had."""
    if corpus.columns == 3 and are_spans(corpus.labels):
        types = {label.partition("-")[2].upper() for label in corpus.labels}
        if types & _NAMES:
            return "ner"
    return PRESET_FOR.get(corpus.columns)


def refuse_banned(corpus: Corpus, pairs) -> None:
    """A Failure that names the first place where the corpus has a pair of labels that shall not be."""
    known, banned = set(corpus.labels), set(pairs or ())
    for label in (label for pair in pairs or () for label in pair):
        if label not in known:
            raise Failure(f"--ban names the label {label!r}, which {corpus.name} does not have")
    for number, labels in enumerate(corpus.tags if banned else (), start=1):
        for token, pair in enumerate(pairwise(labels), start=2):
            if pair in banned:
                where = f"{corpus.name}: sentence {number}, token {token}"
                raise Failure(
                    f"{where}: {pair[1]} follows {pair[0]}, which --ban forbids; correct one of them"
                )
