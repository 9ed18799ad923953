"""Ready-made templates: attributes that are known to work for chunking, part-of-speech tagging and names.

They are those of CRFsuite's example programs, for `chunk` one for one.  An attribute that would look outside
of the sentence is left out; the first token has `__BOS__` and the last `__EOS__`.  A model file holds the
name of a preset only, so that its lines never change: other lines are another preset.
"""

from typing import NamedTuple

from fenchel.features.lines import Line, Macro, Source

WORD, POS, CHUNK = 0, 1, 2


class Preset(NamedTuple):
    """Lines, and how many columns the data need; lines that look at others are used if they are there."""

    lines: tuple
    n_columns: int


def _line(*fields):
    """The line `name[offset]|name[offset]=value|value` of fields (name, source, offset)."""
    head = "|".join(f"{name}[{offset}]" for name, _, offset in fields)
    texts = (f"{head}=", *("|" for _ in fields[1:]), "")
    return Line("unary", texts, tuple(Macro(source, offset) for _, source, offset in fields))


def _grams(name, source, size, first, last):
    """A line for each run of `size` tokens from first to last, offsets from the current one."""
    runs = (range(start, start + size) for start in range(first, last - size + 2))
    return [_line(*((name, source, offset) for offset in run)) for run in runs]


def _ends():
    return [Line("unary", ("__BOS__",), place="first"), Line("unary", ("__EOS__",), place="last")]


def _affixes(first, last):
    sources = [(f"{end}{n}", Source(WORD, f"{end}{n}")) for end in ("prefix", "suffix") for n in range(1, 5)]
    return [line for name, source in sources for line in _grams(name, source, 1, first, last)]


def _chunk():
    word, pos = ("w", Source(WORD)), ("pos", Source(POS))
    lines = _grams(*word, 1, -2, 2) + _grams(*word, 2, -1, 1)
    lines += _grams(*pos, 1, -2, 2) + _grams(*pos, 2, -2, 2) + _grams(*pos, 3, -2, 2)
    return Preset(tuple(lines + _ends()), 2)


def _pos():
    word = ("w", Source(WORD))
    lines = _grams(*word, 1, -2, 2) + _grams(*word, 2, -2, 2) + _affixes(0, 0)
    for name in ("has_digit", "has_upper", "has_symbol"):
        lines += _grams(name, Source(WORD, name), 1, 0, 0)
    return Preset(tuple(lines + _ends()), 1)


_NER_WORD = ("lower", "shape", "short_shape", "type")
_NER_TESTS = (
    "starts_upper",
    "has_upper",
    "has_lower",
    "has_letter",
    "has_digit",
    "has_symbol",
    "two_digits",
    "four_digits",
    "digits_sign",
    "mixed",
    "initial",
)


def _ner():
    columns = [("w", Source(WORD)), ("pos", Source(POS)), ("chunk", Source(CHUNK))]
    looks = [(name, Source(WORD, name)) for name in _NER_WORD]
    tests = [(name, Source(WORD, name)) for name in _NER_TESTS]
    lines = [line for field in columns + looks + tests for line in _grams(*field, 1, -2, 2)]
    lines += _affixes(-2, 2)
    lines += [line for field in columns + looks[2:] for line in _grams(*field, 2, -2, 2)]
    return Preset(tuple(lines + _ends()), 2)


PRESETS = {"chunk": _chunk(), "ner": _ner(), "pos": _pos()}
