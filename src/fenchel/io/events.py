"""Event files of maximum-entropy tools: OpenNLP, megam and TADM.

Readers are generators: a file is never held whole.  In all three formats a line is UTF-8 fields with blanks
between them (those of ASCII: a no-break space is part of a name), and empty lines are skipped.  Numbers are
decimal and finite: "nan" and "inf" are none, nor is "1f".
"""

import math
import re
from typing import NamedTuple

from fenchel.errors import DataError
from fenchel.features.naming import Attributes
from fenchel.io._text import lines_of, open_text
from fenchel.io.files import source_name

_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(_DECIMAL)
_COSTS = re.compile(f"(?:{_DECIMAL}|x)(?::(?:{_DECIMAL}|x))+")
_SECTIONS = {"train": 0, "dev": 1, "test": 2}
_MARKS = {b"DEV": 1, b"TEST": 2}  # the lines that open a section
_NEGATIVE = "OpenNLP has no negative values: shift the feature, or read names whole with real_values=False"


class Event(NamedTuple):
    """A label, the features seen with it, and how much the event counts."""

    label: str
    attributes: Attributes
    weight: float = 1.0


class CandidateEvent(NamedTuple):
    """Features of each candidate, and how often each was the right one.

    counts / sum(counts) are the candidates' empirical probabilities, sum(counts) > 0 the event's weight.
    """

    candidates: list
    counts: list


def read_events(path, format, **options):
    """Read a file of the format "opennlp", "megam" or "tadm"; options as for `read_opennlp` and so on."""
    if format not in READERS:
        raise ValueError(f"format {format!r} is unknown, expected one of {', '.join(READERS)}")
    return READERS[format](path, **options)


# OpenNLP


def read_opennlp(path, real_values=True):
    """Yield the events of a file with lines `outcome context context ...`, the outcome first.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, or "-" for standard input.
    real_values : bool
        Whether `name=1.5` is the feature "name" of value 1.5, split at the last `=`.  A context that does not
        end so is a name, of value 1.  Set it to False where digits are text, as in `word=1984`.

    Yields
    ------
    Event, of weight 1

    Raises
    ------
    DataError
        At the first malformed line.  Negative values are refused, as OpenNLP does.
    """
    return _some(_opennlp_events(path, real_values), path)


def _opennlp_events(path, real_values):
    for where, fields in _lines(path):
        names = fields[1:]
        values = _split_values(where, names) if real_values else [1.0] * len(names)
        yield Event(fields[0], Attributes(names, values))


def _split_values(where, names):
    """Cut numbers off the names, in place, and return one value for each."""
    values = [1.0] * len(names)
    for i, context in enumerate(names):
        name, _, tail = context.rpartition("=")
        if name and tail and tail[-1] in "0123456789." and _NUMBER.fullmatch(tail):
            names[i], values[i] = name, _finite(where, tail, name)
            if values[i] < 0:
                raise DataError(*where, f"feature {_quote(name)} is {tail}; {_NEGATIVE}")
    return values


# megam


def read_megam(path, explicit=False, values=False, section="train"):
    """Yield the events of a megam file: on each line a class, then its features.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, or "-" for standard input.
    explicit : bool
        Whether each class has features of its own, after a `#` for each class (megam -explicit); the class
        field is then the place of the right one, from 0.
    values : bool
        Whether a value follows each name (megam -fvals).
    section : "train", "dev" or "test"
        Which part to read: before, between or after lines that hold nothing but DEV or TEST.

    Yields
    ------
    Event, or with `explicit` CandidateEvent.  `$$$WEIGHT w` after the class gives the weight, 1 by default.

    Raises
    ------
    DataError
        At the first malformed line of the section.  So are refused, as no model here can use them: costs of
        several classes (-multilabel), probabilities for classes (binomial), `$$$TASK` and `$$$OUTOFDOMAIN`.

    Lines that begin with `#` are comments.
    """
    if section not in _SECTIONS:
        raise ValueError(f"section {section!r} is unknown, expected one of {', '.join(_SECTIONS)}")
    parse = _parse_explicit if explicit else _parse_implicit
    events = (parse(where, fields, values) for where, fields in _section_lines(path, _SECTIONS[section]))
    return _some(events, path, f"no events found in the {section} section")


