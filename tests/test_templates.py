"""Templates, presets, and the attributes they give, against a reference that joins strings."""

import json
import re

import numpy as np
import pytest

from fenchel._sparse import as_csr
from fenchel.features.attributes import Extractor
from fenchel.features.patterns import translate
from fenchel.features.templates import Template, TemplateError, parse_template, preset, read_template
from fenchel.features.tokens import Tokens
from fenchel.features.words import FUNCTIONS

CRFPP = """# a comment
U00:%x[-2,0]
U01:%x[0,0]
U02:%x[-1,0]/%x[1,1]
U03:%x[-1,0]/%x[0,1]/%x[3,0]/%x[0,1]
U:%x[-1,0]
U:%x[1,0]
U
B
B04:%x[0,1]
"""
WAPITI = r"""
* # transitions and a constant
u:1:%x[0,0]     # a comment
u:2:%X[-1,0]
u:3:%t[1,0,"^\u"]
u:4:%m[0,0,"^.?.?"]%M[-1,0,"\a\d*$"]
*:5:%x[@1,1]/%x[@-1,0]/%x[@3,0]
b:6:%x[-6,0]
U:7:%x[6,1]
"""


def random_sentences(seed, n=30, longest=9):
    rng = np.random.default_rng(seed)
    words = ["the", "The", "B2", "a1", "%x[0,0]", "é", "_B-1", "x:y"]
    return [
        [(str(rng.choice(words)), str(rng.choice(["N", "V"]))) for _ in range(rng.integers(1, longest + 1))]
        for _ in range(n)
    ]


# The reference: one string for each token and line, as the tools themselves make it


def expand(line, sentence, t, dialect):
    """The line with its macros replaced by values."""

    def value(found):
        letter, absolute, offset, column, pattern = found.groups()
        offset = int(offset)
        at = t + offset if not absolute else offset + len(sentence) if offset < 0 else offset - 1
        token = padded(sentence, at, int(column), dialect)
        if pattern is not None:
            match = re.search(translate(pattern), token)
            token = str(match is not None).lower() if letter in "tT" else match[0] if match else ""
        return token.lower() if letter.isupper() else token

    return re.sub(r'%([xXtTmM])\[(@?)(-?\d+),(\d+)(?:,"(.*?)")?\]', value, line)


def padded(sentence, at, column, dialect):
    distance = -at if at < 0 else at - len(sentence) + 1
    sign = "-" if at < 0 else "+"
    if 0 <= at < len(sentence):
        return sentence[at][column]
    return f"_B{sign}{distance}" if dialect == "crf++" else f"_x{sign}{distance if distance < 5 else '#'}"


def reference(text, dialect, sentences, letters):
    """For each token the counts of its strings; letters say which lines count."""
    lines = [line.partition("#")[0].rstrip() for line in text.splitlines()]
    lines = [line for line in lines if line and line[0].lower() in letters]
    if "b" in letters:
        lines = [line for line in lines if "%" in line]
    tokens = []
    for sentence in sentences:
        for t in range(len(sentence)):
            names = [] if "b" in letters and t == 0 else [expand(k, sentence, t, dialect) for k in lines]
            tokens.append({name: names.count(name) for name in names})
    return tokens


def as_dicts(rows, names):
    matrix = as_csr(rows)
    assert matrix.has_canonical_format
    return [
        {names[j]: v for j, v in zip(matrix[i].indices, matrix[i].data, strict=True)}
        for i in range(matrix.shape[0])
    ]


@pytest.mark.parametrize(("text", "dialect"), [(CRFPP, "crf++"), (WAPITI, "wapiti")])
@pytest.mark.parametrize("seed", range(3))
def test_attributes_are_those_of_joined_strings(text, dialect, seed):
    sentences = random_sentences(seed)
    extractor = Extractor(parse_template(text))
    assert extractor.template.dialect == dialect
    tokens = Tokens.from_sentences(sentences)
    unary, edges = extractor.fit(tokens)
    expected = reference(text, dialect, sentences, "u*"), reference(text, dialect, sentences, "b*")
    assert as_dicts(unary, extractor.names()) == expected[0]
    assert as_dicts(edges, extractor.edge_names()) == expected[1]
    assert extractor.transitions
    for again, rows in zip(extractor.transform(tokens), (unary, edges), strict=True):
        assert (as_csr(again) != as_csr(rows)).nnz == 0

    others = random_sentences(seed + 100)
    unary, edges = extractor.transform(Tokens.from_sentences(others))
    for rows, letters, names in ((unary, "u*", extractor.names()), (edges, "b*", extractor.edge_names())):
        known = [
            {name: k for name, k in token.items() if name in set(names)}
            for token in reference(text, dialect, others, letters)
        ]
        assert as_dicts(rows, names) == known


