"""Wapiti's regular expressions, and the functions that make one column from another.

The expressions are a small set: `.`, the classes below, `^` at the start and `$` at the end, `*` and `?`
after one character.  `*` takes as little as it can, `?` as much.  Wapiti looks at bytes, here it is
characters: `.` is a whole letter in any script.  The classes are those of ASCII, as in Wapiti's C locale.
"""

import re
from functools import partial

from fenchel.features.words import FUNCTIONS

_CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": r"!-/:-@\[-`{-~",
    "s": r" \t\n\v\f\r",
    "u": "A-Z",
    "w": "0-9A-Za-z",
}


def translate(pattern: str) -> str:
    """The expression in the words of Python's `re`; ValueError where a repetition repeats nothing."""
    anchored = pattern.startswith("^")
    at, parts = int(anchored), [r"\A"] if anchored else []
    while at < len(pattern):
        if pattern[at:] == "$":
            parts.append(r"\Z")
            break
        if pattern[at] in "*?":
            raise ValueError(
                f"{pattern[at]!r} has nothing to repeat in the pattern {pattern!r}; write \\{pattern[at]}"
            )
        item, at = _item(pattern, at)
        sign = pattern[at : at + 1]
        if sign in ("*", "?"):
            item, at = item + {"*": "*?", "?": "?"}[sign], at + 1
        parts.append(item)
    return "".join(parts)


def _item(pattern, at):
    """One character or class that starts at `at`, for `re`, and the place behind it."""
    character = pattern[at]
    if character == ".":
        return ".", at + 1
    if character != "\\":
        return re.escape(character), at + 1
    if at + 1 == len(pattern):
        raise ValueError(f"the pattern {pattern!r} ends in a backslash")
    letter = pattern[at + 1]
    if letter.lower() in _CLASSES:
        return f"[{'^' * letter.isupper()}{_CLASSES[letter.lower()]}]", at + 2
    return re.escape(letter), at + 2


def function_of(source):
    """The function from a string to the value of a source, a string or None for no value at all."""
    if source.function in ("test", "match"):
        search = re.compile(translate(source.pattern), re.DOTALL).search
        function = partial(_test if source.function == "test" else _match, search)
    else:
        function = FUNCTIONS[source.function]
    return partial(_lowered, function) if source.lower else function


def _test(search, value):
    return "true" if search(value) else "false"


def _match(search, value):
    found = search(value)
    return found[0] if found else ""


def _lowered(function, value):
    return function(value).lower()
