"""The text formats once more, read as slowly and plainly as can be: what the fast readers must agree with.

Each takes the bytes of a file and returns plain lists, or raises Refused.
"""

import gzip
import math
import re
import zlib

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Refused(Exception):
    """The file is not of the format."""


def text_of(data: bytes, encoding="utf-8", errors="strict") -> str:
    """Gunzipped, decoded, without a byte order mark."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise Refused from error
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise Refused from error


def number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise Refused
    if not math.isfinite(float(text)):
        raise Refused
    return float(text)


def words(line: str, blanks=" \t\r\x0b\x0c") -> list[str]:
    return [word for word in re.split(f"[{blanks}]", line) if word]


def libsvm(data: bytes) -> list:
    """(label, [(index from 0, value)], largest index named) of each example."""
    examples = []
    for line in text_of(data, "latin-1").split("\n"):
        fields = words(line.split("#")[0], " \t\r")
        if not fields:
            continue
        label, *features = fields
        if features and features[0].startswith("qid:"):
            del features[0]
        row, last = [], 0
        for feature in features:
            index, _, value = feature.partition(":")
            if not re.fullmatch("[0-9]+", index) or len(index.lstrip("0")) > 10:
                raise Refused
            if not last < int(index) < 2**31:
                raise Refused
            last = int(index)
            row.append((last - 1, number(value)))
        examples.append((number(label), [pair for pair in row if pair[1] != 0], last))
    if not examples:
        raise Refused
    return examples


def columns(data: bytes) -> list:
    """Sentences, each a list of tuples of strings."""
    sentences, sentence, width = [], [], None
    for line in text_of(data).split("\n"):
        fields = tuple(words(line))
        if not fields and sentence:
            sentences.append(sentence)
            sentence = []
        if fields:
            width = width or len(fields)
            if len(fields) != width or width > 10_000:
                raise Refused
            sentence.append(fields)
    sentences += [sentence] if sentence else []
    if not sentences:
        raise Refused
    return sentences


def crfsuite(data: bytes) -> list:
    """(weight, [(label, [(name, value)])]) of each sequence."""
    sequences, items, weight = [], [], 1.0
    for line in [*text_of(data).split("\n"), ""]:
        if not words(line):
            if items:
                sequences.append((weight, items))
            items, weight = [], 1.0
            continue
        fields = line.rstrip("\r").split("\t")
        while fields and fields[0].startswith("@"):
            if not fields[0].startswith("@weight:") or number(fields[0][8:]) < 0:
                raise Refused
            weight = number(fields.pop(0)[8:])
        if fields:
            name, value = name_and_value(fields[0])
            if value is not None:
                raise Refused
            pairs = [name_and_value(field) for field in fields[1:] if field]
            items.append((name, [(name, number(value) if value else 1.0) for name, value in pairs]))
    if not sequences:
        raise Refused
    return sequences


def name_and_value(field: str):
    """The name up to the first colon without a backslash, and what is behind it; None without a colon."""
    name, at = "", 0
    while at < len(field):
        if field[at] == ":":
            return name, field[at + 1 :]
        if field[at] == "\\" and field[at + 1 : at + 2] in (":", "\\"):
            at += 1
        name, at = name + field[at], at + 1
    return name, None


def opennlp(data: bytes) -> list:
    """(label, [(name, value)]) of each event, with values cut off the names."""
    events = []
    for line in text_of(data).split("\n"):
        fields = words(line)
        if not fields:
            continue
        pairs = []
        for context in fields[1:]:
            name, _, value = context.rpartition("=")
            if name and NUMBER.fullmatch(value):
                if number(value) < 0:
                    raise Refused
                pairs.append((name, number(value)))
            else:
                pairs.append((context, 1.0))
        events.append((fields[0], pairs))
    if not events:
        raise Refused
    return events


def megam(data: bytes, values=False) -> list:
    """(label, weight, [(name, value)]) of each event before a line DEV or TEST."""
    events = []
    for line in text_of(data, errors="surrogateescape").split("\n"):
        fields = words(line)
        if fields in (["DEV"], ["TEST"]):
            break
        if fields and not fields[0].startswith("#"):  # a comment may be of any bytes
            check_utf8(line)
            events.append(weighted(fields, values))
    if not events:
        raise Refused
    return events


def megam_values(data: bytes) -> list:
    return megam(data, values=True)


def check_utf8(line: str) -> None:
    """Refused if the line had bytes that are no UTF-8."""
    if any("\udc80" <= character <= "\udcff" for character in line):
        raise Refused


def weighted(fields, values):
    """An event of the fields `label $$$WEIGHT w name name ...`, or with values `name value ...`."""
    label, weight, rest = fields[0], 1.0, fields[1:]
    parts = label.split(":")
    if len(parts) > 1 and all(part == "x" or NUMBER.fullmatch(part) for part in parts):
        raise Refused
    if "." in label and NUMBER.fullmatch(label) and 0 < float(label) < 1:
        raise Refused
    if rest[:1] == ["$$$WEIGHT"]:
        if len(rest) < 2 or number(rest[1]) <= 0:
            raise Refused
        weight, rest = number(rest[1]), rest[2:]
    if rest[:1] in (["$$$TASK"], ["$$$OUTOFDOMAIN"]) or (values and len(rest) % 2):
        raise Refused
    pairs = zip(rest[::2], map(number, rest[1::2]), strict=True) if values else ((name, 1.0) for name in rest)
    return label, weight, list(pairs)


def tadm(data: bytes) -> list:
    """[(count, [(id, value)])] of each event."""
    lines = [fields for line in text_of(data).split("\n") if (fields := words(line))]
    events, at = [], 0
    while at < len(lines):
        if lines[at] == ["&header"]:
            while at < len(lines) and lines[at] != ["/"]:
                at += 1
            if at == len(lines):
                raise Refused
            at += 1
            continue
        if len(lines[at]) != 1 or whole(lines[at][0]) == 0 or at + whole(lines[at][0]) >= len(lines):
            raise Refused
        n = whole(lines[at][0])
        event = [candidate(fields) for fields in lines[at + 1 : at + 1 + n]]
        if not 0 < sum(count for count, _ in event) < math.inf:
            raise Refused
        events.append(event)
        at += 1 + n
    if not events:
        raise Refused
    return events


def candidate(fields):
    if len(fields) < 2 or number(fields[0]) < 0 or len(fields) != 2 + 2 * whole(fields[1]):
        raise Refused
    return number(fields[0]), [
        (str_of_whole(i), number(v)) for i, v in zip(fields[2::2], fields[3::2], strict=True)
    ]


def whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise Refused
    return int(text)


def str_of_whole(text: str) -> str:
    whole(text)
    return text


def treebank(data: bytes) -> tuple:
    """[([(word, tag)], heads)] of each sentence, and the labels of their arcs or None."""
    sentences, rows, width = [], [], 0
    for line in [*text_of(data).split("\n"), ""]:
        line = line.rstrip("\r")
        if not line.strip():
            sentences += [rows] if rows else []
            rows = []
        elif width == 3 or not line.startswith("#") or line.startswith("#\t"):
            fields = line.split("\t")
            width = width or (10 if len(fields) > 4 else 3)
            if len(fields) != width:
                raise Refused
            if width == 10 and ("-" in fields[0] or "." in fields[0]):
                continue
            if width == 10 and fields[0] != str(len(rows) + 1):
                raise Refused
            rows.append(fields)
    if not sentences:
        raise Refused
    out = [
        (list(map(word_and_tag, one)), heads_of([row[6 if width == 10 else 2] for row in one]))
        for one in sentences
    ]
    labels = [[row[7] for row in one] for one in sentences] if width == 10 else []
    return out, labels if any(label != "_" for one in labels for label in one) else None


def word_and_tag(fields):
    if len(fields) == 3:
        return fields[0], fields[1]
    return fields[1], fields[4] if fields[4] != "_" else fields[3]


def heads_of(texts):
    """A tree: every word gets to the root in as many steps as there are words."""
    if not all(re.fullmatch("[0-9]{1,9}", text) and int(text) <= len(texts) for text in texts):
        raise Refused
    heads = list(map(int, texts))
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            raise Refused
    return heads