def test_attributes_are_numbered_in_the_order_first_seen():
    extractor = Extractor(parse_template("U0:%x[0,0]\nU1:%x[1,0]\n"))
    extractor.fit(Tokens.from_sentences([["b", "a"], ["a"]]))
    assert extractor.names() == ["U0:b", "U1:a", "U0:a", "U1:_B+1"]
    assert extractor.names([2, 0]) == ["U0:a", "U0:b"]
    with pytest.raises(ValueError, match="there is no attribute 4; there are 4, from 0"):
        extractor.names([4])


def test_lines_of_the_same_text_share_their_attributes():
    extractor = Extractor(parse_template("U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]\n"))
    unary, edges = extractor.fit(Tokens.from_sentences([["a", "a"]]))
    assert extractor.names() == ["U:_B-1", "U:a", "U:_B+1"]
    assert as_csr(unary).toarray().tolist() == [[1, 2, 0], [0, 2, 1]]
    assert edges is None
    assert not extractor.transitions


def test_seldom_attributes_are_dropped():
    extractor = Extractor(parse_template("U0:%x[0,0]\nU1:%x[0,0]/%x[0,1]\nB:%x[0,1]\n"))
    tokens = Tokens.from_sentences([[("a", "x"), ("a", "y"), ("b", "y")]])
    unary, edges = extractor.fit(tokens, min_count=2)
    assert extractor.names() == ["U0:a"]
    assert extractor.edge_names() == ["B:y"]
    assert as_csr(unary).toarray().tolist() == [[1], [1], [0]]
    assert as_csr(edges).toarray().tolist() == [[0], [1], [1]]
    assert (as_csr(extractor.transform(tokens)[0]) != as_csr(unary)).nnz == 0


def test_long_and_short_sentences():
    words = [str(i % 5000) for i in range(10_000)]
    sentences = [words, ["1"], [], ["2", "3"]]
    extractor = Extractor(parse_template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB:%x[0,0]\n"))
    unary, edges = extractor.fit(Tokens.from_sentences(sentences))
    assert unary.shape == (10_003, extractor.n_attributes)
    assert as_csr(edges)[[0, 10_000, 10_001]].nnz == 0
    assert edges.nnz == 9_999 + 1
    row = as_csr(extractor.transform(Tokens.from_sentences([["2", "3"]]))[0])[1]
    assert extractor.names(row.indices) == ["U0:3", "U1:2/3"]


def test_hundreds_of_thousands_of_pairs_are_told_apart():
    words = [f"{i}" for i in range(1000)] * 2
    pairs = [[(a, b) for b in words[i : i + 1000]] for i, a in enumerate(words[:300])]
    extractor = Extractor(parse_template("U0:%x[0,0]/%x[0,1]\n"))
    unary, _ = extractor.fit(Tokens.from_sentences(pairs))
    assert extractor.n_attributes == len(set(extractor.names())) == 300_000
    assert unary.indices.tolist() == list(range(300_000))


def test_constants_need_no_column():
    extractor = Extractor(parse_template("U\nB\n"))
    unary, edges = extractor.fit(Tokens.from_sentences([["a", "b"], ["c"]]))
    assert extractor.names() == ["U"]
    assert as_csr(unary).toarray().tolist() == [[1], [1], [1]]
    assert edges is None
    assert extractor.transitions


def test_the_empty_list_of_sentences():
    extractor = Extractor("chunk")
    extractor.fit(Tokens.from_sentences([[("a", "N")]]))
    unary, _ = extractor.transform(Tokens.from_sentences([]))
    assert unary.shape == (0, extractor.n_attributes)
    with pytest.raises(ValueError, match="no tokens to take attributes from"):
        extractor.fit(Tokens.from_sentences([]))


def test_an_extractor_must_be_fitted():
    with pytest.raises(ValueError, match="call fit first"):
        Extractor("chunk").transform(Tokens.from_sentences([["a"]]))
    with pytest.raises(ValueError, match="min_count is 0; it must be at least 1"):
        Extractor("chunk").fit(Tokens.from_sentences([[("a", "N")]]), min_count=0)


# Model files


@pytest.mark.parametrize("template", ["chunk", "ner", "pos", CRFPP, WAPITI])
def test_extractors_come_back_from_arrays(template):
    template = parse_template(template) if "%" in template else preset(template)
    first = Extractor(template)
    first.fit(Tokens.from_sentences(random_sentences(1)), min_count=2)
    second = Extractor.from_arrays(json.loads(json.dumps(first.to_facts())), first.to_arrays())
    assert second.names() == first.names()
    assert second.edge_names() == first.edge_names()
    assert second.transitions == first.transitions
    others = Tokens.from_sentences(random_sentences(2))
    for a, b in zip(first.transform(others), second.transform(others), strict=True):
        assert (a is None and b is None) or (as_csr(a) != as_csr(b)).nnz == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": np.array([0.5])}, "keys are float64 of 1 axes"),
        ({"keys": np.full(3, 10**6, np.uint32)}, "keys are not all below"),
        ({"keys": np.zeros(1, np.uint32)}, "1 values in keys of"),
        ({"groups": np.full(3, 99, np.uint32)}, "groups are not all below 21"),
        ({"value_offsets": np.zeros(1, np.uint64)}, "damaged vocabulary"),
        ({"keys": None}, "no 'keys'"),
    ],
)
def test_damaged_arrays(change, message):
    extractor = Extractor("chunk")
    extractor.fit(Tokens.from_sentences([[("a", "N"), ("b", "N")]]))
    arrays = {k: v for k, v in (extractor.to_arrays() | change).items() if v is not None}
    with pytest.raises(ValueError, match=message):
        Extractor.from_arrays(extractor.to_facts(), arrays)


