"""CRFsuite's data: an item a line, `label TAB attribute TAB attribute ...`, a blank line behind a sequence.

An attribute is a name, or `name:value`.  `\\:` is a colon in a name and `\\\\` a backslash; elsewhere a
backslash is itself.  Blanks are part of names.  `@weight:x` before a label, or on a line of its own, weighs
its sequence.
"""

import math
import re
from typing import NamedTuple

import numpy as np

from fenchel.errors import DataError
from fenchel.io._text import check_text, lines_of, open_text
from fenchel.io.events import Attributes
from fenchel.io.files import open_output

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PIECES = re.compile(
    r"((?:\\[:\\]|[^:])*)(?::(.*))?", re.DOTALL
)  # a name up to the first colon, and its value
_ESCAPE = re.compile(r"\\([:\\])")


class Sequence(NamedTuple):
    """The labels and the attributes of each item of a sequence, and how much the sequence counts."""

    labels: list
    attributes: list
    weight: float = 1.0


class Sequences(NamedTuple):
    """All sequences of a file, end to end: sequence i is the items starts[i]:starts[i + 1].

    labels: list of N strings.  attributes: list of N Attributes, for `features.encode.encode`.
    starts: (n + 1,) int64.  weights: (n,) float64.
    """

    labels: list
    attributes: list
    starts: np.ndarray
    weights: np.ndarray


def read_crfsuite(path) -> Sequences:
    """Read a file whole; arguments and errors as for `iterate_crfsuite`."""
    labels, attributes, starts, weights = [], [], [0], []
    for sequence in iterate_crfsuite(path):
        labels += sequence.labels
        attributes += sequence.attributes
        starts.append(len(labels))
        weights.append(sequence.weight)
    return Sequences(labels, attributes, np.array(starts, np.int64), np.array(weights))


def iterate_crfsuite(path):
    """Yield the sequences of a file one by one.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, "-" for standard input, or a binary stream.

    Yields
    ------
    Sequence; empty ones are skipped

    Raises
    ------
    DataError
        At the first malformed line.
    """
    current, found = Sequence([], []), False
    with open_text(path) as (stream, source):
        for number, line in lines_of(stream):
            check_text(line, source, number)
            if line.strip():  # of bytes: a no-break space may be a label
                current = _add_item((source, number), line.decode().rstrip("\r\n"), current)
                continue
            if current.labels:
                yield current
                found = True
            current = Sequence([], [])
    if current.labels:
        yield current
    elif not found:
        raise DataError(source, None, "no items found")


def _add_item(where, line, sequence):
    """The sequence with the item of this line, and the weight it may set."""
    fields = line.split("\t")
    while fields and fields[0].startswith("@"):
        sequence = sequence._replace(weight=_parse_weight(where, fields.pop(0)))
    if fields:
        sequence.labels.append(_parse_label(where, fields[0]))
        sequence.attributes.append(_parse_attributes(where, fields[1:]))
    return sequence


def _parse_weight(where, field):
    name, _, value = field.partition(":")
    if name != "@weight":
        raise DataError(
            *where, f"{_quote(field)}, expected a label, which cannot start with '@', or @weight:x"
        )
    weight = _parse_number(where, value, name)
    if weight < 0:
        raise DataError(*where, f"weight {value}, expected at least 0")
    return weight


def _parse_label(where, field):
    name, value = _PIECES.fullmatch(field).groups()
    if value is not None:
        raise DataError(
            *where, f"label {_quote(field)} has a ':', written '\\:' where it is part of the label"
        )
    return _ESCAPE.sub(r"\1", name)


def _parse_attributes(where, fields):
    fields = list(filter(None, fields))  # of a tab at the end of the line
    text = "\t".join(fields)
    if ":" not in text and "\\" not in text:
        return Attributes(fields, [1.0] * len(fields))
    names, values = [], []
    for field in fields:
        name, value = _PIECES.fullmatch(field).groups()
        names.append(_ESCAPE.sub(r"\1", name))
        values.append(_parse_number(where, value, names[-1]) if value else 1.0)
    return Attributes(names, values)


def _parse_number(where, text, name):
    if not _NUMBER.fullmatch(text):
        way = "; a ':' in a name is written '\\:'" if name != "@weight" else ""
        raise DataError(*where, f"value {_quote(text)} of {_quote(name)} is not a number{way}")
    value = float(text)
    if not math.isfinite(value):
        raise DataError(*where, f"value {_quote(text)} of {_quote(name)} is not finite")
    return value


def write_crfsuite(path, sequences) -> None:
    """Write sequences, an iterable of Sequence, to a file, gzipped if its name ends in ".gz", or to "-"."""
    with open_output(path) as stream:
        for sequence in sequences:
            lines = [] if sequence.weight == 1 else [f"@weight:{sequence.weight!r}"]
            for label, attributes in zip(sequence.labels, sequence.attributes, strict=True):
                pairs = zip(attributes.names, attributes.values, strict=True)
                lines.append(
                    "\t".join([_escape_label(label), *(_field(name, value) for name, value in pairs)])
                )
            stream.write("\n".join([*lines, "", ""]).encode())


def _field(name, value):
    if not name:
        raise ValueError("an attribute without a name cannot be written")
    return _escape(name) if value == 1 else f"{_escape(name)}:{float(value)!r}"


def _escape_label(label):
    if label.startswith("@"):
        raise ValueError(f"label {label!r} cannot be written: CRFsuite's labels must not start with '@'")
    return _escape(label)


def _escape(name):
    if not {"\t", "\n", "\r"}.isdisjoint(name):
        raise ValueError(f"{name!r} cannot be written: CRFsuite's names have no tabs or line ends")
    return name.replace("\\", "\\\\").replace(":", "\\:")


def _quote(text):
    return repr(text if len(text) <= 40 else text[:40] + "...")
