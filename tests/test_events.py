"""Readers of event files: OpenNLP, megam, TADM."""

import gzip
import inspect
import io
import itertools
import sys

import pytest

from fenchel._sparse import as_csr
from fenchel.errors import DataError
from fenchel.features.encode import encode, encode_candidates
from fenchel.features.vocabulary import Vocabulary
from fenchel.io.events import (
    Attributes,
    CandidateEvent,
    Event,
    read_events,
    read_megam,
    read_opennlp,
    read_tadm,
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write text or bytes to a file in a folder of its own and go there, so that errors name `train.ev`."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="train.ev"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return write


class Stdio:
    """Stands for sys.stdin."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def plain(label, *names, weight=1.0):
    return Event(label, Attributes(list(names), [1.0] * len(names)), weight)


def assert_error(events, message, at="train.ev:3"):
    with pytest.raises(DataError) as caught:
        list(events)
    assert str(caught.value) == f"{at}: {message}"


# What all formats share

SMALL = {"opennlp": b"A a b\n", "megam": b"A a b\n", "tadm": b"1\n1 1 0 1\n"}


@pytest.mark.parametrize("format", SMALL)
def test_readers_are_generators(write, format):
    events = read_events(write(SMALL[format] * 3 + b"\xff"), format)
    assert inspect.isgenerator(events)
    assert len(list(itertools.islice(events, 3))) == 3  # the wrong line is not reached


@pytest.mark.parametrize("format", SMALL)
def test_gzip_and_standard_input(write, monkeypatch, format):
    expected = list(read_events(write(SMALL[format]), format))
    assert list(read_events(write(gzip.compress(SMALL[format]), "train.ev.gz"), format)) == expected
    monkeypatch.setattr(sys, "stdin", Stdio(SMALL[format]))
    assert list(read_events("-", format)) == expected
    monkeypatch.setattr(sys, "stdin", Stdio(b""))
    with pytest.raises(DataError, match=r"^<stdin>: no events found"):
        list(read_events("-", format))


@pytest.mark.parametrize("format", SMALL)
@pytest.mark.parametrize("text", ["", "\n \t\r\n\n"])
def test_no_events(write, format, text):
    with pytest.raises(DataError, match=r"^train.ev: no events found"):
        list(read_events(write(text), format))


@pytest.mark.parametrize("format", SMALL)
def test_blanks_line_endings_and_byte_order_mark(write, format):
    expected = list(read_events(write(SMALL[format]), format))
    awkward = (
        b"\xef\xbb\xbf\r\n" + SMALL[format].replace(b" ", b" \t ").replace(b"\n", b" \r\n\n \n").rstrip()
    )
    assert list(read_events(write(awkward), format)) == expected
    assert list(read_events(write(b"\xef\xbb\xbf" + SMALL[format]), format)) == expected


@pytest.mark.parametrize("format", SMALL)
def test_bytes_that_are_not_utf8(write, format):
    name = write(SMALL[format] + b"\n1 caf\xe9 b\n")
    line = SMALL[format].count(b"\n") + 2
    assert_error(read_events(name, format), "byte 0xe9 is not UTF-8, expected UTF-8 text", f"train.ev:{line}")


@pytest.mark.parametrize("format", SMALL)
def test_damaged_gzip(write, format):
    whole = gzip.compress(SMALL[format] * 1000)
    for damaged in (whole[:-9], whole[:20]):
        with pytest.raises(DataError, match=r"^train.ev.gz: not a whole gzip file \(.+\)$"):
            list(read_events(write(damaged, "train.ev.gz"), format))


def test_names_may_hold_blanks_that_are_not_ascii(write):
    assert list(read_opennlp(write("A a\u00a0b c\u3000d e\x1cf\x85 \u2028\n"))) == [
        plain("A", "a\u00a0b", "c\u3000d", "e\x1cf\x85", "\u2028")
    ]


def test_unknown_format_and_section_are_told_at_once():
    with pytest.raises(ValueError, match="format 'mallet' is unknown, expected one of opennlp, megam, tadm"):
        read_events("none", "mallet")
    with pytest.raises(ValueError, match="section 'valid' is unknown, expected one of train, dev, test"):
        read_megam("none", section="valid")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_opennlp(tmp_path / "none"))


# OpenNLP


def test_opennlp(write):
    name = write("Outdoor=1 sun happy\n\nIndoor\n  été  rain word=été\n")
    assert list(read_opennlp(name)) == [
        plain("Outdoor=1", "sun", "happy"),
        plain("Indoor"),
        plain("été", "rain", "word=été"),
    ]


@pytest.mark.parametrize(
    "context, name, value",
    [
        ("x=1.5", "x", 1.5),
        ("x=+2", "x", 2.0),
        ("x=.5", "x", 0.5),
        ("x=5.", "x", 5.0),
        ("x=1e-3", "x", 0.001),
        ("x=0", "x", 0.0),
        ("x=1=2", "x=1", 2.0),
        ("w=the", "w=the", 1.0),
        ("w==", "w==", 1.0),
        ("w=", "w=", 1.0),
        ("=3", "=3", 1.0),
        ("=", "=", 1.0),
        ("==3", "=", 3.0),
        ("w=nan", "w=nan", 1.0),
        ("w=inf", "w=inf", 1.0),
        ("w=NaN", "w=NaN", 1.0),
        ("w=1f", "w=1f", 1.0),
        ("w=1_0", "w=1_0", 1.0),
        ("w=٣", "w=٣", 1.0),
        ("w=0x10", "w=0x10", 1.0),
        ("w=...", "w=...", 1.0),
        ("w=1.2.3", "w=1.2.3", 1.0),
        ("3", "3", 1.0),
    ],
)
def test_opennlp_real_values(write, context, name, value):
    path = write(f"A a {context} b\n")
    assert list(read_opennlp(path)) == [Event("A", Attributes(["a", name, "b"], [1.0, value, 1.0]), 1.0)]
    assert list(read_opennlp(path, real_values=False)) == [plain("A", "a", context, "b")]


def test_opennlp_refuses(write):
    name = write("A a\n\nB a x=1 y=-2\n")
    assert_error(
        read_opennlp(name),
        "feature 'y' is -2; OpenNLP has no negative values: shift the feature, or read names whole with "
        "real_values=False",
    )
    assert list(read_opennlp(name, real_values=False))[1] == plain("B", "a", "x=1", "y=-2")
    assert_error(read_opennlp(write("A a\n\nB y=1e999\n")), "value '1e999' of 'y' is not finite")


# megam


def test_megam_implicit(write):
    name = write("# a comment\n0 F1 F2 F1\n\nspam\tF3\n1\n2 #x #\n")
    assert list(read_megam(name)) == [
        plain("0", "F1", "F2", "F1"),
        plain("spam", "F3"),
        plain("1"),
        plain("2", "#x", "#"),
    ]


def test_megam_values(write):
    name = write("0 F1 0.5 F2 -1e2\n1 F3 0\n1\n")
    assert list(read_megam(name, values=True)) == [
        Event("0", Attributes(["F1", "F2"], [0.5, -100.0]), 1.0),
        Event("1", Attributes(["F3"], [0.0]), 1.0),
        Event("1", Attributes([], []), 1.0),
    ]


def test_megam_weight(write):
    name = write("0 $$$WEIGHT 0.25 F1\n1 F1 $$$WEIGHT 3\n1 $$$WEIGHT 2\n")
    assert list(read_megam(name)) == [
        plain("0", "F1", weight=0.25),
        plain("1", "F1", "$$$WEIGHT", "3"),
        plain("1", weight=2.0),
    ]


def test_megam_explicit(write):
    name = write("1 # 0 1 # 2 3 0\n0 $$$WEIGHT 2.5 # a # # b\n0 # a\n")
    assert list(read_megam(name, explicit=True)) == [
        CandidateEvent(
            [Attributes(["0", "1"], [1.0] * 2), Attributes(["2", "3", "0"], [1.0] * 3)], [0.0, 1.0]
        ),
        CandidateEvent(
            [Attributes(["a"], [1.0]), Attributes([], []), Attributes(["b"], [1.0])], [2.5, 0.0, 0.0]
        ),
        CandidateEvent([Attributes(["a"], [1.0])], [1.0]),
    ]


def test_megam_explicit_values(write):
    events = list(read_megam(write("1 # 0 1.5 # 2 -3 4 1\n"), explicit=True, values=True))
    assert events == [
        CandidateEvent([Attributes(["0"], [1.5]), Attributes(["2", "4"], [-3.0, 1.0])], [0.0, 1.0])
    ]


SECTIONS = "0 a\n1 b\nDEV\n0 c\n\n TEST \n1 d\n# e\n0 f\n"


@pytest.mark.parametrize("section, names", [("train", "ab"), ("dev", "c"), ("test", "df")])
def test_megam_sections(write, section, names):
    events = read_megam(write(SECTIONS), section=section)
    assert [event.attributes.names[0] for event in events] == list(names)


def test_megam_sections_not_asked_for_are_not_parsed(write):
    name = write(b"0 a x\nDEV\n0 a 1\nTEST\n0:1 a y\n\xff\n")
    assert list(read_megam(name, values=True, section="dev")) == [Event("0", Attributes(["a"], [1.0]), 1.0)]


def test_megam_sections_missing_or_misplaced(write):
    name = write("0 a\nTEST\n1 b\n")
    assert [event.label for event in read_megam(name, section="test")] == ["1"]
    assert_error(read_megam(name, section="dev"), "no events found in the dev section", "train.ev")
    assert_error(read_megam(write("DEV\n0 a\n")), "no events found in the train section", "train.ev")
    order = "expected DEV once, then TEST once"
    events = read_megam(write("0 a\nDEV\nDEV\n1 b\n"), section="dev")
    assert_error(events, f"DEV again or too late, {order}")
    events = read_megam(write("0 a\nTEST\nDEV\n1 b\n"), section="test")
    assert_error(events, f"DEV again or too late, {order}")
    events = read_megam(write("TEST\n0 a\nTEST\n1 b\n"), section="test")
    assert_error(events, f"TEST again or too late, {order}")


DOMAINS = "several domains are not read; split the file, or drop the mark"
TWICE = "write the event twice, as class 1 with that $$$WEIGHT and as class 0 with the rest"


@pytest.mark.parametrize(
    "line, options, message",
    [
        ("0:0:1:2 a", {}, "class '0:0:1:2' holds costs of several classes, expected one class"),
        (
            "0:x:1.5 # a # b # c",
            {"explicit": True},
            "class '0:x:1.5' holds costs of several classes, expected one class",
        ),
        ("0.7 a", {}, f"class '0.7' is a probability; {TWICE}"),
        ("0 $$$WEIGHT", {}, "no number after $$$WEIGHT"),
        ("0 $$$WEIGHT x a", {}, "value 'x' of '$$$WEIGHT' is not a number"),
        ("0 $$$WEIGHT inf a", {}, "value 'inf' of '$$$WEIGHT' is not a number"),
        ("0 $$$WEIGHT 0 a", {}, "weight 0, expected more than 0; leave the event out instead"),
        ("0 $$$WEIGHT -1 a", {}, "weight -1, expected more than 0; leave the event out instead"),
        ("0 $$$TASK 2 a", {}, f"$$$TASK: {DOMAINS}"),
        ("0 $$$WEIGHT 2 $$$OUTOFDOMAIN a", {}, f"$$$OUTOFDOMAIN: {DOMAINS}"),
        ("0 a 1 b", {"values": True}, "feature 'b' has no value, expected one after each name"),
        ("0 a 1 b c", {"values": True}, "value 'c' of 'b' is not a number"),
        ("0 a 1 b nan", {"values": True}, "value 'nan' of 'b' is not a number"),
        ("0 a 1 b 1e999", {"values": True}, "value '1e999' of 'b' is not finite"),
        ("0 a 1 b 1_0", {"values": True}, "value '1_0' of 'b' is not a number"),
        ("0 a 1 b ٣", {"values": True}, "value '٣' of 'b' is not a number"),
        (
            "0 # a 1 # b",
            {"values": True, "explicit": True},
            "feature 'b' has no value, expected one after each name",
        ),
        (
            "0 a b",
            {"explicit": True},
            "no '#', expected one before the features of each class (explicit format)",
        ),
        ("0 a # b", {"explicit": True}, "'a' before the first '#', expected the class alone there"),
        ("2 # a # b", {"explicit": True}, "class '2', expected a number below 2, as 2 '#' follow"),
        ("-1 # a # b", {"explicit": True}, "class '-1', expected a number below 2, as 2 '#' follow"),
        ("A # a # b", {"explicit": True}, "class 'A', expected a number below 2, as 2 '#' follow"),
        (
            "9" * 5000 + " # a",
            {"explicit": True},
            f"class '{'9' * 40}...', expected a number below 1, as 1 '#' follow",
        ),
        (
            "0 # a #",
            {"explicit": True},
            "'#' at the end of the line, expected features of the last class after it",
        ),
    ],
)
def test_megam_refuses(write, line, options, message):
    good = "0 # a 1 # b 1" if options.get("explicit") else "0 a 1"
    assert_error(read_megam(write(f"{good}\n\n{line}\n{good}\n"), **options), message)


def test_megam_classes_with_colons_and_points(write):
    labels = ["B:PER", "a.b", "1.5", "10:", ":", "2.", "v1.0:2"]
    assert [event.label for event in read_megam(write("".join(f"{label} a\n" for label in labels)))] == labels


# TADM


def test_tadm(write):
    name = write("2\n5 2 0 1 1 2\n3 2 0 3 2 -1.5\n\n1\n0.25 0\n")
    assert list(read_tadm(name)) == [
        CandidateEvent([Attributes(["0", "1"], [1.0, 2.0]), Attributes(["0", "2"], [3.0, -1.5])], [5.0, 3.0]),
        CandidateEvent([Attributes([], [])], [0.25]),
    ]


def test_tadm_header_is_skipped(write):
    text = "1\n1 1 7 1\n"
    assert list(read_tadm(write(f"&header\nanything 1 2\n3\n/\n{text}"))) == list(read_tadm(write(text)))
    assert_error(
        read_tadm(write(f"\n\n&header\n{text}")), "the header does not end, expected a line '/'", "train.ev:3"
    )
    assert_error(read_tadm(write("&header\n/\n")), "no events found", "train.ev")


ALONE = "expected the number of an event's candidates alone on a line"
CANDIDATE = "expected a candidate: count n id value id value ..."


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("0\n", 3, f"'0', {ALONE}"),
        ("-1\n", 3, f"'-1', {ALONE}"),
        ("two\n", 3, f"'two', {ALONE}"),
        ("1 1 0 1\n", 3, f"'1 1 0 1', {ALONE}"),
        ("9" * 5000, 3, f"'{'9' * 40}...', {ALONE}"),
        ("1\n1\n", 4, f"'1', {CANDIDATE}"),
        ("2\n1 1 0 1\n1\n1 1 0 1\n", 5, f"'1', {CANDIDATE}"),
        ("1\n1 x 0 1\n", 4, f"'1 x 0 1', {CANDIDATE}"),
        ("1\n1 -1\n", 4, f"'1 -1', {CANDIDATE}"),
        ("1\n1 2 0 1\n", 4, "2 features announced, but 2 fields follow, expected id and value of each"),
        ("1\n1 1 0 1 2\n", 4, "1 features announced, but 3 fields follow, expected id and value of each"),
        ("1\n1 1 a 1\n", 4, "feature 'a', expected a whole number from 0"),
        ("1\n1 1 -2 1\n", 4, "feature '-2', expected a whole number from 0"),
        ("1\n1 1 0 b\n", 4, "value 'b' of '0' is not a number"),
        ("1\n1 1 0 nan\n", 4, "value 'nan' of '0' is not a number"),
        ("1\nx 1 0 1\n", 4, "value 'x' of 'count' is not a number"),
        ("1\n-1 1 0 1\n", 4, "count -1, expected at least 0"),
        ("3\n1 1 0 1\n0 0\n", 3, "the file ends after 2 of the 3 candidates of this event"),
        ("1\n", 3, "the file ends after 0 of the 1 candidates of this event"),
        ("2\n0 1 0 1\n0 0\n", 3, "the counts of this event add up to 0, expected more than 0"),
        ("2\n1e308 0\n1e308 0\n", 3, "the counts of this event add up to inf, expected a finite number"),
    ],
)
def test_tadm_refuses(write, text, line, message):
    assert_error(read_tadm(write(f"1\n1 1 0 1\n{text}")), message, f"train.ev:{line}")


# From file to rows


def test_from_file_to_rows(write):
    events = list(read_opennlp(write("A a=2 b a\nB c b=0\n")))
    rows, vocabulary = encode((event.attributes for event in events), Vocabulary(), grow=True)
    assert vocabulary.names == ["a", "b", "c"]
    assert as_csr(rows).toarray().tolist() == [[3, 1, 0], [0, 0, 1]]


def test_from_candidates_to_rows(write):
    events = list(read_tadm(write("2\n1 1 5 1\n0 2 5 2 6 1\n1\n3 1 6 4\n")))
    rows, starts, labels, vocabulary = encode_candidates(
        (event.candidates for event in events), Vocabulary(), grow=True
    )
    assert vocabulary.names == ["5", "6"]
    assert as_csr(rows).toarray().tolist() == [[1, 0], [2, 1], [0, 4]]
    assert (starts.tolist(), labels) == ([0, 2, 3], [[0, 1], [0]])
