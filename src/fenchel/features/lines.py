"""A line of a template: which values of which tokens make up an attribute."""

from typing import NamedTuple

KINDS = ("unary", "edge", "both")
PLACES = ("any", "first", "last")


class Source(NamedTuple):
    """A column derived from one of the data: a function of its strings, applied once to each distinct one.

    function : "same", "test" and "match" (of the pattern), or a name in `words.FUNCTIONS`
    lower : whether the result is lower-cased
    """

    column: int
    function: str = "same"
    pattern: str = ""
    lower: bool = False


class Macro(NamedTuple):
    """A source at an offset from the current token; from the first or the last one if `absolute`.

    An absolute offset counts from 1 for the first token, from −1 for the last.
    """

    source: Source
    offset: int = 0
    absolute: bool = False


class Line(NamedTuple):
    """An attribute for each token: the text texts[0] value[0] texts[1] value[1] ... texts[k] of k macros.

    kind : "unary" for attributes of a token and a label, "edge" of a token, its label and the one before it
    place : "any" token, or only the "first" or the "last" of a sentence
    number : the line in its file, from 1; 0 where there is none
    """

    kind: str
    texts: tuple
    macros: tuple = ()
    place: str = "any"
    number: int = 0

    @property
    def columns(self) -> set:
        """The columns of the data it looks at."""
        return {macro.source.column for macro in self.macros}
