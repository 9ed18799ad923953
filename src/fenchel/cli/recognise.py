"""What a data file looks like, so that one of another kind is told apart from one with a mistake in it."""

import os
import re
from collections import Counter
from contextlib import contextmanager

from fenchel.cli.failures import Failure
from fenchel.cli.output import source
from fenchel.errors import DataError

HEAD, LINES = 1 << 16, 50  # bytes and lines that are looked at
_NUMBER = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_HEADED = re.compile(r"[^\t]+\t[^\t]+\t[0-9]+")
_LIBSVM = re.compile(rf"{_NUMBER}(?: +[0-9]+:{_NUMBER})+ *(?:#.*)?")

# what a file may look like: in words, and which kinds read it
LOOKS = {
    "model": ("a model", ()),
    "trace": ("a trace of a run", ()),
    "libsvm": ("a libsvm file", ("lr", "maxent")),
    "treebank": ("a treebank in CoNLL's ten columns", ("parser",)),
    "heads": ("a treebank in three columns", ("parser", "crf", "tagger", "maxent")),
    "columns": ("a column file", ("crf", "tagger", "maxent")),
}


def look_of(path: str) -> str | None:
    """A name of LOOKS, by the first lines of a file; None where nothing speaks for any, and of a pipe."""
    if path == "-" or not os.path.isfile(path):
        return None
    from fenchel.io.files import open_input

    try:
        with open_input(path) as stream:
            head = stream.read(HEAD)
    except DataError:
        return None
    if (head[8:10] == b'{"' and b"\0" in head[:8]) or head.startswith((b"lCRF", b"solver_type ")):
        return "model"
    text = head.decode(errors="replace").split("\n")
    return _look_of_lines([line.rstrip("\r") for line in text[:LINES]])


def _look_of_lines(lines):
    full = [line for line in lines if line.strip()]
    if not full:
        return None
    if full[0].startswith('{"format_version"'):
        return "trace"
    if all(_LIBSVM.fullmatch(line) for line in full[:-1] or full):
        return "libsvm"
    words = [line for line in full if not line.startswith("#")]
    if words and all(line.count("\t") == 9 for line in words[:-1] or words):
        return "treebank"
    if 2 * sum(bool(_HEADED.fullmatch(line)) for line in words) > len(words):
        return "heads"
    widths = Counter(len(line.split()) for line in full)
    alike = len(widths) == 1 and 2 <= next(iter(widths)) <= 8
    return "columns" if alike and "" in (line.strip() for line in lines[:-1]) else None


@contextmanager
def expecting(kind: str, path: str, chosen: bool = False):
    """While a file is read for a kind: one that is of another is refused by what it looks like.

    chosen: the user has named the format, so that only a mistake in the file asks for a guess.
    """
    look = look_of(path)
    if look in ("model", "trace"):
        raise Failure(_sentence(kind, path, look))
    if look == "libsvm" and kind in ("tagger", "crf", "parser") and not chosen:
        raise Failure(_sentence(kind, path, look))
    try:
        yield
    except DataError as error:
        of_another = error.source != source(path)
        if of_another or look is None or kind in LOOKS[look][1]:
            raise
        raise Failure(f"{error}; {_words(look)}") from None


def _sentence(kind, path, look):
    return f"{source(path)}: is no data for `{kind}`; {_words(look)}"


def _words(look):
    what, kinds = LOOKS[look]
    readers = " or ".join(f"`{name}`" for name in kinds[:2])
    return f"it looks like {what}" + (f", which {readers} reads" if readers else "")
