"""What a word looks like: functions from a word to a string, or to None where there is nothing to say."""

import re
from functools import partial
from itertools import groupby

_SIGNS = {sign: kind for signs, kind in ((".,", "."), (";:?!", ";"), ("+-*/=|_", "-")) for sign in signs}
_SIGNS |= dict.fromkeys("({[<", "(") | dict.fromkeys(")}]>", ")")


def same(word: str) -> str:
    return word


def prefix(length: int, word: str) -> str | None:
    """The first letters, if there are so many."""
    return word[:length] if len(word) >= length else None


def suffix(length: int, word: str) -> str | None:
    """The last letters, if there are so many."""
    return word[-length:] if len(word) >= length else None


def shape(word: str) -> str:
    """U for each capital, L for small letters, D for digits, five kinds of sign: "Mid-1990s" is ULL-DDDDL."""
    return "".join(map(_kind, word))


def _kind(character):
    if character.isupper():
        return "U"
    if character.islower():
        return "L"
    return "D" if character.isdigit() else _SIGNS.get(character, character)


def short_shape(word: str) -> str:
    """The shape with runs of one kind made one: "Mid-1990s" is UL-DL."""
    return "".join(kind for kind, _ in groupby(shape(word)))


# Each type is the set of kinds that all characters belong to; the first that holds is given.
_TYPES = (
    ("AllUpper", "U"),
    ("AllDigit", "D"),
    ("AllSymbol", "S"),
    ("AllUpperDigit", "UD"),
    ("AllUpperSymbol", "US"),
    ("AllDigitSymbol", "DS"),
    ("AllUpperDigitSymbol", "UDS"),
    ("InitUpper", None),
    ("AllLetter", "UL"),
    ("AllAlnum", "ULD"),
)


def word_type(word: str) -> str:
    """AllUpper, AllDigit, AllSymbol, their combinations, InitUpper, AllLetter, AllAlnum, or Other.

    Points and commas count as digits, as in "1,000.5".
    """
    kinds = {_coarse(character) for character in word}
    for name, allowed in _TYPES:
        if word[:1].isupper() if allowed is None else kinds <= set(allowed):
            return name
    return "Other"


def _coarse(character):
    if character.isupper():
        return "U"
    if character.isdigit() or character in ",.":
        return "D"
    return "L" if character.islower() else "S"


def _if_any(test, word):
    return "yes" if any(map(test, word)) else None


def _if_found(pattern, word):
    return "yes" if pattern.search(word) else None


def _is_symbol(character):
    return not character.isalnum()


def is_mixed(word: str) -> str | None:
    """Letters and digits, at least one of each, and nothing else."""
    return "yes" if word.isalnum() and not word.isalpha() and not word.isdigit() else None


def is_initial(word: str) -> str | None:
    """A capital and a point: "J."."""
    return "yes" if len(word) == 2 and word[0].isupper() and word[1] == "." else None


def starts_upper(word: str) -> str | None:
    return "yes" if word[:1].isupper() else None


FUNCTIONS = {
    "same": same,
    "lower": str.lower,
    "shape": shape,
    "short_shape": short_shape,
    "type": word_type,
    "mixed": is_mixed,
    "initial": is_initial,
    "starts_upper": starts_upper,
    "has_upper": partial(_if_any, str.isupper),
    "has_lower": partial(_if_any, str.islower),
    "has_letter": partial(_if_any, str.isalpha),
    "has_digit": partial(_if_any, str.isdigit),
    "has_symbol": partial(_if_any, _is_symbol),
    "two_digits": partial(_if_found, re.compile(r"\A\d\d\Z")),
    "four_digits": partial(_if_found, re.compile(r"\A\d{4}\Z")),
    "digits_sign": partial(_if_found, re.compile(r"\A(?=\D*\d)(?=.*[-/,.])[\d\-/,.]+\Z", re.DOTALL)),
}
FUNCTIONS |= {f"prefix{n}": partial(prefix, n) for n in range(1, 5)}
FUNCTIONS |= {f"suffix{n}": partial(suffix, n) for n in range(1, 5)}
