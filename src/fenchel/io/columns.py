"""Column files: a token a line, its columns between blanks or tabs, a blank line behind each sentence.

CoNLL-2000 and 2003, CRF++ and Wapiti use this format, with the label in the last column.
"""

import codecs
import re
from array import array
from collections import defaultdict
from itertools import count, islice

import numpy as np

from fenchel._cache import njit
from fenchel.errors import DataError
from fenchel.features.tokens import Tokens
from fenchel.io._text import check_text, lines_of, open_text

BLOCK = 1 << 20  # bytes of text parsed at a time; a longer line makes a longer block
MOST_COLUMNS = 10_000  # each costs a dictionary: a text without line ends would cost hundreds of bytes a word
SENTENCES = 10_000  # that are parsed at a time where tabs alone are between columns
TAIL = 1 << 10  # bytes of the longest blank line at which text is cut
_BLANK = re.compile(rb"\n[ \t\r\f\v]*\n")
_SPACE, _TAB, _RETURN, _NEWLINE = (np.uint8(ord(c)) for c in " \t\r\n")


def read_columns(path, separator: str | None = None) -> Tokens:
    """Read a column file.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, or "-" for standard input.
    separator : None or "tab"
        What is between columns: blanks and tabs, or tabs alone, so that columns may hold blanks.

    Raises
    ------
    DataError
        At the first line with more or fewer columns than the first has.
    """
    with open_text(path) as (stream, source):
        if separator is not None:
            return _gathered(_sentences(stream, source, separator))
        corpus = _Corpus(source)
        for text in _blocks(stream, source):
            corpus.add(text)
    return corpus.finish()


