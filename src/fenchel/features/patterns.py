"""Wapiti's regular expressions, and the functions that make one column from another.

The expressions are a small set: `.`, the classes below, `^` at the start and `$` at the end, `*` and `?`
after one character.  `*` takes as little as it can, `?` as much.  Wapiti looks at bytes, here it is
characters: `.` is a whole letter in any script.  The classes are those of ASCII, as in Wapiti's C locale.
"""

import re
from functools import cached_property, partial
from math import log2

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
_SIGNS = {"": "", "*": "*?", "?": "?"}
_REPEATS = 50  # the most of `*` and `?` in a pattern
_TRIALS = 20  # the logarithm of the most steps that backtracking may take


def translate(pattern: str) -> str:
    """The expression in the words of Python's `re`; ValueError where a repetition repeats nothing."""
    items, ends = _items(pattern)
    parts = [item + _SIGNS[sign] for item, sign in items]
    return r"\A" * pattern.startswith("^") + "".join(parts) + r"\Z" * ends


def _items(pattern):
    """[(one character or class for `re`, "", "*" or "?")], and whether it must end where the text does."""
    at, items = int(pattern.startswith("^")), []
    while at < len(pattern) and not (pattern[at] == "$" and at + 1 == len(pattern)):
        if pattern[at] in "*?":
            raise ValueError(
                f"{pattern[at]!r} has nothing to repeat in the pattern {pattern!r}; write \\{pattern[at]}"
            )
        item, at = _item(pattern, at)
        sign = pattern[at : at + 1] if pattern[at : at + 1] in ("*", "?") else ""
        items.append((item, sign))
        at += len(sign)
    if sum(sign != "" for _, sign in items) > _REPEATS:
        raise ValueError(f"the pattern {pattern[:40]!r}... repeats more than {_REPEATS} times")
    return items, at < len(pattern)


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
        function = partial(_test if source.function == "test" else _match, Pattern(source.pattern).find)
    else:
        function = FUNCTIONS[source.function]
    return partial(_lowered, function) if source.lower else function


class Pattern:
    """An expression, searched by `re` where that is quick, else without backtracking.

    `re` tries up to n^(s + 1) 2^q ways through a text of n characters, of s `*` and q `?`: on a word of some
    thousand letters a single `*` took it minutes.
    """

    def __init__(self, pattern):
        self._parts, self._ends = _items(pattern)
        self._anchored = pattern.startswith("^")
        self._quick = re.compile(translate(pattern), re.DOTALL).search
        signs = [sign for _, sign in self._parts]
        self._stars, self._marks = signs.count("*"), signs.count("?")

    @cached_property
    def _items(self):
        return [(re.compile(item, re.DOTALL).match, sign) for item, sign in self._parts]

    def find(self, text: str) -> str | None:
        """What the expression matches first, or None."""
        if (self._stars + 1) * log2(len(text) + 1) + self._marks <= _TRIALS:
            found = self._quick(text)
            return found[0] if found else None
        return self.find_slowly(text)

    def find_slowly(self, text: str) -> str | None:
        """The same in time that is linear in the text: no pair of item and place is tried twice."""
        tried = set()
        for start in range(1 if self._anchored else len(text) + 1):
            end = self._follow(text, start, tried)
            if end >= 0:
                return text[start:end]
        return None

    def _follow(self, text, start, tried):
        """Where the first match from here ends, or −1; (item, place) that lead nowhere go to `tried`."""
        ways = [(0, start)]  # the last one is tried first
        while ways:
            way = ways.pop()
            if way in tried:
                continue
            tried.add(way)
            k, at = way
            if k < len(self._items):
                ways += self._next(text, k, at)
            elif at == len(text) or not self._ends:
                return at
        return -1

    def _next(self, text, k, at):
        """How to go on from item k at a place, the best way last."""
        matches, sign = self._items[k]
        fits = at < len(text) and matches(text, at)
        on = [(k if sign == "*" else k + 1, at + 1)] if fits else []
        past = [(k + 1, at)] if sign else []
        return on + past if sign == "*" else past + on


def _test(find, value):
    return "true" if find(value) is not None else "false"


def _match(find, value):
    return find(value) or ""


def _lowered(function, value):
    return function(value).lower()
