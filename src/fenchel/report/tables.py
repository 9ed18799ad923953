"""Tables of text, for a terminal and for a page."""

from dataclasses import dataclass, field


@dataclass
class Table:
    """Headings and rows of text; columns of numbers are aligned right.

    heat: cells are numbers to be coloured by size, all but the first of each row.
    """

    columns: list[str]
    rows: list[list[str]]
    numbers: set[str] = field(default_factory=set)
    title: str | None = None
    heat: bool = False