def test_keys_that_come_twice_are_damage():
    extractor = Extractor(parse_template("U:%x[0,0]\n"))
    extractor.fit(Tokens.from_sentences([["a", "b"]]))
    arrays = extractor.to_arrays() | {"keys": np.zeros(2, np.uint32)}
    with pytest.raises(ValueError, match="damaged attributes: number 1 comes twice"):
        Extractor.from_arrays(extractor.to_facts(), arrays)


@pytest.mark.parametrize("facts", [{}, {"text": 3, "dialect": "crf++", "name": "a"}, {"preset": "none"}])
def test_damaged_facts(facts):
    with pytest.raises(ValueError):
        Template.from_facts(facts)


# Parsing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U00:%x[0,0]\nX:%x[0,0]", ":2: 'X:%x[0,0]' starts with 'X', a line must start with U, B or #"),
        ("U00:%x[0]", ":1: '%x[0]' is not a macro, expected one as %x[0,1] after each %"),
        ("U00:%y[0,0]", ":1: '%y[0,0]' is not a macro, expected one as %x[0,1] after each %"),
        ("u:%t[0,0]", ':1: %t[0,0] must have a pattern in quotes, as %t[0,0,"^\\u"]'),
        ('u:%x[0,0,"a"]', ':1: %x[0,0,"a"] must have no pattern'),
        ('u:%m[0,0,"a**"]', ":1: '*' has nothing to repeat in the pattern 'a**'; write \\*"),
        ("u:%x[*1,0]", ":1: %x[*1,0] takes its offset from a column, which is not supported"),
        ("U:%x[99999999,0]", ":1: the numbers in %x[99999999,0] are too large"),
        ("# nothing\n\n", ": no line with attributes of tokens; a template needs one, as U00:%x[0,0]"),
        ("B\n", ": no line with attributes of tokens; a template needs one, as U00:%x[0,0]"),
    ],
)
def test_broken_templates(text, message):
    with pytest.raises(TemplateError) as caught:
        parse_template(text, name="t.txt")
    assert str(caught.value) == f"t.txt{message}"


def test_what_one_dialect_has_the_other_has_not():
    with pytest.raises(TemplateError, match=r"t:1: CRF\+\+ has no %X\[0,0\], only %x\[row,column\]"):
        parse_template("U:%X[0,0]", dialect="crf++", name="t")
    with pytest.raises(ValueError, match="dialect 'mallet' is unknown"):
        parse_template("U:%x[0,0]", dialect="mallet")
    assert parse_template("U#:%x[0,0]").lines[0].texts == ("U#:", "")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("a", "b", "c"), "t:3: %x[0,5] names column 5, but the data have 3 columns (0 to 2)"),
        (("a",), "t:2: %x[0,1] names column 1, but the data have 1 column (only 0)"),
    ],
)
def test_missing_columns(columns, message):
    extractor = Extractor(parse_template("U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[0,5]\n", name="t"))
    with pytest.raises(TemplateError) as caught:
        extractor.fit(Tokens.from_sentences([[columns]]))
    assert str(caught.value) == message


def test_missing_columns_at_prediction():
    extractor = Extractor(parse_template("U1:%x[0,1]\n", name="t"))
    extractor.fit(Tokens.from_sentences([[("a", "b")]]))
    assert extractor.transform(Tokens.from_sentences([[("x", "b", "label")]]))[0].nnz == 1
    with pytest.raises(TemplateError, match="t:1: %x"):
        extractor.transform(Tokens.from_sentences([["a"]]))