def _section_lines(path, wanted):
    """Yield the lines of one section but comments; the others are passed over.

    To the very end: what was read of a damaged gzip file is known to be wrong only there.
    """
    current = 0
    for where, words in _words(path):
        mark = _MARKS.get(words[0], 0) if len(words) == 1 else 0
        if mark and current <= wanted:
            if mark <= current:
                found = words[0].decode()
                raise DataError(*where, f"{found} again or too late, expected DEV once, then TEST once")
            current = mark
        elif current == wanted and not words[0].startswith(b"#"):
            yield where, _decode(*where, words)


def _parse_implicit(where, fields, values):
    label = fields[0]
    if ":" in label or "." in label:
        _check_class(where, label)
    weight, fields = _take_weight(where, fields)
    return Event(label, _parse_features(where, fields, values), weight)


def _check_class(where, label):
    """Refuse classes that are costs or probabilities: read as names, they would train another model."""
    if _COSTS.fullmatch(label):
        raise DataError(*where, f"class {_quote(label)} holds costs of several classes, expected one class")
    if _NUMBER.fullmatch(label) and 0 < float(label) < 1:
        way = "write the event twice, as class 1 with that $$$WEIGHT and as class 0 with the rest"
        raise DataError(*where, f"class {_quote(label)} is a probability; {way}")


def _take_weight(where, fields):
    """The event's weight, and the fields after it."""
    weight, rest = 1.0, fields[1:]
    if rest and rest[0] == "$$$WEIGHT":
        if len(rest) == 1:
            raise DataError(*where, "no number after $$$WEIGHT")
        weight, rest = _finite(where, rest[1], "$$$WEIGHT"), rest[2:]
        if weight <= 0:
            raise DataError(*where, f"weight {fields[2]}, expected more than 0; leave the event out instead")
    if rest and rest[0] in ("$$$TASK", "$$$OUTOFDOMAIN"):
        raise DataError(*where, f"{rest[0]}: several domains are not read; split the file, or drop the mark")
    return weight, rest


def _parse_features(where, fields, values):
    """Names, or with `values` names and values in turn."""
    if not values:
        return Attributes(fields, [1.0] * len(fields))
    if len(fields) % 2:
        raise DataError(*where, f"feature {_quote(fields[-1])} has no value, expected one after each name")
    names = fields[::2]
    return Attributes(names, _numbers(where, fields[1::2], names))


def _parse_explicit(where, fields, values):
    head, *candidates = _split_at_marks(fields)
    if not candidates:
        raise DataError(*where, "no '#', expected one before the features of each class (explicit format)")
    if not candidates[-1]:
        # megam ignores a '#' at the end, so that this may be a last class without features or none at all
        raise DataError(*where, "'#' at the end of the line, expected features of the last class after it")
    weight, rest = _take_weight(where, head)
    if rest:
        raise DataError(*where, f"{_quote(rest[0])} before the first '#', expected the class alone there")
    counts = [0.0] * len(candidates)
    counts[_parse_place(where, head[0], len(candidates))] = weight
    return CandidateEvent([_parse_features(where, part, values) for part in candidates], counts)


def _parse_place(where, label, n):
    """The class field of the explicit format: the place of the right one of n candidates."""
    if _is_whole(label) and int(label) < n:
        return int(label)
    _check_class(where, label)
    raise DataError(*where, f"class {_quote(label)}, expected a number below {n}, as {n} '#' follow")


def _split_at_marks(fields):
    """The lists of fields before, between and after the `#`."""
    parts = [[]]
    for field in fields:
        if field == "#":
            parts.append([])
        else:
            parts[-1].append(field)
    return parts


# TADM


def read_tadm(path):
    """Yield the events of a TADM file: a line with the number of candidates, then a line for each of them.

    A candidate is `count n id value id value ...`, with n pairs; ids are whole numbers.  A header, from a
    line `&header` to a line `/`, is skipped.

    Parameters
    ----------
    path : str or Path
        A file, gunzipped if it is gzip, or "-" for standard input.

    Yields
    ------
    CandidateEvent, whose names are the ids as strings

    Raises
    ------
    DataError
        At the first malformed line, and at an event whose counts are all 0, which says nothing.
    """
    return _some(_tadm_events(path), path)


