"""How the command line speaks: messages to stderr, tables and lines to stdout."""

import json
import re
import sys
from itertools import islice
from math import isfinite

import click

from fenchel.report.tables import Table, Told

MOST_FOLDED = 1000  # rows that are folded to fit a terminal: rich takes a second for some thousand


HASHED = "features share columns by their hash: which are heaviest is not known"


def say(message: str, quiet: bool = False) -> None:
    """A message for the person at the terminal."""
    if not quiet:
        click.echo(message, err=True)


def show(facts: dict, tables, as_json: bool, **also) -> None:
    """Facts and tables on stdout, as text or as one JSON object; also: what only the latter has."""
    if as_json:
        print_json(also | facts, tables)
        return
    print_facts(facts)
    for table in tables:
        print_table(table)


def print_facts(facts: dict) -> None:
    """name and value, a line each, values aligned."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        click.echo(f"{name:<{width}}  {value}")


def print_json(facts: dict, tables=()) -> None:
    """One object on a line: a fact under its name, a table under its key as a list of objects."""
    values = {key_of(name): as_plain(value) for name, value in facts.items()}
    for table in tables:
        keys = [key_of(column) for column in table.columns]
        values[table.key] = [dict(zip(keys, map(as_plain, row), strict=True)) for row in table.rows]
    click.echo(json_line(values))


def json_line(values) -> str:
    """JSON without a line end; what is no value of JSON is said in words."""
    return json.dumps(values, ensure_ascii=False, default=str)


def key_of(name: str) -> str:
    """log-loss as log_loss, F1 % as f1_percent."""
    return re.sub(r"\W+", "_", name.lower().replace("%", "percent")).strip("_")


def as_plain(value):
    """What JSON holds in the place of a cell or a fact; a number that is none, or infinite, is null."""
    value = value.value if isinstance(value, Told) else value
    if isinstance(value, dict):
        return {name: as_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not isfinite(value) else value


def certificate_fact(certificate) -> Told:
    """A certificate as its sentence and, for programs, its numbers."""
    numbers = {name: value for name, value in certificate.to_dict().items() if name != "missing"}
    also = {"relative_gap": certificate.relative_gap, "converged": certificate.converged}
    return Told(numbers | also, str(certificate))


def print_table(table: Table) -> None:
    """A table on stdout, folded at the terminal's width; one line per row where there is no terminal."""
    if table.title:
        click.echo(f"\n{table.title}")
    if not sys.stdout.isatty() or len(table.rows) > MOST_FOLDED:
        for piece in in_pieces(_unfolded(table)):
            click.echo(piece)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in table.columns:
        drawn.add_column(heading, justify="right" if heading in table.numbers else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(str(cell)) for cell in row))  # Text: a bracket in a name is no markup
    with console.capture() as captured:
        console.print(drawn)
    # Rich pads every line to the width of the table.
    click.echo("\n".join(line.rstrip() for line in captured.get().rstrip().split("\n")))


def _unfolded(table):
    """The lines that rich would draw on a terminal wide enough."""
    rows = [table.columns, *([str(cell) for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pads = [str.rjust if heading in table.numbers else str.ljust for heading in table.columns]
    yield ""
    for number, row in enumerate(rows):
        cells = (pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True))
        yield f" {'  '.join(cells)}".rstrip()
        if number == 0:
            yield f" {'─' * (sum(widths) + 2 * (len(widths) - 1))}"


def in_pieces(lines, size: int = 10_000):
    """Yield the lines joined, many at a time: an echo of each costs more than making it."""
    lines = iter(lines)
    while some := list(islice(lines, size)):
        yield "\n".join(some)


def count(number: int, noun: str) -> str:
    """1 example, 32,561 examples."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def label_text(label) -> str:
    """A class as it stood in the file; a number but for its sign: 1, not 1.0 or +1."""
    return label if isinstance(label, str) else repr(float(label) + 0.0).removesuffix(".0")


def listed(labels, most: int = 10) -> str:
    """a, b, c, ... (46)."""
    some = ", ".join(map(label_text, labels[:most]))
    return some if len(labels) <= most else f"{some}, ... ({len(labels)})"


def escaped(name) -> str:
    """A name as one field of a line with tabs between."""
    name = str(name)
    if "\\" in name or "\t" in name or "\n" in name:
        name = name.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
    return name


def source(path) -> str:
    """The name of an input in messages."""
    return "<stdin>" if path == "-" else path