def test_templates_from_files(tmp_path):
    (tmp_path / "t").write_text("U:%x[0,0]\r\nB\r\n")
    template = read_template(tmp_path / "t")
    assert template.transitions
    assert template.lines[0].texts == ("U:", "")
    assert read_template("chunk") == preset("chunk")
    with pytest.raises(FileNotFoundError, match=r"no such template file, nor a preset \(chunk, ner, pos\)"):
        read_template(tmp_path / "none")
    (tmp_path / "t").write_bytes(b"U\xff")
    with pytest.raises(TemplateError, match="not a template, expected UTF-8 text"):
        read_template(tmp_path / "t")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b", "abc", "b"),
        ("^b", "abc", None),
        ("c$", "abc", "c"),
        ("a.c", "abc", "abc"),
        ("a*", "aaa", ""),  # as little as it can
        ("^a*$", "aaa", "aaa"),
        ("^.?.?", "abc", "ab"),  # as much as it can
        (r"\d\d*$", "ab12", "12"),
        (r"\U", "ABc", "c"),
        (r"\p", "a-b", "-"),
        (r"\.\*", "a.*", ".*"),
        ("a^$b", "xa^$b", "a^$b"),
        (r"\a", "é", None),
        ("[a]", "a[a]", "[a]"),
    ],
)
def test_patterns(pattern, text, expected):
    found = re.search(translate(pattern), text)
    assert (found[0] if found else None) == expected


# Presets


def test_chunk_gives_the_attributes_of_crfsuites_tutorial():
    extractor = Extractor("chunk")
    unary, edges = extractor.fit(Tokens.from_sentences([[("the", "DT"), ("cat", "NN")]]))
    assert edges is None
    assert extractor.transitions
    names = [set(token) for token in as_dicts(unary, extractor.names())]
    words = {"w[0]=the", "w[1]=cat", "w[0]|w[1]=the|cat"}
    assert names[0] == words | {"pos[0]=DT", "pos[1]=NN", "pos[0]|pos[1]=DT|NN", "__BOS__"}
    words = {"w[-1]=the", "w[0]=cat", "w[-1]|w[0]=the|cat"}
    assert names[1] == words | {"pos[-1]=DT", "pos[0]=NN", "pos[-1]|pos[0]=DT|NN", "__EOS__"}


def test_names_look_at_a_chunk_column_if_there_is_one():
    extractor = Extractor("ner")
    extractor.fit(Tokens.from_sentences([[("U.N.", "NNP", "B-NP")]]))
    assert {"chunk[0]=B-NP", "short_shape[0]=U.U.", "prefix2[0]=U.", "type[0]=AllUpperDigit"} <= set(
        extractor.names()
    )
    extractor.fit(Tokens.from_sentences([[("U.N.", "NNP")]]))
    assert not any("chunk" in name for name in extractor.names())


def test_parts_of_speech_need_words_only():
    extractor = Extractor("pos")
    extractor.fit(Tokens.from_sentences([["Ab3"]]))
    expected = {"w[0]=Ab3", "__BOS__", "__EOS__", "has_digit[0]=yes", "has_upper[0]=yes"}
    expected |= {"prefix1[0]=A", "prefix2[0]=Ab", "prefix3[0]=Ab3"}
    assert set(extractor.names()) == expected | {"suffix1[0]=3", "suffix2[0]=b3", "suffix3[0]=Ab3"}


def test_presets_say_which_columns_they_need():
    needed = "chunk: the template needs words and parts of speech, but the data have 1 column"
    with pytest.raises(TemplateError, match=needed):
        Extractor("chunk").fit(Tokens.from_sentences([["a"]]))


@pytest.mark.parametrize(
    ("function", "word", "expected"),
    [
        ("shape", "Mid-1990s", "ULL-DDDDL"),
        ("short_shape", "Mid-1990s", "UL-DL"),
        ("type", "1,000", "AllDigit"),
        ("type", "NATO", "AllUpper"),
        ("type", "Paris", "InitUpper"),
        ("type", "house", "AllLetter"),
        ("type", "b2b", "AllAlnum"),
        ("type", "semi-final", "Other"),
        ("type", "--", "AllSymbol"),
        ("mixed", "b2b", "yes"),
        ("mixed", "42", None),
        ("initial", "J.", "yes"),
        ("two_digits", "42", "yes"),
        ("four_digits", "42", None),
        ("digits_sign", "1990-91", "yes"),
        ("digits_sign", "1990", None),
        ("digits_sign", "--", None),
        ("has_symbol", "a-b", "yes"),
        ("starts_upper", "iPod", None),
        ("prefix4", "abc", None),
        ("suffix2", "abc", "bc"),
    ],
)
def test_what_words_look_like(function, word, expected):
    assert FUNCTIONS[function](word) == expected