def _tadm_events(path):
    lines = _lines(path)
    for where, fields in lines:
        if fields == ["&header"]:
            _skip_header(where, lines)
            continue
        event = _parse_candidates(where, _parse_size(where, fields), lines)
        total = sum(event.counts)
        if not 0 < total < math.inf:
            expected = "more than 0" if total == 0 else "a finite number"
            raise DataError(*where, f"the counts of this event add up to {total:g}, expected {expected}")
        yield event


def _skip_header(where, lines):
    for _, fields in lines:
        if fields == ["/"]:
            return
    raise DataError(*where, "the header does not end, expected a line '/'")


def _parse_size(where, fields):
    """The number of candidates, alone on its line."""
    if len(fields) != 1 or not _is_whole(fields[0]) or int(fields[0]) == 0:
        found = _quote(" ".join(fields))
        raise DataError(*where, f"{found}, expected the number of an event's candidates alone on a line")
    return int(fields[0])


def _parse_candidates(where, n, lines):
    event = CandidateEvent([], [])
    for _ in range(n):
        line = next(lines, None)
        if line is None:
            found = len(event.counts)
            raise DataError(*where, f"the file ends after {found} of the {n} candidates of this event")
        count, attributes = _parse_candidate(*line)
        event.counts.append(count)
        event.candidates.append(attributes)
    return event


def _parse_candidate(where, fields):
    """(count, Attributes) of the fields `count n id value ...`."""
    if len(fields) < 2 or not _is_whole(fields[1]):
        found = _quote(" ".join(fields))
        raise DataError(*where, f"{found}, expected a candidate: count n id value id value ...")
    count, names = _finite(where, fields[0], "count"), fields[2::2]
    if count < 0:
        raise DataError(*where, f"count {fields[0]}, expected at least 0")
    if len(fields) - 2 != 2 * int(fields[1]):
        found = f"{fields[1]} features announced, but {len(fields) - 2} fields follow"
        raise DataError(*where, f"{found}, expected id and value of each")
    for name in names:
        if not _is_whole(name):
            raise DataError(*where, f"feature {_quote(name)}, expected a whole number from 0")
    return count, Attributes(names, _numbers(where, fields[3::2], names))


# Lines and numbers


def _lines(path):
    """Yield ((source, line number), fields) of every line that is not blank."""
    for where, words in _words(path):
        yield where, _decode(*where, words)


def _words(path):
    """The same, as bytes."""
    with open_text(path) as (stream, source):
        for number, line in lines_of(stream):
            if words := line.split():
                yield (source, number), words


def _decode(source, number, words):
    """Words as strings.  Bytes are split first: str.split also splits at no-break spaces and the like."""
    line = b" ".join(words)
    try:
        return line.decode().split(" ")
    except UnicodeDecodeError as error:
        message = f"byte 0x{line[error.start]:02x} is not UTF-8, expected UTF-8 text"
        raise DataError(source, number, message) from None


def _some(events, path, otherwise="no events found"):
    """Yield all events; DataError if there are none."""
    empty = True
    for event in events:
        empty = False
        yield event
    if empty:
        raise DataError(source_name(path), None, otherwise)


def _numbers(where, tokens, names):
    """The tokens as finite floats."""
    text = "".join(tokens)
    try:
        values = list(map(float, tokens))
        # float() takes more than decimal numbers: digits of all scripts, 1_000, nan
        if text.isascii() and "_" not in text and all(map(math.isfinite, values)):
            return values
    except ValueError:
        pass
    return [_finite(where, token, name) for token, name in zip(tokens, names, strict=True)]


def _finite(where, token, name):
    """The token as a finite float; `name` says what it is the value of."""
    if not _NUMBER.fullmatch(token):
        raise DataError(*where, f"value {_quote(token)} of {_quote(name)} is not a number")
    value = float(token)
    if not math.isfinite(value):
        raise DataError(*where, f"value {_quote(token)} of {_quote(name)} is not finite")
    return value


def _is_whole(token):
    return token.isascii() and token.isdigit() and len(token) <= 18


def _quote(token):
    return repr(token if len(token) <= 40 else token[:40] + "...")


READERS = {"opennlp": read_opennlp, "megam": read_megam, "tadm": read_tadm}