class _Corpus:
    """Tokens in the making: one dict of bytes for each column, and machine numbers."""

    def __init__(self, source, line=1, width=0):
        """line: the number of the first one. width: how many columns there are, where that is known."""
        self._source = source
        self._line, self._n, self._fresh = line, 0, True
        self._starts = [np.zeros(0, np.int64)]
        self._ids, self._codes = [], []
        self._set_width(width)

    def _set_width(self, width):
        self._ids = [defaultdict(count().__next__) for _ in range(width)]
        self._codes = [array("I") for _ in range(width)]

    def add(self, text):
        """Read whole lines."""
        fields = text.split()
        self._scan(text, len(fields))
        width = len(self._ids)
        for j, (ids, codes) in enumerate(zip(self._ids, self._codes, strict=True)):
            codes.extend(map(ids.__getitem__, fields[j::width]))
        self._line += text.count(b"\n")

    def _scan(self, text, n_fields):
        """Find where sentences start, and make sure that all lines have as many columns as the first one."""
        if n_fields and not self._ids:
            width = len(text.lstrip().split(b"\n", 1)[0].split())
            self._set_width(_check_width(width, self._source, self._line + _leading_lines(text)))
        width = len(self._ids)
        starts = np.empty(n_fields // max(width, 1) + 1, np.int64)
        found, lines, self._fresh, at = _find_sentences(
            np.frombuffer(text, np.uint8), width, self._fresh, starts
        )
        if at < len(text):
            line = text[at:].split(b"\n", 1)[0]
            message = f"{_columns(len(line.split()))}, expected {width}"
            raise DataError(self._source, self._line + text.count(b"\n", 0, at), message)
        self._starts.append(starts[:found] + self._n)
        self._n += lines

    def finish(self):
        if not self._n:
            raise DataError(self._source, None, "no tokens found")
        starts = np.concatenate([*self._starts, [self._n]])
        codes = np.array([np.frombuffer(column, np.uint32) for column in self._codes])
        return Tokens(starts, codes, [[value.decode() for value in ids] for ids in self._ids])


@njit(cache=True, nogil=True)
def _find_sentences(text, width, fresh, starts):
    """Places of the sentences that start in a text of whole lines, counted in tokens; written to starts.

    fresh: whether the text goes on behind a blank line.  Returns the number of sentences and of tokens,
    whether the text ends in a blank line, and where the first line starts that has not `width` columns, else
    the size.
    """
    found, tokens, fields, inside, begin = 0, 0, 0, False, 0
    for i in range(text.size):
        c = text[i]
        if c != _SPACE and (c < _TAB or c > _RETURN):  # in between are the other blanks of ASCII
            fields += not inside
            inside = True
            continue
        inside = False
        if c == _NEWLINE:
            if fields == 0:
                fresh = True
            elif fields != width:
                return found, tokens, fresh, begin
            else:
                if fresh:
                    starts[found] = tokens
                    found += 1
                fresh = False
                tokens += 1
            fields, begin = 0, i + 1
    return found, tokens, fresh, text.size


def _blocks(stream, source):
    """Yield the text in blocks of whole lines, checked to be UTF-8; the last one ends in a newline too."""
    rest, line, first = b"", 1, True
    while chunk := stream.read(BLOCK):
        if first:
            chunk, first = chunk.removeprefix(codecs.BOM_UTF8), False
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += chunk
            continue
        text, rest = rest + head + newline, tail
        check_text(text, source, line)
        line += text.count(b"\n")
        yield text
    if rest:
        check_text(rest, source, line)
        yield rest + b"\n"


def iterate_batches(path, separator: str | None = None):
    """Yield the sentences of a column file as Tokens, about a megabyte of text at a time.

    Arguments and errors as for `read_columns`.
    """
    with open_text(path) as (stream, source):
        if separator is not None:
            sentences = _sentences(stream, source, separator)
            while some := list(islice(sentences, SENTENCES)):
                yield _gathered(some)
            return
        line, width = 1, 0
        for text in _whole_sentences(_blocks(stream, source)):
            corpus = _Corpus(source, line, width)
            corpus.add(text)
            line += text.count(b"\n")
            if text.strip():
                tokens = corpus.finish()
                width = tokens.n_columns
                yield tokens
        if not width:
            raise DataError(source, None, "no tokens found")


def _whole_sentences(blocks):
    """The same text cut behind blank lines."""
    rest = b""
    for text in blocks:
        text, new = rest + text, max(len(rest) - TAIL, 0)  # a blank line may begin in the rest
        end = max((found.end() for found in _BLANK.finditer(text, new)), default=0)
        if end:
            yield text[:end]
        rest = text[end:]
    if rest:
        yield rest


def iterate_columns(path, separator: str | None = None):
    """Yield the sentences of a column file one by one, each as Tokens, as soon as its blank line is read.

    Parameters
    ----------
    path : str or Path
        As for `read_columns`, or a binary stream.
    separator : None or "tab"
        As for `read_columns`.

    Raises
    ------
    DataError
        At the first line with more or fewer columns than the first has.
    """
    with open_text(path) as (stream, source):
        for rows in _sentences(stream, source, separator):
            yield _gathered([rows])


def _sentences(stream, source, separator):
    """Yield the fields of the tokens of each sentence, UTF-8 and as many on each line."""
    rows, width = [], None
    for number, line in lines_of(stream):
        fields = _fields(line, separator)
        if fields:
            width = width or _check_width(len(fields), source, number)
            if len(fields) != width:
                raise DataError(source, number, f"{_columns(len(fields))}, expected {width}")
            rows.append(fields)
        elif rows:
            yield _checked(rows, source, number - len(rows))
            rows = []
    if rows:
        yield _checked(rows, source, number - len(rows) + 1)
    elif width is None:
        raise DataError(source, None, "no tokens found")


def _fields(line, separator):
    """The columns of a line; none of a blank one."""
    if separator is None or not line.strip():
        return line.split()
    return line.rstrip(b"\r\n").split(b"\t")


def _checked(rows, source, line):
    """The rows of a sentence, whose first token is on this line of the file, if they are UTF-8."""
    check_text(b"\n".join(map(b" ".join, rows)), source, line)
    return rows


def _gathered(sentences):
    """Tokens of the rows of sentences."""
    rows, starts = [], [0]
    for sentence in sentences:
        rows += sentence
        starts.append(len(rows))
    columns = [b"\n".join(column).decode().split("\n") for column in zip(*rows, strict=True)]
    return Tokens.from_columns(columns, starts)


def _check_width(width, source, line):
    """The number of columns of the first line, which says that of all."""
    if width > MOST_COLUMNS:
        raise DataError(source, line, f"{width} columns, expected at most {MOST_COLUMNS}")
    return width


def _leading_lines(text):
    """How many blank lines the text begins with."""
    return text.count(b"\n", 0, len(text) - len(text.lstrip()))


def _columns(n):
    return f"{n} column" + "s" * (n != 1)
