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


def mean_table(tables: list[Table], title: str) -> Table:
    """The means of the numbers of like tables, row by row; a row that some lack is that of the others."""
    first, cells = tables[0], {}
    for table in tables:
        for name, *numbers in table.rows:
            cells.setdefault(name, []).append([float(number) for number in numbers])
    rows = [
        [name, *(f"{sum(column) / len(column):.4g}" for column in zip(*found, strict=True))]
        for name, found in cells.items()
    ]
    return Table(first.columns, rows, first.numbers, title)
