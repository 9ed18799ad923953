"""Tables for a terminal, for a page and for programs."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Told:
    """A value, for programs, and the words that say it to people."""

    value: object
    text: str

    def __str__(self) -> str:
        return self.text

    def __float__(self) -> float:
        return float(self.value)


def number(value, shown: str = "", behind: str = "") -> Told:
    """A number as a format shows it, and what is said behind it."""
    return Told(value, f"{value:{shown}}{behind}")


@dataclass
class Table:
    """Headings and rows of cells, str or Told; columns of numbers are aligned right.

    heat: cells are numbers to be coloured by size, all but the first of each row. key: its name in JSON.
    """

    columns: list[str]
    rows: list[list]
    numbers: set[str] = field(default_factory=set)
    title: str | None = None
    heat: bool = False
    key: str = "rows"


def mean_table(tables: list[Table], title: str) -> Table:
    """The means of the numbers of like tables, row by row; a row that some lack is that of the others."""
    first, cells = tables[0], {}
    for table in tables:
        for name, *numbers in table.rows:
            cells.setdefault(str(name), []).append([float(one) for one in numbers])
    rows = [
        [name, *(number(sum(column) / len(column), ".4g") for column in zip(*found, strict=True))]
        for name, found in cells.items()
    ]
    return Table(first.columns, rows, first.numbers, title, key="means")
