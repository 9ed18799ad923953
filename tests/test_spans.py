"""Spans of labels by conlleval's rules, and their scores."""

from itertools import product

import pytest

from fenchel.spans import format_scores, span_scores, spans


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-NP", [("NP", 0, 1)]),
        ("B-NP I-NP O B-VP", [("NP", 0, 2), ("VP", 3, 4)]),  # IOB2
        ("I-NP I-NP B-NP O", [("NP", 0, 2), ("NP", 2, 3)]),  # IOB1: B only between neighbours
        ("O I-NP I-VP", [("NP", 1, 2), ("VP", 2, 3)]),  # an I of another type begins a span
        ("B-NP I-VP", [("NP", 0, 1), ("VP", 1, 2)]),
        ("B-NP B-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("B-NP I-NP E-NP S-VP", [("NP", 0, 3), ("VP", 3, 4)]),  # IOBES
        ("B-NP L-NP U-NP U-NP", [("NP", 0, 2), ("NP", 2, 3), ("NP", 3, 4)]),  # BILOU
        ("E-NP I-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("S-NP E-NP", [("NP", 0, 1), ("NP", 1, 2)]),
        ("B-a-b I-a-b I-a", [("a-b", 0, 2), ("a", 2, 3)]),
        ("B I O", [("", 0, 2)]),
        ("NP NP O", []),
        ("B-NP . I-NP", [("NP", 0, 1), ("NP", 2, 3)]),
    ],
)
def test_spans_start_and_end_as_in_conlleval(labels, expected):
    assert spans(labels.split()) == expected


def test_a_span_is_right_if_type_start_and_stop_are():
    truth = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-PP"]]
    guess = [["B-NP", "O", "O", "B-VP"], ["B-NP", "B-VP"]]
    scores = span_scores(truth, guess)
    assert scores[:3] == (0.5, 0.5, 0.5)
    assert (scores.n_true, scores.n_predicted, scores.n_right, scores.n_tokens) == (4, 4, 2, 6)
    assert scores.accuracy == 4 / 6
    assert list(scores.types) == ["NP", "PP", "VP"]
    assert scores.types["NP"] == (0.5, 0.5, 0.5, 2, 2, 1)
    assert scores.types["PP"] == (0.0, 0.0, 0.0, 1, 0, 0)
    assert scores.types["VP"] == (0.5, 1.0, 2 / 3, 1, 2, 1)


def test_no_span_goes_on_into_the_next_sequence():
    assert span_scores([["B-NP"], ["I-NP"]], [["B-NP"], ["I-NP"]]).n_true == 2


def test_sequences_without_spans_score_0():
    scores = span_scores([["O", "O"]], [["O", "O"]])
    assert scores[:4] == (0.0, 0.0, 0.0, 1.0)
    assert scores.types == {}


def test_tables_are_in_percent():
    text = format_scores(span_scores([["B-NP", "B-VP", "O"]], [["B-NP", "O", "O"]]))
    assert text.splitlines() == [
        "3 tokens, 2 spans, 1 predicted, 1 right",
        "accuracy 66.67%",
        "spans  precision   recall       F1  predicted",
        "  all    100.00%   50.00%   66.67%          1",
        "   NP    100.00%  100.00%  100.00%          1",
        "   VP      0.00%    0.00%    0.00%          0",
    ]


def test_sequences_must_match():
    with pytest.raises(ValueError, match="2 true sequences but 1 predicted; they must match"):
        span_scores([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="sequence 1 has 2 true labels but 1 predicted"):
        span_scores([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="no labels to score"):
        span_scores([], [])
    with pytest.warns(UserWarning, match="no labels to score: all scores are 0"):
        assert span_scores([[]], [[]])[:4] == (0.0, 0.0, 0.0, 0.0)


# What each scheme of seqeval's strict mode asks of (letter before, letter, whether the type is the same).
STARTS = {
    "IOB2": lambda before, letter, same: letter == "B",
    "IOE2": lambda before, letter, same: letter in "IE" and (before in "OE" or not same),
    "IOBES": lambda before, letter, same: letter in "BS",
}
GOES_ON = {
    "IOB2": lambda before, letter, same: same and before + letter in ("BI", "II"),
    "IOE2": lambda before, letter, same: same and before + letter in ("II", "IE"),
    "IOBES": lambda before, letter, same: same and before + letter in ("BI", "BE", "II", "IE"),
}
ENDS = {"IOB2": "BI", "IOE2": "E", "IOBES": "ES"}


def strict(labels, scheme):
    """Begin where a span may begin, go on while it may, and keep it if it ends as it must."""
    parts = [(label[0], label[2:]) for label in labels]
    found, t = [], 0
    while t < len(parts):
        letter, kind = parts[t]
        before, other = parts[t - 1] if t else ("O", "")
        stop = t + 1
        if STARTS[scheme](before, letter, kind == other):
            while stop < len(parts) and GOES_ON[scheme](
                parts[stop - 1][0], parts[stop][0], parts[stop - 1][1] == parts[stop][1]
            ):
                stop += 1
            if parts[stop - 1][0] in ENDS[scheme]:
                found.append((kind, t, stop))
        t = stop
    return found


@pytest.mark.parametrize("scheme, letters", [("IOB2", "BI"), ("IOE2", "IE"), ("IOBES", "BIES")])
def test_strict_spans_follow_their_scheme(scheme, letters):
    choices = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    for labels in product(choices, repeat=4):
        assert spans(labels, scheme) == strict(labels, scheme), labels
    assert spans(["I-X", "O"], "IOB2") == [] and spans(["I-X", "O"]) == [("X", 0, 1)]
    scores = span_scores([["B-X", "I-X"]], [["I-X", "I-X"]], "IOB2")
    assert (scores.n_true, scores.n_predicted) == (1, 0)


def test_labels_of_another_style_are_named():
    with pytest.raises(ValueError, match="the label 'PER-B' has its letter behind the type; write B-PER"):
        span_scores([["O", "PER-B"]], [["O", "O"]])
    with pytest.raises(ValueError, match="the label 'E-X' is none of IOB2; give another scheme"):
        spans(["B-X", "E-X"], "IOB2")
    with pytest.raises(ValueError, match="unknown scheme 'IOB'; there are IOB2"):
        spans(["B-X"], "IOB")


def test_means_over_types():
    truth = [["B-NP", "B-NP", "B-NP", "B-VP"]]
    scores = span_scores(truth, [["B-NP", "O", "O", "B-VP"]])
    assert scores.macro == pytest.approx(((1 + 1) / 2, (1 / 3 + 1) / 2, (0.5 + 1) / 2))
    assert scores.weighted == pytest.approx((1, 0.5, (3 * 0.5 + 1) / 4))
    assert span_scores([["O"]], [["O"]]).macro == (0.0, 0.0, 0.0)


def test_a_string_is_no_sequence_of_labels():
    with pytest.raises(TypeError, match="sequence 0 of the true ones is the string 'B-PER'"):
        span_scores(["B-PER", "O"], ["B-LOC", "O"])
    with pytest.raises(TypeError, match="labels is the string 'BIO'"):
        spans("BIO")
